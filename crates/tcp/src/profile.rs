//! A complete set of behaviours by name, every one of them a field that can be overridden.

use crate::Nanos;
use crate::ack_policy::AckPolicy;
use crate::congestion::{CongestionAvoidance, SlowStartGrowth};
use crate::initial_window::InitialWindow;
use crate::lost_syn::LostSyn;
use crate::recovery::RecoveryAlgorithm;
use crate::restart_window::RestartWindow;
use serde::{Deserialize, Serialize};

const MILLISECOND: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// Largest window TCP can express, in bytes.
// RFC 7323 §2.3: the shift is at most 14, so a window is at most 2^30 bytes.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 30;

/// How one end of a connection behaves. Shared by all connections that behave alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Largest payload of a segment, announced in the MSS option; 1 to 65535.
    pub mss_bytes: u32,
    /// Initial window.
    pub initial_window: InitialWindow,
    /// Restart window after an idle time longer than the RTO.
    pub restart_window: RestartWindow,
    /// Congestion window after a retransmission timeout, in segments, at least 1.
    pub loss_window_segments: u32,
    /// What a lost SYN or SYN-ACK does to the initial window.
    pub lost_syn: LostSyn,
    /// Slow start threshold at the start, in segments; none: arbitrarily high.
    pub initial_ssthresh_segments: Option<u32>,
    /// Bound on the send window besides cwnd and the receive window, in segments (ns-2's `window_`).
    pub max_send_window_segments: Option<u32>,
    /// Size of the receive buffer, and with it the largest window announced, in bytes.
    pub receive_window_bytes: u32,
    /// Whether to offer the window scale option (RFC 7323).
    pub window_scaling: bool,
    /// When to acknowledge data.
    pub ack: AckPolicy,
    /// Loss recovery.
    pub recovery: RecoveryAlgorithm,
    /// Duplicate acknowledgements that trigger fast retransmit.
    pub duplicate_ack_threshold: u32,
    /// Growth of cwnd in slow start.
    pub slow_start_growth: SlowStartGrowth,
    /// Growth of cwnd in congestion avoidance.
    pub congestion_avoidance: CongestionAvoidance,
    /// Retransmission timer.
    pub rto: RtoRules,
    /// Whether data that is waiting rides on the third segment of the handshake.
    pub data_on_handshake_ack: bool,
    /// Retransmissions of one segment before the connection is given up.
    pub max_retries: u32,
    /// Retransmissions of a SYN or SYN-ACK before the connection is given up.
    pub max_syn_retries: u32,
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RtoRules {
    /// Timeout before the first sample.
    pub initial_ns: Nanos,
    /// Floor.
    pub minimum_ns: Nanos,
    /// Cap, back-off included.
    pub maximum_ns: Nanos,
    /// Clock granularity G.
    pub granularity_ns: Nanos,
    /// Factor by which each expiry lengthens the timeout.
    pub backoff: u32,
    /// Whether a sample is counted in whole ticks of the clock, at least one (BSD, ns-2).
    pub quantised_samples: bool,
    /// Timeout when data begins after a SYN timed out; none: the backed-off one stays until a sample.
    pub after_syn_loss_ns: Option<Nanos>,
}

impl RtoRules {
    /// Unit in which round trips are counted.
    #[inline]
    pub(crate) fn unit_ns(&self) -> Nanos {
        if self.quantised_samples { self.granularity_ns } else { 1 }
    }
}

impl Profile {
    /// Names that [`Profile::named`] knows.
    pub const NAMES: [&'static str; 2] = ["rfc", "ns2-full-1998"];

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "rfc" => Some(Self::rfc()),
            "ns2-full-1998" => Some(Self::ns2_full_1998()),
            _ => None,
        }
    }

    /// Each rule as its current RFC states it.
    ///
    /// Where an RFC leaves a choice: MSS of a 1500-byte path; RFC 6928's lost-SYN rule, which belongs to its initial
    /// window; delayed ACKs of 200 ms (RFC 5681 allows 500 ms); a receive buffer of 1 MiB with window scaling; the
    /// RTO's cap at the 60 s that RFC 6298 §2.5 names; 15 retries, and 7 of a SYN, which pass the 100 s and 3 minutes
    /// of RFC 9293 §3.8.3.
    pub fn rfc() -> Self {
        Self {
            mss_bytes: 1460,
            initial_window: InitialWindow::Rfc6928,
            restart_window: RestartWindow::Rfc5681,
            loss_window_segments: 1,
            lost_syn: LostSyn::Rfc6928,
            initial_ssthresh_segments: None,
            max_send_window_segments: None,
            receive_window_bytes: 1 << 20,
            window_scaling: true,
            ack: AckPolicy::Delayed { segments: 2, timer_ns: 200 * MILLISECOND },
            recovery: RecoveryAlgorithm::NewReno,
            duplicate_ack_threshold: 3,
            slow_start_growth: SlowStartGrowth::Bytes,
            congestion_avoidance: CongestionAvoidance::PerAck,
            rto: RtoRules {
                initial_ns: SECOND,
                minimum_ns: SECOND,
                maximum_ns: 60 * SECOND,
                granularity_ns: MILLISECOND,
                backoff: 2,
                quantised_samples: false,
                after_syn_loss_ns: Some(3 * SECOND),
            },
            data_on_handshake_ack: false,
            max_retries: 15,
            max_syn_retries: 7,
        }
    }

    /// What RFC 2415 ran: the full TCP model of ns-2 in 1998, as far as its descendants in ns-2.35 (`baytcp`) and
    /// the RFC tell.
    ///
    /// Known: Reno, window limit of 11 segments, ssthresh at that limit, restart window of one segment, an ACK per
    /// segment, three duplicate ACKs, the request on the third handshake segment, 3 s before the first sample (the
    /// authors' correction of BSD's 6 s in a comment of `baytcp`, and ns-2's released default). Chosen: ticks of 100 ms,
    /// 1998's default, with a floor of two of them, as ns-2 enforces; 64 s at most, ns-2's `maxrto_`.
    pub fn ns2_full_1998() -> Self {
        Self {
            mss_bytes: 1460,
            initial_window: InitialWindow::Fixed { segments: 1 },
            restart_window: RestartWindow::Fixed { segments: 1 },
            loss_window_segments: 1,
            lost_syn: LostSyn::Keep,
            initial_ssthresh_segments: Some(11),
            max_send_window_segments: Some(11),
            receive_window_bytes: 11 * 1460,
            window_scaling: false,
            ack: AckPolicy::EverySegment,
            recovery: RecoveryAlgorithm::Reno,
            duplicate_ack_threshold: 3,
            slow_start_growth: SlowStartGrowth::PerAck,
            congestion_avoidance: CongestionAvoidance::PerAck,
            rto: RtoRules {
                initial_ns: 3 * SECOND,
                minimum_ns: 200 * MILLISECOND,
                maximum_ns: 64 * SECOND,
                granularity_ns: 100 * MILLISECOND,
                backoff: 2,
                quantised_samples: true,
                after_syn_loss_ns: None,
            },
            data_on_handshake_ack: true,
            max_retries: 15,
            max_syn_retries: 6,
        }
    }

    /// Checks that every field is within its range.
    ///
    /// # Errors
    /// One sentence that names the field, its value and what would be right.
    pub fn validate(&self) -> Result<(), String> {
        let within = |field: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{field} is {value}, but must be from {low} to {high}"))
            }
        };
        let largest = u64::from(LARGEST_WINDOW);
        // A window in segments must stay expressible in bytes.
        let most_segments = largest / u64::from(self.mss_bytes.max(1));
        within("mss_bytes", self.mss_bytes.into(), 1, 65535)?;
        if let InitialWindow::Fixed { segments } = self.initial_window {
            within("initial_window.segments", segments.into(), 1, most_segments)?;
        }
        if let RestartWindow::Fixed { segments } = self.restart_window {
            within("restart_window.segments", segments.into(), 1, most_segments)?;
        }
        within("loss_window_segments", self.loss_window_segments.into(), 1, most_segments)?;
        if let Some(segments) = self.initial_ssthresh_segments {
            within("initial_ssthresh_segments", segments.into(), 1, most_segments)?;
        }
        if let Some(segments) = self.max_send_window_segments {
            within("max_send_window_segments", segments.into(), 1, most_segments)?;
        }
        let largest_receive = if self.window_scaling { largest } else { 65535 };
        within("receive_window_bytes", self.receive_window_bytes.into(), 1, largest_receive).map_err(|sentence| {
            if self.window_scaling { sentence } else { format!("{sentence} without window_scaling") }
        })?;
        match self.ack {
            AckPolicy::EverySegment => {}
            AckPolicy::Delayed { segments, timer_ns } => {
                within("ack.segments", segments.into(), 1, u32::MAX.into())?;
                within("ack.timer_ns", timer_ns, 0, LONGEST_TIMEOUT)?;
            }
            AckPolicy::Heartbeat { segments, interval_ns } => {
                within("ack.segments", segments.into(), 1, u32::MAX.into())?;
                within("ack.interval_ns", interval_ns, 1, LONGEST_TIMEOUT)?;
            }
        }
        within("duplicate_ack_threshold", self.duplicate_ack_threshold.into(), 1, 255)?;
        self.rto.validate(within)
    }
}

/// Longest timeout that a profile may ask for: a day, which keeps the arithmetic far from overflow.
const LONGEST_TIMEOUT: Nanos = 86_400 * SECOND;

impl RtoRules {
    fn validate(&self, within: impl Fn(&str, u64, u64, u64) -> Result<(), String>) -> Result<(), String> {
        within("rto.minimum_ns", self.minimum_ns, 1, LONGEST_TIMEOUT)?;
        within("rto.maximum_ns", self.maximum_ns, self.minimum_ns, LONGEST_TIMEOUT)?;
        within("rto.initial_ns", self.initial_ns, 1, self.maximum_ns)?;
        within("rto.granularity_ns", self.granularity_ns, 1, LONGEST_TIMEOUT)?;
        within("rto.backoff", self.backoff.into(), 1, 16)?;
        match self.after_syn_loss_ns {
            Some(rto) => within("rto.after_syn_loss_ns", rto, 1, self.maximum_ns),
            None => Ok(()),
        }
    }
}
