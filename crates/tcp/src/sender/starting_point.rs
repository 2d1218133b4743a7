//! The window with which a connection begins, and what others can go by of it.

use crate::connection::{Endpoint, State};
use crate::sender::initial_window::{Outcome, StartingPoint};
use crate::sequence::Position;

impl Endpoint {
    /// Begins with what others have left rather than with what the profile's policy says, up to 65535 segments. Without
    /// effect on a connection that is open already.
    pub fn start_from(&mut self, start: StartingPoint) {
        if self.state < State::Established {
            let kept = |segments: u32| segments.min(u16::MAX.into()) as u16;
            self.start_window = kept(start.window_segments.max(1));
            self.start_ssthresh = kept(start.ssthresh_segments.unwrap_or(0));
        }
    }

    /// What others can go by of this connection.
    pub fn outcome(&self) -> Outcome {
        let segments = |bytes: u32| bytes / self.mss.max(1);
        let ssthresh = self.ssthresh_bytes();
        Outcome {
            window_segments: segments(self.controller.window()),
            ssthresh_segments: (ssthresh != u32::MAX).then(|| segments(ssthresh)),
            initial_window_failed: self.initial_window_failed,
        }
    }

    /// The initial window in bytes, before what a lost SYN makes of it.
    pub fn initial_window_bytes(&self) -> u32 {
        match self.start_window {
            0 => self.profile.initial_window.window_bytes(self.mss),
            segments => u32::from(segments).saturating_mul(self.mss),
        }
    }

    /// The initial window with which data began, in whole segments: after what lost SYNs made of it. Before the connection
    /// is established, the one that it would begin with if none were lost.
    pub fn initial_window_segments(&self) -> u32 {
        match self.initial_segments {
            0 => self.initial_window_bytes() / self.mss,
            segments => u32::from(segments),
        }
    }

    /// Something is sent again: remember it if it was part of the initial window.
    // RFC 9040 §C.3 step 4: if (seqno - ISN) < IW, the re-sent segment fixes an IW loss.
    #[cold]
    pub(crate) fn note_sent_again(&mut self, position: Position) {
        self.initial_window_failed |= position - self.initial() <= u64::from(self.initial_window_bytes());
    }
}
