//! Limited transmit: the first two duplicate ACKs each allow a new segment, so that a small cwnd still brings enough
//! duplicates for a fast retransmit (RFC 3042).

use crate::sender::recovery::Flight;
use std::num::NonZeroU64;

/// Segments that may be sent beyond cwnd.
// RFC 3042 §2: the amount of outstanding data must stay at or below cwnd plus two segments.
const MOST_SEGMENTS: u32 = 2;

/// The state of limited transmit since the first of a run of duplicates.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitedTransmit {
    /// One past the highest position sent when the run began.
    began_at: Option<NonZeroU64>,
}

impl LimitedTransmit {
    /// Bytes by which cwnd in force exceeds the controller's after this many duplicates.
    pub fn on_duplicate(&mut self, duplicates: u32, flight: &Flight<'_>) -> i32 {
        if duplicates == 1 {
            self.began_at = NonZeroU64::new(flight.highest);
        }
        (duplicates.min(MOST_SEGMENTS) * flight.mss) as i32
    }

    /// Bytes sent by it, which FlightSize must not include when ssthresh is computed.
    // RFC 5681 §3.2 step 2.
    pub fn sent_bytes(&self, flight: &Flight<'_>) -> u32 {
        self.began_at.map_or(0, |began_at| (flight.highest - began_at.get()) as u32)
    }
}
