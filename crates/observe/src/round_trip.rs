//! Round trips from where a capture was taken to one end and back.

/// A longer time is no RTT: no sender waits for an acknowledgment for a minute without retransmitting (RFC 6298 §2.5),
/// so one of its packets is missing from the capture.
pub(crate) const LONGEST: i64 = 60_000_000_000;

/// The least and the largest of them, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrips {
    least: i64,
    most: i64,
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self { least: i64::MAX, most: i64::MIN }
    }
}

impl RoundTrips {
    /// A round trip; `waited`: the end may have held its acknowledgment back, so that it says nothing of the largest.
    pub(crate) fn add(&mut self, time: i64, waited: bool) {
        if !(0..LONGEST).contains(&time) {
            return;
        }
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
