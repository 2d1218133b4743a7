//! The effect of a lost SYN or SYN-ACK on the initial window.

use serde::{Deserialize, Serialize};

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
