//! The loss that ends a start-up scheme which sent more than slow start would have: the threshold must follow from
//! the data that the path delivered, not from the data that the scheme sent.

use super::scheme::SendState;
use crate::amounts::{Bytes, Segments};
use crate::sender::congestion::Window;

#[derive(Clone, Debug)]
pub(super) struct FirstLoss {
    /// The data in flight, and the ssthresh that the controller set from it.
    flight: Bytes,
    ssthresh: Bytes,
    /// Bytes retransmitted since.
    lost_bytes: u64,
}

impl FirstLoss {
    /// A loss was just noticed and answered by the controller.
    pub(super) fn new(state: &SendState, window: &Window) -> Self {
        Self { flight: Bytes(state.flight_bytes.max(1)), ssthresh: window.ssthresh, lost_bytes: 0 }
    }

    pub(super) fn add_lost(&mut self, bytes: u32) {
        self.lost_bytes += u64::from(bytes);
    }

    /// The share of `bytes` that the controller keeps at a loss: half of them for Reno.
    pub(super) fn kept(&self, bytes: u64) -> u64 {
        bytes * u64::from(self.ssthresh.min(self.flight)) / u64::from(self.flight)
    }

    /// Threshold, given the bytes that the scheme had sent: the part of the delivered ones that the controller keeps.
    // RFC 5681 §3.1 equation (4): never below two segments.
    pub(super) fn threshold(&self, sent_bytes: u64, mss: Bytes) -> Bytes {
        let delivered = sent_bytes.saturating_sub(self.lost_bytes);
        Bytes(self.kept(delivered).min(u64::from(self.ssthresh)) as u32).max(Segments(2) * mss)
    }
}

/// Threshold in bytes after a timeout that ends a scheme: half of the acknowledged data, at least two segments, and no
/// more than the controller has set.
pub(super) fn threshold_after_timeout(delivered_bytes: u64, window: &Window) -> Bytes {
    let half = Bytes((delivered_bytes / 2).min(u64::from(u32::MAX)) as u32);
    window.ssthresh.min(half.max(Segments(2) * window.mss))
}
