//! The one timer of outstanding data, and what it stands for.

use super::{Facts, Flight, Scoreboard, SetTimer};

/// What runs on the one timer of outstanding data.
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
        let from = if self.timer == Timer::Retransmission { flight.now } else { front.sent_at };
        self.timer = Timer::Retransmission;
        SetTimer::At(from.saturating_add(flight.rtt.rto()).max(flight.now + 1))
    }

    /// Whether the timer that runs is the retransmission timer.
    pub fn waits_for_timeout(&self) -> bool {
        self.timer == Timer::Retransmission
    }

    /// The timer expired, whichever it was.
    pub fn on_timer(&mut self, flight: &Flight<'_>) -> Facts {
        let (was_recovering, lost) = (self.is_recovering(), self.lost);
        let mut facts = Facts { was_recovering, ..Facts::default() };
        match self.timer {
            Timer::Reordering => self.on_reordering_timeout(flight, &mut facts),
            Timer::Probe => facts.timer = self.on_probe_timeout(flight),
            Timer::Retransmission => self.on_timeout(flight, &mut facts),
        }
        facts.lost = (self.lost - lost).saturating_mul(flight.mss);
        facts.flight = self.board.len().saturating_mul(flight.mss);
        facts.recovering = self.is_recovering();
        facts
    }
}
