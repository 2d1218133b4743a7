//! A far end that sleeps while nothing arrives, as a processor without work does, and takes a time to wake up.

use serde::{Deserialize, Serialize};

use super::{Draws, Flight};
use crate::{Nanos, SpecError};

/// A far end that sleeps, as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeSpec {
    /// It takes this much longer to take the packet that wakes it; those behind wait for that one.
    pub delay_ns: Nanos,
    /// It sleeps after so long without a packet.
    pub after_ns: Nanos,
}

impl WakeSpec {
    pub(super) fn reorders(&self) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Wake {
    spec: WakeSpec,
    /// When the last packet came, and when it was taken; None before the first.
    last: Option<(Nanos, Nanos)>,
}

impl Wake {
    pub(super) fn new(spec: &WakeSpec) -> Result<Wake, SpecError> {
        Ok(Wake { spec: *spec, last: None })
    }

    pub(super) fn act(&mut self, flight: &mut Flight, _draws: Draws) {
        let came = flight.arrival;
        flight.arrival = match self.last {
            Some((last, taken)) if came < last.saturating_add(self.spec.after_ns) => came.max(taken),
            _ => came.saturating_add(self.spec.delay_ns),
        };
        self.last = Some((came, flight.arrival));
    }
}
