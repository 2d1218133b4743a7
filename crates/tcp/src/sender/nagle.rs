//! When a small segment waits for an acknowledgment, so that small writes do not become small packets.

use crate::sequence::SeqNum;
use serde::{Deserialize, Serialize};

/// Policy for a last segment that is not full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nagle {
    /// It is sent immediately (`TCP_NODELAY`).
    Off,
    /// It waits while anything is outstanding (RFC 9293 §3.7.4).
    Classic,
    /// It waits while another small segment is outstanding (G. Minshall, draft-minshall-nagle; Linux).
    Minshall,
}

impl Nagle {
    /// True if a small segment has to wait. `small_end` is one past the last small segment sent.
    #[inline]
    pub(crate) fn holds(self, una: SeqNum, nxt: SeqNum, small_end: SeqNum) -> bool {
        match self {
            Self::Off => false,
            Self::Classic => nxt > una,
            Self::Minshall => small_end > una,
        }
    }
}
