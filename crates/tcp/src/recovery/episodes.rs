//! Episodes of recovery: how they begin, what acknowledgements do in them, how they end.

use super::selective::{Arrival, Meaning, Next, Selective, Sender, State};
use super::timer::Timer;
use crate::Nanos;
use crate::congestion::CongestionControl;

impl Selective {
    /// Draws the consequences of an acknowledgement that is out of the ordinary; answers what may leave.
    pub(super) fn judge(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>, meaning: &mut Meaning) -> Next {
        if self.board.is_empty() {
            self.duplicates.forget();
        }
        if meaning.echoes_congestion {
            self.undo.confirm();
        }
        if self.check_reneging(sender, meaning) {
            return Next::Nothing;
        }
        if self.state == State::Open {
            self.undo.forget_retransmissions();
        } else if sender.una >= self.high && self.leave(sender, arrival) {
            return Next::Nothing;
        }
        match self.state {
            State::Recovery => {
                if !meaning.advanced {
                    self.count_duplicate(meaning);
                } else if self.undo_after_partial(sender, arrival) {
                    return Next::Nothing;
                }
                if self.undo_by_dsack(sender) {
                    self.try_to_open(sender, meaning);
                }
                self.identify_losses(sender, meaning);
                if self.state != State::Recovery {
                    if self.board.lost() == 0 {
                        return Next::Nothing;
                    }
                    self.enter_recovery(sender, meaning.echoes_congestion);
                }
                Next::Lost
            }
            State::Loss => {
                let next = self.after_timeout(sender, arrival, meaning);
                self.identify_losses(sender, meaning);
                if self.state == State::Open || meaning.lost_again {
                    return self.recover_or_open(sender, meaning);
                }
                next
            }
            _ => {
                if !self.sack && meaning.advanced {
                    self.duplicates.forget();
                }
                self.count_duplicate(meaning);
                if self.state <= State::Disorder {
                    self.undo_by_dsack(sender);
                }
                self.identify_losses(sender, meaning);
                self.recover_or_open(sender, meaning)
            }
        }
    }

    fn count_duplicate(&mut self, meaning: &Meaning) {
        if !self.sack && meaning.duplicate {
            self.on_duplicate();
        }
    }

    fn recover_or_open(&mut self, sender: &mut Sender<'_>, meaning: &Meaning) -> Next {
        if self.board.lost() == 0 {
            self.try_to_open(sender, meaning);
            return Next::Nothing;
        }
        self.enter_recovery(sender, meaning.echoes_congestion);
        Next::Lost
    }

    /// Everything that was outstanding when the episode began is acknowledged. True if nothing else is to be done.
    fn leave(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>) -> bool {
        match self.state {
            // The reduction ends with something sent after its beginning, so that it lasts a full round trip.
            State::Reduced if sender.una != self.high => {
                self.end_reduction(sender);
                self.state = State::Open;
            }
            State::Recovery => {
                self.duplicates.forget();
                if self.undo_after_repair(sender, arrival) {
                    return true;
                }
                self.end_reduction(sender);
            }
            _ => {}
        }
        false
    }

    /// Looks for losses by the rule in force.
    fn identify_losses(&mut self, sender: &mut Sender<'_>, meaning: &mut Meaning) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack {
            self.lost += self.count_duplicates(sender, meaning.advanced);
        } else if sender.profile.rack {
            let in_repair = self.board.in_repair();
            if self.detect_losses(sender) {
                meaning.set_timer = false;
            }
            meaning.lost_again |= self.board.in_repair() < in_repair;
        } else {
            self.lost += self.count_losses(sender);
        }
    }

    /// Fast recovery begins.
    // RFC 5681 §3.2, RFC 6675 §5: ssthresh = cwnd = FlightSize / 2, or the controller's own rule.
    pub(super) fn enter_recovery(&mut self, sender: &mut Sender<'_>, confirmed: bool) {
        self.arm_undo(sender);
        if self.is_reducing() {
            self.undo.confirm();
        } else {
            self.remember(sender);
            if confirmed {
                self.undo.confirm();
            }
            self.begin_reduction(sender);
        }
        self.state = State::Recovery;
        sender.stats.fast_retransmits += 1;
        sender.stats.early_retransmits += u32::from(self.sacked() < sender.profile.duplicate_ack_threshold);
    }

    /// Remembers what an undo would restore.
    fn remember(&mut self, sender: &Sender<'_>) {
        let window = sender.controller.window();
        let ssthresh = sender.controller.ssthresh();
        // Linux's tcp_current_ssthresh: a window that has grown past its threshold counts with three quarters of it.
        let ssthresh = if self.is_reducing() { ssthresh } else { ssthresh.max(window / 4 * 3) };
        self.undo.remember(window, ssthresh);
    }

    /// The window is reduced without a loss (RFC 3168 §6.1.2).
    pub(super) fn enter_reduced(&mut self, sender: &mut Sender<'_>) {
        self.undo.confirm();
        if self.state < State::Reduced {
            self.undo.disarm();
            self.begin_reduction(sender);
            self.state = State::Reduced;
            sender.stats.congestion_marks += 1;
        }
    }

    fn try_to_open(&mut self, sender: &mut Sender<'_>, meaning: &Meaning) {
        if !self.any_repeated() {
            self.undo.forget_retransmissions();
        }
        if meaning.echoes_congestion {
            self.enter_reduced(sender);
        }
        if self.state != State::Reduced {
            self.keep_open(sender);
        }
    }

    /// Open, or in disorder as long as something is delivered out of order or repeated.
    pub(super) fn keep_open(&mut self, sender: &Sender<'_>) {
        let disorder = self.sacked() + self.board.lost() > 0 || self.any_repeated();
        let state = if disorder { State::Disorder } else { State::Open };
        if self.state != state {
            self.state = state;
            self.high = sender.nxt;
        }
    }

    /// The retransmission timer expired.
    // RFC 6675 §5.1, RFC 5681 §3.1, RFC 8985 §6.4.
    pub(crate) fn enter_loss(&mut self, sender: &mut Sender<'_>) {
        let fresh = self.state < State::Recovery;
        self.mark_outstanding(sender);
        if self.state <= State::Disorder || sender.una >= self.high || self.state == State::Loss && sender.retries == 0
        {
            self.remember(sender);
            sender.controller.on_timeout(sender.now, self.load_bytes(sender), true);
            self.arm_undo(sender);
        } else {
            sender.controller.on_timeout(sender.now, self.load_bytes(sender), false);
        }
        // RFC 8985 §6.4 and Linux: what left recently stays in flight, so the window is that and the loss window.
        let window = self.in_flight() + sender.profile.loss_window_segments;
        if !sender.controller.is_rate_based() {
            sender.set_window(window);
        }
        // After many duplicates in disorder, the degree of reordering was overestimated.
        let threshold = sender.profile.duplicate_ack_threshold;
        if self.state <= State::Disorder && self.sacked() >= threshold {
            self.reordering = self.reordering.min(threshold);
        }
        self.state = State::Loss;
        self.high = sender.nxt;
        self.probe.forget();
        self.probing = false;
        self.announcement = Some(true);
        // RFC 5682 §2.1 step 1, and Linux: again for repeated timeouts.
        self.f_rto.start(sender.profile.f_rto && (fresh || sender.retries > 0));
        self.repairing = true;
        self.timer = Timer::Retransmission;
    }

    /// Marks what is outstanding as lost when the timer expires.
    fn mark_outstanding(&mut self, sender: &Sender<'_>) {
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
            // RFC 8985 §6.4: what was sent less than a round trip ago may still be on its way.
            let recent = sender.profile.rack && self.rack.is_recent(sender.now, &sent);
            if number == numbers.start || !recent {
                self.lost += u32::from(self.board.mark_lost(number));
                // The repair of something that did not count as lost (any more) is lost with it.
                self.board.end_repair(number);
            }
        }
    }

    /// An acknowledgement arrived after a timeout.
    fn after_timeout(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>, meaning: &Meaning) -> Next {
        let recovered = sender.una >= self.high;
        if meaning.advanced && self.undo_after_timeout(sender, arrival, false) {
            return Next::Nothing;
        }
        if let Some(next) = self.f_rto(sender, arrival, meaning, recovered) {
            return next;
        }
        if recovered {
            self.undo_after_repair(sender, arrival);
            return Next::Nothing;
        }
        if !self.sack {
            if sender.nxt > self.high && meaning.duplicate {
                self.on_duplicate();
            } else if meaning.advanced {
                self.duplicates.forget();
            }
        }
        Next::Lost
    }

    /// The first segment in flight is marked as delivered, but not acknowledged: the peer has discarded it. Linux waits
    /// a little for an acknowledgement that may be late, and lets the timer begin afresh.
    fn check_reneging(&mut self, sender: &mut Sender<'_>, meaning: &mut Meaning) -> bool {
        if !(meaning.acknowledged && self.board.front().is_some_and(|front| front.is_sacked())) {
            return false;
        }
        let srtt = sender.rtt.smoothed(&sender.profile.rto).unwrap_or(0);
        sender.set_timer(sender.now + (srtt / 2).max(RENEGING_DELAY));
        self.timer = Timer::Retransmission;
        meaning.set_timer = false;
        true
    }
}

/// Shortest wait before SACKs are held to be void.
const RENEGING_DELAY: Nanos = 10_000_000;
