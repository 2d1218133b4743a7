//! How much may be sent before the first acknowledgement of data: one file a policy.

mod fixed;
mod linux;
mod rfc2581;
mod rfc3390;
mod rfc6928;

pub(crate) use rfc3390::window_bytes as rfc3390_window_bytes;
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
}

impl InitialWindow {
    /// The initial window in bytes for a connection whose effective segment size is `mss_bytes`.
    pub fn window_bytes(self, mss_bytes: u32) -> u32 {
        match self {
            Self::Fixed { segments } => fixed::window_bytes(segments, mss_bytes),
            Self::Rfc2581 => rfc2581::window_bytes(mss_bytes),
            Self::Rfc3390 => rfc3390::window_bytes(mss_bytes),
            Self::Rfc6928 => rfc6928::window_bytes(mss_bytes),
            Self::Linux => linux::window_bytes(mss_bytes),
        }
    }
}
