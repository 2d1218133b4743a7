//! HyStart as in Linux since 6.14: slow start ends when a train of closely spaced acknowledgments has become as
//! long as the path, or when the round trip has grown (Ha and Rhee, "Taming the Elephants: New TCP Slow Start", 2008).
//!
//! Linux's rounding: times are whole microseconds. Before 6.14 rounds were counted only from a window of
//! [`LOW_WINDOW`] on, so that the first of them began later.

use super::interface::RoundTrip;
use super::shortest::Shortest;
use crate::Nanos;
use crate::amounts::{Bytes, Segments};
use crate::event::Trigger;
use crate::sequence::SeqNum;

/// Below this number of segments nothing ends slow start.
const LOW_WINDOW: Segments = Segments(16);
/// Acknowledgments at most so far apart belong to one train, in microseconds.
const TRAIN_SPACING_US: u64 = 2000;
/// The delay of a round counts once it has this number of samples.
const SAMPLES: u8 = 8;
/// Bounds of the rise of delay that matters, in microseconds; between them it is an eighth of the shortest round trip.
const LEAST_RISE_US: u64 = 4000;
const MOST_RISE_US: u64 = 16_000;
/// The largest aggregate that a sender hands to its network card, in bytes, and the most that one may delay a train.
const AGGREGATE_BYTES: u64 = 65_536;
const MOST_CUSHION_US: u64 = 1000;

/// The controller's values that the rule needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Progress {
    pub window: Bytes,
    pub mss: Bytes,
    /// Shortest round trip that the controller knows of, this one included, in microseconds.
    pub min_rtt_us: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Detectors {
    pub ack_train: bool,
    pub delay: bool,
}

#[derive(Clone, Debug, Default)]
pub(in crate::sender) struct Hystart {
    detectors: Detectors,
    /// Segments leave at a rate, so that a train may be half a round trip long by itself.
    paced: bool,
    /// The detector that found the exit; nothing is looked for then until a timeout.
    pub(in crate::sender) found: Option<Trigger>,
    samples: u8,
    /// The round ends when this position is passed; none: when the data outstanding at the next sample is.
    round_end: Option<SeqNum>,
    round_start_us: u64,
    /// Latest acknowledgment of the train.
    train_us: u64,
    round_rtt_us: Shortest,
}

impl Hystart {
    pub(in crate::sender) fn new(detectors: Detectors, paced: bool) -> Self {
        Self { detectors, paced, round_end: Some(0), ..Self::default() }
    }

    fn begin_round(&mut self, now_us: u64, end: Option<SeqNum>) {
        self.round_start_us = now_us;
        self.train_us = now_us;
        self.round_end = end;
        self.round_rtt_us = Shortest::default();
        self.samples = 0;
    }

    /// The timer expired: slow start begins again, and with it the search for its end.
    pub(in crate::sender) fn restart(&mut self, now: Nanos) {
        self.found = None;
        self.begin_round(now / 1000, None);
    }

    pub(in crate::sender) fn on_round_trip(&mut self, now: Nanos, sample: &RoundTrip, progress: &Progress) -> bool {
        if !self.looks(now, sample, progress) {
            return false;
        }
        let train = self.detectors.ack_train && self.train_is_long(now, progress, 1);
        let delay = self.detectors.delay && self.delay_has_risen(sample.rtt, progress);
        self.found = if train { Some(Trigger::AckTrain) } else { delay.then_some(Trigger::Delay) };
        self.found.is_some()
    }

    /// Keeps the rounds. Whether the detectors are to look at this sample.
    pub(in crate::sender) fn looks(&mut self, now: Nanos, sample: &RoundTrip, progress: &Progress) -> bool {
        if self.found.is_some() {
            return false;
        }
        if sample.una > *self.round_end.get_or_insert(sample.nxt) {
            self.begin_round(now / 1000, Some(sample.nxt));
        }
        progress.window >= LOW_WINDOW * progress.mss
    }

    /// The acknowledgments since the round began form a train as long as the path: half the round trip, or all of it
    /// if pacing may have spread them. The visible part of the train is the train divided by this number.
    pub(in crate::sender) fn train_is_long(&mut self, now: Nanos, progress: &Progress, parts: u64) -> bool {
        let now_us = now / 1000;
        if now_us - self.train_us > TRAIN_SPACING_US {
            return false;
        }
        self.train_us = now_us;
        let threshold = progress.min_rtt_us + cushion_us(progress);
        let threshold = if self.paced { threshold } else { threshold / 2 };
        (now_us - self.round_start_us) * parts > threshold
    }

    /// The shortest round trip of the round is too long.
    pub(in crate::sender) fn delay_has_risen(&mut self, rtt: Nanos, progress: &Progress) -> bool {
        let rtt_us = rtt / 1000;
        let shortest_us = self.round_rtt_us.measure(rtt_us);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise = (progress.min_rtt_us / 8).clamp(LEAST_RISE_US, MOST_RISE_US);
        shortest_us > progress.min_rtt_us + rise
    }
}

/// Time that the sender's and the receiver's aggregation may add to a train: four aggregates at the sending rate, a
/// millisecond at most.
// Linux takes the rate at which it paces, twice the window a smoothed round trip. With the shortest round trip in its
// place, the two differ only above 2 Gbit/s, where the bound of a millisecond is not reached.
fn cushion_us(progress: &Progress) -> u64 {
    let rate = 2 * u64::from(progress.window).max(1);
    (4 * AGGREGATE_BYTES * progress.min_rtt_us / rate).min(MOST_CUSHION_US)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;
    use crate::amounts::Bytes;

    const MSS: Bytes = Bytes(1000);

    /// Acknowledgments of a segment each, all of one round, at a constant window.
    struct Round {
        hystart: Hystart,
        una: SeqNum,
        window: u32,
        min_rtt_us: u64,
    }

    impl Round {
        fn new(ack_train: bool, delay: bool, paced: bool) -> Self {
            let hystart = Hystart::new(Detectors { ack_train, delay }, paced);
            Self { hystart, una: 0, window: 20, min_rtt_us: 100_000 }
        }

        fn acknowledge(&mut self, now: Nanos, rtt: Nanos) -> bool {
            self.una += 1;
            self.min_rtt_us = self.min_rtt_us.min(rtt / 1000);
            let sample = RoundTrip { rtt, una: self.una, nxt: 10_000 };
            let progress = Progress { window: Segments(self.window) * MSS, mss: MSS, min_rtt_us: self.min_rtt_us };
            self.hystart.on_round_trip(now, &sample, &progress)
        }

        /// The first of many acknowledgments at this spacing that ends slow start.
        fn first_exit(&mut self, spacing: Nanos, rtt: Nanos) -> Option<u64> {
            (0..1000).find(|&number| self.acknowledge(number * spacing, rtt))
        }
    }

    #[test]
    fn a_train_ends_slow_start_after_half_the_shortest_round_trip_or_all_of_it_if_paced() {
        let (spacing, rtt) = (MILLISECOND, 100 * MILLISECOND);
        assert_eq!(Round::new(true, false, false).first_exit(spacing, rtt), Some(51));
        assert_eq!(Round::new(true, false, true).first_exit(spacing, rtt), Some(102));
    }

    #[test]
    fn acknowledgments_more_than_two_milliseconds_apart_are_no_train() {
        let rtt = 100 * MILLISECOND;
        assert!(Round::new(true, false, false).first_exit(2 * MILLISECOND, rtt).is_some());
        assert_eq!(Round::new(true, false, false).first_exit(2 * MILLISECOND + 1000, rtt), None);
    }

    #[test]
    fn the_ninth_late_sample_ends_slow_start_if_it_is_an_eighth_late() {
        assert_eq!(Round::new(false, true, false).first_exit(0, 113 * MILLISECOND), Some(8));
        assert_eq!(Round::new(false, true, false).first_exit(0, 112 * MILLISECOND), None);
    }

    #[test]
    fn a_sample_that_lowers_the_shortest_round_trip_does_not_end_slow_start() {
        let mut round = Round::new(false, true, false);
        for _ in 0..8 {
            assert!(!round.acknowledge(0, 105 * MILLISECOND));
        }
        assert!(!round.acknowledge(0, 50 * MILLISECOND));
    }

    #[test]
    fn nothing_ends_slow_start_below_sixteen_segments() {
        let mut round = Round::new(true, true, false);
        round.window = 15;
        assert_eq!(round.first_exit(MILLISECOND, 200 * MILLISECOND), None);
    }

    #[test]
    fn the_exit_is_found_once_and_looked_for_again_after_a_timeout() {
        let mut round = Round::new(false, true, false);
        assert!(round.first_exit(0, 200 * MILLISECOND).is_some());
        assert_eq!(round.first_exit(0, 200 * MILLISECOND), None);
        round.hystart.restart(0);
        assert!(round.first_exit(0, 200 * MILLISECOND).is_some());
    }
}
