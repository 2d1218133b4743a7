//! Start-up schemes: the start of a connection, apart from the size of its initial window.
//!
//! One file a scheme, and one entry in `schemes!` below. Users of the crate bring their own as [`Startup::Custom`];
//! `examples/own_startup.rs` shows it. The sender asks a scheme when the first data is about to leave, and reports ACKs,
//! losses and their recovery until the scheme is over; then nothing of it is left, and the controller is alone. A
//! connection that begins with its initial window alone has none of this.

mod careful_resume;
mod first_loss;
mod jump_start;
mod paced;
mod quick_start;
mod rapid_start;
mod scheme;
mod steps;
mod suss;

pub use scheme::{CustomStartup, FirstSend, Growth, SendState, StartupScheme};

use crate::Nanos;
use crate::profile::error::{LONGEST_TIMEOUT, ProfileError, within};
use crate::sender::congestion::{CongestionAlgorithm, Hystart};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Declares the schemes: one entry for each, with its parameters, their ranges for a window of at most this number of
/// segments, its file and its type.
macro_rules! schemes {
    ($($(#[$doc:meta])* $name:ident
        $({ $($(#[$about:meta])* $field:ident: $type:ty => $range:expr),+ $(,)? })? => $file:ident::$scheme:ident;)+) => {
        /// The scheme of the first round trip of data.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(tag = "scheme", rename_all = "snake_case", deny_unknown_fields)]
        pub enum Startup {
            /// The initial window back to back, then slow start.
            Window,
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)+
            /// The crate's user's own. It has no name in files.
            #[serde(skip)]
            Custom(CustomStartup),
        }

        impl Startup {
            /// Checks the scheme's parameters.
            pub(crate) fn validate(self, max_segments: u64) -> Result<(), ProfileError> {
                match self {
                    Self::Window | Self::Custom(_) => {}
                    $(Self::$name $({ $($field),+ })? => {
                        $($(
                            let range: fn(u64) -> RangeInclusive<u64> = $range;
                            within(concat!("startup.", stringify!($field)), $field, range(max_segments))?;
                        )+)?
                    })+
                }
                Ok(())
            }
        }

        /// The scheme of a connection.
        #[derive(Clone, Debug)]
        enum Chosen {
            $($name($file::$scheme),)+
            Custom(Box<dyn StartupScheme>),
        }

        impl Chosen {
            /// None for the initial window alone.
            fn new(startup: Startup) -> Option<Self> {
                Some(match startup {
                    Startup::Window => return None,
                    $(Startup::$name $({ $($field),+ })? => Self::$name($file::$scheme::new($($($field),+)?)),)+
                    Startup::Custom(custom) => Self::Custom((custom.build)()),
                })
            }

            fn scheme(&self) -> &dyn StartupScheme {
                match self {
                    $(Self::$name(scheme) => scheme,)+
                    Self::Custom(scheme) => &**scheme,
                }
            }

            fn scheme_mut(&mut self) -> &mut dyn StartupScheme {
                match self {
                    $(Self::$name(scheme) => scheme,)+
                    Self::Custom(scheme) => &mut **scheme,
                }
            }
        }
    };
}

schemes! {
    /// The initial window spread evenly over the round trip that the handshake measured, then slow start.
    Paced {
        /// Share of the round trip over which it is spread, in percent, 1 to 100.
        #[serde(default = "default_of::<100, _>")]
        over_rtt_percent: u32 => |_| 1..=100,
    } => paced::Paced;
    /// All that the application has written by then, up to the peer's window, over the first round trip, then
    /// congestion avoidance (Liu, Allman, Jin, Wang 2007).
    JumpStart => jump_start::JumpStart;
    /// The rate that all routers on the path grant, for the first round trip (RFC 4782).
    QuickStart {
        /// Code N of the rate to ask for, 1 to 15: 40 kbit/s x 2^N, headers included.
        rate: u8 => |_| 1..=15,
        /// RFC 3742's `max_ssthresh`: above this number of segments slow start grows by at most half of it a round
        /// trip.
        // RFC 3742 §2 suggests a max_ssthresh of 100 segments.
        #[serde(default = "default_of::<100, _>")]
        limited_slow_start_segments: u32 => |max_segments| 1..=max_segments,
    } => quick_start::QuickStartSender;
    /// A larger initial window over the first round trip, then growth faster than slow start's until a queue builds
    /// (draft-kazuho-ccwg-rapid-start-02).
    RapidStart {
        /// First flight as a multiple of the initial window, 1 to 10.
        // §3.1: pacing over a full RTT allows an initial window up to 2x that of classic slow start with pacing.
        #[serde(default = "default_of::<2, _>")]
        window_factor: u32 => |_| 1..=10,
        /// Factor by which the window grows in a round trip while no queue is seen, 2 to 4.
        // §3.2: 2 bytes for every byte that is newly acknowledged, which results in a 3x growth of cwnd per round-trip.
        #[serde(default = "default_of::<3, _>")]
        growth: u32 => |_| 2..=4,
        /// A round trip that is longer than the shortest one by this much has met a queue.
        // §3.2: queue_buildup_thresh = min(min_rtt + 4 ms, min_rtt * 1.10).
        #[serde(default = "default_of::<4_000_000, _>")]
        queue_delay_ns: Nanos => |_| 1..=LONGEST_TIMEOUT,
        /// Or by this share of the shortest one, in percent, if that is less.
        #[serde(default = "default_of::<10, _>")]
        queue_delay_percent: u32 => |_| 1..=1000,
    } => rapid_start::RapidStart;
    /// Slow start that grows fourfold in a round trip while acknowledgments say that doubling will go on, with HyStart
    /// (Arghavani, Zhang, Eyers, Arghavani, SIGCOMM 2024).
    Suss => suss::Suss;
    /// Half of the window that an earlier connection left, over a round trip, once the initial window has arrived and its
    /// round trip fits (RFC 9959).
    CarefulResume {
        /// saved_cwnd, in segments, 2 or more.
        // RFC 9959 §3 has no values to begin with; this one and the next are those of a connection that used 24 Mbit/s with
        // an RTT of 50 ms.
        #[serde(default = "default_of::<100, _>")]
        saved_window_segments: u32 => |max_segments| 2..=max_segments,
        /// saved_rtt, the shortest round trip of that connection.
        #[serde(default = "default_of::<50_000_000, _>")]
        saved_rtt_ns: Nanos => |_| 1..=LONGEST_TIMEOUT,
    } => careful_resume::CarefulResume;
}

/// The default of a parameter.
fn default_of<const NUMBER: u32, T: From<u32>>() -> T {
    NUMBER.into()
}

impl Startup {
    /// The controller of a connection that begins so: SUSS has its own HyStart in place of the controller's.
    pub(crate) fn controller(self, algorithm: CongestionAlgorithm) -> CongestionAlgorithm {
        match algorithm {
            CongestionAlgorithm::Cubic { .. } if self == Self::Suss => {
                CongestionAlgorithm::Cubic { hystart: Hystart::Off }
            }
            _ => algorithm,
        }
    }

    /// True if it asks the routers on the path for a rate.
    pub fn asks_for_rate(self) -> bool {
        StartupState::new(self).is_some_and(|state| state.scheme().requested_rate() > 0)
    }
}

/// The scheme of a connection, until it is over.
#[derive(Clone, Debug)]
pub(crate) struct StartupState {
    chosen: Chosen,
    /// The first data was about to leave.
    begun: bool,
}

impl StartupState {
    /// None for the initial window alone.
    pub(crate) fn new(startup: Startup) -> Option<Self> {
        Chosen::new(startup).map(|chosen| Self { chosen, begun: false })
    }

    pub(crate) fn scheme(&self) -> &dyn StartupScheme {
        self.chosen.scheme()
    }

    pub(crate) fn scheme_mut(&mut self) -> &mut dyn StartupScheme {
        self.chosen.scheme_mut()
    }
}
