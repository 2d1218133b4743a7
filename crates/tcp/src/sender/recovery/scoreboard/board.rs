//! Every segment in flight, in the order of the stream: their send times and their states.
//!
//! The queue is a run of records without gaps from the first unacknowledged byte to the last one sent. A record keeps
//! its number for life, so that cursors survive acknowledgments; looking a position up is a binary search. The counts
//! are those of RFC 6675's and Linux's accounting: data in flight is the sent data, less the data delivered or
//! marked lost, plus retransmissions.

use crate::Nanos;
use crate::sequence::SeqNum;
use std::collections::VecDeque;

/// The state of a segment.
mod mark {
    /// Delivered, says a SACK.
    pub const SACKED: u8 = 1;
    /// Believed lost (its latest transmission, if `RETRANS_IN_FLIGHT` is not set).
    pub const LOST: u8 = 2;
    /// Retransmitted, and the retransmission is in flight (Linux, TCPCB_SACKED_RETRANS).
    pub const RETRANS_IN_FLIGHT: u8 = 4;
    /// Retransmitted at any time (Linux, TCPCB_EVER_RETRANS).
    pub const EVER_RETRANSMITTED: u8 = 8;
    /// The next segment left in the same sk_buff.
    pub const FOLLOWED: u8 = 16;
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub start: SeqNum,
    /// When it left last.
    pub sent_at: Nanos,
    /// Sequence numbers that it takes.
    pub length: u32,
    /// Segments that had been delivered when it left last.
    pub delivered: u32,
    marks: u8,
}

impl Sent {
    pub fn end(&self) -> SeqNum {
        self.start + u64::from(self.length)
    }

    pub fn is_sacked(&self) -> bool {
        self.marks & mark::SACKED != 0
    }

    pub fn is_lost(&self) -> bool {
        self.marks & mark::LOST != 0
    }

    /// A retransmission of it is in flight.
    pub fn is_retrans_in_flight(&self) -> bool {
        self.marks & mark::RETRANS_IN_FLIGHT != 0
    }

    /// It was sent more than once.
    pub fn was_retransmitted(&self) -> bool {
        self.marks & mark::EVER_RETRANSMITTED != 0
    }

    /// Lost, and not retransmitted since.
    pub fn needs_retransmission(&self) -> bool {
        self.marks & (mark::LOST | mark::SACKED | mark::RETRANS_IN_FLIGHT) == mark::LOST
    }

    /// The segment after it is in the same sk_buff. What became of one of them alone has divided it (Linux,
    /// tcp_match_skb_to_sack).
    fn is_joined_to(&self, next: &Self) -> bool {
        let states = |marks: u8| marks & !mark::FOLLOWED;
        self.marks & mark::FOLLOWED != 0 && self.sent_at == next.sent_at && states(self.marks) == states(next.marks)
    }
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    queue: VecDeque<Sent>,
    /// Number of the first record of the queue.
    first: u64,
    /// Records not marked FOLLOWED.
    sk_buffs: u32,
    /// Records marked SACKED, LOST and RETRANS_IN_FLIGHT.
    sacked: u32,
    lost: u32,
    retrans_out: u32,
    /// Records marked LOST alone: neither delivered since nor retransmitted.
    to_retransmit: u32,
    /// Records with a smaller number are not to be retransmitted (again) now.
    next_lost: u64,
    /// Records with a smaller number are SACKED, LOST or EVER_RETRANSMITTED, or were LOST before an undo: loss detection
    /// does not look at them.
    undecided: u64,
    /// Retransmissions in the order in which they left, as record numbers; stale ones are skipped.
    retransmitted: VecDeque<(Nanos, u64)>,
    /// One past the highest position that a SACK covered; at or below the first byte in flight if none.
    highest_sacked: SeqNum,
}

impl Board {
    /// A new one in the memory of this.
    pub fn emptied(mut self) -> Self {
        self.queue.clear();
        self.retransmitted.clear();
        Self { queue: self.queue, retransmitted: self.retransmitted, ..Self::default() }
    }

    /// Segments sent and not acknowledged cumulatively.
    pub fn len(&self) -> u32 {
        self.queue.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Those of Linux's sk_buffs that are in flight.
    pub fn sk_buffs(&self) -> u32 {
        self.sk_buffs
    }

    /// Segments delivered out of order, says a SACK.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments believed lost, retransmitted or not.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments of which a retransmission is in flight.
    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    /// One past the highest position that a SACK covered; at or below the first byte in flight if none.
    pub fn highest_sacked(&self) -> SeqNum {
        self.highest_sacked
    }

    /// Number of the first record, and one past that of the last.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.queue.len() as u64
    }

    pub fn get(&self, number: u64) -> &Sent {
        &self.queue[(number - self.first) as usize]
    }

    fn get_mut(&mut self, number: u64) -> &mut Sent {
        &mut self.queue[(number - self.first) as usize]
    }

    /// The first segment in flight.
    pub fn front(&self) -> Option<&Sent> {
        self.queue.front()
    }

    /// The last segment sent.
    pub fn back(&self) -> Option<&Sent> {
        self.queue.back()
    }

    /// New data left; `followed`: the next segment does in the same sk_buff.
    #[inline]
    pub fn push(&mut self, now: Nanos, start: SeqNum, length: u32, delivered: u32, followed: bool) {
        debug_assert!(self.back().is_none_or(|last| last.end() == start));
        let marks = if followed { mark::FOLLOWED } else { 0 };
        self.sk_buffs += u32::from(!followed);
        self.queue.push_back(Sent { start, sent_at: now, length, delivered, marks });
    }

    /// Number of the first record that ends after `position`.
    #[inline]
    pub fn number_after(&self, position: SeqNum) -> u64 {
        self.first + self.queue.partition_point(|sent| sent.end() <= position) as u64
    }

    /// Takes the first record if it ends at or before `una`.
    #[inline]
    pub fn pop_acknowledged(&mut self, una: SeqNum) -> Option<Sent> {
        let sent = *self.queue.front()?;
        if sent.end() > una {
            return None;
        }
        self.queue.pop_front();
        self.first += 1;
        self.sk_buffs -= u32::from(sent.marks & mark::FOLLOWED == 0);
        self.sacked -= u32::from(sent.is_sacked());
        self.lost -= u32::from(sent.is_lost());
        self.retrans_out -= u32::from(sent.is_retrans_in_flight());
        self.to_retransmit -= u32::from(sent.needs_retransmission());
        Some(sent)
    }

    /// Segments what `una` leaves of an sk_buff of several segments anew; `before` was the record in front. Returns the
    /// first record if there is one less.
    // Linux, tcp_tso_acked (tcp_trim_head).
    #[inline]
    pub fn trim_acknowledged(
        &mut self,
        una: SeqNum,
        mss: u32,
        data_end: SeqNum,
        before: Option<&Sent>,
    ) -> Option<Sent> {
        let front = self.queue.front()?;
        if front.start < una { self.trim_front(una, mss, data_end, before) } else { None }
    }

    #[cold]
    fn trim_front(&mut self, una: SeqNum, mss: u32, data_end: SeqNum, before: Option<&Sent>) -> Option<Sent> {
        let joined = |(first, next): &(&Sent, &Sent)| first.is_joined_to(next);
        let count = 1 + self.queue.iter().zip(self.queue.iter().skip(1)).take_while(joined).count();
        if count == 1 && !before.is_some_and(|before| before.is_joined_to(&self.queue[0])) {
            return None;
        }
        let end = self.queue[count - 1].end();
        let kept = (end.min(data_end).saturating_sub(una)).div_ceil(u64::from(mss)).max(1);
        let front = &mut self.queue[0];
        let acknowledged = if kept < count as u64 {
            front.length = (una - front.start) as u32;
            self.pop_acknowledged(una)
        } else {
            None
        };
        let mut start = una;
        for index in 0..kept {
            let last = index + 1 == kept;
            let record = &mut self.queue[index as usize];
            record.start = start;
            record.length = if last { (end - start) as u32 } else { mss };
            start = record.end();
        }
        acknowledged
    }

    /// Cuts off the acknowledged part of the first record.
    // Linux, __tcp_retransmit_skb: only a retransmitted segment is cut.
    pub fn cut_acknowledged(&mut self, una: SeqNum) {
        if let Some(front) = self.queue.front_mut() {
            if front.start < una {
                front.length = (front.end() - una) as u32;
                front.start = una;
            }
        }
    }

    /// Makes two segments of one, the second from `at` on.
    // Linux, tcp_fragment.
    pub fn split(&mut self, number: u64, at: SeqNum) {
        let sent = self.get_mut(number);
        let second = Sent { start: at, length: (sent.end() - at) as u32, ..*sent };
        sent.length -= second.length;
        sent.marks &= !mark::FOLLOWED;
        self.sk_buffs += 1;
        self.queue.insert((number + 1 - self.first) as usize, second);
        self.sacked += u32::from(second.is_sacked());
        self.lost += u32::from(second.is_lost());
        self.retrans_out += u32::from(second.is_retrans_in_flight());
        self.to_retransmit += u32::from(second.needs_retransmission());
        let moved = |other: u64| other + u64::from(other > number);
        (self.next_lost, self.undecided) = (moved(self.next_lost), moved(self.undecided));
        let retransmitted = std::mem::take(&mut self.retransmitted);
        for (sent_at, other) in retransmitted {
            self.retransmitted.push_back((sent_at, moved(other)));
            if other == number {
                self.retransmitted.push_back((sent_at, number + 1));
            }
        }
    }

    /// The peer holds this segment.
    pub fn mark_sacked(&mut self, number: u64) {
        let sent = self.get_mut(number);
        let before = *sent;
        debug_assert!(!before.is_sacked());
        sent.marks = before.marks & !mark::LOST | mark::SACKED;
        // A segment marked lost did not arrive, so its retransmission did. Else (an undo took the loss back) it
        // may have been the original, and the retransmission is still in flight.
        if before.is_retrans_in_flight() && before.is_lost() {
            sent.marks &= !mark::RETRANS_IN_FLIGHT;
            self.retrans_out -= 1;
        }
        self.sacked += 1;
        self.lost -= u32::from(before.is_lost());
        self.to_retransmit -= u32::from(before.needs_retransmission());
        self.highest_sacked = self.highest_sacked.max(before.end());
    }

    /// The retransmission of this segment is not in flight any more: a DSACK named it, or it was long ago.
    pub fn end_retransmission(&mut self, number: u64) {
        let sent = self.get_mut(number);
        if sent.is_retrans_in_flight() {
            sent.marks &= !mark::RETRANS_IN_FLIGHT;
            let to_retransmit = sent.needs_retransmission();
            self.retrans_out -= 1;
            self.to_retransmit += u32::from(to_retransmit);
            self.next_lost = self.next_lost.min(number);
        }
    }

    /// The latest transmission of this segment counts as lost.
    pub fn mark_lost(&mut self, number: u64) -> NewlyLost {
        let sent = self.get_mut(number);
        let before = *sent;
        if before.is_sacked() || before.is_lost() && !before.is_retrans_in_flight() {
            return NewlyLost::NONE;
        }
        if before.is_lost() {
            // Its retransmission is lost as well.
            sent.marks &= !mark::RETRANS_IN_FLIGHT;
            self.retrans_out -= 1;
        } else {
            sent.marks |= mark::LOST;
            self.lost += 1;
        }
        self.to_retransmit += u32::from(self.get(number).needs_retransmission());
        self.next_lost = self.next_lost.min(number);
        NewlyLost { segments: 1, retransmissions: u32::from(before.is_lost()) }
    }

    /// Nothing counts as lost any more: a recovery was spurious. `reconsider`: loss detection may find the same segments
    /// lost again before they are retransmitted.
    pub fn forget_losses(&mut self, reconsider: bool) {
        for sent in &mut self.queue {
            sent.marks &= !mark::LOST;
        }
        self.lost = 0;
        self.to_retransmit = 0;
        if reconsider {
            self.undecided = self.first;
        }
    }

    /// Nothing counts as delivered any more: the peer has gone back on its SACKs.
    pub fn forget_sacks(&mut self) {
        for sent in &mut self.queue {
            if sent.is_sacked() {
                self.retrans_out -= u32::from(sent.is_retrans_in_flight());
                sent.marks &= !(mark::SACKED | mark::RETRANS_IN_FLIGHT);
            }
        }
        self.sacked = 0;
        self.highest_sacked = 0;
        self.undecided = self.first;
    }

    /// The number of the next segment to retransmit: the first lost one whose loss has not been answered.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.to_retransmit == 0 {
            return None;
        }
        let numbers = self.numbers();
        let mut number = self.next_lost.max(numbers.start);
        while number < numbers.end {
            if self.get(number).needs_retransmission() {
                self.next_lost = number;
                return Some(number);
            }
            number += 1;
        }
        self.next_lost = number;
        None
    }

    /// The number of the first segment below a SACK that was neither delivered nor retransmitted.
    pub fn next_hole(&self) -> Option<u64> {
        let below_sack = self.queue.iter().take_while(|sent| sent.end() <= self.highest_sacked);
        let hole = below_sack.enumerate().find(|(_, sent)| sent.marks & (mark::SACKED | mark::EVER_RETRANSMITTED) == 0);
        hole.map(|(index, _)| self.first + index as u64)
    }

    /// This segment is retransmitted, because it is lost or as a probe, which does not count as a retransmission.
    pub fn retransmit(&mut self, now: Nanos, number: u64, delivered: u32, of_lost: bool) {
        let sent = self.get_mut(number);
        sent.sent_at = now;
        sent.delivered = delivered;
        let newly_in_flight = of_lost && !sent.is_retrans_in_flight();
        let answered = of_lost && sent.needs_retransmission();
        sent.marks |= mark::EVER_RETRANSMITTED;
        self.to_retransmit -= u32::from(answered);
        let sent = self.get_mut(number);
        if newly_in_flight {
            sent.marks |= mark::RETRANS_IN_FLIGHT;
            self.retrans_out += 1;
        }
        // Without SACK nothing checks these for loss.
        while self.retransmitted.front().is_some_and(|&(_, number)| number < self.first) {
            self.retransmitted.pop_front();
        }
        self.retransmitted.push_back((now, number));
    }

    /// Calls `decide` for the segments that loss detection has to look at in the order in which they left, originals
    /// first, until it answers [`Judgement::Stop`] for each kind.
    pub fn mark_losses(&mut self, mut decide: impl FnMut(&Sent) -> Judgement) -> NewlyLost {
        let numbers = self.numbers();
        let mut newly_lost = NewlyLost::NONE;
        let mut number = self.undecided.max(numbers.start);
        let mut decided = true;
        while number < numbers.end {
            let sent = *self.get(number);
            if sent.marks & (mark::SACKED | mark::LOST | mark::EVER_RETRANSMITTED) == 0 {
                match decide(&sent) {
                    Judgement::Lost => newly_lost.add(self.mark_lost(number)),
                    Judgement::Wait => decided = false,
                    Judgement::Stop => break,
                }
            }
            number += 1;
            if decided {
                self.undecided = number;
            }
        }
        newly_lost.add(self.mark_lost_retransmissions(decide));
        newly_lost
    }

    fn mark_lost_retransmissions(&mut self, mut decide: impl FnMut(&Sent) -> Judgement) -> NewlyLost {
        let mut newly_lost = NewlyLost::NONE;
        let mut index = 0;
        while let Some(&(sent_at, number)) = self.retransmitted.get(index) {
            let current = number >= self.first && {
                let sent = self.get(number);
                sent.sent_at == sent_at && !sent.is_sacked() && (sent.is_retrans_in_flight() || !sent.is_lost())
            };
            if !current {
                // Stale ones mostly stand in front, where they can be dropped.
                if index == 0 {
                    self.retransmitted.pop_front();
                } else {
                    index += 1;
                }
                continue;
            }
            let sent = *self.get(number);
            match decide(&sent) {
                Judgement::Lost => {
                    newly_lost.add(self.mark_lost(number));
                    self.retransmitted.remove(index);
                }
                Judgement::Wait => index += 1,
                Judgement::Stop => break,
            }
        }
        newly_lost
    }
}

/// Transmissions that were not known to be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewlyLost {
    pub segments: u32,
    /// Of these, retransmissions of a segment that was lost before.
    pub retransmissions: u32,
}

impl NewlyLost {
    pub const NONE: Self = Self { segments: 0, retransmissions: 0 };

    #[inline]
    pub fn add(&mut self, more: Self) {
        self.segments += more.segments;
        self.retransmissions += more.retransmissions;
    }
}

/// The result of loss detection for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judgement {
    Lost,
    /// It may be, later.
    Wait,
    /// Neither it nor any that left after it can be judged yet.
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 0 to 3 of 100 bytes: 0 is lost, 1 is retransmitted, 2 is SACKed.
    fn board() -> Board {
        let mut board = Board::default();
        for start in [1_000, 1_100, 1_200, 1_300] {
            board.push(7, start, 100, 0, false);
        }
        for number in [0, 1] {
            board.mark_lost(number);
        }
        board.retransmit(9, 1, 0, true);
        board.mark_sacked(2);
        board
    }

    #[test]
    fn both_parts_of_a_segment_that_is_cut_are_in_its_state() {
        for (number, expected) in [(0, [5, 1, 3, 1]), (1, [5, 1, 3, 2]), (2, [5, 2, 2, 1]), (3, [5, 1, 2, 1])] {
            let mut board = board();
            let start = board.get(number).start;
            board.split(number, start + 30);
            let counts = [board.len(), board.sacked, board.lost, board.retrans_out];
            assert_eq!(counts, expected, "segment {number}");
            let parts = [number, number + 1].map(|part| (board.get(part).start, board.get(part).length));
            assert_eq!(parts, [(start, 30), (start + 30, 70)]);
        }
    }

    #[test]
    fn what_is_lost_is_found_on_both_sides_of_a_cut() {
        let mut board = board();
        assert_eq!(board.next_lost(), Some(0));
        board.split(0, 1_040);
        board.retransmit(11, 0, 0, true);
        assert_eq!(board.next_lost(), Some(1), "the second part of segment 0");
        board.retransmit(12, 1, 0, true);
        assert_eq!(board.next_lost(), None, "segment 1 is retransmitted");
        let lost = board.mark_losses(|sent| if sent.sent_at == 9 { Judgement::Lost } else { Judgement::Wait });
        assert_eq!((lost.segments, board.next_lost()), (1, Some(2)), "it is segment 2 now, and lost again");
    }

    /// Two sk_buffs of 250 bytes, segments of 100, from 1,000 and 1,250 on.
    fn sk_buffs() -> Board {
        let mut board = Board::default();
        for begin in [1_000, 1_250] {
            board.push(7, begin, 100, 0, true);
            board.push(7, begin + 100, 100, 0, true);
            board.push(7, begin + 200, 50, 0, false);
        }
        board
    }

    fn acknowledge(board: &mut Board, una: SeqNum) -> usize {
        let mut taken = Vec::new();
        while let Some(sent) =
            board.pop_acknowledged(una).or_else(|| board.trim_acknowledged(una, 100, 1_500, taken.last()))
        {
            taken.push(sent);
        }
        taken.len()
    }

    // Linux, tcp_tso_acked.
    #[test]
    fn the_rest_of_an_sk_buff_of_several_segments_is_segmented_anew() {
        let parts = |board: &Board| board.queue.iter().map(|sent| (sent.start, sent.length)).collect::<Vec<_>>();
        let second = [(1_250, 100), (1_350, 100), (1_450, 50)];
        for (una, taken, rest) in [
            (1_030, 0, &[(1_030, 100), (1_130, 100), (1_230, 20)][..]),
            (1_050, 1, &[(1_050, 100), (1_150, 100)]),
            (1_120, 1, &[(1_120, 100), (1_220, 30)]),
            (1_210, 2, &[(1_210, 40)]),
        ] {
            let mut board = sk_buffs();
            assert_eq!(acknowledge(&mut board, una), taken, "{una}");
            assert_eq!(parts(&board), [rest, &second].concat(), "{una}");
        }
        let mut board = sk_buffs();
        board.mark_sacked(1);
        assert_eq!(acknowledge(&mut board, 1_050), 0, "a SACK has divided it");
        assert_eq!(parts(&board)[0], (1_000, 100));
    }
}
