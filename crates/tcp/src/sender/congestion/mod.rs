//! Congestion control: cwnd outside of recovery, and the response to loss.
//!
//! The sender owns cwnd and ssthresh, a [`Window`]. A controller is a law over it: it knows nothing of timers or
//! retransmission. Recovery decides *that* there was congestion, the controller decides *how much* to send from then on.
//! One file an algorithm, and one entry in `algorithms!` below. Users of the crate bring their own as
//! [`CongestionAlgorithm::Custom`]; `examples/own_controller.rs` shows it. Reno, the yardstick of the simulator's speed,
//! lies in the endpoint itself; the others are boxed.

#[cfg(test)]
#[path = "../../../tests/alone/mod.rs"]
mod alone;
mod bbr;
mod controller;
mod cubic;
mod delivery_rate;
mod hystart;
mod hystart_plus_plus;
mod law;
mod max_filter;
mod reno;
mod shortest;
mod slow_start_exit;
mod vegas;
mod westwood;
mod window;

pub(crate) use controller::Controller;
pub(crate) use cubic::CubicSettings;
pub(crate) use delivery_rate::DeliveryRate;
pub(in crate::sender) use hystart::{Detectors, Hystart as LinuxHystart, Progress};
pub use law::{Acknowledged, CongestionControl, Custom, Delivery, RoundTrip};
pub(crate) use reno::RenoSettings;
pub use slow_start_exit::Hystart;
pub use window::Window;

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Growth of cwnd in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartGrowth {
    /// One segment for each acknowledgment of new data.
    PerAck,
    /// The bytes newly acknowledged, at most one segment (RFC 5681).
    AbcL1,
    /// The bytes newly acknowledged, however many, up to the threshold; the rest counts towards congestion
    /// avoidance (Linux).
    AbcUnlimited,
}

/// Growth of cwnd in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionAvoidance {
    /// SMSS²/cwnd for each acknowledgment of new data.
    PerAck,
    /// One segment for each window of bytes acknowledged.
    PerWindow,
}

/// A controller of the crate's user: made for a connection when it begins, and again when the handshake is complete.
pub type CustomController = Custom<fn(&Start) -> Box<dyn CongestionControl>>;

/// What every algorithm begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Effective segment size.
    pub mss_bytes: u32,
    /// cwnd to begin with.
    pub window_bytes: u32,
    /// ssthresh to begin with; without one, slow start ends at the first congestion.
    pub ssthresh_bytes: Option<u32>,
    /// cwnd after a timeout.
    pub loss_window_bytes: u32,
    /// RTT from the handshake; none before it is over, or if it gives no sample.
    pub rtt: Option<Nanos>,
    /// When the handshake was over; none before.
    pub established_at: Option<Nanos>,
    pub(crate) settings: Settings,
}

/// The algorithm of a connection, and what each of them takes from elsewhere in the profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub algorithm: CongestionAlgorithm,
    pub reno: RenoSettings,
    pub cubic: CubicSettings,
    /// Stands in for the randomness of BBR's first phase.
    pub bbr_seed: u32,
}

impl Start {
    /// A connection before its handshake, to try a controller without one. cwnd after a timeout is one segment.
    pub fn new(mss_bytes: u32, window_bytes: u32) -> Self {
        Self {
            mss_bytes,
            window_bytes,
            ssthresh_bytes: None,
            loss_window_bytes: mss_bytes,
            rtt: None,
            established_at: None,
            settings: Settings {
                algorithm: CongestionAlgorithm::Reno,
                reno: RenoSettings {
                    slow_start_growth: SlowStartGrowth::AbcUnlimited,
                    congestion_avoidance: CongestionAvoidance::PerWindow,
                    whole_segment_ssthresh: true,
                },
                cubic: CubicSettings { tick_ns: 1_000_000, paced: false },
                bbr_seed: 0,
            },
        }
    }

    /// A window of segments of 1000 bytes.
    #[cfg(test)]
    pub(crate) fn of(algorithm: CongestionAlgorithm, window_segments: u32) -> Self {
        let mut start = Self::new(1000, window_segments * 1000);
        start.settings.algorithm = algorithm;
        start
    }
}

/// Declares the algorithms other than Reno: one entry for each, with its parameters, its file and its type.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:ident $({ $($(#[$about:meta])* $field:ident: $type:ty),+ })? => $file:ident::$law:ident;)+) => {
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
            $($name($file::$law),)+
            Custom(Box<dyn CongestionControl>),
        }

        impl Other {
            /// None for Reno.
            fn new(start: &Start) -> Option<Self> {
                Some(match start.settings.algorithm {
                    CongestionAlgorithm::Reno => return None,
                    $(CongestionAlgorithm::$name $({ $($field),+ })? => {
                        Self::$name($file::$law::new(start $($(, $field)+)?))
                    })+
                    CongestionAlgorithm::Custom(custom) => Self::Custom((custom.build)(start)),
                })
            }

            /// Begins anew in the same memory; false for Reno.
            // The enum is as large as its largest algorithm; of one that stays the same only the state is written.
            fn renew(&mut self, start: &Start) -> bool {
                match (start.settings.algorithm, self) {
                    $((CongestionAlgorithm::$name $({ $($field),+ })?, Self::$name(law)) => {
                        *law = $file::$law::new(start $($(, $field)+)?);
                        true
                    })+
                    (_, other) => match Self::new(start) {
                        Some(new) => {
                            *other = new;
                            true
                        }
                        None => false,
                    },
                }
            }

            fn law(&self) -> &dyn CongestionControl {
                match self {
                    $(Self::$name(law) => law,)+
                    Self::Custom(law) => &**law,
                }
            }

            fn law_mut(&mut self) -> &mut dyn CongestionControl {
                match self {
                    $(Self::$name(law) => law,)+
                    Self::Custom(law) => &mut **law,
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
