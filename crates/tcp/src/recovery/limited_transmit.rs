//! Limited transmit: the first two duplicate acknowledgements each let a new segment leave, so that a small window still
//! brings enough duplicates for a fast retransmit (RFC 3042).

use super::Outstanding;
use crate::sequence::{NOWHERE, Position};

/// Segments that may leave beyond cwnd.
// RFC 3042 §2: the amount of outstanding data must stay at or below cwnd plus two segments.
const MOST_SEGMENTS: u32 = 2;

/// What limited transmit has done since the first of a run of duplicates.
#[derive(Clone, Debug)]
pub(super) struct LimitedTransmit {
    /// One past the highest position sent when the run began, or `NOWHERE`.
    began_at: Position,
}

impl Default for LimitedTransmit {
    fn default() -> Self {
        Self { began_at: NOWHERE }
    }
}

impl LimitedTransmit {
    /// Bytes by which the window in force exceeds cwnd after this many duplicates.
    pub fn on_duplicate(&mut self, duplicates: u32, outstanding: &Outstanding) -> i32 {
        if duplicates == 1 {
            self.began_at = outstanding.highest;
        }
        (duplicates.min(MOST_SEGMENTS) * outstanding.mss_bytes) as i32
    }

    /// Bytes sent by it, which FlightSize must not include when ssthresh is computed.
    // RFC 5681 §3.2 step 2.
    pub fn sent_bytes(&self, outstanding: &Outstanding) -> u32 {
        if self.began_at == NOWHERE { 0 } else { (outstanding.highest - self.began_at) as u32 }
    }

    pub fn forget(&mut self) {
        self.began_at = NOWHERE;
    }
}
