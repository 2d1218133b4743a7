//! A repair that turns out to have been needless is taken back: noticed by timestamps (Eifel, RFC 3522 and 4015) or by
//! DSACKs for all that was retransmitted (RFC 3708).

use super::selective::{Arrival, Selective, Sender, State};
use crate::Nanos;
use crate::congestion::CongestionControl;
use crate::sequence::Position;
use crate::timestamps::TICK;

/// What is needed to take an episode back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// `una` when the episode began, while it may still prove needless.
    marker: Option<Position>,
    /// Retransmissions of the episode that no DSACK has named; none: nothing was retransmitted yet.
    unexplained: Option<u32>,
    /// When the first retransmission of the episode left.
    first_retransmission: Option<Nanos>,
    /// The window and threshold before the episode; no threshold: the congestion was confirmed otherwise.
    window: u32,
    ssthresh: Option<u32>,
}

impl Undo {
    /// Whether an episode is under way that may prove needless.
    pub fn is_armed(&self) -> bool {
        self.marker.is_some()
    }

    /// An episode begins with so many retransmissions in flight.
    pub fn arm(&mut self, una: Position, in_repair: u32) {
        self.marker = Some(una);
        self.unexplained = (in_repair > 0).then_some(in_repair);
    }

    /// The window that an undo would restore.
    pub fn remember(&mut self, window: u32, ssthresh: u32) {
        self.window = window;
        self.ssthresh = Some(ssthresh);
    }

    /// The congestion is real (an ECN mark): the window stays reduced whatever DSACKs say.
    pub fn confirm(&mut self) {
        self.ssthresh = None;
    }

    /// No undo of this episode.
    pub fn disarm(&mut self) {
        self.marker = None;
    }

    pub fn on_retransmission(&mut self, now: Nanos) {
        self.unexplained = Some(self.unexplained.unwrap_or(0) + 1);
        self.first_retransmission.get_or_insert(now);
    }

    /// Nothing that was retransmitted is in flight any more.
    pub fn forget_retransmissions(&mut self) {
        self.first_retransmission = None;
    }

    /// A DSACK that ends at `right` names so many segments.
    pub fn on_duplicate(&mut self, right: Position, segments: u32) {
        if self.marker.is_some_and(|marker| right > marker)
            && let Some(unexplained) = &mut self.unexplained
        {
            *unexplained = unexplained.saturating_sub(segments);
        }
    }
}

/// Whether a timestamp of this age was sent before `sent_at`, as far as the clock of timestamps tells.
pub(super) fn answers_earlier(now: Nanos, echo_age: Nanos, sent_at: Nanos) -> bool {
    now / TICK - echo_age / TICK < sent_at / TICK
}

impl Selective {
    // RFC 3708: every retransmission of the episode was reported as a duplicate.
    fn duplicates_explain_all(&self, sender: &Sender<'_>) -> bool {
        sender.profile.undo_by_dsack && self.undo.unexplained == Some(0)
    }

    // RFC 3522 §3.2: the first acceptable ACK echoes a timestamp from before the first retransmission.
    fn echoes_an_original(&self, sender: &Sender<'_>, arrival: &Arrival<'_>) -> bool {
        if !sender.profile.undo_by_timestamps {
            return false;
        }
        match (self.undo.first_retransmission, arrival.echo_age) {
            (Some(first), Some(age)) => answers_earlier(sender.now, age, first),
            // Nothing of the episode was retransmitted yet, so nothing repeated can have been delivered; unless, without
            // SACK, the repair is over and only waits for something beyond it to be acknowledged (`must_stay`).
            (None, _) => !self.any_repeated() && (self.sack || sender.una < self.high),
            (Some(_), None) => false,
        }
    }

    fn may_undo(&self, sender: &Sender<'_>, arrival: &Arrival<'_>) -> bool {
        self.undo.is_armed() && (self.duplicates_explain_all(sender) || self.echoes_an_original(sender, arrival))
    }

    /// An episode begins that may prove needless.
    // Linux, tcp_init_undo: retransmissions in flight may still be reported by DSACKs, and so may the probe of the tail;
    // what names that one must not pass for what explains a repair.
    pub(super) fn arm_undo(&mut self, sender: &Sender<'_>) {
        let probe = u32::from(self.probe.is_repetition());
        self.undo.arm(sender.una, self.board.in_repair() + probe);
    }

    /// Whether the first segment in flight is a retransmission.
    pub(super) fn any_repeated(&self) -> bool {
        self.board.in_repair() > 0 || self.board.front().is_some_and(|sent| sent.is_repeated())
    }

    /// Takes the episode back.
    // RFC 4015 §3.2: restore the congestion state; Linux keeps what the window has become if that is more.
    pub(super) fn take_back(&mut self, sender: &mut Sender<'_>, forget_losses: bool) {
        if forget_losses {
            self.board.forget_losses();
        }
        if let Some(ssthresh) = self.undo.ssthresh {
            sender.controller.on_undo(sender.now, self.undo.window, ssthresh);
            self.announcement = Some(false);
        }
        sender.stats.undos += 1;
        self.undo.disarm();
        self.rack.look_again();
    }

    /// Everything up to `high` is acknowledged in recovery or after a timeout. True if the state may not be left yet.
    pub(super) fn undo_after_repair(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>) -> bool {
        if self.may_undo(sender, arrival) {
            self.take_back(sender, false);
        } else {
            self.rack.on_repaired();
        }
        if self.must_stay(sender) {
            return true;
        }
        self.state = State::Open;
        false
    }

    /// Without SACK, duplicates of what was retransmitted must not start another repair: the state stays until
    /// something beyond `high` is acknowledged.
    // RFC 6582 §3.2 step 2: "recover".
    fn must_stay(&mut self, sender: &Sender<'_>) -> bool {
        let stays = !self.sack && sender.una == self.high;
        if stays && !self.any_repeated() {
            self.undo.forget_retransmissions();
        }
        stays
    }

    /// DSACKs explain all retransmissions.
    pub(super) fn undo_by_dsack(&mut self, sender: &mut Sender<'_>) -> bool {
        if !(self.undo.is_armed() && self.duplicates_explain_all(sender)) {
            return false;
        }
        self.rack.keep_wide();
        self.take_back(sender, false);
        true
    }

    /// A partial acknowledgement in recovery echoes an original: what it acknowledges was late, not lost. True if the
    /// rest of recovery must not act on this acknowledgement.
    pub(super) fn undo_after_partial(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>) -> bool {
        if !(self.undo.is_armed() && self.echoes_an_original(sender, arrival)) {
            return false;
        }
        let highest = self.board.highest_sacked();
        if arrival.prior_una < highest {
            self.note_reordering(sender.mss, arrival.prior_una, highest);
        }
        // Retransmissions are still in flight: they will arrive as duplicates, and tell more.
        if self.board.in_repair() > 0 {
            return true;
        }
        if !self.any_repeated() {
            self.undo.forget_retransmissions();
        }
        self.take_back(sender, true);
        self.keep_open(sender);
        false
    }

    /// After a timeout: true if the episode was needless and is over.
    pub(super) fn undo_after_timeout(
        &mut self,
        sender: &mut Sender<'_>,
        arrival: &Arrival<'_>,
        told_by_f_rto: bool,
    ) -> bool {
        if !(told_by_f_rto || self.may_undo(sender, arrival)) {
            return false;
        }
        self.take_back(sender, true);
        sender.retries = 0;
        if self.must_stay(sender) {
            return true;
        }
        if told_by_f_rto || self.sack {
            self.state = State::Open;
        }
        true
    }
}
