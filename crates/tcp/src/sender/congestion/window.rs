//! The values that a controller changes: cwnd and ssthresh.

use super::start::Start;
use crate::amounts::{Bytes, LARGEST_WINDOW, Segments};

/// cwnd and ssthresh of a sender. The sender owns them; algorithms and start-up schemes ask for another cwnd, and
/// [`Window::set_cwnd`] alone writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    cwnd: Bytes,
    /// The largest value of `cwnd` so far.
    largest: Bytes,
    /// The slow start threshold; [`Window::NO_LIMIT`], which no cwnd reaches, until a controller or a start-up scheme sets
    /// it.
    pub ssthresh: Bytes,
    /// Effective segment size.
    pub mss: Bytes,
}

impl Window {
    /// The ssthresh to begin with. It is above [`LARGEST_WINDOW`], so that it compares like any other.
    // RFC 5681 §3.1: the initial value of ssthresh SHOULD be set arbitrarily high.
    pub const NO_LIMIT: Bytes = Bytes(u32::MAX);

    pub(super) fn new(start: &Start) -> Self {
        let ssthresh = start.ssthresh_bytes.map_or(Self::NO_LIMIT, Bytes);
        let cwnd = Bytes(start.window_bytes);
        Self { cwnd, largest: cwnd, ssthresh, mss: Bytes(start.mss_bytes) }
    }

    /// The congestion window.
    pub fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The largest cwnd so far.
    pub(super) fn largest(&self) -> Bytes {
        self.largest
    }

    /// ssthresh, if anything has set it.
    pub fn known_ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh != Self::NO_LIMIT).then_some(self.ssthresh)
    }

    /// cwnd in full segments.
    pub fn segments(&self) -> Segments {
        self.cwnd.full_segments(self.mss)
    }

    /// ssthresh, or three quarters of a cwnd that has grown past it, in whole segments.
    // RFC 2861 §3.1 and Linux, tcp_current_ssthresh.
    pub(super) fn current_ssthresh(&self) -> Bytes {
        let Segments(cwnd) = self.segments();
        self.ssthresh.max(Segments(cwnd / 2 + cwnd / 4) * self.mss)
    }

    /// Replaces cwnd, up to the largest that means anything: no peer can announce more.
    #[inline]
    pub fn set_cwnd(&mut self, bytes: Bytes) {
        self.cwnd = bytes.min(Bytes(LARGEST_WINDOW));
        self.largest = self.largest.max(self.cwnd);
    }

    /// Increases cwnd by this amount.
    pub fn grow(&mut self, bytes: Bytes) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// cwnd grows by full segments.
    pub fn grow_segments(&mut self, segments: Segments) {
        self.grow(segments.bytes(self.mss));
    }
}
