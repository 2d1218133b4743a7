//! The counters of an endpoint.

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
