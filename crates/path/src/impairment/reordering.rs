//! Reordering: a share of packets takes longer by a fixed time, in which others overtake them.

use super::{Draws, Flight, Passage};
use crate::{Nanos, spec::spec};

spec! {
    /// A `share` of packets comes later by `delay`, and others overtake them.
    pub struct ReorderingSpec {
        /// fraction of packets
        share: f64 [>= 0.0, <= 1.0],
        /// their delay
        delay_ns: Nanos,
    }
}

impl ReorderingSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }

    pub(super) fn act(&self, flight: &mut Flight, _before: Option<Passage>, draws: Draws) {
        if draws.uniform() < self.share {
            flight.arrival = flight.arrival.saturating_add(self.delay_ns);
        }
    }
}
