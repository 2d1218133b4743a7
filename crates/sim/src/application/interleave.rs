//! HTTP/2: the responses of a connection take turns, a frame each.
//!
//! A server binds frames to the stream as late as it can: unsent data is divided again when another
//! request arrives. Since a simulated byte has no content, it is enough to know where each response begins and ends.

use std::collections::VecDeque;

/// RFC 9113 section 4.1: the header of a frame.
const FRAME_HEADER_BYTES: u64 = 9;

/// Page and number of the object that a response carries.
pub(super) type Name = (u32, u32);

/// A response that is not complete at [`Interleave::settled`].
#[derive(Clone, Debug)]
struct Response {
    name: Name,
    remaining: u64,
    starts_at: Option<u64>,
}

/// The responses of a connection in the order of their frames.
#[derive(Debug)]
pub(super) struct Interleave {
    frame_bytes: u64,
    /// Bytes that a frame adds to its payload: its header and the overhead of its TLS records.
    overhead_bytes: u64,
    /// Bytes of all requests so far.
    pub(super) requested: u64,
    /// Stream offset up to which frames can no longer be changed.
    settled: u64,
    /// Whose frames follow, the next one first.
    turns: VecDeque<Response>,
    /// Positions of the responses that have not arrived.
    pub(super) spans: Vec<Span>,
}

/// Position of a response in the stream: offsets of its first byte and behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) name: Name,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Interleave {
    /// Frames from stream offset `start` on; `record_overhead`: bytes that TLS adds to a frame.
    pub(super) fn new(frame_bytes: u32, record_overhead: u64, start: u64) -> Interleave {
        Interleave {
            frame_bytes: u64::from(frame_bytes),
            overhead_bytes: FRAME_HEADER_BYTES + record_overhead,
            requested: 0,
            settled: start,
            turns: VecDeque::new(),
            spans: Vec::new(),
        }
    }

    /// Bytes of the stream that a response of `bytes` takes.
    pub(super) fn stream_bytes(&self, bytes: u64) -> u64 {
        bytes + self.overhead_bytes * bytes.div_ceil(self.frame_bytes)
    }

    /// A response joins the others, whose frames up to `sent` have left.
    pub(super) fn add(&mut self, name: Name, bytes: u64, sent: u64) {
        let frame = (self.frame_bytes, self.overhead_bytes);
        while self.settled < sent && step(&mut self.turns, &mut self.settled, frame).is_some() {}
        self.turns.push_back(Response { name, remaining: bytes, starts_at: None });
        let settled = self.settled;
        self.spans.retain(|span| span.end <= settled);
        let (mut turns, mut at) = (self.turns.clone(), settled);
        while let Some(complete) = step(&mut turns, &mut at, frame) {
            self.spans.extend(complete.map(|(name, start)| Span { name, start, end: at }));
        }
    }

    /// A response has arrived.
    pub(super) fn forget(&mut self, name: Name) {
        self.spans.retain(|span| span.name != name);
    }
}

/// A frame of the next response. None without responses; the name and the start of the response if it is complete now.
fn step(
    turns: &mut VecDeque<Response>,
    at: &mut u64,
    (frame_bytes, overhead): (u64, u64),
) -> Option<Option<(Name, u64)>> {
    let mut response = turns.pop_front()?;
    let start = *response.starts_at.get_or_insert(*at);
    let payload = response.remaining.min(frame_bytes);
    *at += payload + overhead;
    response.remaining -= payload;
    if response.remaining == 0 {
        return Some(Some((response.name, start)));
    }
    turns.push_back(response);
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(number: u32, start: u64, end: u64) -> Span {
        Span { name: (0, number), start, end }
    }

    #[test]
    fn responses_take_turns_frame_by_frame() {
        let mut interleave = Interleave::new(100, 0, 0);
        interleave.add((0, 1), 250, 0);
        interleave.add((0, 2), 120, 0);
        // 1: 0-109, 2: 109-218, 1: 218-327, 2: 327-356, 1: 356-415.
        assert_eq!(interleave.spans, [span(2, 109, 356), span(1, 0, 415)]);
        assert_eq!(interleave.stream_bytes(250) + interleave.stream_bytes(120), 415);
    }

    #[test]
    fn a_response_that_joins_late_shares_what_has_not_been_sent() {
        let mut interleave = Interleave::new(100, 0, 0);
        interleave.add((0, 1), 400, 0);
        // The second frame has begun to leave, so it stays where it is.
        interleave.add((0, 2), 100, 150);
        assert_eq!(interleave.spans, [span(2, 327, 436), span(1, 0, 545)]);
    }

    #[test]
    fn what_was_sent_is_never_moved() {
        let mut interleave = Interleave::new(50, 0, 0);
        interleave.add((0, 1), 50, 0);
        interleave.add((0, 2), 500, 30);
        interleave.add((0, 3), 50, 59);
        // The peer's loss made the sender go back.
        interleave.add((0, 4), 50, 0);
        assert_eq!(interleave.spans.iter().map(|span| span.name.1).collect::<Vec<_>>(), [1, 3, 4, 2]);
        assert_eq!(interleave.spans[3].start, 59);
        interleave.forget((0, 1));
        assert_eq!(interleave.spans.len(), 3);
    }
}
