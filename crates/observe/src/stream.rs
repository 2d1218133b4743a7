//! One direction of a connection: its position in the stream, the bytes in flight, and the gaps.

use std::collections::VecDeque;

/// Segments in flight that are kept; of more, every second one is forgotten.
const MOST_OUTSTANDING: usize = 64;
const MOST_HOLES: usize = 8;
/// Ends hold the acknowledgment of a single segment back for 40 ms and more (RFC 9293 §3.8.6.3), unless another comes.
const SOON: i64 = 25_000_000;

/// A sequence number at most so far ahead is believed: a window without scaling (RFC 9293 §3.1). One that is farther ahead is
/// believed when a second one agrees, as after a gap in the capture. A number that was damaged on the way is alone.
const NEAR: SeqNum = 1 << 16;
/// So close to each other, two numbers agree.
const AGREEING: SeqNum = 1 << 24;
/// No window is larger (RFC 7323 §2.3), so data farther back is not a retransmission.
const LARGEST_WINDOW: SeqNum = 1 << 30;

/// An offset in a stream, 0 for the first byte, that does not wrap.
pub(crate) type SeqNum = i64;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: SeqNum,
    time: i64,
}

/// Bytes that were passed over.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: SeqNum,
    end: SeqNum,
    since: i64,
}

/// How a data segment fits into the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It goes on where the last one ended.
    Next,
    /// It leaves something out.
    Ahead,
    /// It was skipped this number of nanoseconds ago.
    Missing(i64),
    /// It was there, and was first sent this number of nanoseconds ago, if that is still known.
    Again(Option<i64>),
}

/// The result of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// When the last byte was sent that it covers; None if that is not known for sure.
    pub(crate) sent: Option<i64>,
    /// It is for one segment, and none was sent soon after: the other end may have waited for another one.
    pub(crate) lone: bool,
    /// Bytes that it covers but that were not captured.
    pub(crate) unseen: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Sequence number of the position 0.
    base: Option<u32>,
    /// Behind the last byte seen.
    next: SeqNum,
    /// Behind the last byte acknowledged.
    acked: SeqNum,
    /// Up to here data was sent twice, so an acknowledgment does not show which transmission it is for.
    ambiguous: SeqNum,
    outstanding: VecDeque<Sent>,
    holes: Vec<Hole>,
    /// The last position that was too far ahead to be believed.
    far: Option<SeqNum>,
    /// That of the FIN.
    fin: Option<SeqNum>,
}

impl Stream {
    /// The first byte will have this sequence number, if nothing has said so before.
    pub(crate) fn begin(&mut self, seq: u32) {
        self.base.get_or_insert(seq);
    }

    /// The first byte has this sequence number, whatever was set before. Nothing was sent yet.
    pub(crate) fn begin_again(&mut self, seq: u32) {
        self.base = Some(seq);
    }

    /// True if it is known that the first byte has another sequence number.
    pub(crate) fn begins_elsewhere(&self, seq: u32) -> bool {
        self.base.is_some_and(|base| base != seq)
    }

    /// A sequence number, where the first byte has 1 and a SYN 0.
    pub(crate) fn relative(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.base.unwrap_or(seq)).wrapping_add(1)
    }

    /// Behind the last byte seen.
    pub(crate) fn next(&self) -> SeqNum {
        self.next
    }

    /// Behind the last byte that was both seen and acknowledged.
    pub(crate) fn delivered(&self) -> SeqNum {
        self.acked.min(self.next)
    }

    /// The FIN has this sequence number.
    pub(crate) fn end(&mut self, seq: u32) {
        // A number farther ahead was damaged.
        self.fin = Some(self.position(seq)).filter(|&fin| fin <= self.next + NEAR).or(self.fin);
    }

    /// True if the other end has acknowledged the FIN: until then it is retransmitted.
    pub(crate) fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked > fin)
    }

    /// True if bytes in flight were sent once, after others that were acknowledged.
    pub(crate) fn is_waiting(&self) -> bool {
        0 < self.acked && self.acked < self.next && !self.is_recovering()
    }

    /// True during loss recovery.
    pub(crate) fn is_recovering(&self) -> bool {
        self.acked < self.ambiguous
    }

    /// True if bytes were acknowledged that were never seen.
    pub(crate) fn has_unseen(&self) -> bool {
        self.holes.iter().any(|hole| hole.start < self.acked)
    }

    /// The position of a sequence number, if it can be one of this stream.
    pub(crate) fn locate(&mut self, seq: u32) -> Option<SeqNum> {
        let position = self.position(seq);
        if position <= self.next + NEAR {
            if position >= self.next {
                // The stream goes on here, so the number far ahead was damaged.
                self.far = None;
            }
            return (position >= self.next - LARGEST_WINDOW).then_some(position);
        }
        let before = self.far.replace(position).filter(|&before| before != position);
        before.filter(|before| (position - before).abs() <= AGREEING).map(|_| position)
    }

    /// The position of a sequence number, which is the nearest to where the stream is.
    fn position(&self, seq: u32) -> SeqNum {
        let here = self.base.unwrap_or(seq).wrapping_add(self.next as u32);
        self.next + i64::from(seq.wrapping_sub(here) as i32)
    }

    /// `length` bytes at a position are sent.
    pub(crate) fn send(&mut self, start: SeqNum, length: u32, time: i64) -> Place {
        let end = start + i64::from(length);
        if end <= self.next {
            return self.resend(start, end, time);
        }
        let place = if start > self.next { Place::Ahead } else { Place::Next };
        if start > self.next {
            if self.holes.len() == MOST_HOLES {
                self.holes.remove(0);
            }
            self.holes.push(Hole { start: self.next, end: start, since: time });
        }
        if self.outstanding.len() == MOST_OUTSTANDING {
            let mut at = 0;
            self.outstanding.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        self.outstanding.push_back(Sent { end, time });
        self.next = end;
        place
    }

    fn resend(&mut self, start: SeqNum, end: SeqNum, time: i64) -> Place {
        if let Some(at) = self.holes.iter().position(|hole| start < hole.end && end > hole.start) {
            let hole = self.holes[at];
            match (start <= hole.start, end >= hole.end) {
                (true, true) => drop(self.holes.remove(at)),
                (true, false) => self.holes[at].start = end,
                (false, true) => self.holes[at].end = start,
                (false, false) => {
                    self.holes[at].end = start;
                    if self.holes.len() < MOST_HOLES {
                        self.holes.insert(at + 1, Hole { start: end, ..hole });
                    }
                }
            }
            return Place::Missing(time - hole.since);
        }
        let first = self.outstanding.iter().rev().find(|sent| sent.end == end).map(|sent| time - sent.time);
        Place::Again(first)
    }

    /// The last segment was a retransmission: acknowledgments of the data in flight give no RTT sample.
    pub(crate) fn retransmitted(&mut self) {
        self.ambiguous = self.next;
    }

    /// The other end acknowledges all before a position; None if it did so before.
    pub(crate) fn acknowledge(&mut self, position: SeqNum) -> Option<Acknowledged> {
        if position <= self.acked {
            return None;
        }
        let unambiguous = self.acked >= self.ambiguous;
        self.acked = position;
        let mut last = None;
        let mut covered = 0;
        while let Some(sent) = self.outstanding.front().filter(|sent| sent.end <= position) {
            last = Some(*sent);
            covered += 1;
            self.outstanding.pop_front();
        }
        // A FIN takes one more.
        let unseen = position > self.next + 1;
        if unseen {
            self.holes.push(Hole { start: self.next, end: position, since: 0 });
            self.next = position;
        }
        let exact = last.filter(|sent| unambiguous && !unseen && position - sent.end <= 1);
        let follows = |sent: Sent| self.outstanding.front().is_some_and(|next| next.time - sent.time < SOON);
        let lone = covered <= 1 && !last.is_some_and(follows);
        Some(Acknowledged { sent: exact.map(|sent| sent.time), lone, unseen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Stream {
        let mut stream = Stream::default();
        stream.begin(u32::MAX - 999);
        stream
    }

    #[test]
    fn positions_go_on_where_sequence_numbers_wrap() {
        let mut stream = stream();
        for step in 0..10_i64 {
            let seq = (u32::MAX - 999).wrapping_add(step as u32 * 1000);
            assert_eq!(stream.position(seq), step * 1000);
            assert_eq!(stream.send(step * 1000, 1000, step), Place::Next);
        }
        assert_eq!(stream.next, 10_000);
    }

    #[test]
    fn an_acknowledgment_tells_when_the_last_byte_was_sent_that_it_covers() {
        let mut stream = stream();
        for (time, start) in [(5, 0), (6, 1000), (9, 2000)] {
            stream.send(start, 1000, time);
        }
        let first = stream.acknowledge(2000).unwrap();
        assert_eq!((first.sent, first.lone), (Some(6), false));
        assert!(stream.acknowledge(2000).is_none());
        // With the FIN behind it.
        let last = stream.acknowledge(3001).unwrap();
        assert_eq!((last.sent, last.lone, last.unseen), (Some(9), true, false));
    }

    #[test]
    fn after_a_retransmission_acknowledgments_tell_no_time_until_all_of_then_is_covered() {
        let mut stream = stream();
        stream.send(0, 1000, 5);
        stream.send(1000, 1000, 6);
        assert_eq!(stream.send(0, 1000, 50), Place::Again(Some(45)));
        stream.retransmitted();
        assert!(stream.is_recovering());
        assert_eq!(stream.acknowledge(1000).unwrap().sent, None);
        assert_eq!(stream.acknowledge(2000).unwrap().sent, None);
        stream.send(2000, 1000, 80);
        assert_eq!(stream.acknowledge(3000).unwrap().sent, Some(80));
    }

    #[test]
    fn what_was_passed_over_fills_its_hole_and_is_then_there() {
        let mut stream = stream();
        assert_eq!(stream.send(2000, 1000, 5), Place::Ahead);
        assert_eq!(stream.send(0, 1000, 7), Place::Missing(2));
        assert_eq!(stream.send(1000, 1000, 9), Place::Missing(4));
        assert_eq!(stream.send(1000, 1000, 11), Place::Again(None));
        stream.acknowledge(3000);
        assert!(!stream.has_unseen());
    }

    #[test]
    fn bytes_that_only_an_acknowledgment_speaks_of_are_missed() {
        let mut stream = stream();
        stream.send(0, 1000, 5);
        assert!(stream.acknowledge(3000).unwrap().unseen);
        assert!(stream.has_unseen());
        assert_eq!(stream.delivered(), 3000);
    }

    #[test]
    fn a_number_far_ahead_is_believed_when_another_one_agrees() {
        let mut stream = stream();
        stream.send(0, 1000, 5);
        let seq = |position: u32| (u32::MAX - 999).wrapping_add(position);
        assert_eq!(stream.locate(seq(1000)), Some(1000));
        // Damaged ones: alone, or the same packet captured twice.
        assert_eq!(stream.locate(seq(1 << 30)), None);
        assert_eq!(stream.locate(seq(3 << 26)), None);
        assert_eq!(stream.locate(seq(3 << 26)), None);
        assert_eq!(stream.locate(seq((1 << 31) + 5)), None);
        // After a gap in the capture.
        assert_eq!(stream.locate(seq(5_000_000)), None);
        assert_eq!(stream.locate(seq(5_001_448)), Some(5_001_448));
    }

    #[test]
    fn damaged_numbers_far_ahead_do_not_agree_across_what_is_in_order_between_them() {
        let mut stream = stream();
        stream.send(0, 1000, 5);
        let seq = |position: u32| (u32::MAX - 999).wrapping_add(position);
        assert_eq!(stream.locate(seq(1 << 30)), None);
        assert_eq!(stream.locate(seq(1000)), Some(1000));
        assert_eq!(stream.locate(seq((1 << 30) + 1448)), None);
    }

    #[test]
    fn many_segments_under_way_cost_no_more_than_the_most_that_are_kept() {
        let mut stream = stream();
        for step in 0..10_000 {
            stream.send(step * 1000, 1000, step);
        }
        assert!(stream.outstanding.len() <= MOST_OUTSTANDING);
    }
}
