//! The amount that may be sent before the first acknowledgment of data.
//!
//! Most policies look at the segment size alone. `remembered` and `adaptive` learn from connections: the learned state
//! lives outside of any endpoint, in a [`DestinationMemory`] for each destination or a [`PopulationWindow`] for each
//! population. Their owner asks it before it opens a connection, calls
//! [`Endpoint::start_from`](crate::Endpoint::start_from) with the result, and hands back the endpoint's
//! [`outcome`](crate::Endpoint::outcome) when the connection is over. An endpoint without this call begins with the
//! policy's value for the case that nothing is known.

mod adaptive;
pub(crate) mod bursts;
mod remembered;
mod restart_window;

use crate::profile::error::{LONGEST_TIMEOUT, ProfileError, within};
pub use adaptive::{Adaptive, PopulationWindow};
pub use remembered::{DestinationMemory, Lesson, MemoryOf, Remembered};
pub(crate) use restart_window::FALLBACK_BYTES;
pub use restart_window::{IdleCheck, RestartWindow};
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
    pub(crate) fn validate(&self, max_segments: u64) -> Result<(), ProfileError> {
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

/// Starting point of a connection from earlier ones, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartingPoint {
    /// Initial window in segments, at least 1.
    pub window_segments: u32,
    /// Slow start threshold in segments; none: as the profile says.
    pub ssthresh_segments: Option<u32>,
}

/// The results of a connection that others can use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Congestion window in whole segments, without the inflation of fast recovery.
    pub window_segments: u32,
    /// Slow start threshold in whole segments; none: arbitrarily high.
    pub ssthresh_segments: Option<u32>,
    /// Some of the initial window was retransmitted, or the SYN-ACK was marked on the path.
    pub initial_window_failed: bool,
    /// Congestion window with which data began.
    pub initial_window_segments: u32,
    /// Largest congestion window.
    pub largest_window_segments: u32,
    /// Segments that the bytes acknowledged fill, the last one in part.
    pub delivered_segments: u32,
    /// Data segments retransmitted.
    pub retransmissions: u32,
}
