//! What a controller changes: cwnd and ssthresh.

use super::Start;
use crate::amounts::{Bytes, Segments};
use crate::profile::LARGEST_WINDOW;

/// cwnd and ssthresh of a sender. The sender owns them; controllers change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: Bytes,
    /// The slow start threshold; [`Window::NO_SSTHRESH`] stands for "arbitrarily high".
    pub ssthresh: Bytes,
    /// Effective segment size.
    pub mss: Bytes,
}

impl Window {
    /// An ssthresh that no window reaches.
    pub const NO_SSTHRESH: Bytes = Bytes(u32::MAX);

    pub(super) fn new(start: &Start) -> Self {
        Self { cwnd: Bytes(start.window_bytes), ssthresh: Bytes(start.ssthresh_bytes), mss: Bytes(start.mss_bytes) }
    }

    /// cwnd in full segments.
    #[inline]
    pub fn segments(&self) -> Segments {
        self.cwnd.full_segments(self.mss)
    }

    /// Replaces cwnd, up to the largest that means anything: no peer can announce more.
    #[inline]
    pub fn set_cwnd(&mut self, bytes: Bytes) {
        self.cwnd = bytes.min(Bytes(LARGEST_WINDOW));
    }

    /// cwnd grows by so much.
    #[inline]
    pub fn grow(&mut self, bytes: Bytes) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// cwnd grows by full segments.
    #[inline]
    pub fn grow_segments(&mut self, segments: Segments) {
        self.grow(segments.bytes(self.mss));
    }
}
