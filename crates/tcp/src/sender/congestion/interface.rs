//! The interface of a congestion controller: an algorithm for cwnd, and the sender's reports to it.

use super::window::Window;
use crate::Nanos;
use crate::amounts::Bytes;
use crate::event::Trigger;
use crate::sequence::SeqNum;
use dyn_clone::DynClone;

/// An acknowledgment that lets the window grow: new data is acknowledged outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Newly acknowledged; with SACK, newly delivered.
    pub bytes: Bytes,
}

/// A round trip measured by an acknowledgment, in any state of recovery.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Of the segment acknowledged last that was never sent twice.
    pub rtt: Nanos,
    /// First position not acknowledged after this acknowledgment.
    pub una: SeqNum,
    /// Next position to send: a round ends when `una` passes the `nxt` of its beginning.
    pub nxt: SeqNum,
}

/// The delivery rate from an acknowledgment (draft-cheng-iccrg-delivery-rate-estimation), in any
/// state of recovery; only for controllers that say [`CongestionControl::is_rate_based`].
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Bytes delivered over the connection so far, this acknowledgment included.
    pub delivered_bytes: u64,
    /// The value of `delivered_bytes` when the segment acknowledged last was sent.
    pub prior_delivered_bytes: u64,
    /// Bytes delivered over `interval_ns`; no sample if `interval_ns` is 0.
    pub sample_bytes: u64,
    /// The longer of the send and the acknowledgment interval; 0: no valid sample.
    pub interval_ns: Nanos,
    /// The sample was taken while the application limited the sender.
    pub app_limited: bool,
    /// Bytes newly delivered by this acknowledgment.
    pub newly_delivered_bytes: u32,
    /// Bytes newly marked lost by this acknowledgment.
    pub newly_lost_bytes: u32,
    /// Round trip measured by this acknowledgment, if any.
    pub rtt: Option<Nanos>,
    /// Bytes in flight before this acknowledgment.
    pub prior_flight_bytes: u32,
    /// Bytes in flight after it.
    pub flight_bytes: u32,
    /// The acknowledgment probably waited for the receiver's timer.
    pub ack_delayed: bool,
    /// Fast recovery is in progress, after this acknowledgment.
    pub in_recovery: bool,
    /// Recovery after a retransmission timeout is in progress.
    pub in_loss: bool,
}

/// A congestion control algorithm: it changes the sender's [`Window`].
pub trait CongestionControl: DynClone + std::fmt::Debug + Send + Sync {
    /// Data is sent with nothing in flight: the first, or after idleness, or after a timeout that took all of it for lost.
    /// `last_sent_at`: when data was last sent, retransmissions included; none for the first.
    // Linux, CA_EVENT_TX_START.
    fn on_start(&mut self, _window: &mut Window, _now: Nanos, _last_sent_at: Option<Nanos>) {}
    /// An ACK gave an RTT. Called before `on_ack` for the same ACK.
    fn on_round_trip(&mut self, _window: &mut Window, _now: Nanos, _sample: &RoundTrip) {}
    /// New data is acknowledged outside of recovery, and window validation lets cwnd grow. It has 0 bytes if all of it was
    /// SACKed before.
    fn on_ack(&mut self, window: &mut Window, now: Nanos, acknowledged: Acknowledged);
    /// Every ACK that delivers, for rate-based algorithms.
    fn on_delivery(&mut self, _window: &mut Window, _now: Nanos, _delivery: &Delivery) {}
    /// A loss was noticed by duplicate ACKs or SACK blocks, or a CE mark was echoed, with this amount in flight: once per
    /// loss event. Sets ssthresh and, for senders without proportional rate reduction, cwnd.
    fn on_congestion(&mut self, window: &mut Window, now: Nanos, flight: Bytes);
    /// The retransmission timer expired, with this amount in flight; `first` unless it is for the same segment
    /// again.
    fn on_timeout(&mut self, window: &mut Window, now: Nanos, flight: Bytes, first: bool);
    /// The last congestion event turned out to be none: `cwnd` and `ssthresh` are those before it, and are restored
    /// unless they have grown beyond.
    fn on_undo(&mut self, window: &mut Window, _now: Nanos, cwnd: Bytes, ssthresh: Bytes) {
        window.set_cwnd(window.cwnd().max(cwnd));
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
    /// True in slow start.
    fn in_slow_start(&self, window: &Window) -> bool {
        window.cwnd() < window.ssthresh
    }
    /// Why it ended slow start when it lowered ssthresh without congestion; none: no reason known.
    fn slow_start_end(&self) -> Option<Trigger> {
        None
    }
    /// True if cwnd follows from deliveries alone, so that recovery leaves it alone (BBR). Needs a scoreboard. Asked
    /// once, when the algorithm is built.
    fn is_rate_based(&self) -> bool {
        false
    }
}

// Endpoints are cloned, with the algorithm in its box.
dyn_clone::clone_trait_object!(CongestionControl);

/// A controller or start-up scheme of the crate's user: how one is made for a connection.
#[derive(Clone, Copy)]
pub struct Custom<Build> {
    /// Distinguishes it from others.
    pub name: &'static str,
    /// Makes one.
    pub build: Build,
}

impl<Build> PartialEq for Custom<Build> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<Build> Eq for Custom<Build> {}

impl<Build> std::fmt::Debug for Custom<Build> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}
