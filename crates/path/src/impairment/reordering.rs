//! Reordering: a share of packets takes longer by a fixed time, in which others overtake them.

use super::{Draws, Flight};
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

impl Copy for ReorderingSpec {}

impl ReorderingSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reordering(ReorderingSpec);

impl Reordering {
    pub(super) fn new(spec: &ReorderingSpec) -> Reordering {
        Reordering(*spec)
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        if draws.uniform() < self.0.share {
            flight.arrival = flight.arrival.saturating_add(self.0.delay_ns);
        }
    }
}
