//! Duplication: a share of packets comes twice, as where a link layer retransmits because its own acknowledgment was lost.

use super::{Draws, Flight};
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

impl Copy for DuplicationSpec {}

impl DuplicationSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Duplication(DuplicationSpec);

impl Duplication {
    pub(super) fn new(spec: &DuplicationSpec) -> Duplication {
        Duplication(*spec)
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        if draws.uniform() < self.0.share {
            flight.copy = Some(flight.arrival.saturating_add(self.0.delay_ns));
        }
    }
}
