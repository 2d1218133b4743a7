//! Episodes of recovery: their start, the effect of acknowledgments, and their end.

use super::timer::Timer;
use super::{Ack, AckSummary, Facts, Flight, Next, Scoreboard, SetTimer, State};
use crate::Nanos;
use crate::sender::recovery::{Edges, NextCwnd};

impl Scoreboard {
    /// Draws the consequences of an acknowledgment that is out of the ordinary; returns the amount that may be sent.
    pub(super) fn alert(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        summary: &mut AckSummary,
        facts: &mut Facts,
    ) -> Next {
        if self.board.is_empty() {
            self.duplicates.forget();
        }
        facts.marked = summary.echoes_congestion;
        if self.check_reneging(flight, summary, facts) {
            return Next::Nothing;
        }
        if self.state == State::Open {
            self.undo.forget_retransmissions();
        } else if flight.una >= self.high && self.leave(flight, ack, facts) {
            return Next::Nothing;
        }
        match self.state {
            State::Recovery => {
                if !summary.advanced {
                    self.count_duplicate(summary);
                } else if self.undo_after_partial(flight, ack, facts) {
                    return Next::Nothing;
                }
                if self.undo_by_dsack(flight, facts) {
                    self.try_to_open(flight, summary, facts);
                }
                self.identify_losses(flight, summary, facts);
                if self.state != State::Recovery {
                    if self.board.lost() == 0 {
                        return Next::Nothing;
                    }
                    self.enter_recovery(flight, facts);
                }
                return Next::Lost;
            }
            State::Loss => {
                let next = self.after_timeout(flight, ack, summary, facts);
                self.identify_losses(flight, summary, facts);
                if !(self.state == State::Open || summary.lost_again) {
                    return next;
                }
            }
            _ => {}
        }
        if !self.sack && summary.advanced {
            self.duplicates.forget();
        }
        self.count_duplicate(summary);
        if self.state <= State::Disorder {
            self.undo_by_dsack(flight, facts);
        }
        self.identify_losses(flight, summary, facts);
        if self.board.lost() == 0 {
            self.try_to_open(flight, summary, facts);
            return Next::Nothing;
        }
        self.enter_recovery(flight, facts);
        Next::Lost
    }

    fn count_duplicate(&mut self, summary: &mut AckSummary) {
        if !self.sack && summary.duplicate {
            self.on_duplicate(summary);
        }
    }

    /// Everything that was outstanding when the episode began is acknowledged. True if nothing else is to be done.
    fn leave(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) -> bool {
        match self.state {
            // The reduction ends with something sent after its beginning, so that it lasts a full round trip.
            State::Reduced if flight.una != self.high => {
                reduction_is_complete(facts);
                self.state = State::Open;
            }
            State::Recovery => {
                self.duplicates.forget();
                if self.undo_after_repair(flight, ack, facts) {
                    return true;
                }
                if self.undo.is_armed() {
                    reduction_is_complete(facts);
                }
            }
            _ => {}
        }
        false
    }

    /// Looks for losses by the rule in force.
    fn identify_losses(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack {
            facts.lose(self.count_duplicates(flight, summary.advanced).segments, flight.mss);
        } else if flight.profile.recovery.scoreboard().rack {
            self.detect_losses(flight, summary, facts);
        } else {
            facts.lose(self.count_losses(flight).segments, flight.mss);
        }
    }

    /// Fast recovery begins.
    // RFC 5681 §3.2, RFC 6675 §5: ssthresh = cwnd = FlightSize / 2, or the controller's own rule.
    pub(super) fn enter_recovery(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        self.begin_episode(flight);
        facts.reducing = self.is_reducing();
        facts.early = self.sacked() < flight.profile.duplicate_ack_threshold;
        facts.edges.add(Edges::ENTERED);
        if !facts.reducing {
            self.begin_reduction(flight);
        }
        self.state = State::Recovery;
    }

    /// cwnd is reduced without a loss (RFC 3168 §6.1.2).
    fn enter_reduced(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        if self.state < State::Reduced {
            self.undo.end_episode();
            self.begin_reduction(flight);
            self.state = State::Reduced;
            facts.edges.add(Edges::REDUCED);
        }
    }

    /// Congestion: from here on cwnd moves towards a new ssthresh.
    pub(super) fn begin_reduction(&mut self, flight: &Flight<'_>) {
        self.high = flight.nxt;
        self.probe.forget();
        self.probing = false;
    }

    fn try_to_open(&mut self, flight: &Flight<'_>, summary: &AckSummary, facts: &mut Facts) {
        if !self.any_repeated() {
            self.undo.forget_retransmissions();
        }
        if summary.echoes_congestion {
            self.enter_reduced(flight, facts);
        }
        if self.state != State::Reduced {
            self.keep_open(flight);
        }
    }

    /// Open, or in disorder as long as something is delivered out of order or repeated.
    pub(super) fn keep_open(&mut self, flight: &Flight<'_>) {
        let disorder = self.sacked() + self.board.lost() > 0 || self.any_repeated();
        let state = if disorder { State::Disorder } else { State::Open };
        if self.state != state {
            self.state = state;
            self.high = flight.nxt;
        }
    }

    /// The retransmission timer expired.
    // RFC 6675 §5.1, RFC 5681 §3.1, RFC 8985 §6.4.
    pub(super) fn on_timeout(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        let fresh = self.state < State::Recovery;
        self.mark_outstanding(flight, facts);
        facts.edges.add(Edges::TIMED_OUT);
        facts.reducing = self.is_reducing();
        facts.first = self.state <= State::Disorder
            || flight.una >= self.high
            || self.state == State::Loss && flight.retries == 0;
        if facts.first {
            self.begin_episode(flight);
        }
        // RFC 8985 §6.4 and Linux: recently sent data stays in flight, so cwnd is that and the loss window.
        let cwnd = self.in_flight() + flight.profile.loss_window_segments;
        facts.next_cwnd = NextCwnd::Bytes(cwnd.saturating_mul(flight.mss));
        facts.timer = SetTimer::Rto;
        // After many duplicates in disorder, the degree of reordering was overestimated.
        let threshold = flight.profile.duplicate_ack_threshold;
        if self.state <= State::Disorder && self.sacked() >= threshold {
            self.reordering = self.reordering.min(threshold);
        }
        self.state = State::Loss;
        self.begin_reduction(flight);
        // RFC 5682 §2.1 step 1, and Linux: again for repeated timeouts.
        self.f_rto.start(flight.profile.recovery.scoreboard().f_rto && (fresh || flight.retries > 0));
        self.repairing = true;
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
            self.duplicates.forget();
        }
        let numbers = self.board.numbers();
        for number in numbers.clone() {
            let sent = *self.board.get(number);
            if sent.is_sacked() {
                self.board.end_repair(number);
                continue;
            }
            // RFC 8985 §6.4: data sent less than an RTT ago may still be in flight.
            let recent = flight.profile.recovery.scoreboard().rack && self.rack.is_recent(flight.now, &sent);
            if number == numbers.start || !recent {
                facts.lose(self.board.mark_lost(number).segments, flight.mss);
                // The retransmission of something that did not count as lost (any more) is lost with it.
                self.board.end_repair(number);
            }
        }
    }

    /// An acknowledgment arrived after a timeout.
    fn after_timeout(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        summary: &mut AckSummary,
        facts: &mut Facts,
    ) -> Next {
        let recovered = flight.una >= self.high;
        if summary.advanced && self.undo_after_timeout(flight, ack, facts, false) {
            return Next::Nothing;
        }
        if let Some(next) = self.f_rto(flight, ack, summary, facts, recovered) {
            return next;
        }
        if recovered {
            self.undo_after_repair(flight, ack, facts);
            return Next::Nothing;
        }
        if !self.sack {
            if flight.nxt > self.high && summary.duplicate {
                self.on_duplicate(summary);
            } else if summary.advanced {
                self.duplicates.forget();
            }
        }
        Next::Lost
    }

    /// The first segment in flight is marked as delivered, but not acknowledged: the peer has discarded it. Linux waits
    /// a little for an acknowledgment that may be late, and lets the timer begin afresh.
    fn check_reneging(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) -> bool {
        if !(summary.acknowledged && self.board.front().is_some_and(|front| front.is_sacked())) {
            return false;
        }
        let srtt = flight.rtt.smoothed(&flight.profile.rto).unwrap_or(0);
        facts.timer = SetTimer::At(flight.now + (srtt / 2).max(RENEGING_DELAY));
        self.timer = Timer::Retransmission;
        summary.set_timer = false;
        true
    }
}

/// cwnd comes to ssthresh.
// RFC 9937 §6: upon exiting recovery, cwnd = ssthresh.
pub(super) fn reduction_is_complete(facts: &mut Facts) {
    facts.edges.add(Edges::LEFT);
    facts.next_cwnd = NextCwnd::Ssthresh;
}

/// Shortest wait before SACKs are held to be void.
const RENEGING_DELAY: Nanos = 10_000_000;
