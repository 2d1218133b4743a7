//! Jitter: a separate delay for each packet, in which it may overtake others or not.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Draws, Flight};
use crate::{
    Nanos,
    spec::{Parameter, spec},
};

spec! {
    /// A separate delay for each packet beyond the propagation delay: `"uniform"` from 0 to twice the mean, or
    /// `"exponential"`.
    ///
    /// With `keep_order` a packet waits for those before it, as where a link layer retransmits and delivers in order.
    pub struct JitterSpec {
        /// mean delay
        mean_ns: Nanos,
        /// distribution of the delay
        distribution: Distribution = Distribution::Uniform,
        /// packets wait for those before them; else they overtake each other
        keep_order: bool = true,
    }
}

impl Copy for JitterSpec {}

/// The distribution of the times around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Equally likely from 0 to twice the mean.
    Uniform,
    /// Exponential.
    Exponential,
}

impl Parameter for Distribution {
    fn describe() -> Value {
        json!({ "words": [Distribution::Uniform, Distribution::Exponential] })
    }
}

impl JitterSpec {
    pub(super) fn reorders(&self) -> bool {
        !self.keep_order
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    /// When the last packet arrives.
    last: Nanos,
}

impl Jitter {
    pub(super) fn new(spec: &JitterSpec) -> Jitter {
        Jitter { spec: *spec, last: 0 }
    }

    pub(super) fn act(&mut self, flight: &mut Flight, draws: Draws) {
        let draw = draws.uniform();
        let factor = match self.spec.distribution {
            Distribution::Uniform => 2.0 * draw,
            Distribution::Exponential => -libm::log1p(-draw),
        };
        flight.arrival = flight.arrival.saturating_add(libm::round(factor * self.spec.mean_ns as f64) as Nanos);
        if self.spec.keep_order {
            flight.arrival = flight.arrival.max(self.last);
            self.last = flight.arrival;
        }
    }
}
