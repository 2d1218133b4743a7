//! Jump-Start (D. Liu, M. Allman, S. Jin, L. Wang, "Congestion Control Without a Startup Phase", PFLDnet 2007).
//!
//! There is no slow start: all that the application has written when the first data leaves, up to the peer's window,
//! goes out evenly over the round trip that the handshake measured. The rest of congestion control stays as it is:
//! without a loss the window is what was acknowledged, and grows by congestion avoidance from there; with one it is
//! halved, but counting only what was delivered, since most of what a jump sent may have been too much.

use super::first_loss::{FirstLoss, threshold_after_timeout};
use super::{First, Growth, PacedFlight, Scheme, Standing, UNBEGUN};
use crate::sender::congestion::Controller;
use crate::sender::pacing::Rate;
use crate::sequence::Position;

#[derive(Clone, Debug)]
pub(super) struct JumpStart {
    start: Position,
    /// One past the jump.
    end: Position,
    loss: Option<FirstLoss>,
    over: bool,
}

impl Default for JumpStart {
    fn default() -> Self {
        Self { start: 0, end: UNBEGUN, loss: None, over: false }
    }
}

impl JumpStart {
    fn jump_bytes(&self) -> u64 {
        self.end - self.start
    }
}

impl Scheme for JumpStart {
    fn begin(&mut self, first: &First, controller: &mut Controller) -> Option<PacedFlight> {
        let jump = first.queued_bytes.min(u64::from(first.send_window));
        self.start = first.position;
        self.end = first.position + jump;
        let Some(time) = first.rtt.filter(|_| jump > 0) else {
            // Without a round trip there is no rate to jump at.
            self.over = true;
            return None;
        };
        // A flow that fits the initial window is paced and learns nothing: what follows it is slow start's.
        self.over = jump <= u64::from(controller.window());
        if !self.over {
            controller.set_window(jump as u32);
        }
        Some(PacedFlight { bytes: jump, rate: Rate::new(jump, time), time })
    }

    fn grow(&mut self, growth: &Growth, standing: &Standing, controller: &mut Controller) {
        if self.loss.is_some() {
            // The repair is over, but its outcome is not drawn yet.
        } else if self.over {
            growth.of(controller);
        } else if standing.una >= self.end {
            // All of it arrived: that is the window, and from here on additive increase.
            controller.set_window(self.jump_bytes() as u32);
            controller.set_ssthresh(self.jump_bytes() as u32);
            self.over = true;
        }
    }

    fn on_loss(&mut self, standing: &Standing, controller: &mut Controller) {
        if standing.una >= self.end {
            self.over = true;
        } else if !self.over {
            self.loss = Some(FirstLoss::new(standing, controller));
        }
    }

    fn on_delivery(&mut self, _delivered_bytes: u32, lost_bytes: u32, _controller: &mut Controller) {
        if let Some(loss) = &mut self.loss {
            loss.add_lost(lost_bytes);
        }
    }

    fn on_undone(&mut self) {
        self.loss = None;
    }

    fn on_repaired(&mut self, standing: &Standing, controller: &mut Controller) {
        if let Some(loss) = self.loss.take() {
            let threshold = loss.threshold(self.jump_bytes(), standing.mss_bytes);
            controller.set_ssthresh(threshold);
            controller.set_window(controller.window().min(threshold));
        }
        self.over = true;
    }

    fn on_timeout(&mut self, standing: &Standing, controller: &mut Controller) {
        if !self.over {
            let delivered = standing.una - self.start;
            controller.set_ssthresh(threshold_after_timeout(delivered, standing.mss_bytes, controller));
        }
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
