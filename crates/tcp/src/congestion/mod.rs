//! Congestion control: how large the window is when nothing is being repaired, and what loss does to it.
//!
//! A controller knows nothing of sequence numbers, timers or retransmission: `recovery` decides *that* there was
//! congestion, the controller decides *how much* to send from then on. One file an algorithm. Reno, the yardstick of
//! the simulator's speed, lies in the endpoint itself; the larger ones are boxed.

#[cfg(test)]
mod alone;
mod bbr;
mod cubic;
mod hystart;
mod hystart_plus_plus;
mod max_filter;
mod reno;
mod slow_start_exit;
mod vegas;
mod westwood;

pub(crate) use max_filter::MaxFilter;
pub use slow_start_exit::Hystart;

use crate::Nanos;
use crate::sequence::Position;
use bbr::Bbr;
use cubic::Cubic;
use reno::Reno;
use serde::{Deserialize, Serialize};
use vegas::Vegas;
use westwood::Westwood;

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

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
pub enum CongestionAlgorithm {
    /// Slow start and congestion avoidance of RFC 5681, counted as `slow_start_growth` and `congestion_avoidance` say.
    Reno,
    /// CUBIC (RFC 9438) in Linux's arithmetic: windows in whole segments, time in milliseconds.
    Cubic {
        /// What ends slow start before a loss does.
        #[serde(default)]
        hystart: Hystart,
    },
    /// Westwood+: grows like Reno, and falls to the bandwidth-delay product that it measured.
    Westwood,
    /// Vegas: keeps two to four segments in the bottleneck's queue.
    Vegas,
    /// BBR, version 1 as Linux ships it: a rate and a window from measured bandwidth and round trips, not from losses.
    Bbr,
}

/// An acknowledgement that lets the window grow: new data is acknowledged and nothing is being repaired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Bytes newly acknowledged; with SACK, newly delivered.
    pub bytes: u32,
}

/// A round trip measured by an acknowledgement, whatever the state of recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
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
pub(crate) struct Delivery {
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

/// What a congestion control algorithm answers to. All windows are bytes; those that count segments divide by the
/// segment size that [`Start`] tells.
pub(crate) trait CongestionControl {
    /// `bytes` of payload leave with `flight_bytes` in flight before them. With nothing in flight it is a start after
    /// idleness.
    fn on_sent(&mut self, _now: Nanos, _bytes: u32, _flight_bytes: u32) {}
    /// An acknowledgement gave a round trip. Called before `on_ack` for the same acknowledgement.
    fn on_round_trip(&mut self, _now: Nanos, _sample: &RoundTrip) {}
    /// New data is acknowledged, nothing is being repaired, and window validation lets the window grow.
    fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged);
    /// Every acknowledgement that delivers, for rate-based algorithms.
    fn on_delivery(&mut self, _now: Nanos, _delivery: &Delivery) {}
    /// Loss was noticed by duplicate or selective acknowledgements, or an ECN mark arrived, with so many bytes in
    /// flight: once a loss event. Sets the threshold and, for those who do without proportional rate reduction, the
    /// window.
    fn on_congestion(&mut self, now: Nanos, flight_bytes: u32);
    /// The retransmission timer expired, with so many bytes in flight; `first` unless it is for the same segment
    /// again.
    fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool);
    /// The last congestion event turned out to be none: `window` and `ssthresh` are those before it.
    fn on_undo(&mut self, _now: Nanos, window: u32, ssthresh: u32);
    /// The congestion window, in bytes.
    fn window(&self) -> u32;
    /// The slow start threshold, in bytes; `u32::MAX` stands for "arbitrarily high".
    fn ssthresh(&self) -> u32;
    /// Replaces the window: initial, restart and loss-recovery rules that lie outside of the algorithm.
    fn set_window(&mut self, bytes: u32);
    /// Replaces the threshold: window validation after idleness, start-up schemes.
    fn set_ssthresh(&mut self, bytes: u32);
    /// The rate at which segments may leave, in bytes a second; none: as the window allows.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Whether the window follows from deliveries alone, so that recovery leaves it alone (BBR).
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// Settings that every algorithm begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub mss_bytes: u32,
    pub window_bytes: u32,
    pub ssthresh_bytes: u32,
    pub loss_window_bytes: u32,
    pub algorithm: CongestionAlgorithm,
    pub slow_start_growth: SlowStartGrowth,
    pub congestion_avoidance: CongestionAvoidance,
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

/// The algorithms, dispatched statically. Reno, which plain TCP asks for, is told from the others by one comparison and
/// keeps its state here.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(Reno),
    Other(Box<Other>),
}

/// The algorithms with more state.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    Cubic(Cubic),
    Westwood(Westwood),
    Vegas(Vegas),
    Bbr(Bbr),
}

// An endpoint holds its controller, and a simulation holds very many endpoints.
const _: () = assert!(size_of::<Controller>() <= 48);

impl Controller {
    pub(crate) fn new(start: &Start) -> Self {
        match Other::new(start) {
            Some(other) => Self::Other(Box::new(other)),
            None => Self::Reno(Reno::new(start)),
        }
    }

    /// A new controller, in the memory of an old one if there is one.
    pub(crate) fn new_in(old: Option<Box<Other>>, start: &Start) -> Self {
        let Some(mut memory) = old else { return Self::new(start) };
        match Other::new(start) {
            Some(other) => {
                *memory = other;
                Self::Other(memory)
            }
            None => Self::Reno(Reno::new(start)),
        }
    }

    /// Gives up the memory that another controller can be built in, for a controller without any.
    pub(crate) fn take_memory(&mut self, start: &Start) -> Option<Box<Other>> {
        match std::mem::replace(self, Self::Reno(Reno::new(start))) {
            Self::Reno(_) => None,
            Self::Other(memory) => Some(memory),
        }
    }

    /// Becomes a new controller in the memory of the old one.
    pub(crate) fn restart(&mut self, start: &Start) {
        match (self, Other::new(start)) {
            (Self::Other(old), Some(other)) => **old = other,
            (old, Some(other)) => *old = Self::Other(Box::new(other)),
            (old, None) => *old = Self::Reno(Reno::new(start)),
        }
    }
}

impl Other {
    /// None for Reno.
    fn new(start: &Start) -> Option<Self> {
        Some(match start.algorithm {
            CongestionAlgorithm::Reno => return None,
            CongestionAlgorithm::Cubic { hystart } => Self::Cubic(Cubic::new(start, hystart)),
            CongestionAlgorithm::Westwood => Self::Westwood(Westwood::new(start)),
            CongestionAlgorithm::Vegas => Self::Vegas(Vegas::new(start)),
            CongestionAlgorithm::Bbr => Self::Bbr(Bbr::new(start)),
        })
    }
}

/// Calls the same method of whichever algorithm it is.
macro_rules! dispatch {
    ($algorithms:ty: $($variant:ident),+) => {
        impl CongestionControl for $algorithms {
            #[inline]
            fn on_sent(&mut self, now: Nanos, bytes: u32, flight_bytes: u32) {
                match self { $(Self::$variant(algorithm) => algorithm.on_sent(now, bytes, flight_bytes)),+ }
            }

            #[inline]
            fn on_round_trip(&mut self, now: Nanos, sample: &RoundTrip) {
                match self { $(Self::$variant(algorithm) => algorithm.on_round_trip(now, sample)),+ }
            }

            #[inline]
            fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged) {
                match self { $(Self::$variant(algorithm) => algorithm.on_ack(now, acknowledged)),+ }
            }

            #[inline]
            fn on_delivery(&mut self, now: Nanos, delivery: &Delivery) {
                match self { $(Self::$variant(algorithm) => algorithm.on_delivery(now, delivery)),+ }
            }

            fn on_congestion(&mut self, now: Nanos, flight_bytes: u32) {
                match self { $(Self::$variant(algorithm) => algorithm.on_congestion(now, flight_bytes)),+ }
            }

            fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool) {
                match self { $(Self::$variant(algorithm) => algorithm.on_timeout(now, flight_bytes, first)),+ }
            }

            fn on_undo(&mut self, now: Nanos, window: u32, ssthresh: u32) {
                match self { $(Self::$variant(algorithm) => algorithm.on_undo(now, window, ssthresh)),+ }
            }

            #[inline]
            fn window(&self) -> u32 {
                match self { $(Self::$variant(algorithm) => algorithm.window()),+ }
            }

            #[inline]
            fn ssthresh(&self) -> u32 {
                match self { $(Self::$variant(algorithm) => algorithm.ssthresh()),+ }
            }

            fn set_window(&mut self, bytes: u32) {
                match self { $(Self::$variant(algorithm) => algorithm.set_window(bytes)),+ }
            }

            fn set_ssthresh(&mut self, bytes: u32) {
                match self { $(Self::$variant(algorithm) => algorithm.set_ssthresh(bytes)),+ }
            }

            #[inline]
            fn pacing_rate(&self) -> Option<u64> {
                match self { $(Self::$variant(algorithm) => algorithm.pacing_rate()),+ }
            }

            #[inline]
            fn is_rate_based(&self) -> bool {
                match self { $(Self::$variant(algorithm) => algorithm.is_rate_based()),+ }
            }
        }
    };
}

dispatch!(Controller: Reno, Other);
dispatch!(Other: Cubic, Westwood, Vegas, Bbr);
