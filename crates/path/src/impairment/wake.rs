//! A far end that sleeps while nothing arrives, as a processor without work does, and takes a time to wake up.

use super::{Draws, Flight};
use crate::{Nanos, spec::spec};

spec! {
    /// The far end sleeps `after` a time without packets, and takes the one that wakes it later by `delay`; those behind
    /// wait for that one.
    pub struct WakeSpec {
        /// delay of the packet that wakes the far end
        delay_ns: Nanos,
        /// time without packets after which the far end sleeps
        after_ns: Nanos = 5_000_000,
    }
}

impl Copy for WakeSpec {}

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
    pub(super) fn new(spec: &WakeSpec) -> Wake {
        Wake { spec: *spec, last: None }
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
