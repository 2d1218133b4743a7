//! The shortest of several round trips.

use std::num::NonZeroU64;

/// Shortest round trip measured, in its owner's unit and at least 1; none before the first. As small as the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shortest(Option<NonZeroU64>);

impl Shortest {
    /// Takes a round trip into account and returns the shortest.
    #[inline]
    pub(super) fn measure(&mut self, rtt: u64) -> u64 {
        let rtt = NonZeroU64::new(rtt).unwrap_or(NonZeroU64::MIN);
        match self.0 {
            Some(known) if known <= rtt => known.get(),
            _ => self.0.insert(rtt).get(),
        }
    }

    pub(super) fn get(self) -> Option<u64> {
        self.0.map(NonZeroU64::get)
    }
}
