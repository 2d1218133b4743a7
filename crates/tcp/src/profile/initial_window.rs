//! The amount that may be sent before the first acknowledgment of data.

use super::error::{LONGEST_TIMEOUT, ProfileError, within};
use super::with_defaults;
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};

/// Policy for the initial window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum InitialWindow {
    /// A fixed number of full segments, whatever their size.
    Fixed {
        /// Segments, at least 1.
        segments: u32,
    },
    /// RFC 2581: two segments.
    Rfc2581,
    /// RFC 3390 (and RFC 2414): up to four segments, about 4 KB.
    Rfc3390,
    /// RFC 6928: up to ten segments, about 15 KB.
    Rfc6928,
    /// Linux since 2.6.39: ten segments at any segment size.
    Linux,
    /// The results of earlier connections to the same destination.
    Remembered(Remembered),
    /// The window that a population of connections sends without loss (RFC 9040 appendix C).
    Adaptive(Adaptive),
}

impl InitialWindow {
    /// The initial window in bytes for a connection whose effective segment size is `mss_bytes`, as long as nothing was
    /// learned from others.
    pub fn window_bytes(self, mss_bytes: u32) -> u32 {
        match self {
            Self::Fixed { segments } => segments.saturating_mul(mss_bytes),
            // RFC 2581 §3.1: IW <= 2*SMSS bytes, and not more than 2 segments.
            Self::Rfc2581 => 2 * mss_bytes,
            // RFC 3390 §1: min (4*MSS, max (2*MSS, 4380 bytes)).
            Self::Rfc3390 => (4 * mss_bytes).min((2 * mss_bytes).max(4380)),
            // RFC 6928 §2: min (10*MSS, max (2*MSS, 14600)).
            Self::Rfc6928 => (10 * mss_bytes).min((2 * mss_bytes).max(14600)),
            // Linux 2.6.39 and later: TCP_INIT_CWND is 10 segments and, unlike RFC 6928 §2, has no bound in bytes.
            Self::Linux => 10 * mss_bytes,
            Self::Remembered(policy) => policy.start_segments.saturating_mul(mss_bytes),
            Self::Adaptive(policy) => policy.max_segments.saturating_mul(mss_bytes),
        }
    }

    /// Checks the policy's parameters.
    pub(super) fn validate(&self, max_segments: u64) -> Result<(), ProfileError> {
        match self {
            Self::Fixed { segments } => within("initial_window.segments", *segments, 1..=max_segments),
            Self::Rfc2581 | Self::Rfc3390 | Self::Rfc6928 | Self::Linux => Ok(()),
            Self::Remembered(policy) => {
                within("initial_window.max_segments", policy.max_segments, 1..=max_segments)?;
                let most = policy.max_segments.into();
                within("initial_window.start_segments", policy.start_segments, 1..=most)?;
                within("initial_window.weight_percent", policy.weight_percent, 1..=100)?;
                within("initial_window.hosts", policy.hosts, 1..=u32::MAX.into())?;
                if policy.lesson != Lesson::Last && policy.of == MemoryOf::Live {
                    let reason = "since live connections have taught nothing yet";
                    let needed = "initial_window.of = closed";
                    return Err(ProfileError::Needs { setting: "initial_window.lesson", needed, reason });
                }
                within("initial_window.lifetime_ns", policy.lifetime_ns, 1..=LONGEST_TIMEOUT)
            }
            Self::Adaptive(policy) => policy.validate(max_segments),
        }
    }
}

/// Policy for the initial window after the handshake had to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SynLossResponse {
    /// One segment after any retransmission.
    Rfc3390,
    /// One segment only after more than one retransmission.
    Rfc6928,
    /// The initial window stays as it is.
    Keep,
}

impl SynLossResponse {
    /// Initial window in bytes after `retransmissions` of this side's SYN or SYN-ACK.
    pub fn window_bytes(self, retransmissions: u32, initial_window_bytes: u32, mss_bytes: u32) -> u32 {
        let tolerated = match self {
            // RFC 3390 §1: if the SYN or SYN/ACK is lost, the initial window MUST be one segment.
            Self::Rfc3390 => 0,
            // RFC 6928 §2: refrain from resetting the initial window to 1 segment, unless there have been more than
            // one SYN or SYN/ACK retransmissions.
            Self::Rfc6928 => 1,
            Self::Keep => u32::MAX,
        };
        if retransmissions > tolerated { initial_window_bytes.min(mss_bytes) } else { initial_window_bytes }
    }
}

/// Whose windows are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryOf {
    /// The mean of the windows of live connections, whenever another one is opened, and of those that close: as
    /// in Riptide (Flores, Khakpour, Bedi: "Riptide: Jump-Starting Back-Office Connections in Cloud Systems", ICDCS
    /// 2016).
    Live,
    /// The window and the threshold of each connection when it closes (RFC 9040 §6.2, temporal sharing).
    Closed,
}

/// The value that a connection contributes when it closes, for [`MemoryOf::Closed`]. All but the first take the largest
/// window of the connection, but no more than was delivered, and never fall below the start value; the rules are those
/// of `SashaLuna/tesi-ebpf-initcwnd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lesson {
    /// Its last window (RFC 9040 §6.2).
    Last,
    /// The largest one, independent of losses.
    Largest,
    /// The largest one; a retransmission halves the stored value.
    LossAware,
    /// The same, but a retransmission at a window above 1.5 times the initial one teaches nothing: slow start overshot.
    LossAwareFirstFlight,
}

with_defaults! {
    /// Parameters of the memory of a destination.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Remembered {
        /// Whose windows count.
        of: MemoryOf = MemoryOf::Live,
        /// Window while nothing is known, in segments.
        start_segments: u32 = 10,
        /// Most segments that a memory may give.
        max_segments: u32 = 100,
        /// Weight of a new value against the stored value, in percent, 1 to 100.
        weight_percent: u32 = 50,
        /// An entry that has not been renewed for this time is forgotten.
        lifetime_ns: Nanos = 90 * SECOND,
        /// True if the slow start threshold is handed on as well, with `of = closed`.
        ssthresh: bool = false,
        /// The value that a closed connection contributes.
        lesson: Lesson = Lesson::Last,
        /// Neighboring addresses that share a memory: 1 for each address alone, 256 for an IPv4 /24.
        hosts: u32 = 1,
    }
}

with_defaults! {
    /// The parameters of RFC 9040 §C.3, with its values as defaults.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Adaptive {
        /// MinIW, in segments.
        min_segments: u32 = 3,
        /// MaxIW, in segments; also where it begins.
        max_segments: u32 = 10,
        /// MulDecr, in percent: the part of the window left after a decrease, 1 to 99.
        decrease_to_percent: u32 = 50,
        /// AddIncr, in segments, 0 to 2.
        increase_segments: u32 = 2,
        /// Threshold, in percent of the connections, 0 to 95: with more of them failing the window decreases.
        threshold_percent: u32 = 5,
        /// Connections after which the window is set again, 1 to 1000.
        connections: u32 = 1000,
    }
}

impl Adaptive {
    // RFC 9040 §C.3, the constraints: MUST adjust at least once every 1000 connections; MUST increase by no more than 2
    // MSSs per evaluation interval; MUST decrease if more than 95% of connections have IW losses.
    fn validate(&self, max_segments: u64) -> Result<(), ProfileError> {
        within("initial_window.min_segments", self.min_segments, 1..=self.max_segments.into())?;
        within("initial_window.max_segments", self.max_segments, 1..=max_segments)?;
        within("initial_window.decrease_to_percent", self.decrease_to_percent, 1..=99)?;
        within("initial_window.increase_segments", self.increase_segments, 0..=2)?;
        within("initial_window.threshold_percent", self.threshold_percent, 0..=95)?;
        within("initial_window.connections", self.connections, 1..=1000)
    }
}
