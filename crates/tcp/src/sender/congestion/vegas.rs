//! Vegas: once a round trip, compares the rate expected without queueing with the actual one, and keeps the difference,
//! in segments queued at the bottleneck, between alpha and beta (Brakmo and Peterson, "TCP Vegas: End to End Congestion
//! Avoidance on a Global Internet", 1995).
//!
//! As in Linux, loss is detected and recovered as by any other sender; slow start doubles each round trip rather than
//! each other one; the actual rate is taken from the shortest round trip of a round; after a recovery or an idle time a
//! whole round trip of acknowledgments is waited for.

use super::interface::{Acknowledged, CongestionControl, RoundTrip};
use super::reno::Reno;
use super::shortest::Shortest;
use super::start::Start;
use super::window::Window;
use crate::Nanos;
use crate::amounts::{Bytes, Segments};
use crate::event::Trigger;
use crate::sequence::SeqNum;

/// Fewer segments queued: the window grows.
const ALPHA: u64 = 2;
/// More segments queued: the window shrinks.
const BETA: u64 = 4;
/// More segments queued: slow start ends.
const GAMMA: u64 = 1;
/// With fewer round trips in a round, they may all come from delayed acknowledgments.
const LEAST_SAMPLES: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    reno: Reno,
    /// Decisions are made: no recovery is in progress.
    deciding: bool,
    /// A decision lowered ssthresh in slow start.
    ended_slow_start: bool,
    /// The round ends when this position is passed.
    round_end: SeqNum,
    samples: u32,
    /// Shortest round trip of the round, and of the connection since it was last idle, in microseconds.
    round_rtt_us: Shortest,
    base_rtt_us: Shortest,
    /// As of the latest round trip: first position not acknowledged, and next to send.
    una: SeqNum,
    nxt: SeqNum,
}

impl Vegas {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            reno: Reno::new(start),
            deciding: true,
            ended_slow_start: false,
            round_end: 0,
            samples: 0,
            round_rtt_us: Shortest::default(),
            base_rtt_us: Shortest::default(),
            una: 0,
            nxt: 0,
        }
    }

    fn begin_round(&mut self) {
        self.round_end = self.nxt;
        self.samples = 0;
        self.round_rtt_us = Shortest::default();
    }

    /// The decision at the end of a round.
    fn decide(&mut self, w: &mut Window, bytes: Bytes) {
        let (Some(round_rtt_us), Some(base_rtt_us)) = (self.round_rtt_us.get(), self.base_rtt_us.get()) else { return };
        let window = u64::from(w.segments().0);
        // Brakmo and Peterson, §3.2: Diff = Expected - Actual; here times BaseRTT, which makes it segments queued.
        let queued = window * (round_rtt_us - base_rtt_us) / base_rtt_us;
        let in_slow_start = w.cwnd() < w.ssthresh;
        if in_slow_start && queued > GAMMA {
            // The window that the actual rate fills without queueing, and one for the rounding.
            let target = window * base_rtt_us / round_rtt_us + 1;
            Self::set_segments(w, window.min(target));
            Self::limit_ssthresh(w);
            self.ended_slow_start = true;
        } else if in_slow_start {
            Reno::slow_start_by_all(w, bytes);
        } else if queued > BETA {
            Self::set_segments(w, window - 1);
            Self::limit_ssthresh(w);
        } else if queued < ALPHA {
            Self::set_segments(w, window + 1);
        }
        w.set_cwnd(w.cwnd().max(Segments(2) * w.mss));
        // Linux: the threshold follows a window that has grown past it.
        w.ssthresh = w.current_ssthresh();
    }

    fn set_segments(w: &mut Window, segments: u64) {
        w.set_cwnd(Bytes(u32::try_from(segments * u64::from(w.mss)).unwrap_or(u32::MAX)));
    }

    fn limit_ssthresh(w: &mut Window) {
        w.ssthresh = w.ssthresh.min(w.cwnd());
    }
}

impl CongestionControl for Vegas {
    fn on_start(&mut self, _w: &mut Window, _now: Nanos, _last_sent_at: Option<Nanos>) {
        self.base_rtt_us = Shortest::default();
        self.deciding = true;
        self.begin_round();
    }

    fn on_round_trip(&mut self, _w: &mut Window, _now: Nanos, sample: &RoundTrip) {
        // Linux: one more, so that it is never zero.
        let rtt_us = sample.rtt / 1000 + 1;
        self.base_rtt_us.measure(rtt_us);
        self.round_rtt_us.measure(rtt_us);
        self.samples += 1;
        self.una = sample.una;
        self.nxt = sample.nxt;
    }

    fn on_ack(&mut self, w: &mut Window, now: Nanos, acknowledged: Acknowledged) {
        if !self.deciding {
            // Recovery has ended.
            self.deciding = true;
            self.begin_round();
        }
        if self.una > self.round_end {
            if self.samples < LEAST_SAMPLES {
                self.reno.on_ack(w, now, acknowledged);
            } else {
                self.decide(w, acknowledged.bytes);
            }
            self.begin_round();
        } else if w.cwnd() < w.ssthresh {
            Reno::slow_start_by_all(w, acknowledged.bytes);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, now: Nanos, flight: Bytes) {
        self.reno.on_congestion(w, now, flight);
        self.deciding = false;
    }

    fn on_timeout(&mut self, w: &mut Window, now: Nanos, flight: Bytes, first: bool) {
        self.reno.on_timeout(w, now, flight, first);
        self.deciding = false;
    }

    fn slow_start_end(&self) -> Option<Trigger> {
        self.ended_slow_start.then_some(Trigger::Queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::congestion::CongestionAlgorithm;
    use crate::sender::congestion::controller::Controller;

    const MSS: u32 = 1000;
    /// BaseRTT in microseconds.
    const BASE: u64 = 100_000;

    /// A sender whose rounds end when the test says so.
    struct Rounds {
        vegas: Controller,
        end: SeqNum,
    }

    impl Rounds {
        /// After a round without queueing.
        fn new(cwnd: u32, ssthresh: u32) -> Self {
            let start = Start { ssthresh_bytes: Some(2 * MSS), ..Start::of(2) };
            let mut rounds = Self { vegas: Controller::new_in(None, CongestionAlgorithm::Vegas, &start), end: 0 };
            rounds.vegas.on_start(0, None);
            rounds.round(&[BASE; 3]);
            assert_eq!(rounds.state(), (3, 2));
            rounds.vegas.set_cwnd(cwnd * MSS);
            rounds.vegas.set_ssthresh(ssthresh * MSS);
            rounds
        }

        /// An ACK of one segment, with an RTT in microseconds; `last` of its round.
        fn ack(&mut self, rtt_us: u64, last: bool) {
            // Linux counts one microsecond more than it measured.
            let rtt = (rtt_us - 1) * 1000;
            let una = self.end + SeqNum::from(last);
            self.vegas.on_round_trip(0, &RoundTrip { rtt, una, nxt: self.end + 1 });
            self.vegas.on_ack(0, Acknowledged { bytes: Bytes(MSS) });
            self.end = una;
        }

        fn round(&mut self, rtts_us: &[u64]) {
            let (last, others) = rtts_us.split_last().unwrap();
            others.iter().for_each(|rtt| self.ack(*rtt, false));
            self.ack(*last, true);
        }

        /// cwnd and ssthresh in segments.
        fn state(&self) -> (u32, u32) {
            (self.vegas.cwnd() / MSS, self.vegas.ssthresh() / MSS)
        }
    }

    // Brakmo and Peterson §3.2: Diff = cwnd (RTT - BaseRTT) / RTT with RTT times BaseRTT, here rounded down; below
    // alpha = 2 cwnd grows by one, above beta = 4 it shrinks by one. ssthresh is 3/4 of cwnd at least.
    #[test]
    fn a_round_of_avoidance_moves_cwnd_by_one_towards_two_to_four_queued_segments() {
        for (rtt_us, cwnd) in
            [(100_000, 21), (109_999, 21), (110_000, 20), (124_999, 20), (125_000, 19), (1_000_000, 19)]
        {
            let mut rounds = Rounds::new(20, 2);
            // The shortest RTT of the round counts.
            rounds.round(&[rtt_us + 50_000, rtt_us, rtt_us + 1]);
            assert_eq!(rounds.state(), (cwnd, cwnd / 2 + cwnd / 4), "{rtt_us}");
        }
    }

    #[test]
    fn a_cwnd_that_shrinks_takes_ssthresh_with_it_and_stays_at_two_segments() {
        let mut rounds = Rounds::new(20, 20);
        rounds.round(&[125_000; 3]);
        assert_eq!(rounds.state(), (19, 19));
        let mut rounds = Rounds::new(2, 2);
        rounds.round(&[350_000; 3]);
        assert_eq!(rounds.state(), (2, 1));
    }

    #[test]
    fn slow_start_ends_with_more_than_one_queued_segment_at_the_window_that_the_path_takes() {
        // Two acknowledgments take cwnd from 18 to 20 segments before the third ends the round.
        for (rtt_us, state) in [(109_999, (21, 100)), (110_000, (19, 19)), (200_000, (11, 11))] {
            let mut rounds = Rounds::new(18, 100);
            rounds.round(&[rtt_us; 3]);
            assert_eq!(rounds.state(), state, "{rtt_us}");
        }
    }

    #[test]
    fn a_round_of_fewer_than_three_rtts_grows_as_renos() {
        let mut rounds = Rounds::new(2, 2);
        rounds.round(&[900_000; 2]);
        assert_eq!(rounds.state(), (2, 2));
        rounds.round(&[900_000; 2]);
        assert_eq!(rounds.state(), (3, 2), "two acknowledgments for a cwnd of two");
    }

    #[test]
    fn base_rtt_is_forgotten_at_a_start() {
        for (starts, cwnd) in [(true, 21), (false, 19)] {
            let mut rounds = Rounds::new(20, 2);
            if starts {
                rounds.vegas.on_start(0, None);
            }
            rounds.round(&[200_000; 3]);
            assert_eq!(rounds.state().0, cwnd, "starts: {starts}");
        }
    }

    #[test]
    fn after_a_loss_a_whole_round_of_acks_is_waited_for() {
        for is_timeout in [false, true] {
            let mut rounds = Rounds::new(20, 2);
            rounds.ack(BASE, false);
            rounds.ack(BASE, false);
            if is_timeout {
                rounds.vegas.on_timeout(0, 20 * MSS, true);
                assert_eq!(rounds.state(), (1, 10));
            } else {
                rounds.vegas.on_congestion(0, 20 * MSS);
                assert_eq!(rounds.state(), (10, 10));
            }
            rounds.vegas.set_cwnd(12 * MSS);
            // This one would have ended the round.
            rounds.ack(BASE, true);
            assert_eq!(rounds.state(), (12, 10));
            rounds.round(&[BASE; 3]);
            assert_eq!(rounds.state(), (13, 10));
        }
    }
}
