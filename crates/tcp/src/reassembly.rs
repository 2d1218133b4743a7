//! Data that arrived ahead of a hole.

use crate::sequence::Position;

/// Ranges of positions received out of order: sorted, disjoint and never touching. Empty, and without an
/// allocation, as long as everything arrives in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    ranges: Vec<(Position, Position)>,
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the bytes from `start` up to, not including, `end`.
    pub(crate) fn insert(&mut self, start: Position, end: Position) {
        let first = self.ranges.partition_point(|&(_, known_end)| known_end < start);
        let last = self.ranges.partition_point(|&(known_start, _)| known_start <= end);
        if first == last {
            self.ranges.insert(first, (start, end));
        } else {
            let merged = (start.min(self.ranges[first].0), end.max(self.ranges[last - 1].1));
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
    }

    /// Moves the in-order edge `next` over ranges that it reaches, forgets them, and returns the new edge.
    pub(crate) fn advance(&mut self, mut next: Position) -> Position {
        let reached = self.ranges.partition_point(|&(start, _)| start <= next);
        for &(_, end) in &self.ranges[..reached] {
            next = next.max(end);
        }
        self.ranges.drain(..reached);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_when_they_touch_or_overlap() {
        let mut held = Reassembly::default();
        held.insert(30, 40);
        held.insert(10, 20);
        held.insert(50, 60);
        assert_eq!(held.ranges, [(10, 20), (30, 40), (50, 60)]);
        held.insert(20, 30);
        assert_eq!(held.ranges, [(10, 40), (50, 60)]);
        held.insert(5, 70);
        assert_eq!(held.ranges, [(5, 70)]);
        held.insert(10, 20);
        assert_eq!(held.ranges, [(5, 70)]);
    }

    #[test]
    fn the_edge_moves_over_what_it_reaches_and_stops_at_the_next_hole() {
        let mut held = Reassembly::default();
        held.insert(10, 20);
        held.insert(30, 40);
        assert_eq!(held.advance(5), 5);
        assert_eq!(held.advance(10), 20);
        assert_eq!(held.advance(35), 40);
        assert!(held.is_empty());
    }
}
