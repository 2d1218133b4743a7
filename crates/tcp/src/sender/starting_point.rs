//! The window with which a connection begins, and its results for others.

use crate::connection::{Endpoint, State};
use crate::sender::initial_window::{Outcome, StartingPoint};
use crate::sequence::SeqNum;
use std::num::NonZeroU16;

/// What a connection takes over from others, and what it holds for those after it (RFC 9040).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// Initial window that others have left, in segments; none: as the profile's policy says.
    window: Option<NonZeroU16>,
    /// Slow start threshold that others have left, in segments; none: as the profile says.
    pub ssthresh: Option<NonZeroU16>,
    /// Segments of cwnd with which data began, after lost SYNs reduced the initial window; none before that.
    pub initial_segments: Option<NonZeroU16>,
    /// Some of the initial window was retransmitted, or the SYN-ACK was marked on the path.
    pub initial_window_failed: bool,
    /// A first flight or restart burst of more than 4 KB lost something.
    pub burst_was_lost: bool,
}

impl Endpoint {
    /// Begins with a window from other connections instead of the profile's policy, up to 65535 segments. Without
    /// effect on a connection that is open already.
    pub fn start_from(&mut self, start: StartingPoint) {
        if self.state < State::Established {
            self.sharing.window = kept(start.window_segments.max(1));
            self.sharing.ssthresh = start.ssthresh_segments.and_then(kept);
        }
    }

    /// The results of this connection that others can use.
    pub fn outcome(&self) -> Outcome {
        let segments = |bytes: u32| bytes / self.mss.max(1);
        Outcome {
            window_segments: segments(self.controller.window()),
            ssthresh_segments: self.ssthresh_bytes().map(segments),
            initial_window_failed: self.sharing.initial_window_failed,
            initial_window_segments: self.initial_window_segments(),
            largest_window_segments: segments(self.controller.largest_window()),
            delivered_segments: (self.snd.una - self.snd.initial()).div_ceil(self.mss.max(1).into()) as u32,
            retransmissions: self.stats().retransmissions,
        }
    }

    /// The initial window in bytes, before the effect of a lost SYN.
    pub fn initial_window_bytes(&self) -> u32 {
        match self.sharing.window {
            None => self.profile.initial_window.window_bytes(self.mss),
            Some(segments) => u32::from(segments.get()).saturating_mul(self.mss),
        }
    }

    /// The initial window with which data began, in whole segments: after the effect of lost SYNs. Before the
    /// connection is established, the one that it would begin with if none were lost.
    pub fn initial_window_segments(&self) -> u32 {
        match self.sharing.initial_segments {
            None => self.initial_window_bytes() / self.mss,
            Some(segments) => segments.get().into(),
        }
    }

    /// Something is retransmitted: remember it if it was part of the initial window.
    // RFC 9040 §C.3 step 4: if (seqno - ISN) < IW, the re-sent segment fixes an IW loss.
    #[cold]
    pub(crate) fn note_retransmission(&mut self, position: SeqNum) {
        self.sharing.initial_window_failed |= position - self.snd.initial() <= u64::from(self.initial_window_bytes());
    }
}

/// So many segments, as far as they can be kept; none for none.
fn kept(segments: u32) -> Option<NonZeroU16> {
    NonZeroU16::new(segments.min(u16::MAX.into()) as u16)
}
