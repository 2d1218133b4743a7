//! Jump-Start (D. Liu, M. Allman, S. Jin, L. Wang, "Congestion Control Without a Startup Phase", PFLDnet 2007).
//!
//! There is no slow start: all that the application has written when the first data leaves, up to the peer's window,
//! goes out evenly over the round trip that the handshake measured. The rest of congestion control stays as it is:
//! without a loss cwnd is the acknowledged data, and grows by congestion avoidance from there; with one it is
//! halved, but counting only delivered data, since most of a jump may have been too much.

use super::first_loss::{FirstLoss, threshold_after_timeout};
use super::scheme::{FirstSend, Growth, SendState, StartupScheme};
use crate::amounts::Bytes;
use crate::sender::congestion::Window;
use crate::sender::pacing::flight::{PacedFlight, Rate};
use crate::sequence::SeqNum;

#[derive(Clone, Debug, Default)]
pub(super) struct JumpStart {
    start: SeqNum,
    /// One past the jump.
    end: SeqNum,
    loss: Option<FirstLoss>,
    over: bool,
}

impl JumpStart {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn jump_bytes(&self) -> u64 {
        self.end - self.start
    }
}

impl StartupScheme for JumpStart {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        let jump = first.queued_bytes.min(u64::from(first.send_window));
        self.start = first.position;
        self.end = first.position + jump;
        let Some(time) = first.rtt.filter(|_| jump > 0) else {
            // Without a round trip there is no rate to jump at.
            self.over = true;
            return None;
        };
        // A flow that fits the initial window is paced and gives no information: slow start follows.
        self.over = jump <= u64::from(window.cwnd());
        if !self.over {
            window.set_cwnd(Bytes(jump as u32));
        }
        Some(PacedFlight { bytes: jump, rate: Rate::new(jump, time), time, until_ack: false })
    }

    fn grow(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        if self.loss.is_some() {
            // The recovery is over, but its outcome is not drawn yet.
        } else if self.over {
            growth.by_controller();
        } else if state.una >= self.end {
            // All of it arrived: that is the window, and from here on additive increase.
            growth.window().set_cwnd(Bytes(self.jump_bytes() as u32));
            growth.window().ssthresh = Bytes(self.jump_bytes() as u32);
            self.over = true;
        }
    }

    fn on_loss(&mut self, state: &SendState, window: &mut Window) {
        if state.una >= self.end {
            self.over = true;
        } else if !self.over {
            self.loss = Some(FirstLoss::new(state, window));
        }
    }

    fn on_delivery(&mut self, _delivered_bytes: u32, lost_bytes: u32, _window: &mut Window) {
        if let Some(loss) = &mut self.loss {
            loss.add_lost(lost_bytes);
        }
    }

    fn on_undone(&mut self) {
        self.loss = None;
    }

    fn on_recovered(&mut self, _state: &SendState, window: &mut Window) {
        if let Some(loss) = self.loss.take() {
            let threshold = loss.threshold(self.jump_bytes(), window.mss);
            window.ssthresh = threshold;
            window.set_cwnd(window.cwnd().min(threshold));
        }
        self.over = true;
    }

    fn on_timeout(&mut self, state: &SendState, window: &mut Window) {
        if !self.over {
            let delivered = state.una - self.start;
            window.ssthresh = threshold_after_timeout(delivered, window);
        }
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
