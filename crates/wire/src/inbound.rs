//! Arrived data: bytes in order go to the application immediately, those after a hole wait.

use std::collections::BTreeMap;

use firstflight_tcp::{Endpoint, Segment};

/// The bytes of a peer's stream that the application does not have yet. The endpoint says which bytes count as arrived,
/// so these are never more than the receive window that it announced.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// Offset of the next byte for the application.
    next: u64,
    /// Bytes ahead of a hole, by the offset at which they begin; disjoint.
    ahead: BTreeMap<u64, Box<[u8]>>,
}

impl Inbound {
    /// Takes the payload of a segment that `endpoint` has just handled, and hands over what is in order now.
    pub(crate) fn take(&mut self, endpoint: &Endpoint, segment: &Segment, payload: &[u8], mut hand: impl FnMut(&[u8])) {
        let Some(peer) = endpoint.peer_initial_sequence() else { return };
        let in_order = endpoint.received_bytes();
        // Start of the payload relative to the next byte: the nearest place with its sequence number. The SYN takes
        // the number before the first byte's.
        let expected = peer.wrapping_add(1).wrapping_add(self.next as u32);
        let distance = segment.seq.wrapping_sub(expected) as i32;
        let new = payload.get(distance.min(0).unsigned_abs() as usize..).unwrap_or_default();
        if distance > 0 {
            let start = self.next + distance as u64;
            self.keep(start, &new[..(endpoint.arrived_until(start) - start).min(new.len() as u64) as usize]);
        } else {
            self.hand_over(&new[..(in_order - self.next).min(new.len() as u64) as usize], &mut hand);
        }
        if !self.ahead.is_empty() {
            self.hand_over_ahead(&mut hand);
        }
        debug_assert_eq!(self.next, in_order, "the application has all that is in order");
    }

    fn hand_over(&mut self, bytes: &[u8], hand: &mut impl FnMut(&[u8])) {
        if !bytes.is_empty() {
            self.next += bytes.len() as u64;
            hand(bytes);
        }
    }

    fn hand_over_ahead(&mut self, hand: &mut impl FnMut(&[u8])) {
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() <= self.next) {
            let (start, bytes) = first.remove_entry();
            let known = (self.next - start).min(bytes.len() as u64) as usize;
            self.hand_over(&bytes[known..], hand);
        }
    }

    /// Keeps bytes ahead of a hole. The first copy of each is the one that counts: a later one the endpoint may have
    /// refused.
    fn keep(&mut self, start: u64, bytes: &[u8]) {
        let end = start + bytes.len() as u64;
        let mut at =
            self.ahead.range(..=start).next_back().map_or(start, |(&known, kept)| start.max(known + kept.len() as u64));
        while at < end {
            let next = self.ahead.range(at..).next().map(|(&known, kept)| (known, known + kept.len() as u64));
            let (upto, then) = next.map_or((end, end), |(known, known_end)| (known.min(end), known_end));
            if upto > at {
                self.ahead.insert(at, bytes[(at - start) as usize..(upto - start) as usize].into());
            }
            at = then;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;
    use std::sync::Arc;

    use firstflight_tcp::{Flags, Profile};
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const PEER: u32 = u32::MAX - 5000;

    fn established() -> Endpoint {
        let mut endpoint = Endpoint::server(Arc::new(Profile::linux()), 7);
        endpoint.handle_segment(
            0,
            &Segment { seq: PEER, flags: Flags::SYN, window: 1000, mss: NonZeroU16::new(1460), ..Segment::EMPTY },
        );
        while endpoint.poll_transmit(0).is_some() {}
        let ack = Segment { seq: PEER.wrapping_add(1), ack: 8, flags: Flags::ACK, window: 1000, ..Segment::EMPTY };
        endpoint.handle_segment(0, &ack);
        endpoint
    }

    fn content(offset: u64) -> u8 {
        (offset % 251) as u8
    }

    proptest! {
        /// Pieces of any place and length, in any order, overlapping, some of them before the stream and some beyond the
        /// window: a piece that the endpoint refuses carries wrong bytes.
        #[test]
        fn whatever_arrives_the_application_gets_the_stream(
            pieces in vec((-30..20_000i64, 0..3000u32, any::<bool>()), 1..200),
        ) {
            let mut endpoint = established();
            let mut inbound = Inbound::default();
            let mut got = Vec::new();
            for (start, length, valid) in pieces {
                let segment = Segment {
                    seq: PEER.wrapping_add(1).wrapping_add(start as u32),
                    // An acknowledgment of what was never sent makes the endpoint refuse a segment.
                    ack: if valid { 8 } else { 5000 },
                    payload_bytes: length,
                    flags: Flags::ACK,
                    window: 1000,
                    ..Segment::EMPTY
                };
                let byte = |offset: i64| if valid { content(offset.max(0) as u64) } else { 255 };
                let payload: Vec<u8> = (start..start + i64::from(length)).map(byte).collect();
                endpoint.handle_segment(0, &segment);
                inbound.take(&endpoint, &segment, &payload, |bytes| got.extend_from_slice(bytes));
                let readable = endpoint.readable_bytes();
                endpoint.read(readable);
                while endpoint.poll_transmit(0).is_some() {}
            }
            prop_assert_eq!(got.len() as u64, endpoint.received_bytes());
            prop_assert!(got.iter().enumerate().all(|(offset, &byte)| byte == content(offset as u64)));
        }
    }
}
