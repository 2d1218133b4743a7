//! Data that arrived ahead of a hole, and its selective acknowledgments.

use crate::segment::{MOST_SACK_BLOCKS, SackBlocks};
use crate::sequence::{SeqNum, wire};

/// From one position up to, not including, another.
pub(crate) type Range = (SeqNum, SeqNum);

/// Data that was received out of order or twice. Empty, and without an allocation, as long as everything arrives in
/// order and once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    held: Option<Box<Held>>,
}

/// The parts of a block when data arrives next to a held block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BlockFrom {
    /// All that is held.
    Queue,
    /// The blocks that are remembered for reports; forgotten parts do not count.
    Reports,
}

#[derive(Clone, Debug, Default)]
struct Held {
    /// Sorted, disjoint and never touching.
    ranges: Vec<Range>,
    /// The reported blocks: those that grew last, the latest first; disjoint and never touching, unless `next_recent`
    /// waits.
    recent: [Range; MOST_SACK_BLOCKS],
    recent_count: usize,
    /// Becomes the first of them, joined with those that it touches, once the acknowledgment that is due has left.
    next_recent: Option<Range>,
    /// Bytes received twice and not reported yet.
    duplicate: Option<Range>,
}

/// Blocks that the acknowledgments which arrive can be expected to show: with timestamps an option has room for three, and
/// some acknowledgments are lost.
// Linux, TCP_SACK_BLOCKS_EXPECTED.
const EXPECTED_BLOCKS: usize = 2;

impl Reassembly {
    /// True if there is no hole.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.ranges.is_empty())
    }

    /// Number of ranges that a SACK option with room for `most` would hold.
    pub(crate) fn blocks(&self, most: usize) -> usize {
        self.held.as_ref().map_or(0, |held| (held.recent_count + usize::from(held.duplicate.is_some())).min(most))
    }

    /// Adds a range. Its block is all data held around it, or only the part still known from reports.
    // RFC 2018 §3: the bytes just below and just above a block have not been received. Linux (tcp_sack_new_ofo_skb) looks
    // at the blocks that it remembers, and not into its queue.
    pub(crate) fn insert(&mut self, start: SeqNum, end: SeqNum, block_from: BlockFrom) {
        let held = self.held.get_or_insert_default();
        held.settle();
        let merged = held.hold(start, end);
        held.put_first(match block_from {
            BlockFrom::Queue => merged,
            BlockFrom::Reports => (start, end),
        });
    }

    /// Adds a range while an acknowledgment waits for more to report. True if that has to leave now, with the blocks in
    /// their old order, and without the range's block if it is a new one.
    // Linux, tcp_sack_new_ofo_skb: tcp_sack_compress_send_ack comes before the new block.
    pub(crate) fn insert_while_ack_waits(&mut self, start: SeqNum, end: SeqNum) -> bool {
        let held = self.held.get_or_insert_default();
        held.settle();
        let recent = &mut held.recent[..held.recent_count];
        let known = recent.iter().position(|known| known.0 <= end && start <= known.1);
        if known.unwrap_or(recent.len()) < EXPECTED_BLOCKS {
            self.insert(start, end, BlockFrom::Reports);
            return false;
        }
        if let Some(place) = known {
            recent[place] = (recent[place].0.min(start), recent[place].1.max(end));
        }
        held.hold(start, end);
        held.next_recent = Some((start, end));
        true
    }

    /// Moves the in-order edge `next` over ranges that it reaches, forgets them, and returns the new edge.
    pub(crate) fn advance(&mut self, mut next: SeqNum) -> SeqNum {
        let Some(held) = &mut self.held else { return next };
        held.settle();
        let reached = held.ranges.partition_point(|&(start, _)| start <= next);
        for &(_, end) in &held.ranges[..reached] {
            next = next.max(end);
        }
        held.ranges.drain(..reached);
        held.forget(|known| known.0 <= next);
        next
    }

    /// One past the last position that is held together with this one; the position itself if it is not held.
    pub(crate) fn held_until(&self, position: SeqNum) -> SeqNum {
        let Some(held) = &self.held else { return position };
        let next = held.ranges.get(held.ranges.partition_point(|&(_, end)| end <= position));
        next.filter(|&&(start, _)| start <= position).map_or(position, |&(_, end)| end)
    }

    /// The first contiguous part of a range that is held already.
    // RFC 2883 §4 (1): a D-SACK block reports only one contiguous sequence that is a duplicate.
    pub(crate) fn overlap(&self, start: SeqNum, end: SeqNum) -> Option<Range> {
        let ranges = &self.held.as_ref()?.ranges;
        let &(known_start, known_end) = ranges.get(ranges.partition_point(|&(_, known_end)| known_end <= start))?;
        (known_start < end).then(|| (known_start.max(start), known_end.min(end)))
    }

    /// The next report begins with this range, which arrived twice.
    pub(crate) fn note_duplicate(&mut self, start: SeqNum, end: SeqNum) {
        self.held.get_or_insert_default().duplicate = Some((start, end));
    }

    /// A duplicate is not reported any more.
    pub(crate) fn forget_duplicate(&mut self) {
        if let Some(held) = &mut self.held {
            held.duplicate = None;
        }
    }

    /// One past the last byte held ahead of a hole, if there is any.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.held.as_ref()?.ranges.last().map(|&(_, end)| end)
    }

    /// The SACK option of a segment that leaves, of at most `most` ranges. A duplicate is reported once.
    // RFC 2018 §4: the first block holds the segment that triggered the acknowledgment, and the most recently
    // reported ones are repeated after it; RFC 2883 §4: a duplicate comes before them.
    pub(crate) fn report(&mut self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        let Some(held) = &mut self.held else { return blocks };
        if most == 0 {
            return blocks;
        }
        if let Some((start, end)) = held.duplicate.take() {
            blocks.push(wire(start), wire(end));
        }
        let room = most - blocks.as_slice().len();
        for &(start, end) in held.recent[..held.recent_count].iter().take(room) {
            blocks.push(wire(start), wire(end));
        }
        held.settle();
        blocks
    }
}

impl Held {
    /// Adds a range to the held ones, and returns all that is held around it.
    fn hold(&mut self, start: SeqNum, end: SeqNum) -> Range {
        let first = self.ranges.partition_point(|&(_, known_end)| known_end < start);
        let last = self.ranges.partition_point(|&(known_start, _)| known_start <= end);
        let mut merged = (start, end);
        if first == last {
            self.ranges.insert(first, merged);
        } else {
            merged = (start.min(self.ranges[first].0), end.max(self.ranges[last - 1].1));
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        merged
    }

    /// The acknowledgment that was due has left, or more has arrived before it.
    fn settle(&mut self) {
        if let Some(block) = self.next_recent.take() {
            self.put_first(block);
        }
    }

    /// Puts a block before the recent ones, joined with those that it touches.
    fn put_first(&mut self, block: Range) {
        let mut joined = block;
        self.forget(|known| {
            let touches = known.0 <= block.1 && block.0 <= known.1;
            if touches {
                joined = (joined.0.min(known.0), joined.1.max(known.1));
            }
            touches
        });
        self.recent.copy_within(..MOST_SACK_BLOCKS - 1, 1);
        self.recent[0] = joined;
        self.recent_count = (self.recent_count + 1).min(MOST_SACK_BLOCKS);
    }

    /// Takes the blocks that `gone` picks off the list of recent ones.
    fn forget(&mut self, mut gone: impl FnMut(Range) -> bool) {
        let mut kept = 0;
        for index in 0..self.recent_count {
            if !gone(self.recent[index]) {
                self.recent[kept] = self.recent[index];
                kept += 1;
            }
        }
        self.recent_count = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges(held: &Reassembly) -> &[Range] {
        held.held.as_ref().map_or(&[], |held| &held.ranges)
    }

    fn reported(held: &mut Reassembly) -> Vec<[u32; 2]> {
        held.report(MOST_SACK_BLOCKS).as_slice().to_vec()
    }

    #[test]
    fn ranges_merge_when_they_touch_or_overlap() {
        let mut held = Reassembly::default();
        held.insert(30, 40, BlockFrom::Queue);
        held.insert(10, 20, BlockFrom::Queue);
        held.insert(50, 60, BlockFrom::Queue);
        assert_eq!(ranges(&held), [(10, 20), (30, 40), (50, 60)]);
        held.insert(20, 30, BlockFrom::Queue);
        assert_eq!(ranges(&held), [(10, 40), (50, 60)]);
        held.insert(5, 70, BlockFrom::Queue);
        assert_eq!(ranges(&held), [(5, 70)]);
        held.insert(10, 20, BlockFrom::Queue);
        assert_eq!(ranges(&held), [(5, 70)]);
    }

    #[test]
    fn the_edge_moves_over_what_it_reaches_and_stops_at_the_next_hole() {
        let mut held = Reassembly::default();
        held.insert(10, 20, BlockFrom::Queue);
        held.insert(30, 40, BlockFrom::Queue);
        for (position, until) in [(5, 5), (10, 20), (19, 20), (20, 20), (30, 40), (40, 40)] {
            assert_eq!(held.held_until(position), until);
        }
        assert_eq!(held.advance(5), 5);
        assert_eq!(held.advance(10), 20);
        assert_eq!(held.advance(35), 40);
        assert!(held.is_empty());
    }

    #[test]
    fn the_range_that_grew_last_is_reported_first() {
        let mut held = Reassembly::default();
        for start in [10, 30, 50, 70] {
            held.insert(start, start + 10, BlockFrom::Queue);
        }
        assert_eq!(reported(&mut held), [[70, 80], [50, 60], [30, 40], [10, 20]]);
        held.insert(40, 45, BlockFrom::Queue);
        assert_eq!(reported(&mut held), [[30, 45], [70, 80], [50, 60], [10, 20]]);
        held.insert(90, 100, BlockFrom::Queue);
        assert_eq!(reported(&mut held), [[90, 100], [30, 45], [70, 80], [50, 60]]);
        held.advance(30);
        assert_eq!(reported(&mut held), [[90, 100], [70, 80], [50, 60]]);
    }

    #[test]
    fn a_block_that_was_forgotten_is_joined_only_where_the_queue_is_looked_at() {
        let [mut queue, mut reports] = [Reassembly::default(), Reassembly::default()];
        for (held, block_from) in [(&mut queue, BlockFrom::Queue), (&mut reports, BlockFrom::Reports)] {
            for start in [10, 30, 50, 70, 90] {
                held.insert(start, start + 10, block_from);
            }
            held.insert(20, 30, block_from);
        }
        assert_eq!(reported(&mut queue), [[10, 40], [90, 100], [70, 80], [50, 60]]);
        assert_eq!(reported(&mut reports), [[20, 40], [90, 100], [70, 80], [50, 60]]);
        // Between two that are remembered; then next to one that is forgotten, the fifth.
        reports.insert(60, 70, BlockFrom::Reports);
        assert_eq!(reported(&mut reports), [[50, 80], [20, 40], [90, 100]]);
        assert_eq!(ranges(&reports), [(10, 40), (50, 80), (90, 100)]);
        assert_eq!(reports.advance(10), 40);
        assert_eq!(reported(&mut reports), [[50, 80], [90, 100]]);
    }

    // Linux, tcp_sack_new_ofo_skb, with TCP_SACK_BLOCKS_EXPECTED of two.
    #[test]
    fn an_ack_that_waits_leaves_before_a_third_block_is_added_or_moves_to_the_first_place() {
        let mut held = Reassembly::default();
        for start in [10, 30] {
            assert!(!held.insert_while_ack_waits(start, start + 10), "at most two blocks");
        }
        assert!(held.insert_while_ack_waits(50, 60), "a third one");
        assert_eq!(reported(&mut held), [[30, 40], [10, 20]], "the new one is not yet among them");
        assert_eq!(reported(&mut held), [[50, 60], [30, 40], [10, 20]]);
        assert!(!held.insert_while_ack_waits(40, 45), "the second of them");
        assert!(held.insert_while_ack_waits(20, 25), "the third of them");
        assert_eq!(reported(&mut held), [[30, 45], [50, 60], [10, 25]], "it has grown and keeps its place");
        assert_eq!(reported(&mut held), [[10, 25], [30, 45], [50, 60]]);
        assert_eq!(ranges(&held), [(10, 25), (30, 45), (50, 60)]);
        assert!(held.insert_while_ack_waits(70, 80));
        assert_eq!(held.advance(80), 80);
        for _ in 0..2 {
            assert_eq!(reported(&mut held), [[0; 2]; 0], "the hole was filled before the acknowledgment left");
        }
    }

    #[test]
    fn a_duplicate_is_reported_once_and_before_the_range_that_holds_it() {
        let mut held = Reassembly::default();
        held.insert(10, 20, BlockFrom::Queue);
        held.insert(30, 50, BlockFrom::Queue);
        assert_eq!(held.overlap(15, 35), Some((15, 20)));
        assert_eq!(held.overlap(20, 30), None);
        assert_eq!(held.overlap(5, 100), Some((10, 20)));
        held.insert(10, 20, BlockFrom::Queue);
        held.note_duplicate(12, 18);
        assert_eq!(reported(&mut held), [[12, 18], [10, 20], [30, 50]]);
        assert_eq!(reported(&mut held), [[10, 20], [30, 50]]);
    }

    proptest! {
        #[test]
        fn reports_describe_what_is_held_newest_first_and_never_overlap(
            segments in prop::collection::vec((1u64..200, 1u64..20, 0u64..210), 1..60),
        ) {
            let mut held = Reassembly::default();
            let mut bytes = [false; 256];
            let mut edge = 0;
            for (start, length, next) in segments {
                let (start, end) = (start.max(edge + 1), (start + length).max(edge + 2));
                held.insert(start, end, BlockFrom::Queue);
                bytes[start as usize..end as usize].fill(true);
                let report = reported(&mut held);
                prop_assert!(u64::from(report[0][0]) <= start && end <= u64::from(report[0][1]));
                for (index, [left, right]) in report.iter().enumerate() {
                    prop_assert!(bytes[*left as usize..*right as usize].iter().all(|held| *held));
                    prop_assert!(!bytes[*left as usize - 1] && !bytes[*right as usize], "a block is as large as can be");
                    prop_assert!(report[..index].iter().all(|other| other[1] < *left || *right < other[0]));
                }
                // Sometimes the edge moves, over the data that it reaches, to the next hole.
                if next > edge && next < 3 * start / 2 {
                    edge = held.advance(next);
                    bytes[..=edge as usize].fill(false);
                    prop_assert!(ranges(&held).iter().all(|range| range.0 > edge));
                }
            }
        }
    }
}
