//! What SACK options report (RFC 2018, RFC 2883), and losses by counting what they cover (RFC 6675).

use super::board::{Board, Judgement, NewlyLost};
use crate::segment::MOST_SACK_BLOCKS;
use crate::sender::recovery::facts::{Ack, Flight};
use crate::sequence::{SeqNum, near};

/// Largest reordering that is believed in, in segments (Linux's `tcp_max_reordering`).
pub(super) const MOST_REORDERING: u32 = 300;

/// The blocks of one ACK that count.
pub(super) struct Reported {
    pub duplicate: Option<(SeqNum, SeqNum)>,
    blocks: [(SeqNum, SeqNum); MOST_SACK_BLOCKS],
    count: usize,
}

impl Reported {
    #[inline]
    pub fn new(flight: &Flight<'_>, ack: &Ack<'_>) -> Self {
        let mut reported = Self { duplicate: None, blocks: Default::default(), count: 0 };
        for (index, &[left, right]) in ack.sack.as_slice().iter().enumerate() {
            let (left, right) = (near(ack.prior_una, left), near(ack.prior_una, right));
            if right <= left || right > flight.snd.nxt {
                continue;
            }
            if index == 0 && is_duplicate(left, right, ack) {
                reported.duplicate = Some((left, right));
            } else if right > ack.ack && left >= flight.snd.una.min(ack.prior_una) {
                reported.blocks[reported.count] = (left, right);
                reported.count += 1;
            }
        }
        reported.blocks[..reported.count].sort_unstable();
        reported
    }

    /// Data that the peer holds, in the order of the stream.
    pub fn blocks(&self) -> &[(SeqNum, SeqNum)] {
        &self.blocks[..self.count]
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
    pub fn known(&self, start: SeqNum, end: SeqNum) -> (SeqNum, SeqNum) {
        let inside = |&&(left, right): &&(SeqNum, SeqNum)| left >= start && right <= end && left < right;
        self.blocks.iter().filter(inside).max_by_key(|&&(left, right)| right - left).copied().unwrap_or((end, end))
    }

    /// The blocks of this ACK are marked.
    pub fn replace(&mut self, reported: &Reported) {
        self.blocks = reported.blocks;
    }
}

/// Marks segments lost by counting the delivered ones above them; `begins`: outside of recovery, where `threshold`
/// segments SACKed begin it.
// RFC 6675 §4, IsLost (): either DupThresh discontiguous SACKed sequences have arrived above, or more than
// (DupThresh - 1) * SMSS bytes with higher sequence numbers have been SACKed. With segments of one size the second
// comes no later than the first. A FIN on a full segment is no byte beyond it. §5 step 1: DupThresh duplicates, one for
// each segment SACKed however small it is, mean that the first segment is lost.
pub(super) fn count_losses(board: &mut Board, threshold: u32, mss: u32, begins: bool) -> NewlyLost {
    let numbers = board.numbers();
    let mut number = board.number_after(board.highest_sacked().saturating_sub(1)).min(numbers.end);
    if board.sacked() == 0 {
        return NewlyLost::NONE;
    }
    let enough_duplicates = begins && board.sacked() >= threshold;
    let mut lost = NewlyLost::NONE;
    if enough_duplicates && !board.get(numbers.start).is_retrans_in_flight() {
        lost = board.mark_lost(numbers.start);
    }
    let enough = u64::from(threshold - 1) * u64::from(mss);
    let mut bytes = 0;
    loop {
        if number < numbers.end && board.get(number).is_sacked() {
            bytes += u64::from(board.get(number).length.min(mss));
            if bytes > enough {
                break;
            }
        }
        if number == numbers.start {
            return lost;
        }
        number -= 1;
    }
    let below = board.get(number).start;
    // A retransmission that is lost shows by the timeout alone; a segment that was a probe, or whose retransmission was
    // undone, is as any other. Those did not leave in the order of the stream.
    lost.add(board.mark_losses(|sent| match (sent.end() > below, sent.was_retransmitted()) {
        (true, false) => Judgement::Stop,
        (true, true) => Judgement::Wait,
        (false, _) if sent.is_retrans_in_flight() => Judgement::Wait,
        (false, _) => Judgement::Lost,
    }));
    lost
}
