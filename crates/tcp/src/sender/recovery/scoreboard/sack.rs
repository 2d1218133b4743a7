//! Scoreboard acknowledgments: how SACK blocks become marks on the scoreboard (RFC 2018, RFC 2883), how reordering
//! shows, and losses by counting (RFC 6675).

use super::board::{Judgement, NewlyLost};
use super::measure::SendTimes;
use super::{Ack, AckSummary, Flight, Scoreboard, State};
use crate::segment::MOST_SACK_BLOCKS;
use crate::sequence::{SeqNum, near};

/// Largest reordering that is believed in, in segments (Linux's `tcp_max_reordering`).
pub(super) const MOST_REORDERING: u32 = 300;

/// The blocks of the latest acknowledgment: the segments that they cover are marked already.
#[derive(Clone, Debug, Default)]
pub(crate) struct SackHistory {
    blocks: [(SeqNum, SeqNum); MOST_SACK_BLOCKS],
    /// Segments that DSACKs said arrived twice.
    pub duplicates: u32,
}

impl SackHistory {
    /// Marks may have been undone: check everything again.
    pub fn forget(&mut self) {
        self.blocks = Default::default();
    }

    /// A block inside `(start, end)` whose segments are marked already; an empty one if there is none.
    fn known(&self, start: SeqNum, end: SeqNum) -> (SeqNum, SeqNum) {
        let inside = |&&(left, right): &&(SeqNum, SeqNum)| left >= start && right <= end && left < right;
        self.blocks.iter().filter(inside).max_by_key(|&&(left, right)| right - left).copied().unwrap_or((end, end))
    }
}

impl Scoreboard {
    /// Marks the segments that an acknowledgment's SACK blocks cover.
    pub(super) fn tag(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, sample: &mut SendTimes) {
        let mut blocks = [(0, 0); MOST_SACK_BLOCKS];
        let mut count = 0;
        for (index, &[left, right]) in ack.sack.as_slice().iter().enumerate() {
            let (left, right) = (near(ack.prior_una, left), near(ack.prior_una, right));
            if right <= left || right > flight.nxt {
                continue;
            }
            if index == 0 && is_duplicate(left, right, ack) {
                self.on_dsack(flight, left, right, ack.prior_una, summary);
                continue;
            }
            if right > ack.ack && left >= flight.una.min(ack.prior_una) {
                blocks[count] = (left, right);
                count += 1;
            }
        }
        let highest_sacked = self.board.highest_sacked();
        let mut lowest_original = highest_sacked;
        // Marks go on in the order of the stream, so that of several segments the last one is RACK's newest.
        let blocks = &mut blocks[..count];
        blocks.sort_unstable();
        for &mut (left, right) in blocks.iter_mut() {
            let (known_left, known_right) = self.history.known(left, right);
            for (from, to) in [(left, known_left), (known_right, right)] {
                self.tag_range(flight, from, to, summary, sample, &mut lowest_original);
            }
        }
        self.history.blocks = [(0, 0); MOST_SACK_BLOCKS];
        self.history.blocks[..count].copy_from_slice(blocks);
        let in_loss = self.state == State::Loss && !self.undo.is_armed();
        if lowest_original < highest_sacked && !in_loss {
            // Linux, tcp_check_sack_reordering: the distance is from the highest one so far.
            self.note_reordering(flight.mss, lowest_original, self.board.highest_sacked());
        }
    }

    fn tag_range(
        &mut self,
        flight: &Flight<'_>,
        from: SeqNum,
        to: SeqNum,
        summary: &mut AckSummary,
        sample: &mut SendTimes,
        lowest_original: &mut SeqNum,
    ) {
        if from >= to {
            return;
        }
        let mut number = self.board.number_after(from);
        let last = self.board.numbers().end;
        while number < last {
            let sent = *self.board.get(number);
            // A segment counts as delivered only if all of it is.
            if sent.end() > to {
                break;
            }
            if sent.start >= from && !sent.is_sacked() {
                if !sent.is_repeated() {
                    // Delivered out of order without having been retransmitted.
                    *lowest_original = (*lowest_original).min(sent.start);
                    summary.original_delivered |= sent.end() <= self.high;
                    sample.on_sacked(sent.sent_at);
                }
                sample.on_delivered(&sent);
                self.rack.advance(flight.now, self.shortest.get(), &sent);
                self.board.mark_sacked(number);
                if let Some(rate) = &mut self.rate {
                    rate.on_delivered(number, sent.end());
                }
                self.deliver(summary, 1);
                summary.sacked = true;
            }
            number += 1;
        }
    }

    /// The first block of an acknowledgment reports a duplicate.
    fn on_dsack(
        &mut self,
        flight: &Flight<'_>,
        left: SeqNum,
        right: SeqNum,
        prior_una: SeqNum,
        summary: &mut AckSummary,
    ) {
        let length = (right - left) as u32;
        let duplicates = length.div_ceil(flight.mss);
        let of_probe = duplicates == 1 && self.probe.ends_at(right);
        self.history.duplicates += duplicates;
        // More than we ever retransmitted: the network duplicates, which shows nothing about our retransmissions.
        if self.history.duplicates > flight.retransmissions {
            return;
        }
        if self.reordering_seen > 0 && !of_probe {
            self.rack.on_dsack();
        }
        summary.dsack = true;
        summary.dsack_of_probe |= of_probe;
        self.deliver(summary, duplicates);
        if right <= prior_una {
            self.undo.on_dsack(right, duplicates);
        } else {
            let mut number = self.board.number_after(left);
            while number < self.board.numbers().end && self.board.get(number).end() <= right {
                if self.board.get(number).is_repeated() {
                    self.undo.on_dsack(right, 1);
                }
                self.board.end_repair(number);
                number += 1;
            }
        }
    }

    /// A segment from `lowest` on was delivered after one that ends at `highest`: the network reorders.
    pub(super) fn note_reordering(&mut self, mss: u32, lowest: SeqNum, highest: SeqNum) {
        let distance = (highest - lowest) as u32;
        if distance > self.reordering.saturating_mul(mss) {
            self.reordering = distance.div_ceil(mss).min(MOST_REORDERING);
        }
        self.reordering_seen += 1;
    }

    /// Marks segments lost by counting the delivered ones above them.
    // RFC 6675 §4, IsLost (): either DupThresh discontiguous SACKed sequences have arrived above, or more than
    // (DupThresh - 1) * SMSS bytes with higher sequence numbers have been SACKed. With segments of one size the second
    // comes no later than the first. A FIN on a full segment is no byte beyond it. §5 step 1: DupThresh duplicates, one for
    // each segment SACKed however small it is, mean that the first segment is lost.
    pub(super) fn count_losses(&mut self, flight: &Flight<'_>) -> NewlyLost {
        let numbers = self.board.numbers();
        let mut number = self.board.number_after(self.board.highest_sacked().saturating_sub(1)).min(numbers.end);
        if self.board.sacked() == 0 {
            return NewlyLost::NONE;
        }
        let threshold = self.threshold(flight);
        let enough_duplicates = self.state < State::Recovery && self.board.sacked() >= threshold;
        let mut lost = NewlyLost::NONE;
        if enough_duplicates && !self.board.get(numbers.start).is_in_repair() {
            lost = self.board.mark_lost(numbers.start);
        }
        let enough = u64::from(threshold - 1) * u64::from(flight.mss);
        let mut bytes = 0;
        loop {
            if number < numbers.end && self.board.get(number).is_sacked() {
                bytes += u64::from(self.board.get(number).length.min(flight.mss));
                if bytes > enough {
                    break;
                }
            }
            if number == numbers.start {
                return lost;
            }
            number -= 1;
        }
        let below = self.board.get(number).start;
        // A retransmission that is lost shows by the timeout alone; a segment that was a probe, or whose retransmission was
        // undone, is as any other. Those did not leave in the order of the stream.
        lost.add(self.board.mark_losses(|sent| match (sent.end() > below, sent.is_repeated()) {
            (true, false) => Judgement::Stop,
            (true, true) => Judgement::Wait,
            (false, _) if sent.is_in_repair() => Judgement::Wait,
            (false, _) => Judgement::Lost,
        }));
        lost
    }
}

/// RFC 2883 §4: the first block reports a duplicate if it lies below the cumulative acknowledgment, or inside of the
/// second block.
fn is_duplicate(left: SeqNum, right: SeqNum, ack: &Ack<'_>) -> bool {
    if left < ack.ack {
        return true;
    }
    ack.sack.as_slice().get(1).is_some_and(|&[next_left, next_right]| {
        near(ack.prior_una, next_left) <= left && right <= near(ack.prior_una, next_right)
    })
}
