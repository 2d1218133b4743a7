//! A complete set of behaviors by name, every one of them a field that can be overridden.

mod ack;
pub(crate) mod choices;
pub(crate) mod error;
mod initial_window;
mod recovery;
mod restart_window;
mod sending;
mod validity;

pub use ack::{AckPolicy, AdaptiveAck, SackCompression};
pub use error::ProfileError;
pub use initial_window::{Adaptive, InitialWindow, Lesson, MemoryOf, Remembered, SynLossResponse};
pub use recovery::{NewRenoRules, RecoveryAlgorithm, RecoveryExit, RenoRules, ScoreboardRules, TailLossProbe};
pub use restart_window::{IdleCheck, RestartWindow};
pub use sending::{Nagle, SendBuffer, Trains, WindowPacing};

use crate::segment::TIMESTAMPS_BYTES;
use crate::sender::congestion::{CongestionAlgorithm, CongestionAvoidance, Hystart, SlowStartGrowth};
use crate::sender::startup::Startup;
use crate::{MILLISECOND, Nanos, SECOND};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// Declares a struct whose fields have values by default.
macro_rules! with_defaults {
    ($(#[$about:meta])* pub struct $Name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $value:expr,)* }) => {
        $(#[$about])*
        pub struct $Name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $Name {
            pub(crate) const DEFAULT: Self = Self { $($field: $value,)* };
        }

        impl Default for $Name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
}
use with_defaults;

with_defaults! {
    /// Behavior of one endpoint of a connection. Shared by all connections with the same behavior.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(remote = "Self", deny_unknown_fields)]
    pub struct Profile {
        /// Largest payload of a segment, advertised in the MSS option; 1 to 65535.
        mss_bytes: u32 = 1460,
        /// Smallest MSS that the peer is taken at its word for; 1 to 65535 (Linux: `tcp_min_snd_mss`).
        min_mss_bytes: u32 = 1,
        /// Segments of at most half of the peer's window at the end of the handshake, which is the first that counts as its
        /// largest (Linux: `tcp_bound_to_half_wnd`, `tcp_create_openreq_child`).
        mss_within_half_window: bool = false,
        /// Initial window.
        initial_window: InitialWindow = InitialWindow::Rfc6928,
        /// Restart window after an idle time longer than the RTO.
        restart_window: RestartWindow = RestartWindow::Rfc5681,
        /// When the sender checks for an idle time.
        idle_check: IdleCheck = IdleCheck::OnSend,
        /// Congestion window after a retransmission timeout, in segments, at least 1.
        loss_window_segments: u32 = 1,
        /// Effect of a lost SYN or SYN-ACK on the initial window.
        syn_loss_response: SynLossResponse = SynLossResponse::Rfc6928,
        /// With timestamps: ignore `syn_loss_response` if an echo of the first SYN or SYN-ACK shows that its
        /// retransmission was spurious.
        undo_spurious_syn: bool = false,
        /// Initial ssthresh, in segments; none: arbitrarily high.
        initial_ssthresh_segments: Option<u32> = None,
        /// Bound on the send window in addition to cwnd and rwnd, in segments (ns-2's `window_`).
        max_send_window_segments: Option<u32> = None,
        /// Bound on the memory of data that the application has written and the peer has not acknowledged; none: it
        /// writes everything immediately.
        send_buffer: Option<SendBuffer> = None,
        /// Size of the receive buffer, which is the largest advertised window, in bytes.
        receive_window_bytes: u32 = 1 << 20,
        /// Growth of the advertised window up to `receive_window_bytes`; none: full size from the start.
        receive_window_growth: Option<ReceiveWindowGrowth> = None,
        /// Offer the window scale option (RFC 7323).
        window_scaling: bool = true,
        /// Ignore a smaller rwnd, unless 0, of a segment that neither acknowledges new data nor has a later sequence
        /// number; an ACK that updates rwnd is no duplicate (Linux: `tcp_may_update_window`).
        ignore_shrinking_duplicates: bool = false,
        /// Accept a segment that ends at the latest acknowledgment number (Linux: `tcp_sequence`), so that the
        /// timestamp of a duplicate is echoed.
        loose_sequence_check: bool = false,
        /// When to acknowledge data.
        ack: AckPolicy = AckPolicy::Delayed { segments: 2, timer_ns: 200 * MILLISECOND },
        /// Offer selective acknowledgments (RFC 2018), which a scoreboard can use.
        sack: bool = false,
        /// Report duplicates in SACK options (RFC 2883).
        dsack: bool = false,
        /// Offer timestamps (RFC 7323): 12 bytes of each segment, taken from `mss_bytes`.
        timestamps: bool = false,
        /// Explicit congestion notification (RFC 3168).
        ecn: EcnPolicy = EcnPolicy::Off,
        /// Delay a small segment while data is outstanding. Off in `rfc`, since simulated applications write whole
        /// files.
        nagle: Nagle = Nagle::Off,
        /// Loss recovery algorithm, with its rules.
        recovery: RecoveryAlgorithm = RecoveryAlgorithm::NEW_RENO,
        /// Send new data on the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool = false,
        /// Lower the duplicate ACK threshold when fewer than four segments are outstanding (RFC 5827).
        early_retransmit: bool = false,
        /// Tick of the system clock, such as a kernel's jiffy: timeouts are whole ticks, timers expire on a tick, and
        /// CUBIC counts time in ticks. None: timers are exact, and CUBIC counts milliseconds.
        timer_tick: Option<TimerTick> = None,
        /// Duplicate ACKs that trigger fast retransmit.
        duplicate_ack_threshold: u32 = 3,
        /// Congestion control.
        congestion_control: CongestionAlgorithm = CongestionAlgorithm::Reno,
        /// ACKs that let cwnd grow, and the effect of idle time on cwnd.
        window_validation: WindowValidation = WindowValidation::Off,
        /// Pacing where neither a start-up scheme nor congestion control paces; none: segments are sent as ACKs open
        /// the window.
        pacing: Option<WindowPacing> = None,
        /// Start-up scheme, in addition to the initial window.
        startup: Startup = Startup::Window,
        /// Growth of cwnd in slow start.
        slow_start_growth: SlowStartGrowth = SlowStartGrowth::AbcL1,
        /// Growth of cwnd in congestion avoidance.
        congestion_avoidance: CongestionAvoidance = CongestionAvoidance::PerAck,
        /// ssthresh after a loss.
        ssthresh: SsthreshRules = SsthreshRules { base: SsthreshBase::FlightSize, whole_segments: false },
        /// Retransmission timer.
        rto: RtoRules = RtoRules::DEFAULT,
        /// Piggyback waiting data on the third segment of the handshake.
        data_on_handshake_ack: bool = false,
        /// Send the FIN with the last data (RFC 9293 §3.6), else in a separate segment once all data is acknowledged.
        piggyback_fin: bool = true,
        /// Retransmissions of one segment before the connection is aborted.
        max_retries: u32 = 15,
        /// Retransmissions of a SYN before the connection is aborted.
        max_syn_retries: u32 = 7,
        /// Retransmissions of a SYN-ACK before the connection is aborted.
        max_syn_ack_retries: u32 = 7,
        /// Number of initial SYN timeouts without exponential backoff (Linux: `tcp_syn_linear_timeouts`).
        linear_syn_timeouts: u32 = 0,
        /// After a segment with a wrong acknowledgment number retransmit the SYN within 10 ms or two ticks, once, and
        /// refuse a SYN-ACK with a wrong timestamp echo (Linux: `tcp_rcv_synsent_state_process`).
        retry_stale_syn_ack: bool = false,
    }
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Profile::serialize(self, serializer)
    }
}

// By way of `Value`, so that the long code which is derived is compiled here and once, not in each crate for its readers.
impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn read(value: Value) -> Result<Profile, serde_json::Error> {
            Profile::deserialize(value)
        }
        read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Use of explicit congestion notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnPolicy {
    /// Neither requested nor accepted.
    Off,
    /// Accepted if the peer requests it, not requested (Linux's default).
    Passive,
    /// Requested and accepted.
    On,
}

/// Ticks of a system's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerTick {
    /// Time between ticks.
    pub period_ns: Nanos,
    /// Coarser expiry for longer timers, as in Linux's timer wheel.
    pub wheel: bool,
}

/// ACKs that let cwnd grow, and the effect of an unused window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WindowValidation {
    /// Each ACK of new data lets cwnd grow (RFC 5681).
    Off,
    /// cwnd grows only while it limits the sender (Linux).
    CwndLimited {
        /// Reduce cwnd by half of its unused part after an RTO without full use (RFC 2861).
        #[serde(default)]
        app_limited_decay: bool,
    },
}

/// The slow start threshold after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsthreshRules {
    /// Quantity that ssthresh is computed from.
    pub base: SsthreshBase,
    /// Round ssthresh down to whole segments (Reno and Vegas; other algorithms have their own rules).
    pub whole_segments: bool,
}

/// The base of ssthresh after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SsthreshBase {
    /// FlightSize: the outstanding data (RFC 5681), because cwnd may have outgrown the used window.
    FlightSize,
    /// cwnd (Linux, which lets it grow only while it limits the sender).
    Cwnd,
}

impl SsthreshBase {
    /// The base of ssthresh, in bytes.
    #[inline]
    pub(crate) fn bytes(self, flight_bytes: u32, cwnd_bytes: u32) -> u32 {
        match self {
            Self::FlightSize => flight_bytes,
            Self::Cwnd => cwnd_bytes,
        }
    }
}

/// A receive window that starts small.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveWindowGrowth {
    /// Initial receive buffer, in bytes of payload: the first window is as many whole segments, 65535 bytes at most.
    pub initial_bytes: u32,
}

/// Interval measured by an RTT sample of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttSamples {
    /// From a segment to its ACK, one segment at a time and none that was retransmitted (RFC 6298 §3).
    RoundTrip,
    /// From the time at which an ACK was sent, for each ACK of new data; the back-off ends with the ACK of a segment that
    /// was not retransmitted (ns-2's BayFullTcp, `newack()`). Both ends need one clock, so only the simulator has it:
    /// samples are round trips if the peer's SYN does not say when it was sent.
    AckOneWay,
}

/// Estimator that computes the retransmission timeout from RTT samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RtoEstimator {
    /// RFC 6298: SRTT + 4 RTTVAR, not below the floor.
    Rfc6298 {
        /// Count a sample in whole clock ticks, at least one (BSD, ns-2).
        #[serde(default)]
        quantized_rtt: bool,
    },
    /// Linux: the floor bounds the variation, not the sum, and the variation follows its maximum over a round trip.
    Linux,
}

impl RtoEstimator {
    /// RFC 6298's, with exact samples.
    pub const RFC6298: Self = Self::Rfc6298 { quantized_rtt: false };
}

/// The timeout when data begins after a SYN timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterSynLoss {
    /// Timeout (RFC 6298 §5.7).
    pub timeout_ns: Nanos,
    /// Keep a timeout computed from an RTT sample, which timestamps provide even if the SYN was retransmitted.
    pub unless_sampled: bool,
}

with_defaults! {
    /// The retransmission timer (RFC 6298).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RtoRules {
        /// Timeout before the first sample.
        initial_ns: Nanos = SECOND,
        /// Lower bound.
        minimum_ns: Nanos = SECOND,
        /// Upper bound, with backoff.
        maximum_ns: Nanos = 60 * SECOND,
        /// Clock granularity G.
        granularity_ns: Nanos = MILLISECOND,
        /// Interval that a sample measures.
        samples: RttSamples = RttSamples::RoundTrip,
        /// Estimator that computes the timeout from samples.
        estimator: RtoEstimator = RtoEstimator::RFC6298,
        /// Factor by which each expiry multiplies the timeout.
        backoff: u32 = 2,
        /// Also multiply the timeout by that factor on a fast retransmit (ns-2's BayFullTcp, `fast_retransmit()`).
        backoff_at_fast_retransmit: bool = false,
        /// Timeout when data starts after a SYN timeout; none: the backed-off timeout stays until a sample.
        after_syn_loss: Option<AfterSynLoss> = Some(AfterSynLoss { timeout_ns: 3 * SECOND, unless_sampled: false }),
    }
}

impl RtoRules {
    /// Unit of RTT samples.
    #[inline]
    pub(crate) fn unit_ns(&self) -> Nanos {
        match self.estimator {
            RtoEstimator::Rfc6298 { quantized_rtt: true } => self.granularity_ns,
            _ => 1,
        }
    }
}

impl Profile {
    /// Names that [`Profile::named`] knows.
    pub const NAMES: [&'static str; 3] = ["rfc", "linux", "ns2-full-1998"];

    /// Payload of a full segment to a peer with another profile: what both ends' MSS allow, less the timestamps if both
    /// offer them.
    pub fn full_payload_bytes(&self, peer: &Profile) -> u32 {
        let options = if self.timestamps && peer.timestamps { TIMESTAMPS_BYTES } else { 0 };
        self.mss_bytes.min(peer.mss_bytes).saturating_sub(options).max(1)
    }

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "rfc" => Some(Self::rfc()),
            "linux" => Some(Self::linux()),
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
        Self::DEFAULT
    }

    /// What a current Linux kernel (6.x) does with its default settings, where that differs from [`rfc`](Self::rfc).
    /// `docs/profile-linux.md` lists each difference with its source.
    pub fn linux() -> Self {
        let rfc = Self::rfc();
        Self {
            // TCP_MIN_SND_MSS.
            min_mss_bytes: 48,
            mss_within_half_window: true,
            // TCP_INIT_CWND: ten segments at any segment size.
            initial_window: InitialWindow::Linux,
            // tcp_slow_start_after_idle = 1: tcp_cwnd_restart.
            restart_window: RestartWindow::Halving,
            // tcp_skb_entail calls tcp_slow_start_after_idle_check.
            idle_check: IdleCheck::OnWrite,
            // tcp_init_transfer: one segment after more than one retransmission.
            syn_loss_response: SynLossResponse::Rfc6928,
            // tcp_try_undo_spurious_syn.
            undo_spurious_syn: true,
            // tcp_wmem[1] and [2].
            send_buffer: Some(SendBuffer::LINUX),
            // Half of tcp_rmem[2] = 32 MiB (since 6.16; 6 MB before), the rest being overhead: window scale 10.
            // tcp_select_initial_window begins with half of tcp_rmem[1] = 128 KiB.
            receive_window_bytes: 16 << 20,
            receive_window_growth: Some(ReceiveWindowGrowth { initial_bytes: 65536 }),
            // tcp_may_update_window.
            ignore_shrinking_duplicates: true,
            // tcp_sequence.
            loose_sequence_check: true,
            // tcp_sack, tcp_dsack, tcp_timestamps = 1: segments of 1448 bytes on a path of 1500.
            sack: true,
            dsack: true,
            timestamps: true,
            // tcp_ecn = 2.
            ecn: EcnPolicy::Passive,
            // Minshall's variant, unless TCP_NODELAY is set.
            nagle: Nagle::Minshall,
            // TCP_DELACK_MIN = TCP_ATO_MIN = 40 ms, TCP_DELACK_MAX = 200 ms, TCP_MAX_QUICKACKS.
            ack: AckPolicy::Adaptive(AdaptiveAck::DEFAULT),
            recovery: RecoveryAlgorithm::Scoreboard(ScoreboardRules {
                // tcp_recovery = 1, tcp_early_retrans = 3, tcp_frto = 2; PRR always; undo always.
                rack: true,
                // tcp_rto_min, here as there.
                tail_loss_probe: Some(TailLossProbe { max_ack_delay_ns: 200 * MILLISECOND }),
                prr: true,
                undo_by_timestamps: true,
                undo_by_dsack: true,
                f_rto: true,
                timer_restart: true,
                // tcp_min_tso_segs, tcp_tso_win_divisor.
                trains: Some(Trains::LINUX),
            }),
            limited_transmit: true,
            // tcp_congestion_control = cubic, with its module's hystart = 1.
            congestion_control: CongestionAlgorithm::Cubic { hystart: Hystart::Hystart },
            // tcp_is_cwnd_limited.
            // tcp_cwnd_application_limited, if tcp_slow_start_after_idle = 1.
            window_validation: WindowValidation::CwndLimited { app_limited_decay: true },
            // tcp_slow_start and tcp_cong_avoid_ai count segments acknowledged.
            slow_start_growth: SlowStartGrowth::AbcUnlimited,
            congestion_avoidance: CongestionAvoidance::PerWindow,
            // tcp_reno_ssthresh and cubictcp_recalc_ssthresh: of tp->snd_cwnd; windows are counted in segments.
            ssthresh: SsthreshRules { base: SsthreshBase::Cwnd, whole_segments: true },
            rto: RtoRules {
                // TCP_TIMEOUT_INIT 1 s, TCP_RTO_MIN 200 ms, TCP_RTO_MAX 120 s.
                minimum_ns: 200 * MILLISECOND,
                maximum_ns: 120 * SECOND,
                estimator: RtoEstimator::Linux,
                // tcp_init_metrics: only if srtt_us is 0.
                after_syn_loss: Some(AfterSynLoss { timeout_ns: 3 * SECOND, unless_sampled: true }),
                ..rfc.rto
            },
            // tcp_retries2 = 15, tcp_synack_retries = 5; tcp_syn_retries = 6 on top of tcp_syn_linear_timeouts = 4.
            max_retries: 15,
            max_syn_retries: 10,
            max_syn_ack_retries: 5,
            linear_syn_timeouts: 4,
            // tcp_rcv_synsent_state_process.
            retry_stale_syn_ack: true,
            ..rfc
        }
    }

    /// What RFC 2415 ran, where that differs from [`rfc`](Self::rfc): its authors' TCP for ns-2, as it survives in ns-2.35
    /// (`Agent/TCP/BayFullTcp`, `baytcp/tcp-full-bay.cc`, comments of August 1997).
    ///
    /// From that code: Reno; ssthresh at the window limit; every segment acknowledged for 16 kB at the start and after
    /// disorder, then every second one, on a clock of 100 ms; RTT samples of the ACK's own way; the timer backed off at a
    /// fast retransmit; what is in flight and two segments more after recovery; three duplicate ACKs; the request on the
    /// third segment of the handshake; the FIN on the last data. From the RFC: a window of 11 segments, a restart window
    /// of one. From ns-2: 3 s before the first sample. Chosen: ticks of 100 ms, 1998's default, with a floor of two of
    /// them, as ns-2 enforces; 64 s at most, ns-2's `maxrto_`.
    ///
    /// Not modeled: that code opens cwnd only once data has arrived, which changes nothing for a server that answers
    /// requests; and it halves cwnd, in whole segments, where this halves the bytes in flight.
    pub fn ns2_full_1998() -> Self {
        Self {
            initial_window: InitialWindow::Fixed { segments: 1 },
            restart_window: RestartWindow::Fixed { segments: 1 },
            syn_loss_response: SynLossResponse::Keep,
            initial_ssthresh_segments: Some(11),
            max_send_window_segments: Some(11),
            receive_window_bytes: 11 * 1460,
            window_scaling: false,
            ack: AckPolicy::Heartbeat {
                segments: 2,
                interval_ns: 100 * MILLISECOND,
                every_segment_bytes: Some(16 * 1024),
            },
            recovery: RecoveryAlgorithm::Reno(RenoRules { exit: RecoveryExit::FlightPlusTwo }),
            slow_start_growth: SlowStartGrowth::PerAck,
            rto: RtoRules {
                initial_ns: 3 * SECOND,
                minimum_ns: 200 * MILLISECOND,
                maximum_ns: 64 * SECOND,
                granularity_ns: 100 * MILLISECOND,
                samples: RttSamples::AckOneWay,
                estimator: RtoEstimator::Rfc6298 { quantized_rtt: true },
                backoff: 2,
                backoff_at_fast_retransmit: true,
                after_syn_loss: None,
            },
            data_on_handshake_ack: true,
            max_syn_retries: 6,
            max_syn_ack_retries: 6,
            ..Self::rfc()
        }
    }
}
