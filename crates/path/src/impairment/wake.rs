//! A far end that sleeps while nothing arrives, as a processor without work does, and takes a time to wake up.

use super::{Draws, Flight, Passage};
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

impl WakeSpec {
    pub(super) fn reorders(&self) -> bool {
        false
    }

    pub(super) fn act(&self, flight: &mut Flight, before: Option<Passage>, _draws: Draws) {
        flight.arrival = match before {
            Some(Passage { came, left }) if flight.arrival < came.saturating_add(self.after_ns) => {
                flight.arrival.max(left)
            }
            _ => flight.arrival.saturating_add(self.delay_ns),
        };
    }
}
