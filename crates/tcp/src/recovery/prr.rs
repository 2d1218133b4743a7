//! Proportional rate reduction: the window shrinks bit by bit, as segments are delivered, towards the threshold that
//! the congestion controller set (RFC 9937, which obsoletes RFC 6937).

use super::selective::{Selective, Sender, State};
use crate::congestion::CongestionControl;

/// A reduction of the window under way, counted in segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reduction {
    /// RecoverFS: the window when the reduction began.
    from: u32,
    /// Delivered since.
    delivered: u32,
    /// Sent since.
    sent: u32,
}

impl Reduction {
    fn begin(&mut self, window: u32) {
        *self = Self { from: window, delivered: 0, sent: 0 };
    }

    #[inline]
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Anything left since the reduction began.
    #[inline]
    pub fn has_sent(&self) -> bool {
        self.sent > 0
    }
}

impl Selective {
    /// Congestion: the controller sets a new threshold, towards which the window will move.
    pub(super) fn begin_reduction(&mut self, sender: &mut Sender<'_>) {
        self.high = sender.nxt;
        self.probe.forget();
        self.probing = false;
        let window = sender.controller.window();
        let flight = self.load_bytes(sender);
        self.reduction.begin(window / sender.mss);
        sender.controller.on_congestion(sender.now, flight);
        if sender.profile.proportional_rate_reduction && !sender.controller.is_rate_based() {
            sender.controller.set_window(window);
        }
        self.announcement = Some(true);
    }

    /// What the threshold is computed from when there is congestion, in bytes.
    pub(super) fn load_bytes(&self, sender: &Sender<'_>) -> u32 {
        let flight = self.board.len().saturating_mul(sender.mss);
        sender.profile.ssthresh_base.bytes(flight, sender.controller.window())
    }

    /// Moves the window towards the threshold; `delivered` and `lost` segments are news of this acknowledgement.
    pub(super) fn reduce_window(&mut self, sender: &mut Sender<'_>, delivered: u32, lost: u32, advanced: bool) {
        let reduction = &mut self.reduction;
        if delivered == 0 || reduction.from == 0 || !sender.profile.proportional_rate_reduction {
            return;
        }
        reduction.delivered += delivered;
        let (gone, sent) = (i64::from(reduction.delivered), i64::from(reduction.sent));
        let (from, ssthresh) = (i64::from(reduction.from), i64::from(sender.ssthresh()));
        let in_flight = i64::from(self.in_flight());
        let room = ssthresh - in_flight;
        let quota = if room < 0 {
            // RFC 9937 §6: SndCnt = CEIL (prr_delivered * ssthresh / RecoverFS) - prr_out.
            (ssthresh * gone + from - 1) / from - sent
        } else {
            // RFC 9937 §6: at least what was delivered; one more on a safe ACK, which advances and shows no further
            // loss; not above ssthresh.
            let safe = i64::from(advanced && lost == 0);
            room.min((gone - sent).max(i64::from(delivered)) + safe)
        };
        // RFC 9937 §6: force a fast retransmit upon entering recovery.
        let quota = quota.max(i64::from(sent == 0));
        sender.set_window((in_flight + quota).max(1) as u32);
    }

    /// The reduction is complete.
    // RFC 9937 §6: upon exiting recovery, cwnd = ssthresh.
    pub(super) fn end_reduction(&mut self, sender: &mut Sender<'_>) {
        if sender.controller.is_rate_based() || sender.controller.ssthresh() == u32::MAX {
            return;
        }
        if self.state == State::Reduced || self.undo.is_armed() {
            let ssthresh = sender.controller.ssthresh();
            sender.controller.set_window(ssthresh);
        }
    }
}
