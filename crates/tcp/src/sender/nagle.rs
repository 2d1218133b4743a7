//! When a small segment waits for an acknowledgment, so that small writes do not become small packets.

use crate::profile::Nagle;
use crate::sequence::SeqNum;

/// The rule for a connection's last segment that is not full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmallSegments {
    pub nagle: Nagle,
    /// The application holds back a last segment that is not full.
    pub corked: bool,
}

impl SmallSegments {
    /// True if the last segment has to wait, since it is not full.
    pub fn holds_back(&self, una: SeqNum, nxt: SeqNum, small_end: SeqNum) -> bool {
        self.corked || self.nagle.holds(una, nxt, small_end)
    }
}

impl Nagle {
    /// True if a small segment has to wait. `small_end` is one past the last small segment sent.
    #[inline]
    fn holds(self, una: SeqNum, nxt: SeqNum, small_end: SeqNum) -> bool {
        match self {
            Self::Off => false,
            Self::Classic => nxt > una,
            Self::Minshall => small_end > una,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_segment_waits_for_anything_outstanding_or_for_another_small_one_or_under_a_cork() {
        // Two full segments are outstanding, from 1000 to 3000; the latest small one ended at 1000 or at 2000.
        let waits = |nagle, end| SmallSegments { nagle, corked: false }.holds_back(1000, 3000, end);
        assert_eq!([Nagle::Off, Nagle::Classic, Nagle::Minshall].map(|nagle| waits(nagle, 1000)), [false, true, false]);
        assert_eq!([Nagle::Off, Nagle::Classic, Nagle::Minshall].map(|nagle| waits(nagle, 2000)), [false, true, true]);
        assert!(!Nagle::Classic.holds(3000, 3000, 1000), "nothing is outstanding");
        assert!(SmallSegments { nagle: Nagle::Off, corked: true }.holds_back(3000, 3000, 1000));
    }
}
