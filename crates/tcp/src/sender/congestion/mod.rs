//! Congestion control: cwnd outside of recovery, and the response to loss.
//!
//! The sender owns cwnd and ssthresh, a [`Window`]. A controller changes it, and knows nothing of timers or
//! retransmission. Recovery decides *that* there was congestion, the controller decides *how much* to send from then on.
//! One file an algorithm, and one entry in `algorithms!` below. Users of the crate bring their own as
//! [`CongestionAlgorithm::Custom`]; `examples/own_controller.rs` shows it. Reno, the yardstick of the simulator's speed,
//! lies in the endpoint itself; the others are boxed.

#[cfg(test)]
#[path = "../../../tests/alone/mod.rs"]
mod alone;
mod bbr;
pub(crate) mod controller;
mod cubic;
mod delivery_rate;
mod hystart;
mod hystart_plus_plus;
mod interface;
mod max_filter;
mod reno;
mod shortest;
mod slow_start_exit;
mod start;
mod vegas;
mod westwood;
mod window;

pub(crate) use delivery_rate::DeliveryRate;
pub(in crate::sender) use hystart::{Detectors, Hystart as LinuxHystart, Progress};
pub use interface::{Acknowledged, CongestionControl, Custom, Delivery, RoundTrip};
pub use slow_start_exit::Hystart;
pub use start::{CongestionAvoidance, SlowStartGrowth, Start};
pub(crate) use start::{CubicSettings, RenoSettings, Settings};
pub use window::Window;

use serde::{Deserialize, Serialize};

/// A controller of the crate's user: made for a connection when it begins, and again when the handshake is complete.
pub type CustomController = Custom<fn(&Start) -> Box<dyn CongestionControl>>;

/// Declares the algorithms other than Reno: one entry for each, with its parameters, its file and its type.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:ident $({ $($(#[$about:meta])* $field:ident: $type:ty),+ })? => $file:ident::$state:ident;)+) => {
        /// Congestion control algorithm.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
        pub enum CongestionAlgorithm {
            /// Slow start and congestion avoidance of RFC 5681, counted as `slow_start_growth` and
            /// `congestion_avoidance` say.
            Reno,
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)+
            /// The crate's user's own. It has no name in files.
            #[serde(skip)]
            Custom(CustomController),
        }

        /// The algorithms with more state than Reno.
        #[derive(Clone, Debug)]
        pub(crate) enum Other {
            $($name($file::$state),)+
            Custom(Box<dyn CongestionControl>),
        }

        impl Other {
            /// None for Reno.
            fn new(algorithm: CongestionAlgorithm, start: &Start) -> Option<Self> {
                Some(match algorithm {
                    CongestionAlgorithm::Reno => return None,
                    $(CongestionAlgorithm::$name $({ $($field),+ })? => {
                        Self::$name($file::$state::new(start $($(, $field)+)?))
                    })+
                    CongestionAlgorithm::Custom(custom) => Self::Custom((custom.build)(start)),
                })
            }

            /// Begins anew in the same memory; false for Reno.
            // The enum is as large as its largest algorithm; of one that stays the same only the state is written.
            fn renew(&mut self, algorithm: CongestionAlgorithm, start: &Start) -> bool {
                match (algorithm, self) {
                    $((CongestionAlgorithm::$name $({ $($field),+ })?, Self::$name(state)) => {
                        *state = $file::$state::new(start $($(, $field)+)?);
                        true
                    })+
                    (_, other) => match Self::new(algorithm, start) {
                        Some(new) => {
                            *other = new;
                            true
                        }
                        None => false,
                    },
                }
            }

            fn algorithm(&self) -> &dyn CongestionControl {
                match self {
                    $(Self::$name(algorithm) => algorithm,)+
                    Self::Custom(algorithm) => &**algorithm,
                }
            }

            fn algorithm_mut(&mut self) -> &mut dyn CongestionControl {
                match self {
                    $(Self::$name(algorithm) => algorithm,)+
                    Self::Custom(algorithm) => &mut **algorithm,
                }
            }
        }
    };
}

algorithms! {
    /// CUBIC (RFC 9438) in Linux's arithmetic: windows in whole segments, time in milliseconds.
    Cubic {
        /// Rules that end slow start before a loss does.
        #[serde(default)]
        hystart: Hystart
    } => cubic::Cubic;
    /// Westwood+: grows like Reno, and falls to the bandwidth-delay product that it measured.
    Westwood => westwood::Westwood;
    /// Vegas: keeps two to four segments in the bottleneck's queue.
    Vegas => vegas::Vegas;
    /// BBR, version 1 as Linux ships it: a rate and a window from measured bandwidth and round trips, not from losses.
    Bbr => bbr::Bbr;
}
