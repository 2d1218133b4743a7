//! A window spread over the round trip, as Linux's pacing and its `fq` queue do it: bursts of a few segments, each due
//! when the one before has been sent at a rate that follows cwnd and the smoothed round trip.

use crate::sender::pacing::Rate;
use crate::{NEVER, Nanos};
use serde::{Deserialize, Serialize};

// Linux, tcp_update_skb_after_send: the first ten segments of a connection are not paced.
pub(crate) const UNPACED_SEGMENTS: u32 = 10;

/// How fast a window leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowPacing {
    /// Share of cwnd that may leave in a smoothed round trip while cwnd is below half of ssthresh, in percent, 1 to 1000
    /// (Linux: `tcp_pacing_ss_ratio`, 200).
    pub slow_start_percent: u32,
    /// The same from there on (Linux: `tcp_pacing_ca_ratio`, 120).
    pub avoidance_percent: u32,
    /// Segments that leave together, 1 to 64 (Linux: `tcp_min_tso_segs`, 2, as long as they take longer than a
    /// millisecond).
    pub burst_segments: u32,
}

impl WindowPacing {
    /// Linux's.
    pub(crate) const LINUX: Self = Self { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };

    /// Checks that every field is within its range.
    pub(crate) fn validate(&self, within: impl Fn(&str, u64, u64, u64) -> Result<(), String>) -> Result<(), String> {
        within("pacing.slow_start_percent", self.slow_start_percent.into(), 1, 1000)?;
        within("pacing.avoidance_percent", self.avoidance_percent.into(), 1, 1000)?;
        within("pacing.burst_segments", self.burst_segments.into(), 1, 64)
    }

    /// The rate for these windows, in bytes.
    // Linux, tcp_update_pacing_rate.
    pub(crate) fn rate(&self, window: u32, ssthresh: u32, srtt: Nanos) -> Rate {
        let percent = if window < ssthresh / 2 { self.slow_start_percent } else { self.avoidance_percent };
        Rate::new(u64::from(window) * u64::from(percent), srtt.saturating_mul(100))
    }
}

/// Releases bursts.
#[derive(Clone, Debug)]
pub(crate) struct WindowPacer {
    burst_segments: u32,
    rate: Option<Rate>,
    /// When the next burst may leave.
    release: Nanos,
    /// The latest burst: when it began, how late that was, and what it holds.
    began: Nanos,
    late: Nanos,
    segments: u32,
    bytes: u64,
    /// Segments sent so far, as far as it matters.
    sent: u32,
    /// A segment waits for `release`.
    waiting: bool,
}

impl WindowPacer {
    pub(crate) fn new(rules: &WindowPacing) -> Self {
        Self {
            burst_segments: rules.burst_segments,
            rate: None,
            release: 0,
            began: NEVER,
            late: 0,
            segments: 0,
            bytes: 0,
            sent: 0,
            waiting: false,
        }
    }

    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    fn continues_burst(&self, now: Nanos) -> bool {
        now == self.began && self.segments < self.burst_segments
    }

    /// Whether a segment that is ready now has to wait.
    pub(crate) fn holds(&mut self, now: Nanos) -> bool {
        self.waiting = now < self.release && !self.continues_burst(now);
        self.waiting
    }

    /// `bytes` of payload leave.
    // Linux, tcp_update_skb_after_send: the next burst is due when this one has been sent at the rate, counted from when
    // it was due or left, whichever is later; one that left late is forgiven up to half of its time.
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u32) {
        self.sent = self.sent.saturating_add(1);
        if !self.continues_burst(now) {
            self.late = now.saturating_sub(self.release);
            self.began = now;
            self.segments = 0;
            self.bytes = 0;
        }
        self.segments += 1;
        self.bytes += u64::from(bytes);
        if let Some(rate) = self.rate.filter(|_| self.sent >= UNPACED_SEGMENTS) {
            let time = rate.time_of(self.bytes);
            self.release = self.began + time - self.late.min(time / 2);
        } else {
            self.release = self.began;
        }
    }

    /// When a segment that waits may leave, or [`NEVER`].
    pub(crate) fn deadline(&self) -> Nanos {
        if self.waiting { self.release } else { NEVER }
    }

    /// Time passed: what waited is released once the deadline is reached.
    pub(crate) fn on_time(&mut self, now: Nanos) {
        self.waiting &= now < self.release;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const LINUX: WindowPacing = WindowPacing::LINUX;

    /// Sends as much as leaves now.
    fn burst(pacer: &mut WindowPacer, now: Nanos) -> u32 {
        let mut sent = 0;
        while sent < 20 && !pacer.holds(now) {
            pacer.on_sent(now, 1000);
            sent += 1;
        }
        sent
    }

    #[test]
    fn ten_segments_leave_at_once_and_bursts_of_two_after_them() {
        let mut pacer = WindowPacer::new(&LINUX);
        pacer.set_rate(Some(LINUX.rate(20_000, u32::MAX, 100 * MS)));
        assert_eq!(burst(&mut pacer, 0), 10);
        assert_eq!(pacer.deadline(), 5 * MS);
        assert_eq!(burst(&mut pacer, 5 * MS), 2);
        assert_eq!(pacer.deadline(), 10 * MS);
    }

    #[test]
    fn a_burst_that_left_late_is_forgiven_half_of_its_time() {
        let mut pacer = WindowPacer::new(&LINUX);
        pacer.set_rate(Some(LINUX.rate(20_000, u32::MAX, 100 * MS)));
        burst(&mut pacer, 0);
        assert_eq!(burst(&mut pacer, 100 * MS), 2);
        assert_eq!(pacer.deadline(), 102 * MS + MS / 2);
        assert_eq!(burst(&mut pacer, 103 * MS), 2);
        assert_eq!(pacer.deadline(), 107 * MS + MS / 2, "half a millisecond late");
    }

    #[test]
    fn from_half_of_the_threshold_on_the_rate_is_the_lower_one() {
        let rate = |ssthresh| LINUX.rate(10_000, ssthresh, 100 * MS).bytes_per_second();
        assert_eq!((rate(20_001), rate(20_002), rate(20_000)), (120_000, 200_000, 120_000));
    }
}
