//! The timers of a connection: when they expire, and how often they did.

use super::Deadline;

/// All timers but the pacer's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// Expiry of the retransmission timer or, if `persisting`, of the persist timer.
    pub retransmit: Deadline,
    /// Expiry of the timer of a delayed acknowledgment.
    pub ack: Deadline,
    /// Consecutive expiries of the retransmission timer, or probes without an answer.
    pub retries: u32,
    /// Nothing is outstanding, and the peer's window or a cork holds back data: the persist timer runs.
    pub persisting: bool,
    /// Probes by which the interval between them has grown.
    pub persist_backoff: u8,
}

impl Timers {
    /// The next expiry.
    #[inline]
    pub fn next(&self) -> Deadline {
        self.retransmit.earliest(self.ack)
    }

    /// Data leaves, so the persist timer is a retransmission timer again.
    #[inline]
    pub fn end_persisting(&mut self) {
        if self.persisting {
            // Probes counted, not retransmissions.
            self.retries = 0;
        }
        self.persisting = false;
        self.persist_backoff = 0;
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.retransmit = Deadline::NEVER;
        self.ack = Deadline::NEVER;
        self.persisting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_timer_expires_next_and_none_does_once_they_are_stopped() {
        let mut timers = Timers { retransmit: Deadline::at(9), ..Timers::default() };
        assert_eq!(timers.next(), Deadline::at(9));
        timers.ack = Deadline::at(4);
        assert_eq!(timers.next(), Deadline::at(4));
        timers.stop();
        assert_eq!(timers.next(), Deadline::NEVER);
    }

    #[test]
    fn probes_of_a_closed_window_do_not_count_as_retransmissions() {
        let mut timers = Timers { retries: 2, persist_backoff: 2, persisting: true, ..Timers::default() };
        timers.end_persisting();
        assert_eq!((timers.retries, timers.persist_backoff, timers.persisting), (0, 0, false));
        timers.retries = 3;
        timers.end_persisting();
        assert_eq!(timers.retries, 3, "those of the retransmission timer stay");
    }
}
