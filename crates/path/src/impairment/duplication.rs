//! Duplication: a share of packets comes twice, as where a link layer retransmits because its own acknowledgment was lost.

use super::{Draws, Flight, Passage};
use crate::{Nanos, spec::spec};

spec! {
    /// A `share` of packets comes twice, the copy later by `delay`.
    pub struct DuplicationSpec {
        /// fraction of packets
        share: f64 [>= 0.0, <= 1.0],
        /// delay of the copy behind the original
        delay_ns: Nanos = 0,
    }
}

impl DuplicationSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }

    pub(super) fn act(&self, flight: &mut Flight, _before: Option<Passage>, draws: Draws) {
        if draws.uniform() < self.share {
            flight.copy = Some(flight.arrival.saturating_add(self.delay_ns));
        }
    }
}
