//! Congestion control: how large the window is when nothing is being repaired, and what loss does to it.
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
mod cubic;
mod delivery_rate;
mod hystart;
mod hystart_plus_plus;
mod max_filter;
mod reno;
mod slow_start_exit;
mod vegas;
mod westwood;

pub(crate) use delivery_rate::DeliveryRate;
pub(crate) use max_filter::MaxFilter;
pub use slow_start_exit::Hystart;

use crate::Nanos;
use crate::profile::LARGEST_WINDOW;
use crate::sequence::Position;
use reno::Reno;
use serde::{Deserialize, Serialize};

/// Growth of cwnd in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartGrowth {
    /// One segment for each acknowledgement of new data.
    PerAck,
    /// The bytes newly acknowledged, at most one segment (RFC 5681).
    Bytes,
    /// The bytes newly acknowledged, however many, up to the threshold; what is left over counts towards congestion
    /// avoidance (Linux).
    AllBytes,
}

/// Growth of cwnd in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionAvoidance {
    /// SMSS²/cwnd for each acknowledgement of new data.
    PerAck,
    /// One segment for each window of bytes acknowledged.
    PerWindow,
}

/// What the slow start threshold after a loss is computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SsthreshBase {
    /// FlightSize: what is outstanding (RFC 5681), because cwnd may have outgrown what is used.
    FlightSize,
    /// cwnd (Linux, which lets it grow only while it limits the sender).
    Cwnd,
}

impl SsthreshBase {
    /// It, in bytes.
    #[inline]
    pub(crate) fn bytes(self, flight_bytes: u32, cwnd_bytes: u32) -> u32 {
        match self {
            Self::FlightSize => flight_bytes,
            Self::Cwnd => cwnd_bytes,
        }
    }
}

/// An acknowledgement that lets the window grow: new data is acknowledged and nothing is being repaired.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Bytes newly acknowledged; with SACK, newly delivered.
    pub bytes: u32,
}

/// A round trip measured by an acknowledgement, whatever the state of recovery.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Of the segment acknowledged last that was never sent twice.
    pub rtt: Nanos,
    /// First position not acknowledged after this acknowledgement.
    pub una: Position,
    /// Next position to send: a round ends when `una` passes the `nxt` of its beginning.
    pub nxt: Position,
}

/// What an acknowledgement says of the rate of delivery (draft-cheng-iccrg-delivery-rate-estimation), whatever the
/// state of recovery; only for controllers that say [`CongestionControl::is_rate_based`].
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Bytes delivered over the connection so far, this acknowledgement included.
    pub delivered_bytes: u64,
    /// The value of `delivered_bytes` when the segment acknowledged last was sent.
    pub prior_delivered_bytes: u64,
    /// Bytes delivered over `interval_ns`; no sample if `interval_ns` is 0.
    pub sample_bytes: u64,
    /// The longer of the send and the acknowledgement interval; 0: no valid sample.
    pub interval_ns: Nanos,
    /// The sample was taken while the application limited the sender.
    pub app_limited: bool,
    /// Bytes newly delivered by this acknowledgement.
    pub newly_delivered_bytes: u32,
    /// Bytes newly marked lost by this acknowledgement.
    pub newly_lost_bytes: u32,
    /// Round trip measured by this acknowledgement, if any.
    pub rtt: Option<Nanos>,
    /// Bytes in flight before this acknowledgement.
    pub prior_flight_bytes: u32,
    /// Bytes in flight after it.
    pub flight_bytes: u32,
    /// The acknowledgement probably waited for the receiver's timer.
    pub ack_delayed: bool,
    /// Fast recovery is under way, after this acknowledgement.
    pub in_recovery: bool,
    /// Repair after a retransmission timeout is under way.
    pub in_loss: bool,
}

/// cwnd and ssthresh of a sender, in bytes. The sender owns them; controllers change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u32,
    /// The slow start threshold; `u32::MAX` stands for "arbitrarily high".
    pub ssthresh: u32,
    /// Effective segment size.
    pub mss: u32,
}

impl Window {
    /// cwnd in whole segments.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.cwnd / self.mss
    }

    /// Replaces cwnd, up to the largest that means anything: no peer can announce more.
    #[inline]
    pub fn set_cwnd(&mut self, bytes: u32) {
        self.cwnd = bytes.min(LARGEST_WINDOW);
    }

    /// cwnd grows by these bytes.
    #[inline]
    pub fn grow(&mut self, bytes: u32) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// cwnd grows by whole segments.
    #[inline]
    pub fn grow_segments(&mut self, segments: u32) {
        self.grow(segments.saturating_mul(self.mss));
    }
}

/// A congestion control algorithm: a law over the sender's [`Window`].
pub trait CongestionControl: std::fmt::Debug + Send + Sync {
    /// `bytes` of payload are sent with `flight_bytes` in flight before them. With nothing in flight it is a start after
    /// idleness.
    fn on_sent(&mut self, _window: &mut Window, _now: Nanos, _bytes: u32, _flight_bytes: u32) {}
    /// An ACK gave an RTT. Called before `on_ack` for the same ACK.
    fn on_round_trip(&mut self, _window: &mut Window, _now: Nanos, _sample: &RoundTrip) {}
    /// New data is acknowledged outside of recovery, and window validation lets cwnd grow.
    fn on_ack(&mut self, window: &mut Window, now: Nanos, acknowledged: Acknowledged);
    /// Every ACK that delivers, for rate-based algorithms.
    fn on_delivery(&mut self, _window: &mut Window, _now: Nanos, _delivery: &Delivery) {}
    /// A loss was noticed by duplicate or selective ACKs, or a CE mark was echoed, with so many bytes in flight: once per
    /// loss event. Sets ssthresh and, for senders without proportional rate reduction, cwnd.
    fn on_congestion(&mut self, window: &mut Window, now: Nanos, flight_bytes: u32);
    /// The retransmission timer expired, with so many bytes in flight; `first` unless it is for the same segment
    /// again.
    fn on_timeout(&mut self, window: &mut Window, now: Nanos, flight_bytes: u32, first: bool);
    /// The last congestion event turned out to be none: `cwnd` and `ssthresh` are those before it, and are restored
    /// unless they have grown beyond.
    fn on_undo(&mut self, window: &mut Window, _now: Nanos, cwnd: u32, ssthresh: u32) {
        window.cwnd = window.cwnd.max(cwnd);
        window.ssthresh = window.ssthresh.max(ssthresh);
    }
    /// The rate at which segments may be sent, in bytes per second; none: as cwnd allows.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Segments that leave together at least, where the profile has trains; none: as it says.
    fn min_train_segments(&self) -> Option<u32> {
        None
    }
    /// Whether cwnd follows from deliveries alone, so that recovery leaves it alone (BBR). Needs a scoreboard.
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// A controller of the crate's user: how one is made for a connection.
#[derive(Clone, Copy)]
pub struct CustomController {
    /// Tells it from others.
    pub name: &'static str,
    /// Makes one for a connection, when it begins and again when the handshake is complete.
    pub build: fn(&Start) -> Box<dyn CustomLaw>,
}

impl PartialEq for CustomController {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CustomController {}

impl std::fmt::Debug for CustomController {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// A [`CongestionControl`] that can be cloned in its box, as endpoints are. Every one that is `Clone` is.
pub trait CustomLaw: CongestionControl {
    /// The clone.
    fn boxed_clone(&self) -> Box<dyn CustomLaw>;
    /// The law itself.
    fn as_law(&self) -> &dyn CongestionControl;
    /// The law itself.
    fn as_law_mut(&mut self) -> &mut dyn CongestionControl;
}

impl<L: CongestionControl + Clone + 'static> CustomLaw for L {
    fn boxed_clone(&self) -> Box<dyn CustomLaw> {
        Box::new(self.clone())
    }

    fn as_law(&self) -> &dyn CongestionControl {
        self
    }

    fn as_law_mut(&mut self) -> &mut dyn CongestionControl {
        self
    }
}

impl Clone for Box<dyn CustomLaw> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Settings that every algorithm begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Effective segment size.
    pub mss_bytes: u32,
    /// cwnd to begin with.
    pub window_bytes: u32,
    /// ssthresh to begin with; `u32::MAX`: arbitrarily high.
    pub ssthresh_bytes: u32,
    /// cwnd after a timeout.
    pub loss_window_bytes: u32,
    /// The algorithm.
    pub algorithm: CongestionAlgorithm,
    /// As in the profile.
    pub slow_start_growth: SlowStartGrowth,
    /// As in the profile.
    pub congestion_avoidance: CongestionAvoidance,
    /// As in the profile.
    pub whole_segment_ssthresh: bool,
    /// Whether the profile paces what the window lets out.
    pub paced: bool,
    /// Tick of the system's clock, in which CUBIC counts time.
    pub tick_ns: Nanos,
    /// Round trip that the handshake measured; none before it is over, or if it cannot tell.
    pub rtt: Option<Nanos>,
    /// Stands in for the randomness of algorithms that want some: the initial sequence number.
    pub seed: u32,
}

/// Declares the algorithms besides Reno: one entry for each, with its parameters, its file and its type.
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
            Custom(Box<dyn CustomLaw>),
        }

        impl Other {
            /// None for Reno.
            fn new(start: &Start) -> Option<Self> {
                Some(match start.algorithm {
                    CongestionAlgorithm::Reno => return None,
                    $(CongestionAlgorithm::$name $({ $($field),+ })? => {
                        Self::$name($file::$law::new(start $($(, $field)+)?))
                    })+
                    CongestionAlgorithm::Custom(custom) => Self::Custom((custom.build)(start)),
                })
            }

            fn law(&self) -> &dyn CongestionControl {
                match self {
                    $(Self::$name(law) => law,)+
                    Self::Custom(law) => law.as_law(),
                }
            }

            fn law_mut(&mut self) -> &mut dyn CongestionControl {
                match self {
                    $(Self::$name(law) => law,)+
                    Self::Custom(law) => law.as_law_mut(),
                }
            }
        }
    };
}

algorithms! {
    /// CUBIC (RFC 9438) in Linux's arithmetic: windows in whole segments, time in milliseconds.
    Cubic {
        /// What ends slow start before a loss does.
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

/// The sender's cwnd and ssthresh, and the law that changes them. Reno, which plain TCP asks for, is told from the others
/// by one comparison and keeps its state here.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    window: Window,
    law: Law,
}

#[derive(Clone, Debug)]
pub(crate) enum Law {
    Reno(Reno),
    Other(Box<Other>),
}

// An endpoint holds its controller, and a simulation holds very many endpoints.
const _: () = assert!(size_of::<Controller>() <= 48);

impl Law {
    /// A new law, in the memory of an old one if there is one.
    fn new_in(old: Option<Box<Other>>, start: &Start) -> Self {
        match (Other::new(start), old) {
            (Some(law), Some(mut memory)) => {
                *memory = law;
                Self::Other(memory)
            }
            (Some(law), None) => Self::Other(Box::new(law)),
            (None, _) => Self::Reno(Reno::new(start)),
        }
    }
}

impl Controller {
    /// A new controller, in the memory of an old one if there is one.
    pub(crate) fn new_in(old: Option<Box<Other>>, start: &Start) -> Self {
        let window = Window { cwnd: start.window_bytes, ssthresh: start.ssthresh_bytes, mss: start.mss_bytes };
        Self { window, law: Law::new_in(old, start) }
    }

    /// Gives up the memory that another controller can be built in, for a controller without any.
    pub(crate) fn take_memory(&mut self, start: &Start) -> Option<Box<Other>> {
        match std::mem::replace(&mut self.law, Law::Reno(Reno::new(start))) {
            Law::Reno(_) => None,
            Law::Other(memory) => Some(memory),
        }
    }

    /// Becomes a new controller in the memory of the old one.
    pub(crate) fn restart(&mut self, start: &Start) {
        let memory = self.take_memory(start);
        *self = Self::new_in(memory, start);
    }

    /// The law and the window that it changes.
    #[inline]
    fn parts(&mut self) -> (&mut dyn CongestionControl, &mut Window) {
        let law = match &mut self.law {
            Law::Reno(reno) => reno,
            Law::Other(other) => other.law_mut(),
        };
        (law, &mut self.window)
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u32, flight_bytes: u32) {
        // Reno has no use for it, and this is called for every segment.
        if let Law::Other(other) = &mut self.law {
            other.law_mut().on_sent(&mut self.window, now, bytes, flight_bytes);
        }
    }

    #[inline]
    pub(crate) fn on_round_trip(&mut self, now: Nanos, sample: &RoundTrip) {
        if let Law::Other(other) = &mut self.law {
            other.law_mut().on_round_trip(&mut self.window, now, sample);
        }
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged) {
        match &mut self.law {
            Law::Reno(reno) => reno.on_ack(&mut self.window, now, acknowledged),
            Law::Other(other) => other.law_mut().on_ack(&mut self.window, now, acknowledged),
        }
    }

    pub(crate) fn on_delivery(&mut self, now: Nanos, delivery: &Delivery) {
        let (law, window) = self.parts();
        law.on_delivery(window, now, delivery);
    }

    pub(crate) fn on_congestion(&mut self, now: Nanos, flight_bytes: u32) {
        let (law, window) = self.parts();
        law.on_congestion(window, now, flight_bytes);
    }

    pub(crate) fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool) {
        let (law, window) = self.parts();
        law.on_timeout(window, now, flight_bytes, first);
    }

    pub(crate) fn on_undo(&mut self, now: Nanos, cwnd: u32, ssthresh: u32) {
        let (law, window) = self.parts();
        law.on_undo(window, now, cwnd, ssthresh);
    }

    /// cwnd and ssthresh, for a start-up scheme to change.
    #[inline]
    pub(crate) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// cwnd, in bytes.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window.cwnd
    }

    /// ssthresh, in bytes; `u32::MAX` stands for "arbitrarily high".
    #[inline]
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Replaces cwnd.
    pub(crate) fn set_window(&mut self, bytes: u32) {
        self.window.set_cwnd(bytes);
    }

    /// Replaces ssthresh.
    pub(crate) fn set_ssthresh(&mut self, bytes: u32) {
        self.window.ssthresh = bytes;
    }

    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        match &self.law {
            Law::Reno(_) => None,
            Law::Other(other) => other.law().pacing_rate(),
        }
    }

    pub(crate) fn min_train_segments(&self) -> Option<u32> {
        match &self.law {
            Law::Reno(_) => None,
            Law::Other(other) => other.law().min_train_segments(),
        }
    }

    #[inline]
    pub(crate) fn is_rate_based(&self) -> bool {
        match &self.law {
            Law::Reno(_) => false,
            Law::Other(other) => other.law().is_rate_based(),
        }
    }

    /// BBR's shortest RTT.
    #[cfg(test)]
    pub(crate) fn min_rtt(&self) -> Option<Nanos> {
        match &self.law {
            Law::Other(other) => match &**other {
                Other::Bbr(bbr) => bbr.min_rtt(),
                _ => None,
            },
            Law::Reno(_) => None,
        }
    }
}
