//! What can be seen of an endpoint from outside.

use super::{Endpoint, State};
use crate::Nanos;
use crate::congestion::CongestionControl;
use crate::profile::Profile;
use crate::segment::{Flags, Segment};
use crate::sequence::{NOWHERE, near, wire};
use crate::stats::Stats;

impl Endpoint {
    /// Bytes received in order and not read yet.
    #[inline]
    pub fn readable_bytes(&self) -> u64 {
        // The peer's FIN takes a position but is nothing to read.
        self.rcv_nxt.min(self.peer_fin) - self.read_next
    }

    /// Bytes of the peer's stream received in order so far.
    #[inline]
    pub fn received_bytes(&self) -> u64 {
        if self.peer_initial == NOWHERE { 0 } else { self.rcv_nxt.min(self.peer_fin) - (self.peer_initial + 1) }
    }

    /// Bytes written that the peer has acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.una.min(self.data_end).saturating_sub(self.initial + 1)
    }

    /// State of the connection.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the state is Closed or TimeWait: nothing more will happen by itself.
    #[inline]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Congestion window in bytes, inflation during fast recovery included.
    #[inline]
    pub fn cwnd_bytes(&self) -> u32 {
        self.recovery.window(&self.controller, self.mss)
    }

    /// Slow start threshold in bytes; `u32::MAX` stands for "arbitrarily high".
    #[inline]
    pub fn ssthresh_bytes(&self) -> u32 {
        self.controller.ssthresh()
    }

    /// Effective segment size in bytes: the smaller of both ends' (the profile's before the handshake).
    #[inline]
    pub fn mss_bytes(&self) -> u32 {
        self.mss
    }

    /// Sequence numbers sent and not acknowledged, of which a timeout forgets those it sends again.
    #[inline]
    pub fn flight_bytes(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// Smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Nanos> {
        self.rtt.smoothed(&self.profile.rto)
    }

    /// Retransmission timeout in force, back-off included.
    pub fn rto(&self) -> Nanos {
        self.rtt.rto()
    }

    /// Our initial sequence number.
    pub fn initial_sequence(&self) -> u32 {
        wire(self.initial)
    }

    /// The peer's initial sequence number, once its SYN arrived.
    pub fn peer_initial_sequence(&self) -> Option<u32> {
        (self.peer_initial != NOWHERE).then(|| wire(self.peer_initial))
    }

    /// Window in bytes that a segment *sent by this endpoint* announces.
    // RFC 7323 §2.2: the window field of a SYN is never scaled.
    pub fn advertised_window_bytes(&self, segment: &Segment) -> u64 {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.rcv_shift };
        u64::from(segment.window) << shift
    }

    /// Whether the data byte with this sequence number belongs to the first flight: what is sent before data is
    /// acknowledged for the first time.
    #[inline]
    pub fn in_first_flight(&self, seq: u32) -> bool {
        let position = near(self.nxt, seq);
        position > self.initial && position < self.first_flight_end.min(self.highest_sent).min(self.data_end)
    }

    /// Counters.
    #[inline]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}
