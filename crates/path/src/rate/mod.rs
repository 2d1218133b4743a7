//! Serialization times: of a constant rate without a division on the hot path, and of rates that change.

mod steps;
mod trace;

use serde::{Deserialize, Serialize};

use crate::{Nanos, Part, SpecError};

/// A link's rate, kept as nanoseconds a byte in 32.32 fixed point.
///
/// The serialization time of a packet is exact to half a nanosecond for rates of 2 bit/s and above; no floating
/// point takes part, so it is the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    nanos_per_byte: u64,
}

impl Rate {
    /// A link that serializes nothing: packets never wait on it.
    pub const INFINITE: Rate = Rate { nanos_per_byte: 0 };

    /// The rate of `bits_per_second`, which must lie between 2 and 8 × 10^12.
    ///
    /// # Errors
    /// A rate outside these bounds.
    pub fn from_bits_per_second(bits_per_second: u64) -> Result<Rate, SpecError> {
        if !(2..=8_000_000_000_000).contains(&bits_per_second) {
            let found = format!("{bits_per_second} bit/s");
            return Err(SpecError::new("rate", found, "rates run from 2 bit/s to 8 Tbit/s"));
        }
        let rate = u128::from(bits_per_second);
        let nanos_per_byte = ((8_000_000_000u128 << 32) + rate / 2) / rate;
        Ok(Rate { nanos_per_byte: nanos_per_byte as u64 })
    }

    /// Time to put `bytes` on the wire.
    #[inline]
    pub fn serialization(self, bytes: u32) -> Nanos {
        let product = u128::from(self.nanos_per_byte) * u128::from(bytes);
        ((product + (1 << 31)) >> 32) as Nanos
    }
}

/// The table of rates that change: one line for each, with its file, its type and how a scenario describes it.
macro_rules! schedules {
    ($($(#[$doc:meta])* $schedule:ident($spec:ident) in $file:ident,)*) => {
        $(use $file::$schedule; pub use $file::$spec;)*

        /// A rate that changes, as a scenario describes it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum ScheduleSpec {
            $($(#[$doc])* $schedule($spec),)*
        }

        impl ScheduleSpec {
            pub(crate) fn parts() -> Vec<Part> {
                vec![$($spec::describe(stringify!($schedule)),)*]
            }

            /// The mean over all of it, in bits a second.
            ///
            /// # Errors
            /// A schedule that cannot be.
            pub fn mean_bps(&self) -> Result<u64, SpecError> {
                match self {
                    $(ScheduleSpec::$schedule(spec) => Ok($schedule::new(spec)?.mean_bps()),)*
                }
            }
        }

        /// A rate that changes. All changes are known from the start, so the end of a transmission is known when it begins.
        #[derive(Clone, Debug)]
        pub(crate) enum Schedule {
            $($schedule($schedule),)*
        }

        impl Schedule {
            /// Builds the schedule at time 0.
            pub(crate) fn new(spec: &ScheduleSpec) -> Result<Schedule, SpecError> {
                match spec {
                    $(ScheduleSpec::$schedule(spec) => {
                        spec.check_bounds()?;
                        $schedule::new(spec).map(Schedule::$schedule)
                    })*
                }
            }

            /// When the transmission of a packet that arrives at `now` can begin. `free_at` is the end of the last one.
            pub(crate) fn start(&mut self, now: Nanos, free_at: Nanos) -> Nanos {
                match self {
                    $(Schedule::$schedule(schedule) => schedule.start(now, free_at),)*
                }
            }

            /// When the packet behind the last one can begin, whose transmission ends at `free_at`.
            pub(crate) fn following(&mut self, free_at: Nanos) -> Nanos {
                match self {
                    $(Schedule::$schedule(schedule) => schedule.following(free_at),)*
                }
            }

            /// When the transmission of `bytes` ends that begins at `start`, as [`Schedule::start`] or
            /// [`Schedule::following`] returned it last.
            pub(crate) fn send(&mut self, start: Nanos, bytes: u32) -> Nanos {
                match self {
                    $(Schedule::$schedule(schedule) => schedule.send(start, bytes),)*
                }
            }

            /// For how long a packet counts as being transmitted that is sent from `start` to `end`, and takes
            /// `serialization` at the mean rate.
            pub(crate) fn busy(&self, start: Nanos, end: Nanos, serialization: Nanos) -> Nanos {
                match self {
                    $(Schedule::$schedule(schedule) => schedule.busy(start, end, serialization),)*
                }
            }
        }
    };
}

schedules! {
    /// A rate that changes at given times.
    Steps(StepsSpec) in steps,
    /// Delivery opportunities, as in the traces of mahimahi.
    Trace(TraceSpec) in trace,
}
