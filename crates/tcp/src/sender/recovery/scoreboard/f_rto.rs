//! F-RTO: after a timeout, the first acknowledgments show whether it was spurious (RFC 5682).

use super::{Ack, AckSummary, Facts, Flight, Next, Scoreboard};

/// True if the algorithm runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct FRto {
    running: bool,
    /// New data has to leave now, even a small segment: only its acknowledgment ends the doubt.
    offering: bool,
}

impl FRto {
    pub fn start(&mut self, allowed: bool) {
        *self = Self { running: allowed, offering: false };
    }

    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// New data is called for.
    pub fn offer(&mut self) {
        self.offering = true;
    }

    #[inline]
    pub fn is_offering(&self) -> bool {
        self.offering
    }

    /// New data left.
    #[inline]
    pub fn on_sent_new(&mut self) {
        self.offering = false;
    }
}

impl Scoreboard {
    /// An acknowledgment arrived after a timeout, before everything outstanding then is acknowledged. Returns the
    /// amount that may be sent now if the algorithm decides it; `None` leaves it to the ordinary recovery.
    pub(super) fn f_rto(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        summary: &AckSummary,
        facts: &mut Facts,
        recovered: bool,
    ) -> Option<Next> {
        if !self.f_rto.running {
            return None;
        }
        // RFC 5682 §3.1 step 3.b (SACK-enhanced): something that was never retransmitted, and left before the timeout,
        // is acknowledged: the timeout was spurious.
        if summary.original_delivered && self.undo_after_timeout(flight, ack, facts, true) {
            self.f_rto.stop();
            return Some(Next::Nothing);
        }
        if flight.nxt > self.high {
            // RFC 5682 §2.1 step 3.a: a duplicate after new data was sent: the loss was real.
            if summary.sacked || summary.duplicate {
                self.f_rto.stop();
            }
        } else if summary.advanced && !recovered {
            // RFC 5682 §2.1 step 2.b: transmit new data, if there is any, and watch its acknowledgment.
            self.high = flight.nxt;
            if flight.has_new_data {
                return Some(Next::New);
            }
            self.f_rto.stop();
        }
        None
    }
}
