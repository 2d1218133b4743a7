//! A spurious recovery is undone: it is noticed by timestamps (Eifel, RFC 3522 and 4015) or by DSACKs for all that was
//! retransmitted (RFC 3708).

use super::Scoreboard;
use super::state::CaState;
use crate::Nanos;
use crate::connection::timestamps::TICK;
use crate::sender::recovery::facts::{Ack, Edges, Facts, Flight};

/// True if a timestamp of this age was sent before `sent_at`, at the resolution of the timestamp clock.
pub(super) fn answers_earlier(now: Nanos, echo_age: Nanos, sent_at: Nanos) -> bool {
    now / TICK - echo_age / TICK < sent_at / TICK
}

impl Scoreboard {
    // RFC 3708: every retransmission of the episode was reported as a duplicate.
    fn dsacks_cover_all_retransmissions(&self, flight: &Flight<'_>) -> bool {
        flight.profile.recovery.scoreboard().undo_by_dsack && self.undo.undo_retrans == Some(0)
    }

    // RFC 3522 §3.2: the first acceptable ACK echoes a timestamp from before the first retransmission.
    fn eifel_shows_spurious(&self, flight: &Flight<'_>, ack: &Ack<'_>) -> bool {
        if !flight.profile.recovery.scoreboard().undo_by_timestamps {
            return false;
        }
        match (self.undo.first_retransmission, ack.echo_age) {
            (Some(first), Some(age)) => answers_earlier(flight.now, age, first),
            // Nothing of the episode was retransmitted yet, so nothing repeated can have been delivered; unless, without
            // SACK, the recovery is over and only waits for something beyond it to be acknowledged (`must_stay`).
            (None, _) => !self.any_retransmitted() && (self.sack || flight.snd.una < self.high),
            (Some(_), None) => false,
        }
    }

    fn may_undo(&self, flight: &Flight<'_>, ack: &Ack<'_>) -> bool {
        self.undo.is_armed()
            && (self.dsacks_cover_all_retransmissions(flight) || self.eifel_shows_spurious(flight, ack))
    }

    /// An episode begins that may prove spurious.
    // Linux, tcp_init_undo: retransmissions in flight may still be reported by DSACKs, and so may the probe of the tail;
    // a DSACK of that one must not count as an explanation of a recovery.
    pub(super) fn begin_episode(&mut self, flight: &Flight<'_>) {
        let probe = u32::from(self.probe.is_repetition());
        self.undo.begin_episode(flight.snd.una, self.board.retrans_out() + probe);
    }

    /// A retransmission is in flight, or of the first segment one was (Linux, tcp_any_retrans_done).
    pub(super) fn any_retransmitted(&self) -> bool {
        self.board.retrans_out() > 0 || self.board.front().is_some_and(|sent| sent.was_retransmitted())
    }

    /// Undoes the episode.
    // RFC 4015 §3.2: restore the congestion state; Linux keeps the current cwnd if that is more.
    fn undo(&mut self, flight: &Flight<'_>, facts: &mut Facts, forget_losses: bool) {
        if forget_losses {
            // Linux, tcp_rack_detect_loss: a segment that it found lost is looked at no more (tcp_tsorted_anchor), even
            // after an undo. A timeout and RFC 6675 §4, IsLost (), leave no such trace.
            let rack = flight.profile.recovery.scoreboard().rack;
            self.board.forget_losses(self.state == CaState::Loss || !rack);
        }
        facts.edges.insert(Edges::UNDONE);
        self.undo.marker = None;
        self.rack.look_again();
    }

    /// Everything up to `high` is acknowledged in recovery or after a timeout. True if the state may not be left yet.
    pub(super) fn undo_recovery(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) -> bool {
        if self.may_undo(flight, ack) {
            self.undo(flight, facts, false);
        } else {
            self.rack.on_recovered();
        }
        if self.must_stay(flight) {
            return true;
        }
        self.state = CaState::Open;
        false
    }

    /// Without SACK, duplicates of retransmitted data must not start another recovery: the state stays until
    /// something beyond `high` is acknowledged.
    // RFC 6582 §3.2 step 2: "recover".
    fn must_stay(&mut self, flight: &Flight<'_>) -> bool {
        let stays = !self.sack && flight.snd.una == self.high;
        if stays && !self.any_retransmitted() {
            self.undo.first_retransmission = None;
        }
        stays
    }

    /// DSACKs explain all retransmissions.
    pub(super) fn undo_by_dsack(&mut self, flight: &Flight<'_>, facts: &mut Facts) -> bool {
        if !(self.undo.is_armed() && self.dsacks_cover_all_retransmissions(flight)) {
            return false;
        }
        self.rack.keep_wide();
        self.undo(flight, facts, false);
        true
    }

    /// A partial acknowledgment in recovery echoes an original: its data was late, not lost. True if the
    /// rest of recovery must not act on this acknowledgment.
    pub(super) fn undo_partial(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) -> bool {
        if !(self.undo.is_armed() && self.eifel_shows_spurious(flight, ack)) {
            return false;
        }
        // Linux, tcp_highest_sack_seq: SND.UNA without SACKs.
        let highest = self.board.highest_sacked().max(flight.snd.una);
        self.note_reordering(flight.mss, ack.prior_una, highest);
        // Retransmissions are still in flight: they will arrive as duplicates, and show more.
        if self.board.retrans_out() > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.undo.first_retransmission = None;
        }
        self.undo(flight, facts, true);
        self.keep_open(flight);
        false
    }

    /// After a timeout: true if the episode was spurious and is over.
    pub(super) fn undo_after_timeout(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        facts: &mut Facts,
        f_rto: bool,
    ) -> bool {
        if !(f_rto || self.may_undo(flight, ack)) {
            return false;
        }
        self.undo(flight, facts, true);
        facts.undone_timeout = true;
        self.timed_out_at = None;
        if self.must_stay(flight) {
            return true;
        }
        if f_rto || self.sack {
            self.state = CaState::Open;
        }
        true
    }
}
