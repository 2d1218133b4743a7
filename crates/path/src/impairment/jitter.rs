//! Jitter: a separate delay for each packet, in which it may overtake others or not.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Draws, Flight, Passage};
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

    pub(super) fn act(&self, flight: &mut Flight, before: Option<Passage>, draws: Draws) {
        let draw = draws.uniform();
        let factor = match self.distribution {
            Distribution::Uniform => 2.0 * draw,
            Distribution::Exponential => -libm::log1p(-draw),
        };
        flight.arrival = flight.arrival.saturating_add(libm::round(factor * self.mean_ns as f64) as Nanos);
        if let Some(before) = before.filter(|_| self.keep_order) {
            flight.arrival = flight.arrival.max(before.left);
        }
    }
}
