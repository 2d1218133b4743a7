//! The one timer of outstanding data, and its purpose.

use super::{Facts, FastRecovery, Flight, Scoreboard, SetTimer};
use crate::Nanos;

/// The uses of the one timer for outstanding data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Timer {
    #[default]
    Retransmission,
    /// RACK waits for segments that may only be reordered.
    Reordering,
    /// A tail loss probe is due.
    Probe,
}

impl Scoreboard {
    /// Restarts the retransmission timer, or stops it when nothing is outstanding.
    // RFC 6298 §5.1 to §5.3.
    pub(super) fn restart_timer(&mut self, flight: &Flight<'_>) -> SetTimer {
        let Some(front) = self.board.front() else {
            self.timer = Timer::Retransmission;
            self.probing = false;
            return SetTimer::Stop;
        };
        // RFC 8985 §7.3: a probe or a reordering timer must not push the timeout of the first segment into the future.
        let deadline = if self.timer == Timer::Retransmission {
            self.timeout_after_ack(flight)
        } else {
            front.sent_at.saturating_add(flight.rtt.rto()).max(flight.now + 1)
        };
        self.timer = Timer::Retransmission;
        SetTimer::At(deadline)
    }

    /// When the retransmission timer expires after an ACK of new data.
    // RFC 6298 §5.3: RTO from now. RFC 7765 §4: the time since the first outstanding segment was sent is part of it, unless
    // it is longer. A lost segment that waits to be retransmitted has no such time.
    pub(super) fn timeout_after_ack(&self, flight: &Flight<'_>) -> Nanos {
        let rto = flight.rtt.rto();
        let restarted = flight.now.saturating_add(rto);
        if flight.profile.recovery.scoreboard().timer_restart {
            return restarted;
        }
        let front = self.board.front().filter(|front| !front.is_unanswered());
        let counted = front.map(|front| front.sent_at.saturating_add(rto)).filter(|&deadline| deadline > flight.now);
        counted.unwrap_or(restarted)
    }

    /// True if the timer that runs is the retransmission timer.
    pub fn waits_for_timeout(&self) -> bool {
        self.timer == Timer::Retransmission
    }

    /// The timer expired, whichever it was.
    pub fn on_timer(&mut self, flight: &Flight<'_>) -> Facts {
        let was_recovering = self.is_recovering();
        let mut facts = Facts::default();
        match self.timer {
            Timer::Reordering => self.on_reordering_timeout(flight, &mut facts),
            Timer::Probe => facts.timer = self.on_probe_timeout(flight),
            Timer::Retransmission => self.on_timeout(flight, &mut facts),
        }
        facts.flight = self.board.len().saturating_mul(flight.mss);
        facts.fast_recovery = FastRecovery::new(was_recovering, self.is_recovering());
        facts
    }
}
