//! When data that the windows allow is sent: Nagle, send buffer, trains, pacing.

use super::error::{ProfileError, within};
use serde::{Deserialize, Serialize};

/// Policy for a last segment that is not full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nagle {
    /// It is sent immediately (`TCP_NODELAY`).
    #[default]
    Off,
    /// It waits while anything is outstanding (RFC 9293 §3.7.4).
    Classic,
    /// It waits while another small segment is outstanding (G. Minshall, draft-minshall-nagle; Linux).
    Minshall,
}

/// The memory that sent data, until it is acknowledged, and unsent data may take (Linux: `tcp_wmem`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendBuffer {
    /// Size of a new socket's buffer; with an initial window of ten segments it grows to 87,040 bytes immediately.
    pub initial_bytes: u32,
    /// Size up to which it grows with cwnd (`tcp_sndbuf_expand`).
    pub maximum_bytes: u32,
}

impl SendBuffer {
    /// Linux's.
    pub(crate) const LINUX: Self = Self { initial_bytes: 16 << 10, maximum_bytes: 4 << 20 };

    /// Checks that every field is within its range.
    pub(super) fn validate(&self) -> Result<(), ProfileError> {
        // SOCK_MIN_SNDBUF.
        within("send_buffer.initial_bytes", self.initial_bytes, 4_608..=u64::from(self.maximum_bytes))?;
        within("send_buffer.maximum_bytes", self.maximum_bytes, 4_608..=1 << 30)
    }
}

/// Segments sent together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trains {
    /// Minimum segments of a train, at any rate; 1 to 64 (Linux: `tcp_min_tso_segs`, 2).
    pub min_segments: u32,
    /// A train of any length is sent if 1/divisor of the window is free; 1 to 255 (Linux: `tcp_tso_win_divisor`, 3).
    pub window_divisor: u32,
}

impl Trains {
    /// Linux's.
    pub(crate) const LINUX: Self = Self { min_segments: 2, window_divisor: 3 };

    /// Checks that every field is within its range.
    pub(super) fn validate(&self) -> Result<(), ProfileError> {
        within("recovery.scoreboard.trains.min_segments", self.min_segments, 1..=64)?;
        within("recovery.scoreboard.trains.window_divisor", self.window_divisor, 1..=255)
    }
}

/// The pacing rate of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowPacing {
    /// Percentage of cwnd sent per SRTT while cwnd is below half of ssthresh, 1 to 1000 (Linux: `tcp_pacing_ss_ratio`,
    /// 200).
    pub slow_start_percent: u32,
    /// Percentage of cwnd sent per SRTT from there on (Linux: `tcp_pacing_ca_ratio`, 120).
    pub avoidance_percent: u32,
    /// Minimum burst, in segments, 1 to 64 (Linux: `tcp_min_tso_segs`, 2). With `trains` a longer train is also one
    /// burst.
    pub burst_segments: u32,
}

impl WindowPacing {
    /// Linux's.
    pub(crate) const LINUX: Self = Self { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };

    /// Checks that every field is within its range.
    pub(super) fn validate(&self) -> Result<(), ProfileError> {
        within("pacing.slow_start_percent", self.slow_start_percent, 1..=1000)?;
        within("pacing.avoidance_percent", self.avoidance_percent, 1..=1000)?;
        within("pacing.burst_segments", self.burst_segments, 1..=64)
    }
}
