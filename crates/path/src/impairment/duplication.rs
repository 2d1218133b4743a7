//! Duplication: a share of packets comes twice, as where a link layer retransmits because its own acknowledgment was lost.

use serde::{Deserialize, Serialize};

use super::{Draws, Flight, check_share};
use crate::{Nanos, SpecError};

/// The packets that are duplicated, as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplicationSpec {
    /// Probability that a packet comes twice.
    pub share: f64,
    /// The delay of the copy behind the original.
    pub delay_ns: Nanos,
}

impl DuplicationSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Duplication(DuplicationSpec);

impl Duplication {
    pub(super) fn new(spec: &DuplicationSpec) -> Result<Duplication, SpecError> {
        check_share("duplication.share", spec.share)?;
        Ok(Duplication(*spec))
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        if draws.uniform() < self.0.share {
            flight.copy = Some(flight.arrival.saturating_add(self.0.delay_ns));
        }
    }
}
