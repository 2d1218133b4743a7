//! Reordering: a share of packets takes longer by a fixed time, in which others overtake them.

use serde::{Deserialize, Serialize};

use super::{Draws, Flight, check_share};
use crate::{Nanos, SpecError};

/// The packets that are delayed, as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingSpec {
    /// Probability that a packet is late.
    pub share: f64,
    /// Their delay.
    pub delay_ns: Nanos,
}

impl ReorderingSpec {
    pub(super) fn reorders(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reordering(ReorderingSpec);

impl Reordering {
    pub(super) fn new(spec: &ReorderingSpec) -> Result<Reordering, SpecError> {
        check_share("reordering.share", spec.share)?;
        Ok(Reordering(*spec))
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        if draws.uniform() < self.0.share {
            flight.arrival = flight.arrival.saturating_add(self.0.delay_ns);
        }
    }
}
