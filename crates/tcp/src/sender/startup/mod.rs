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
mod suss;

use scheme::NextPace;
pub use scheme::{CustomStartup, FirstSend, Growth, SendState, StartupScheme};

use crate::Nanos;
use crate::amounts::Bytes;
use crate::connection::timestamps::OPTION_BYTES;
use crate::connection::{Connection, feature};
use crate::profile::error::{LONGEST_TIMEOUT, ProfileError, within};
use crate::sender::Sender;
use crate::sender::congestion::{CongestionAlgorithm, Hystart};
use crate::sender::pacing::{PacedBy, PacedFlight, Pacer};
use crate::sender::recovery::{Edges, Facts, FastRecovery};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Headers of a segment without options.
const HEADER_BYTES: u32 = 40;

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
        #[serde(default = "paced::whole_round_trip")]
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
        #[serde(default = "quick_start::limited_slow_start")]
        limited_slow_start_segments: u32 => |max_segments| 1..=max_segments,
    } => quick_start::QuickStartSender;
    /// A larger initial window over the first round trip, then growth faster than slow start's until a queue builds
    /// (draft-kazuho-ccwg-rapid-start-02).
    RapidStart {
        /// First flight as a multiple of the initial window, 1 to 10.
        #[serde(default = "rapid_start::window_factor")]
        window_factor: u32 => |_| 1..=10,
        /// Factor by which the window grows in a round trip while no queue is seen, 2 to 4.
        #[serde(default = "rapid_start::growth")]
        growth: u32 => |_| 2..=4,
        /// A round trip that is longer than the shortest one by this much has met a queue.
        #[serde(default = "rapid_start::queue_delay_ns")]
        queue_delay_ns: Nanos => |_| 1..=LONGEST_TIMEOUT,
        /// Or by this share of the shortest one, in percent, if that is less.
        #[serde(default = "rapid_start::queue_delay_percent")]
        queue_delay_percent: u32 => |_| 1..=1000,
    } => rapid_start::RapidStart;
    /// Slow start that grows fourfold in a round trip while acknowledgments say that doubling will go on, with HyStart
    /// (Arghavani, Zhang, Eyers, Arghavani, SIGCOMM 2024).
    Suss => suss::Suss;
    /// Half of the window that an earlier connection left, over a round trip, once the initial window has arrived and its
    /// round trip fits (RFC 9959).
    CarefulResume {
        /// saved_cwnd, in segments, 2 or more.
        #[serde(default = "careful_resume::saved_window")]
        saved_window_segments: u32 => |max_segments| 2..=max_segments,
        /// saved_rtt, the shortest round trip of that connection.
        #[serde(default = "careful_resume::saved_rtt_ns")]
        saved_rtt_ns: Nanos => |_| 1..=LONGEST_TIMEOUT,
    } => careful_resume::CarefulResume;
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

impl Sender {
    /// Our SYN is acknowledged: a scheme or controller that paces from here on gets a pacer.
    pub(crate) fn prepare_pacing(&mut self, conn: &mut Connection) {
        let by = if self.controller.is_rate_based() || self.controller.pacing_rate().is_some() {
            PacedBy::Controller
        } else if let Some(rules) = conn.profile.pacing {
            PacedBy::Window(rules)
        } else {
            return;
        };
        self.set_pacer(conn, Pacer::new(by));
    }

    fn set_pacer(&mut self, conn: &mut Connection, pacer: Pacer) {
        let extra = conn.extras.get_or_new(&conn.profile, self.snd.iss);
        extra.departure.get_or_insert_default().pacer = Some(pacer);
    }

    /// The connection's start-up scheme, made if need be.
    pub(crate) fn startup_scheme<'a>(&self, conn: &'a mut Connection) -> Option<&'a mut StartupState> {
        if conn.extras.startup().is_none() {
            if let Some(state) = StartupState::new(conn.profile.startup) {
                let extra = conn.extras.get_or_new(&conn.profile, self.snd.iss);
                extra.departure.get_or_insert_default().startup = Some(state);
            }
        }
        conn.extras.startup_mut()
    }

    fn send_state(&self, conn: &Connection, now: Nanos) -> SendState {
        SendState {
            now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            flight_bytes: self.snd.flight(),
            queued_bytes: self.snd.wanted_end().saturating_sub(self.snd.nxt),
            mss_bytes: conn.handshake.mss(),
        }
    }

    /// The first data is about to leave: the scheme, if there is one, begins.
    pub(crate) fn begin_startup(&mut self, conn: &mut Connection) {
        let Some(startup) = conn.extras.startup_mut().filter(|startup| !startup.begun) else { return };
        let first = FirstSend {
            position: self.snd.nxt,
            queued_bytes: self.snd.wanted_end() - self.snd.nxt,
            send_window: self.peer_window.limited_bytes,
            mss_bytes: conn.handshake.mss(),
            header_bytes: HEADER_BYTES + if conn.handshake.has(feature::TIMESTAMPS) { OPTION_BYTES } else { 0 },
            rtt: self.rtt.smoothed(&conn.profile.rto),
        };
        startup.begun = true;
        let flight = startup.scheme_mut().begin(&first, self.controller.window_mut());
        self.end_startup_if_over(conn);
        if let Some(flight) = flight.filter(|_| conn.extras.pacer().is_none()) {
            let end = first.position + flight.bytes;
            self.set_pacer(conn, Pacer::new(PacedBy::Startup { flight, start: first.position, end, began: None }));
        }
    }

    fn end_startup_if_over(&mut self, conn: &mut Connection) {
        if conn.extras.startup().is_some_and(|startup| startup.begun && startup.scheme().is_over()) {
            conn.extras.end_startup();
        }
    }

    /// An ACK gave an RTT.
    #[inline]
    pub(crate) fn tell_startup_rtt(&mut self, conn: &mut Connection, now: Nanos, rtt: Nanos) {
        if conn.extras.startup().is_some() {
            let state = self.send_state(conn, now);
            if let Some(startup) = conn.extras.startup_mut() {
                startup.scheme_mut().on_round_trip(rtt, &state, self.controller.window_mut());
            }
        }
    }

    /// The controller is about to answer congestion.
    pub(crate) fn settle_startup(&mut self, conn: &mut Connection, now: Nanos) {
        let state = self.send_state(conn, now);
        if let Some(startup) = conn.extras.startup_mut() {
            startup.scheme_mut().before_reduction(&state, self.controller.window_mut());
        }
    }

    /// New data is acknowledged outside of recovery. False: no scheme has a say in how cwnd grows.
    #[inline]
    pub(crate) fn grow_by_startup(&mut self, conn: &mut Connection, now: Nanos, bytes: u32, allowed: bool) -> bool {
        conn.extras.may_hold_back() && self.grow_in_startup(conn, now, bytes, allowed)
    }

    #[inline(never)]
    fn grow_in_startup(&mut self, conn: &mut Connection, now: Nanos, bytes: u32, allowed: bool) -> bool {
        if let Some(pacer) = conn.extras.pacer() {
            if matches!(pacer.by, PacedBy::Startup { flight: PacedFlight { until_ack: true, .. }, .. }) {
                conn.extras.end_pacing();
            }
        }
        let state = self.send_state(conn, now);
        let Some(startup) = conn.extras.startup_mut().filter(|startup| startup.begun) else { return false };
        let controller = &mut self.controller;
        let mut growth = Growth { now, bytes: Bytes(bytes), allowed, controller, pace: NextPace::Unchanged };
        startup.scheme_mut().grow(&mut growth, &state);
        match growth.pace {
            NextPace::Unchanged => {}
            NextPace::None => conn.extras.end_pacing(),
            NextPace::Flight { flight, start, at } => {
                let end = start + flight.bytes;
                self.set_pacer(conn, Pacer::new_at(at, PacedBy::Startup { flight, start, end, began: None }));
            }
        }
        true
    }

    /// The meaning of an ACK or a timeout to the scheme. An ACK that ends one recovery and begins the next is neither
    /// to it.
    #[inline]
    pub(crate) fn apply_to_startup(&mut self, conn: &mut Connection, now: Nanos, facts: &Facts) {
        if conn.extras.may_hold_back() {
            self.apply_edges_to_startup(conn, now, facts);
        }
    }

    #[inline(never)]
    fn apply_edges_to_startup(&mut self, conn: &mut Connection, now: Nanos, facts: &Facts) {
        let undone = facts.edges.intersects(Edges::UNDONE);
        let marked = facts.edges.intersects(Edges::REDUCED);
        let timed_out = facts.edges.intersects(Edges::RESTARTED | Edges::TIMED_OUT);
        let lost = !timed_out && facts.fast_recovery == FastRecovery::Began;
        if !undone && (timed_out || lost) {
            self.end_paced_flight(conn);
        }
        let state = self.send_state(conn, now);
        let Some(startup) = conn.extras.startup_mut() else { return };
        let (scheme, window) = (startup.scheme_mut(), self.controller.window_mut());
        if marked {
            scheme.on_mark(&state, window);
        }
        if undone {
            scheme.on_undone();
        } else if timed_out {
            scheme.on_timeout(&state, window);
        } else {
            match facts.fast_recovery {
                FastRecovery::Off => {}
                FastRecovery::Began => {
                    scheme.on_loss(&state, window);
                    scheme.on_delivery(facts.delivered, facts.lost, window);
                }
                FastRecovery::GoesOn => scheme.on_delivery(facts.delivered, facts.lost, window),
                FastRecovery::Ended => scheme.on_recovered(&state, window),
            }
        }
        self.end_startup_if_over(conn);
    }
}
