//! Round trips from where a capture was taken to one end and back.

/// A longer time is no RTT: no sender waits for an acknowledgment for a minute without retransmitting (RFC 6298 §2.5),
/// so one of its packets is missing from the capture.
pub(crate) const LONGEST: i64 = 60_000_000_000;
/// A sender waits for a second at least before it retransmits (RFC 6298 §2.4), and hardly longer than three round trips
/// (§2.2). After so long, and so many times the last one, it has retransmitted, or the clock of the capture was set.
const PATIENT: i64 = 3_500_000_000;
const TIMES_THE_LAST: i64 = 10;

/// The least and the largest of them, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrips {
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
    last: i64,
}

impl RoundTrips {
    /// Adds a round trip; `waited`: the end may have held its acknowledgment back, so that it says nothing of the largest.
    /// Returns true if it is longer than [`PATIENT`] and [`TIMES_THE_LAST`] times the last one.
    pub(crate) fn add(&mut self, time: i64, waited: bool) -> bool {
        let is_too_long = self.last > 0 && time > PATIENT.max(TIMES_THE_LAST.saturating_mul(self.last));
        if (0..LONGEST).contains(&time) {
            self.last = time;
            self.least = Some(self.least.map_or(time, |least| least.min(time)));
            if !waited {
                self.most = self.most.max(Some(time));
            }
        }
        is_too_long
    }
}
