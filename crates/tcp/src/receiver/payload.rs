//! Payload arrives: in order, ahead of a hole, or again; and when that is acknowledged.

use crate::connection::Events;
use crate::connection::{Endpoint, due, feature};
use crate::receiver::ack::{Arrivals, Verdict};
use crate::receiver::reassembly::BlockFrom;
use crate::segment::{Flags, Segment};
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};
use std::num::NonZeroU64;

impl Endpoint {
    /// Payload, FIN or both.
    #[inline]
    pub(crate) fn on_payload(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        self.renew_window();
        let mut end = self.rcv.up_to_fin(seq + u64::from(segment.payload_bytes));
        let mut fin = segment.flags.contains(Flags::FIN);
        if end > self.rcv.edge {
            // RFC 9293 §3.10.7.4: data outside of the window is trimmed.
            end = self.rcv.edge.max(seq);
            fin = false;
            self.due |= due::ACK;
        }
        if end < self.rcv.nxt || (end == self.rcv.nxt && !fin) {
            // A duplicate, or only bytes after the peer's FIN.
            self.note_old_duplicate(seq, segment);
            self.enter_quickack(None);
            self.schedule_ack_of(end);
            self.due |= due::ACK;
            return;
        }
        if seq > self.rcv.nxt {
            self.on_gap(seq, end, fin);
            if self.features & feature::RECEIVER != 0 {
                self.note_gap(now, seq, end, segment);
            }
            return self.acknowledge_adaptively(now);
        }
        if seq < self.rcv.nxt {
            self.note_old_duplicate(seq, segment);
        }
        if end > self.rcv.nxt {
            let before = std::mem::replace(&mut self.rcv.nxt, end);
            self.events |= Events::READABLE;
            if self.features & feature::RECEIVER != 0 {
                self.note_arrival(now, seq, segment);
            }
            if self.rcv.reassembly.is_empty() {
                self.acknowledge_by_policy(now);
            } else {
                self.fill_gap(before);
            }
        }
        if fin {
            self.rcv.fin = NonZeroU64::new(end);
        }
        if let Some(position) = self.rcv.fin {
            if self.rcv.nxt >= position.get() {
                self.on_peer_fin(position.get());
            }
        }
        if self.features & feature::ADAPTIVE_ACK != 0 {
            self.acknowledge_adaptively(now);
        }
    }

    #[inline]
    fn acknowledge_by_policy(&mut self, now: Nanos) {
        self.rcv.unacknowledged_segments += 1;
        match self.profile.ack.on_data(now, self.rcv.unacknowledged_segments, || self.wants_each_acknowledged()) {
            Verdict::AtOnce => self.due |= due::ACK,
            Verdict::Until(time) => {
                if !self.timers.ack.is_set() {
                    self.timers.ack = self.profile.expiry(now, Deadline::at(time));
                }
            }
            Verdict::Adaptive => {}
        }
    }

    /// Holds data that arrived ahead of a hole.
    // RFC 5681 §4.2: out-of-order data SHOULD be acknowledged immediately.
    #[cold]
    fn on_gap(&mut self, seq: SeqNum, end: SeqNum, fin: bool) {
        // The FIN takes its own position, so that a SACK block covers the whole segment.
        let beyond = end + u64::from(fin);
        if beyond > seq {
            if self.compresses() {
                // Linux, tcp_data_queue: ranges that were not reported yet are forgotten.
                self.rcv.reassembly.forget_duplicate();
            }
            // RFC 2883 §4 (1): data that is held already is reported as a duplicate.
            if let Some((start, end)) = self.rcv.reassembly.overlap(seq, beyond) {
                self.note_duplicate(start, end);
            }
            if self.extras.arrivals().is_some_and(Arrivals::has_compressed) {
                if self.rcv.reassembly.insert_while_ack_waits(seq, beyond) {
                    self.due |= due::ACK;
                }
            } else {
                let is_linux = self.features & feature::ADAPTIVE_ACK != 0;
                let block_from = if is_linux { BlockFrom::Reports } else { BlockFrom::Queue };
                self.rcv.reassembly.insert(seq, beyond, block_from);
            }
        }
        if fin {
            self.rcv.fin = NonZeroU64::new(end);
        }
        self.acknowledge_each_from_here();
        if !self.compresses() {
            self.due |= due::ACK;
        }
    }

    // RFC 5681 §4.2: a segment that fills in all or part of a gap SHOULD be acknowledged immediately.
    #[cold]
    fn fill_gap(&mut self, from: SeqNum) {
        if let Some((start, end)) = self.rcv.reassembly.overlap(from, self.rcv.nxt) {
            self.note_duplicate(start, end);
        }
        let filled = self.rcv.nxt;
        let in_order = self.rcv.reassembly.advance(filled);
        self.rcv.nxt = self.rcv.up_to_fin(in_order);
        if self.features & feature::RECEIVER != 0 {
            self.note_filled(filled);
        }
        self.acknowledge_each_from_here();
        if self.rcv.reassembly.is_empty() || !self.compresses() {
            self.due |= due::ACK;
        }
    }
}
