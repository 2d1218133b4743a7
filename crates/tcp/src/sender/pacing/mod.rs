//! Pacing: when the next segment may leave, if segments are to leave at a rate rather than as the window opens.

mod window;

pub use window::WindowPacing;
pub(crate) use window::{UNPACED_SEGMENTS, WindowPacer};

use crate::{NEVER, Nanos};

/// So many bytes of payload in so much time. Kept as a fraction: a flight spread over a round trip then ends exactly
/// with it, however odd the two numbers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    bytes: u64,
    time: Nanos,
}

impl Rate {
    /// `bytes`, at least 1, in every `time`.
    pub(crate) fn new(bytes: u64, time: Nanos) -> Self {
        Self { bytes: bytes.max(1), time }
    }

    /// How long so many bytes take.
    pub(crate) fn time_of(self, bytes: u64) -> Nanos {
        let time = u128::from(bytes) * u128::from(self.time) / u128::from(self.bytes);
        time.min(u128::from(NEVER / 2)) as Nanos
    }

    /// Bytes a second, rounded down.
    pub(crate) fn bytes_per_second(self) -> u64 {
        let bytes = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.time.max(1));
        bytes.min(u128::from(u64::MAX)) as u64
    }
}

/// Releases segments one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    rate: Option<Rate>,
    /// When the next segment may leave; 0: at once.
    release: Nanos,
    /// The part of a nanosecond by which `release` is too early, times the rate's bytes.
    remainder: u64,
    /// A segment waits for `release`.
    waiting: bool,
    /// By how much the caller's timer was late for the segment that may leave now.
    late: Nanos,
}

impl Pacer {
    /// Sets the rate of what is sent from now on; none: no pacing.
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        if rate != self.rate {
            self.rate = rate;
            self.remainder = 0;
        }
        if rate.is_none() {
            self.release = 0;
            self.waiting = false;
        }
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether the segment that is ready now has to wait, which [`deadline`](Self::deadline) then tells.
    pub(crate) fn holds(&mut self, now: Nanos) -> bool {
        self.on_time(now);
        self.waiting = now < self.release;
        self.waiting
    }

    /// `bytes` of payload leave: the next segment waits for as long as they take at the rate. A sender that had nothing
    /// to send or was not allowed to does not catch up, so no burst follows a pause.
    // Linux, tcp_update_skb_after_send: the lateness of a timer is made up for, by at most half of an interval at once.
    // Otherwise a real clock's 50 µs would add up segment by segment.
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u32) {
        let Some(rate) = self.rate else { return };
        if self.release < now {
            self.release = now;
            self.remainder = 0;
        }
        // A segment of 64 kB in a day's round trip still fits; what does not, never leaves.
        let scaled = u64::from(bytes).saturating_mul(rate.time).saturating_add(self.remainder);
        let interval = scaled / rate.bytes;
        self.release = self.release.saturating_add(interval - std::mem::take(&mut self.late).min(interval / 2));
        self.remainder = scaled % rate.bytes;
    }

    /// When a segment that waits may leave, or [`NEVER`].
    pub(crate) fn deadline(&self) -> Nanos {
        if self.waiting { self.release } else { NEVER }
    }

    /// Time passed: what waited is released once the deadline is reached.
    pub(crate) fn on_time(&mut self, now: Nanos) {
        if self.waiting && now >= self.release {
            self.waiting = false;
            self.late = now - self.release;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_do_not_drift_when_an_interval_is_no_whole_number_of_nanoseconds() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::new(3 * 1000, 100)));
        let mut departures = Vec::new();
        let mut now = 0;
        for _ in 0..7 {
            departures.push(now);
            pacer.on_sent(now, 1000);
            assert!(pacer.holds(now));
            now = pacer.deadline();
        }
        assert_eq!(departures, [0, 33, 66, 100, 133, 166, 200]);
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::new(1000, 100)));
        pacer.on_sent(0, 1000);
        assert!(!pacer.holds(1000));
        pacer.on_sent(1000, 1000);
        assert!(pacer.holds(1000));
        assert_eq!(pacer.deadline(), 1100);
    }

    #[test]
    fn late_timers_do_not_add_up() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::new(1000, 100)));
        let mut departures = Vec::new();
        let mut now = 0;
        for late in [0, 30, 30, 10, 0] {
            assert!(!pacer.holds(now));
            departures.push(now);
            pacer.on_sent(now, 1000);
            assert!(pacer.holds(now));
            now = pacer.deadline() + late;
        }
        assert_eq!(departures, [0, 100, 230, 330, 410]);
        // After a timer that was very late the next segment waits for half of an interval, no less, and then as usual.
        assert!(!pacer.holds(now + 1000));
        pacer.on_sent(now + 1000, 1000);
        assert!(pacer.holds(now + 1000));
        assert_eq!(pacer.deadline(), now + 1050);
        assert!(!pacer.holds(now + 1050));
        pacer.on_sent(now + 1050, 1000);
        assert!(pacer.holds(now + 1050));
        assert_eq!(pacer.deadline(), now + 1150);
    }

    #[test]
    fn nothing_waits_without_a_rate() {
        let mut pacer = Pacer::default();
        pacer.on_sent(5, 1000);
        assert!(!pacer.holds(5));
        assert_eq!(pacer.deadline(), NEVER);
    }

    #[test]
    fn a_deadline_exists_only_while_a_segment_waits() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::new(1000, 100)));
        pacer.on_sent(0, 500);
        assert_eq!(pacer.deadline(), NEVER);
        assert!(pacer.holds(49));
        assert_eq!(pacer.deadline(), 50);
        pacer.on_time(50);
        assert_eq!(pacer.deadline(), NEVER);
        assert!(!pacer.holds(50));
    }

    #[test]
    fn a_rate_is_told_in_bytes_a_second() {
        assert_eq!(Rate::new(14_600, 100_000_000).bytes_per_second(), 146_000);
    }
}
