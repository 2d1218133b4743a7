//! The one timer of a sender with outstanding data, and what it stands for.

use super::selective::{Selective, Sender};
use crate::NEVER;

/// What runs on the one timer of a sender with outstanding data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Timer {
    #[default]
    Retransmission,
    /// RACK waits for segments that may only be reordered.
    Reordering,
    /// A tail loss probe is due.
    Probe,
}

impl Selective {
    /// (Re)starts the retransmission timer, or stops it when nothing is outstanding.
    // RFC 6298 §5.1 to §5.3.
    pub(crate) fn restart_timer(&mut self, sender: &mut Sender<'_>) {
        let Some(front) = self.board.front() else {
            *sender.deadline = NEVER;
            self.timer = Timer::Retransmission;
            self.probing = false;
            return;
        };
        let rto = sender.rtt.rto();
        // RFC 8985 §7.3: a probe or a reordering timer must not push the timeout of the first segment into the future.
        let from = if self.timer == Timer::Retransmission { sender.now } else { front.sent_at };
        self.timer = Timer::Retransmission;
        sender.set_timer(from.saturating_add(rto).max(sender.now + 1));
    }

    /// Whether the timer that runs is the retransmission timer.
    pub(crate) fn waits_for_timeout(&self) -> bool {
        self.timer == Timer::Retransmission
    }

    /// The timer that runs in place of the retransmission timer expired.
    pub(crate) fn on_short_timer(&mut self, sender: &mut Sender<'_>) {
        match self.timer {
            Timer::Reordering => self.on_reordering_timeout(sender),
            Timer::Probe => self.on_probe_timeout(sender),
            Timer::Retransmission => {}
        }
    }
}
