//! Recovery after a timeout: everything outstanding is lost, until F-RTO shows by the first ACKs that the timeout was
//! spurious (RFC 5682).

use super::Scoreboard;
use super::state::{CaState, FRto, Next, Timer};
use crate::sender::recovery::facts::{Ack, AckSummary, Edges, Facts, Flight, NextCwnd, SetTimer};

impl Scoreboard {
    /// The retransmission timer expired.
    // RFC 6675 §5.1, RFC 5681 §3.1, RFC 8985 §6.4.
    pub(super) fn on_timeout(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        let fresh = self.state < CaState::Recovery;
        self.mark_outstanding(flight, facts);
        facts.edges.insert(Edges::TIMED_OUT);
        facts.reducing = self.is_reducing();
        let repeated = self.timed_out_at == Some(flight.snd.una);
        // Linux, tcp_retransmit_timer: of a closed window it is a probe, which does not count [icsk_retransmits].
        if flight.peer_window.bytes > 0 {
            self.timed_out_at = Some(flight.snd.una);
        }
        facts.first =
            self.state <= CaState::Disorder || flight.snd.una >= self.high || self.state == CaState::Loss && !repeated;
        if facts.first {
            self.begin_episode(flight);
        }
        // RFC 8985 §6.4 and Linux: recently sent data stays in flight, so cwnd is that and the loss window.
        let cwnd = self.in_flight() + flight.profile.loss_window_segments;
        facts.next_cwnd = NextCwnd::Bytes(cwnd.saturating_mul(flight.mss));
        facts.timer = SetTimer::Rto;
        // After many duplicates in disorder, the degree of reordering was overestimated.
        let threshold = flight.profile.duplicate_ack_threshold;
        if self.state <= CaState::Disorder && self.sacked() >= threshold {
            self.reordering = self.reordering.min(threshold);
        }
        self.state = CaState::Loss;
        self.begin_reduction(flight);
        // RFC 5682 §2.1 step 1, and Linux: again for repeated timeouts.
        self.f_rto =
            FRto { running: flight.profile.recovery.scoreboard().f_rto && (fresh || repeated), offering: false };
        self.retransmitting = true;
        self.timer = Timer::Retransmission;
    }

    /// Marks outstanding data lost when the timer expires.
    fn mark_outstanding(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        if self.board.front().is_some_and(|front| front.is_sacked()) {
            // RFC 2018 §8: after a timeout, SACKs of a peer that may have discarded the data are not to be trusted.
            self.board.forget_sacks();
            self.history.forget();
        }
        if !self.sack {
            self.duplicates = 0;
        }
        let numbers = self.board.numbers();
        for number in numbers.clone() {
            let sent = *self.board.get(number);
            if sent.is_sacked() {
                self.board.end_retransmission(number);
                continue;
            }
            // RFC 8985 §6.4: data sent less than an RTT ago may still be in flight.
            let recent = flight.profile.recovery.scoreboard().rack && self.rack.is_recent(flight.now, &sent);
            if number == numbers.start || !recent {
                facts.lose(self.board.mark_lost(number).segments, flight.mss);
                // The retransmission of something that did not count as lost (any more) is lost with it.
                self.board.end_retransmission(number);
            }
        }
    }

    /// An acknowledgment arrived after a timeout.
    pub(super) fn after_timeout(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        summary: &mut AckSummary,
        facts: &mut Facts,
    ) -> Next {
        let recovered = flight.snd.una >= self.high;
        if summary.advanced && self.undo_after_timeout(flight, ack, facts, false) {
            return Next::Nothing;
        }
        if let Some(next) = self.f_rto(flight, ack, summary, facts, recovered) {
            return next;
        }
        if recovered {
            self.undo_recovery(flight, ack, facts);
            return Next::Nothing;
        }
        if !self.sack {
            if flight.snd.nxt > self.high && summary.duplicate {
                self.on_duplicate(summary);
            } else if summary.advanced {
                self.duplicates = 0;
            }
        }
        Next::Lost
    }

    /// An acknowledgment arrived after a timeout, before everything outstanding then is acknowledged. Returns the
    /// amount that may be sent now if the algorithm decides it; `None` leaves it to the ordinary recovery.
    fn f_rto(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        summary: &AckSummary,
        facts: &mut Facts,
        recovered: bool,
    ) -> Option<Next> {
        // Linux, tcp_xmit_recovery: new data that could not leave at once ends the algorithm.
        if !self.f_rto.running || self.f_rto.offering {
            self.f_rto = FRto::default();
            return None;
        }
        // RFC 5682 §3.1 step 3.b (SACK-enhanced): something that was never retransmitted, and left before the timeout,
        // is acknowledged: the timeout was spurious.
        if summary.original_delivered && self.undo_after_timeout(flight, ack, facts, true) {
            self.f_rto = FRto::default();
            return Some(Next::Nothing);
        }
        if flight.snd.nxt > self.high {
            // RFC 5682 §2.1 step 3.a: a duplicate after new data was sent: the loss was real.
            if summary.sacked || summary.duplicate {
                self.f_rto = FRto::default();
            }
        } else if summary.advanced && !recovered {
            // RFC 5682 §2.1 step 2.b: transmit new data, if there is any, and watch its acknowledgment.
            self.high = flight.snd.nxt;
            if flight.has_new_data() {
                return Some(Next::New);
            }
            self.f_rto = FRto::default();
        }
        None
    }
}
