//! What a controller changes: cwnd and ssthresh.

use crate::profile::LARGEST_WINDOW;

/// cwnd and ssthresh of a sender, in bytes. The sender owns them; controllers change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u32,
    /// The slow start threshold; `u32::MAX` stands for "arbitrarily high".
    pub ssthresh: u32,
    /// Effective segment size.
    pub mss: u32,
}

impl Window {
    /// cwnd in whole segments.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.cwnd / self.mss
    }

    /// Replaces cwnd, up to the largest that means anything: no peer can announce more.
    #[inline]
    pub fn set_cwnd(&mut self, bytes: u32) {
        self.cwnd = bytes.min(LARGEST_WINDOW);
    }

    /// cwnd grows by these bytes.
    #[inline]
    pub fn grow(&mut self, bytes: u32) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// cwnd grows by whole segments.
    #[inline]
    pub fn grow_segments(&mut self, segments: u32) {
        self.grow(segments.saturating_mul(self.mss));
    }
}
