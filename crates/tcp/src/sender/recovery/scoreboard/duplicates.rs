//! Duplicate acknowledgments in place of SACK blocks: each one says that one more segment was delivered, though not
//! which (Linux's "Reno SACK" emulation; RFC 6582 §6).

use super::Scoreboard;
use super::board::NewlyLost;
use super::sack::MOST_REORDERING;
use super::state::CaState;
use crate::sender::recovery::facts::{AckSummary, Flight};

impl Scoreboard {
    /// A duplicate acknowledgment arrived from a peer without SACK.
    pub(super) fn on_duplicate(&mut self, summary: &mut AckSummary) {
        self.duplicates += 1;
        if !self.has_too_many_duplicates(0) {
            self.deliver(summary, 1);
        }
    }

    /// This number of segments was acknowledged cumulatively: the first closed a hole, the others had been counted.
    pub(super) fn take_duplicates(&mut self, taken: u32, summary: &mut AckSummary) {
        self.deliver(summary, taken.saturating_sub(self.duplicates).max(1));
        self.duplicates = self.duplicates.saturating_sub(taken - 1);
        self.has_too_many_duplicates(taken);
    }

    /// True if there were more duplicates than segments that can be out of order: the network reorders or duplicates.
    /// Those in excess are forgotten.
    fn has_too_many_duplicates(&mut self, taken: u32) -> bool {
        let outstanding = self.board.len();
        let holes = self.board.lost().max(1).min(outstanding);
        let too_many = self.duplicates + holes > outstanding;
        if too_many {
            self.duplicates = outstanding - holes;
            self.reordering = (outstanding + taken).clamp(1, MOST_REORDERING);
            self.reordering_seen += 1;
        }
        too_many
    }

    /// Marks segments lost by duplicate acknowledgments: the first segment, once there are enough of them, and each
    /// further hole that a partial acknowledgment lays open.
    // RFC 5681 §3.2 and RFC 6582 §3.2.
    pub(super) fn count_duplicates(&mut self, flight: &Flight<'_>, advanced: bool) -> NewlyLost {
        let begins = self.state < CaState::Recovery && self.duplicates >= self.threshold(flight);
        let goes_on = self.state == CaState::Recovery && advanced;
        if !(begins || goes_on) {
            return NewlyLost::NONE;
        }
        let first = self.board.numbers().start;
        if self.board.get(first).is_lost() { NewlyLost::NONE } else { self.board.mark_lost(first) }
    }
}
