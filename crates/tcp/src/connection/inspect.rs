//! The state of an endpoint that can be read from outside.

use super::{Endpoint, State, feature};
use crate::Nanos;
use crate::profile::Profile;
use crate::segment::{Flags, Segment, TIMESTAMPS_BYTES};
use crate::sender::initial_window::{Outcome, StartingPoint};
use serde::Serialize;

/// Counters of one endpoint since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// Segments of any kind handed out.
    pub segments_sent: u32,
    /// Segments handed out that carry payload, retransmissions included.
    pub data_segments_sent: u32,
    /// Segments handed out whose payload begins with bytes sent before.
    pub retransmissions: u32,
    /// Expiries of the retransmission timer, those of the handshake not included.
    pub timeouts: u32,
    /// Retransmissions begun by duplicate acknowledgments: once a loss event.
    pub fast_retransmits: u32,
    /// Of these, begun on less evidence than `duplicate_ack_threshold` duplicates or segments delivered out of order: by
    /// early retransmit (RFC 5827) or when RACK's reordering window had passed (RFC 8985 §6.2).
    pub early_retransmits: u32,
    /// Tail loss probes sent (RFC 8985 §7.3).
    pub tail_loss_probes: u32,
    /// Reductions of cwnd undone because the recovery turned out to be spurious.
    pub spurious_recoveries_undone: u32,
    /// Reductions of cwnd in answer to ECN echoes (RFC 3168 §6.1.2): at most one a window.
    pub ecn_cwnd_reductions: u32,
    /// Segments of new data sent before data was acknowledged for the first time.
    pub first_flight_segments: u32,
    /// SYNs or SYN-ACKs retransmitted, because the timer expired or the peer's SYN came again.
    pub syn_retransmissions: u32,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u32,
    /// Probes of a closed window.
    pub window_probes: u32,
    /// Times that the restart window was applied after an idle time.
    pub idle_restarts: u32,
    /// Segments received, including discarded ones.
    pub segments_received: u32,
}

/// A snapshot of the sender, in Linux's terms (`struct tcp_info`), counted in segments.
///
/// Only a scoreboard keeps `sacked`, `lost`, `retransmitted`, `reordering`, `reordering_seen`,
/// `delivered`, `delivered_marked`, `dsack_duplicates` and `min_rtt_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// `tcpi_snd_cwnd`.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`, if anything has set it.
    pub ssthresh_segments: Option<u32>,
    /// `tcpi_ca_state`: 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss.
    pub recovery_state: u8,
    /// `tcpi_unacked`: segments sent and not acknowledged cumulatively.
    pub unacked: u32,
    /// `tcpi_sacked`: of these, acknowledged selectively (or counted so by duplicate acknowledgments).
    pub sacked: u32,
    /// `tcpi_lost`: of these, marked lost.
    pub lost: u32,
    /// `tcpi_retrans`: of these, retransmitted and not yet acknowledged.
    pub retransmitted: u32,
    /// `tcpi_total_retrans`.
    pub total_retransmitted: u32,
    /// `tcpi_retransmits`: consecutive timeouts.
    pub retries: u32,
    /// `tcpi_backoff`: times that the timeout, or the interval between probes of a closed window, was lengthened.
    pub backoff: u32,
    /// `tcpi_reordering`: segments by which the network is known to reorder.
    pub reordering: u32,
    /// `tcpi_reord_seen`: times that reordering was noticed.
    pub reordering_seen: u32,
    /// `tcpi_rtt`, smoothed, 0 without a sample.
    pub srtt_ns: Nanos,
    /// `tcpi_rttvar`.
    pub rttvar_ns: Nanos,
    /// `tcpi_min_rtt`; none without a sample.
    pub min_rtt_ns: Option<Nanos>,
    /// `tcpi_rto`.
    pub rto_ns: Nanos,
    /// `tcpi_snd_mss`.
    pub mss_bytes: u32,
    /// `tcpi_advmss`.
    pub announced_mss_bytes: u32,
    /// `tcpi_delivered`, in segments.
    pub delivered: u32,
    /// `tcpi_delivered_ce`: of these, acknowledged with an echo of a congestion mark.
    pub delivered_marked: u32,
    /// `tcpi_dsack_dups`.
    pub dsack_duplicates: u32,
    /// `tcpi_notsent_bytes`.
    pub not_sent_bytes: u64,
    /// `tcpi_pacing_rate` in bytes a second, if segments are paced.
    pub pacing_rate: Option<u64>,
    /// True if the sender keeps a scoreboard.
    pub scoreboard: bool,
    /// True if timestamps are in use on the connection.
    pub timestamps: bool,
    /// True if selective acknowledgments are in use on the connection.
    pub sack: bool,
    /// True if window scaling is in use on the connection.
    pub window_scaling: bool,
    /// True if ECN is in use on the connection.
    pub ecn: bool,
}

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
            pacing_rate: conn.extras.pacer().and_then(|pacer| pacer.rate()),
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
    #[inline]
    pub fn readable_bytes(&self) -> u64 {
        self.receiver.readable()
    }

    /// Bytes of the peer's stream received in order so far.
    #[inline]
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
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.snd().acknowledged_bytes()
    }

    /// State of the connection.
    #[inline]
    pub fn state(&self) -> State {
        self.conn.handshake.state
    }

    /// Whether the state is Closed or TimeWait: nothing more will happen by itself.
    #[inline]
    pub fn is_finished(&self) -> bool {
        matches!(self.conn.handshake.state, State::Closed | State::TimeWait)
    }

    /// Congestion window in bytes, inflation during fast recovery included.
    #[inline]
    pub fn cwnd_bytes(&self) -> u32 {
        self.sender.cwnd_bytes(&self.conn)
    }

    /// Slow start threshold in bytes; none before the first congestion, unless the profile or a start-up scheme sets it.
    #[inline]
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        self.sender.ssthresh_bytes()
    }

    /// Effective segment size in bytes: the smaller of both ends' (the profile's before the handshake).
    #[inline]
    pub fn mss_bytes(&self) -> u32 {
        self.conn.handshake.mss()
    }

    /// Sequence numbers sent and not acknowledged; a timeout takes those that it marks for retransmission away.
    #[inline]
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
    #[inline]
    pub fn in_first_flight(&self, seq: u32) -> bool {
        self.sender.in_first_flight(seq)
    }

    /// Counters.
    #[inline]
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
