//! Round trips from where a capture was taken to one end and back.

/// A longer time is no RTT: no sender waits for an acknowledgment for a minute without retransmitting (RFC 6298 §2.5),
/// so one of its packets is missing from the capture.
pub(crate) const LONGEST: i64 = 60_000_000_000;
/// A sender waits for a second at least before it retransmits (RFC 6298 §2.4), and hardly longer than three round trips
/// (§2.2). After so long, and so many times the last one, it has retransmitted, or the clock of the capture was set.
const PATIENT: i64 = 3_500_000_000;
const TIMES_THE_LAST: i64 = 10;

/// The least and the largest of them, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrips {
    least: i64,
    most: i64,
    last: i64,
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self { least: i64::MAX, most: i64::MIN, last: 0 }
    }
}

impl RoundTrips {
    /// True for a round trip that no sender waits for, as the last one shows: nothing was retransmitted during it.
    pub(crate) fn is_too_long(&self, time: i64) -> bool {
        self.last > 0 && time > PATIENT.max(TIMES_THE_LAST.saturating_mul(self.last))
    }

    /// A round trip; `waited`: the end may have held its acknowledgment back, so that it says nothing of the largest.
    pub(crate) fn add(&mut self, time: i64, waited: bool) {
        if !(0..LONGEST).contains(&time) {
            return;
        }
        self.last = time;
        self.least = self.least.min(time);
        if !waited {
            self.most = self.most.max(time);
        }
    }

    pub(crate) fn least(&self) -> Option<i64> {
        (self.least != i64::MAX).then_some(self.least)
    }

    pub(crate) fn most(&self) -> Option<i64> {
        (self.most != i64::MIN).then_some(self.most)
    }
}
