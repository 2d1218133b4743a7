//! The state of an endpoint that can be read from outside.

use super::Endpoint;
use super::handshake::{State, feature};
use super::info::{Info, Stats};
use crate::Nanos;
use crate::profile::Profile;
use crate::segment::{Flags, Segment, TIMESTAMPS_BYTES};
use crate::sender::initial_window::{Outcome, StartingPoint};

impl Endpoint {
    /// The values that a stack developer would look at.
    pub fn info(&self) -> Info {
        let conn = &self.conn;
        let mut info = Info {
            total_retransmitted: conn.stats.retransmissions,
            mss_bytes: conn.handshake.mss(),
            // Linux takes the timestamps off (`advmss`).
            announced_mss_bytes: if !conn.handshake.has(feature::TIMESTAMPS) {
                conn.profile.mss_bytes
            } else {
                conn.profile.mss_bytes.saturating_sub(TIMESTAMPS_BYTES)
            },
            window_scaling: conn.handshake.scaling.is_on,
            timestamps: conn.handshake.has(feature::TIMESTAMPS),
            sack: conn.handshake.has(feature::SACK),
            ecn: conn.handshake.has(feature::ECN),
            ..Info::default()
        };
        self.sender.describe(conn, &mut info);
        info
    }

    /// Bytes received in order and not read yet.
    pub fn readable_bytes(&self) -> u64 {
        self.receiver.readable()
    }

    /// Bytes of the peer's stream received in order so far.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Up to which offset of the peer's stream everything from `offset` on has arrived, in order or ahead of a hole;
    /// `offset` itself if that byte has not. A caller that keeps the bytes asks after
    /// [`handle_segment`](Self::handle_segment) which of them count. The peer's FIN may count as a byte.
    pub fn arrived_until(&self, offset: u64) -> u64 {
        self.receiver.arrived_until(offset)
    }

    /// Bytes written that the peer has acknowledged.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.snd().acknowledged_bytes()
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.conn.handshake.state
    }

    /// Whether the state is Closed or TimeWait: nothing more will happen by itself.
    pub fn is_finished(&self) -> bool {
        matches!(self.conn.handshake.state, State::Closed | State::TimeWait)
    }

    /// Congestion window in bytes, inflation during fast recovery included.
    pub fn cwnd_bytes(&self) -> u32 {
        self.sender.cwnd_bytes(&self.conn)
    }

    /// Slow start threshold in bytes; none before the first congestion, unless the profile or a start-up scheme sets it.
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        self.sender.ssthresh_bytes()
    }

    /// Effective segment size in bytes: the smaller of both ends' (the profile's before the handshake).
    pub fn mss_bytes(&self) -> u32 {
        self.conn.handshake.mss()
    }

    /// Sequence numbers sent and not acknowledged; a timeout takes those that it marks for retransmission away.
    pub fn flight_bytes(&self) -> u32 {
        self.sender.snd().flight()
    }

    /// Smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Nanos> {
        self.sender.srtt(&self.conn.profile)
    }

    /// Retransmission timeout in force, back-off included.
    pub fn rto(&self) -> Nanos {
        self.sender.rtt().rto()
    }

    /// Our initial sequence number.
    pub fn initial_sequence(&self) -> u32 {
        self.sender.snd().iss
    }

    /// The peer's initial sequence number, once its SYN arrived.
    pub fn peer_initial_sequence(&self) -> Option<u32> {
        self.receiver.irs()
    }

    /// Window in bytes that a segment *sent by this endpoint* announces.
    // RFC 7323 §2.2: the window field of a SYN is never scaled.
    pub fn advertised_window_bytes(&self, segment: &Segment) -> u64 {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.conn.handshake.scaling.rcv_shift };
        u64::from(segment.window) << shift
    }

    /// True if the data byte with this sequence number belongs to the first flight: the data sent before any is
    /// acknowledged for the first time.
    pub fn in_first_flight(&self, seq: u32) -> bool {
        self.sender.in_first_flight(seq)
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.conn.stats
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.conn.profile
    }

    /// Begins with a window from other connections instead of the profile's policy, up to 65535 segments. Without
    /// effect on a connection that is open already.
    pub fn start_from(&mut self, start: StartingPoint) {
        self.sender.start_from(&self.conn, start);
    }

    /// The results of this connection that others can use.
    pub fn outcome(&self) -> Outcome {
        self.sender.outcome(&self.conn)
    }

    /// The initial window in bytes, before the effect of a lost SYN.
    pub fn initial_window_bytes(&self) -> u32 {
        self.sender.initial_window_bytes(&self.conn)
    }

    /// The initial window with which data began, in whole segments: after the effect of lost SYNs. Before the
    /// connection is established, the one that it would begin with if none were lost.
    pub fn initial_window_segments(&self) -> u32 {
        self.sender.initial_window_segments(&self.conn)
    }
}
