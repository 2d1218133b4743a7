//! What an endpoint counts, and a snapshot of its sender.

use crate::Nanos;
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
