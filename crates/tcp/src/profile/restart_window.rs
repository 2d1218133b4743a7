//! The burst that may be sent when a connection wakes after an idle time.

use super::initial_window::InitialWindow;
use serde::{Deserialize, Serialize};

/// Policy for the restart window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum RestartWindow {
    /// The congestion window survives any idle time.
    Off,
    /// RFC 5681: min(IW, cwnd) after an idle time longer than the RTO.
    Rfc5681,
    /// As RFC 5681, but RFC 3390's initial window bounds it once a burst of more than 4 KB, the first flight or a
    /// restart, has lost something.
    Rfc6928,
    /// Linux, after RFC 2861: halved for each RTO of idleness but one, in whole segments, down to the initial window;
    /// the slow start threshold rises to three quarters of the window before.
    Halving,
    /// At most a fixed number of segments.
    Fixed {
        /// Segments, at least 1.
        segments: u32,
    },
}

/// When a connection is looked at for having been idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleCheck {
    /// As the first segment is about to leave, so that time in which the peer's window was closed is idle too.
    OnSend,
    /// As the application writes (Linux).
    OnWrite,
}

impl RestartWindow {
    /// Congestion window in bytes after an idle time that is longer than the RTO, given the one before it, the
    /// connection's initial window, whether a first flight or restart burst of more than 4 KB has lost something, and how
    /// many times the RTO has fully passed.
    pub fn window_bytes(
        self,
        cwnd_bytes: u32,
        initial_window_bytes: u32,
        mss_bytes: u32,
        burst_was_lost: bool,
        timeouts_passed: u64,
    ) -> u32 {
        match self {
            Self::Off => cwnd_bytes,
            // RFC 5681 §4.1: RW = min(IW,cwnd).
            Self::Rfc5681 => cwnd_bytes.min(initial_window_bytes),
            // RFC 6928 §2: fall back to RFC 3390 for the restart window if loss is detected during either the
            // initial window or a restart window, and more than 4 KB of data is sent.
            Self::Rfc6928 if burst_was_lost => {
                cwnd_bytes.min(initial_window_bytes).min(InitialWindow::Rfc3390.window_bytes(mss_bytes))
            }
            Self::Rfc6928 => cwnd_bytes.min(initial_window_bytes),
            // Linux, tcp_cwnd_restart: while more of the idle time is left than an RTO, and the window is above the
            // restart window, halve it.
            Self::Halving => {
                let (segments, least) = (cwnd_bytes / mss_bytes, initial_window_bytes / mss_bytes);
                if segments <= least {
                    return cwnd_bytes;
                }
                let halved = segments.checked_shr(u32::try_from(timeouts_passed).unwrap_or(u32::MAX)).unwrap_or(0);
                halved.max(least).max(1) * mss_bytes
            }
            Self::Fixed { segments } => cwnd_bytes.min(segments.saturating_mul(mss_bytes)),
        }
    }
}
