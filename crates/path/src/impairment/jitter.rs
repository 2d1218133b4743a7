//! Jitter: a separate delay for each packet, in which it may overtake others or not.

use serde::{Deserialize, Serialize};

use super::{Draws, Flight};
use crate::{Nanos, SpecError};

/// The delay of packets beyond the propagation delay, as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Of the times.
    pub distribution: Distribution,
    /// Of the times.
    pub mean_ns: Nanos,
    /// A packet waits for those before it, as where a link layer retransmits and delivers in order; else it overtakes them.
    pub keeps_order: bool,
}

/// The distribution of the times around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Equally likely from 0 to twice the mean.
    Uniform,
    /// Exponential.
    Exponential,
}

impl JitterSpec {
    pub(super) fn reorders(&self) -> bool {
        !self.keeps_order
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    /// When the last packet arrives.
    last: Nanos,
}

impl Jitter {
    pub(super) fn new(spec: &JitterSpec) -> Result<Jitter, SpecError> {
        Ok(Jitter { spec: *spec, last: 0 })
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        let draw = draws.uniform();
        let factor = match self.spec.distribution {
            Distribution::Uniform => 2.0 * draw,
            Distribution::Exponential => -libm::log1p(-draw),
        };
        flight.arrival = flight.arrival.saturating_add(libm::round(factor * self.spec.mean_ns as f64) as Nanos);
        if self.spec.keeps_order {
            flight.arrival = flight.arrival.max(self.last);
            self.last = flight.arrival;
        }
    }
}
