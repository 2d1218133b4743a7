//! Pacing: when the next segment may leave, if segments are to leave at a rate rather than as the window opens.
//!
//! There is one [`Pacer`]; its rate comes from the controller (BBR), the window and the smoothed RTT
//! ([`WindowPacing`]), or a start-up scheme for its first flight ([`PacedFlight`]). It releases bursts: a segment, a
//! [train](super::trains), or the profile's size.

pub(crate) mod flight;
mod release;

pub use flight::{PacedFlight, Rate};

use crate::profile::WindowPacing;
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};

// Linux, tcp_update_skb_after_send: the first ten segments of a connection are not paced.
const FIRST_PACED_SEGMENT: u32 = 10;

impl WindowPacing {
    /// The rate for cwnd and ssthresh with this much outstanding, SACKed and lost segments included, all in bytes.
    // Linux, tcp_update_pacing_rate.
    pub(crate) fn rate(&self, (window, ssthresh): (u32, u32), mss: u32, outstanding: u32, srtt: Nanos) -> Rate {
        let grows_fast = window / mss < ssthresh / mss / 2;
        let percent = if grows_fast { self.slow_start_percent } else { self.avoidance_percent };
        Rate::new(u64::from(window.max(outstanding)) * u64::from(percent), srtt.saturating_mul(100))
    }
}

/// The source of the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum PacedBy {
    #[default]
    Controller,
    /// cwnd and the smoothed RTT.
    Window(WindowPacing),
    /// The start-up scheme, from `start` to `end`.
    Startup { flight: PacedFlight, start: SeqNum, end: SeqNum, began: Option<Nanos> },
}

/// Releases segments burst by burst.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    pub by: PacedBy,
    rate: Option<Rate>,
    /// When the next burst may leave; none before the first segment.
    release: Option<Nanos>,
    /// The part of a nanosecond by which `release` is too early, times the rate's bytes.
    remainder: u64,
    /// The latest burst: when it left, when it was due, the remainder then, and how late it was.
    left_at: Nanos,
    due_at: Nanos,
    carried: u64,
    late: Nanos,
    /// Its fill level and its limit.
    bytes: u64,
    segments: u32,
    max_segments: u32,
    /// Segments sent so far, as far as it matters.
    sent: u32,
    /// A segment waits for `release`.
    waiting: bool,
}

impl Pacer {
    pub(crate) fn new(by: PacedBy) -> Self {
        Self { by, ..Self::default() }
    }

    /// As [`new`](Self::new), but the first burst waits until `at`.
    pub(crate) fn new_at(at: Nanos, by: PacedBy) -> Self {
        Self { release: Some(at), ..Self::new(by) }
    }

    /// True if the next segment precedes the flight of a start-up scheme.
    fn is_ahead(&self, nxt: SeqNum) -> bool {
        matches!(self.by, PacedBy::Startup { start, .. } if nxt < start)
    }

    /// Sets the rate of data sent from now on; none: no pacing.
    fn set_rate(&mut self, rate: Option<Rate>) {
        if rate != self.rate {
            self.rate = rate;
            self.remainder = 0;
        }
    }

    /// The rate, in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.rate.map(Rate::bytes_per_second)
    }

    /// Segments of a burst at least.
    fn burst_segments(&self) -> u32 {
        match &self.by {
            PacedBy::Window(rules) => rules.burst_segments,
            _ => 1,
        }
    }

    /// True if a segment that leaves now is part of the latest burst.
    fn continues_burst(&self, now: Nanos) -> bool {
        now == self.left_at && self.segments < self.max_segments
    }

    /// When the next burst was due or is.
    pub(crate) fn release(&self) -> Option<Nanos> {
        self.release
    }

    /// True if the segment that is ready now has to wait, until [`deadline`](Self::deadline).
    fn holds(&mut self, now: Nanos) -> bool {
        let early = self.release.is_some_and(|release| now < release);
        self.waiting = early && self.rate.is_some() && !self.continues_burst(now);
        self.waiting
    }

    /// `bytes` of payload leave, as part of the latest burst or as the first of one of up to this number of segments.
    // Linux, tcp_update_skb_after_send: the next burst is due when this one has been sent at the rate, counted from when
    // it was due or left, whichever is later; a delay is made up for by half of its time at most. Otherwise a
    // real clock's 50 µs would add up burst by burst.
    fn on_sent(&mut self, now: Nanos, bytes: u32, train_segments: u32) {
        self.sent = self.sent.saturating_add(1);
        if !self.continues_burst(now) {
            let on_time = self.release.is_some_and(|release| release >= now);
            self.late = self.release.map_or(0, |release| now.saturating_sub(release));
            self.due_at = self.release.map_or(now, |release| release.max(now));
            self.carried = if on_time { self.remainder } else { 0 };
            self.left_at = now;
            self.max_segments = train_segments.max(self.burst_segments());
            (self.bytes, self.segments) = (0, 0);
        }
        self.bytes += u64::from(bytes);
        self.segments += 1;
        let unpaced = self.sent < FIRST_PACED_SEGMENT && !matches!(self.by, PacedBy::Startup { .. });
        let Some(rate) = self.rate.filter(|_| !unpaced) else {
            self.release = Some(now);
            return;
        };
        let scaled = u128::from(self.bytes) * u128::from(rate.time) + u128::from(self.carried);
        let interval = (scaled / u128::from(rate.bytes)).min(u128::from(Nanos::MAX / 2)) as Nanos;
        self.release = Some(self.due_at.saturating_add(interval - self.late.min(interval / 2)));
        self.remainder = (scaled % u128::from(rate.bytes)) as u64;
    }

    /// A segment without payload leaves: the next burst is not late by the time before it.
    // Linux, __tcp_transmit_skb: each segment moves tcp_wstamp_ns to the present.
    pub(crate) fn on_bare_sent(&mut self, now: Nanos) {
        if self.release.is_some_and(|release| release < now) {
            self.release = Some(now);
        }
    }

    /// When a segment that waits may leave.
    pub(crate) fn deadline(&self) -> Deadline {
        self.release.filter(|_| self.waiting).into()
    }

    /// Time passed: whether waiting data is released, since the deadline is reached.
    pub(crate) fn on_time(&mut self, now: Nanos) -> bool {
        let released = self.deadline().is_due(now);
        self.waiting &= !released;
        released
    }

    /// Whether it is a start-up scheme's flight, and all of its paced part was sent or given up.
    fn is_over(&self, now: Nanos, nxt: SeqNum) -> bool {
        match self.by {
            PacedBy::Startup { flight, end, began, .. } => {
                nxt >= end || began.is_some_and(|began| now >= began.saturating_add(flight.time))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const LINUX: WindowPacing = WindowPacing::LINUX;

    /// A pacer of single segments from the first one on.
    fn of_segments(rate: Option<Rate>) -> Pacer {
        let flight = PacedFlight { bytes: 0, rate: Rate::new(1, 1), time: 0, until_ack: false };
        let mut pacer = Pacer::new(PacedBy::Startup { flight, start: 0, end: 0, began: None });
        pacer.set_rate(rate);
        pacer
    }

    fn of_window(rate: Rate) -> Pacer {
        let mut pacer = Pacer::new(PacedBy::Window(LINUX));
        pacer.set_rate(Some(rate));
        pacer
    }

    /// Of twenty segments in slow start, over 100 ms.
    fn slow_start() -> Rate {
        LINUX.rate((20_000, u32::MAX), 1_000, 0, 100 * MS)
    }

    #[test]
    fn departures_do_not_drift_when_an_interval_is_no_whole_number_of_nanoseconds() {
        let mut pacer = of_segments(Some(Rate::new(3 * 1000, 100)));
        let mut departures = Vec::new();
        let mut now = 0;
        for _ in 0..7 {
            departures.push(now);
            pacer.on_sent(now, 1000, 1);
            assert!(pacer.holds(now));
            now = pacer.deadline().time().unwrap();
        }
        assert_eq!(departures, [0, 33, 66, 100, 133, 166, 200]);
    }

    #[test]
    fn after_a_pause_the_next_segment_waits_for_half_of_an_interval() {
        let mut pacer = of_segments(Some(Rate::new(1000, 100)));
        pacer.on_sent(0, 1000, 1);
        assert!(!pacer.holds(1000));
        pacer.on_sent(1000, 1000, 1);
        assert!(pacer.holds(1000));
        assert_eq!(pacer.deadline(), Deadline::at(1050));
        pacer.on_sent(1050, 1000, 1);
        assert!(pacer.holds(1050));
        assert_eq!(pacer.deadline(), Deadline::at(1150));
    }

    #[test]
    fn an_ack_in_a_pause_ends_it() {
        let mut pacer = of_segments(Some(Rate::new(1000, 100)));
        pacer.on_sent(0, 1000, 1);
        pacer.on_bare_sent(990);
        pacer.on_sent(1000, 1000, 1);
        assert!(pacer.holds(1000));
        assert_eq!(pacer.deadline(), Deadline::at(1090), "10 ns late");
    }

    #[test]
    fn late_timers_do_not_add_up() {
        let mut pacer = of_segments(Some(Rate::new(1000, 100)));
        let mut departures = Vec::new();
        let mut now = 0;
        for late in [0, 30, 30, 10, 0] {
            assert!(!pacer.holds(now));
            departures.push(now);
            pacer.on_sent(now, 1000, 1);
            assert!(pacer.holds(now));
            now = pacer.deadline().time().unwrap() + late;
        }
        assert_eq!(departures, [0, 100, 230, 330, 410]);
    }

    #[test]
    fn nothing_waits_without_a_rate() {
        let mut pacer = of_segments(None);
        pacer.on_sent(5, 1000, 1);
        assert!(!pacer.holds(5));
        assert_eq!(pacer.deadline(), Deadline::NEVER);
    }

    #[test]
    fn a_deadline_exists_only_while_a_segment_waits() {
        let mut pacer = of_segments(Some(Rate::new(1000, 100)));
        pacer.on_sent(0, 500, 1);
        assert_eq!(pacer.deadline(), Deadline::NEVER);
        assert!(pacer.holds(49));
        assert_eq!(pacer.deadline(), Deadline::at(50));
        pacer.on_time(50);
        assert_eq!(pacer.deadline(), Deadline::NEVER);
        assert!(!pacer.holds(50));
    }

    #[test]
    fn a_rate_is_told_in_bytes_a_second() {
        assert_eq!(Rate::new(14_600, 100_000_000).bytes_per_second(), 146_000);
    }

    /// Sends all data that may leave now, in trains of this number of segments.
    fn burst(pacer: &mut Pacer, now: Nanos, train: u32) -> u32 {
        let mut sent = 0;
        while sent < 20 && !pacer.holds(now) {
            pacer.on_sent(now, 1000, train);
            sent += 1;
        }
        sent
    }

    #[test]
    fn ten_segments_leave_at_once_and_bursts_of_two_after_them() {
        let mut pacer = of_window(slow_start());
        assert_eq!(burst(&mut pacer, 0, 1), 10);
        assert_eq!(pacer.deadline(), Deadline::at(5 * MS));
        assert_eq!(burst(&mut pacer, 5 * MS, 1), 2);
        assert_eq!(pacer.deadline(), Deadline::at(10 * MS));
    }

    #[test]
    fn a_train_leaves_as_one_burst() {
        let mut pacer = of_window(slow_start());
        burst(&mut pacer, 0, 1);
        assert_eq!(burst(&mut pacer, 5 * MS, 5), 5);
        assert_eq!(pacer.deadline(), Deadline::at(17 * MS + MS / 2), "five segments at two in 5 ms");
    }

    #[test]
    fn a_burst_that_left_late_is_forgiven_half_of_its_time() {
        let mut pacer = of_window(slow_start());
        burst(&mut pacer, 0, 1);
        assert_eq!(burst(&mut pacer, 100 * MS, 1), 2);
        assert_eq!(pacer.deadline(), Deadline::at(102 * MS + MS / 2));
        assert_eq!(burst(&mut pacer, 103 * MS, 1), 2);
        assert_eq!(pacer.deadline(), Deadline::at(107 * MS + MS / 2), "half a millisecond late");
    }

    // Linux, tcp_update_pacing_rate: snd_cwnd < snd_ssthresh / 2, in whole segments.
    #[test]
    fn from_half_of_the_threshold_on_the_rate_is_the_lower_one() {
        let rate = |ssthresh| LINUX.rate((10_000, ssthresh), 1_000, 0, 100 * MS).bytes_per_second();
        assert_eq!((rate(21_999), rate(22_000), rate(20_000)), (120_000, 200_000, 120_000));
    }

    // Linux, tcp_update_pacing_rate: max(snd_cwnd, packets_out).
    #[test]
    fn a_window_that_was_reduced_is_paced_by_what_is_outstanding() {
        let rate = |outstanding| LINUX.rate((10_000, 10_000), 1_000, outstanding, 100 * MS).bytes_per_second();
        assert_eq!((rate(9_000), rate(20_000)), (120_000, 240_000));
    }
}
