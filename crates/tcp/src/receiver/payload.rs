//! Payload arrives: in order, ahead of a hole, or again; and when that is acknowledged.

use crate::connection::handshake::{State, feature};
use crate::connection::shared::{Connection, Events, due};
use crate::receiver::Receiver;
use crate::receiver::ack::Verdict;
use crate::receiver::reassembly::BlockFrom;
use crate::segment::{Flags, Segment};
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};
use std::num::NonZeroU64;

/// What payload, a FIN or both brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Nothing new.
    Old,
    New,
    /// The peer's FIN, and all of its data before it.
    End,
}

/// Counts the CE mark and CWR of new data; true: enter quick ACK mode.
#[inline]
fn note_marks(conn: &mut Connection, segment: &Segment) -> bool {
    if !conn.handshake.has(feature::ECN) {
        return false;
    }
    let (acknowledge, enter_quickack) = conn.ecn.on_data(segment);
    if acknowledge {
        conn.due |= due::ACK;
    }
    enter_quickack
}

impl Receiver {
    /// Payload, FIN or both; `rto`: the sender's.
    #[inline]
    pub fn on_payload(
        &mut self,
        conn: &mut Connection,
        now: Nanos,
        rto: Nanos,
        seq: SeqNum,
        segment: &Segment,
    ) -> Arrival {
        self.renew_window(conn);
        let mut end = self.up_to_fin(seq + u64::from(segment.payload_bytes));
        let mut fin = segment.flags.contains(Flags::FIN);
        if end > self.edge {
            // RFC 9293 §3.10.7.4: data outside of the window is trimmed.
            end = self.edge.max(seq);
            fin = false;
            conn.due |= due::ACK;
        }
        if end < self.nxt || (end == self.nxt && !fin) {
            // RFC 9293 §3.10.7.4: what follows the peer's FIN is ignored.
            if end < seq && conn.handshake.state() != State::TimeWait {
                return Arrival::Old;
            }
            self.note_old_duplicate(conn, seq, segment);
            self.enter_quickack(None);
            self.schedule_ack_of(end);
            conn.due |= due::ACK;
            return Arrival::Old;
        }
        if seq > self.nxt {
            self.on_gap(conn, seq, end, fin);
            let enter_quickack = end > seq && note_marks(conn, segment);
            if conn.handshake.has(feature::RECEIVER) {
                self.note_gap(conn, now, seq, end, segment, enter_quickack);
            }
            return Arrival::New;
        }
        if seq < self.nxt {
            self.note_old_duplicate(conn, seq, segment);
        }
        if end > self.nxt {
            let before = std::mem::replace(&mut self.nxt, end);
            conn.events |= Events::READABLE;
            let enter_quickack = note_marks(conn, segment);
            if conn.handshake.has(feature::RECEIVER) {
                self.note_arrival(conn, now, rto, seq, segment, enter_quickack);
            }
            if self.reassembly.is_empty() {
                self.acknowledge_by_policy(conn, now);
            } else {
                self.fill_gap(conn, before);
            }
        }
        if fin {
            self.fin = NonZeroU64::new(end);
        }
        match self.fin {
            Some(position) if self.nxt >= position.get() => {
                self.nxt = position.get() + 1;
                // Linux, tcp_fin: nothing follows, so nothing is reported any more.
                self.reassembly.forget_duplicate();
                Arrival::End
            }
            _ => Arrival::New,
        }
    }

    #[inline]
    fn acknowledge_by_policy(&mut self, conn: &mut Connection, now: Nanos) {
        self.unacknowledged_segments += 1;
        match conn.profile.ack.on_data(now, self.unacknowledged_segments, || self.wants_each_acknowledged()) {
            Verdict::Immediately => conn.due |= due::ACK,
            Verdict::Until(time) => {
                if !self.ack_timer.is_set() {
                    self.ack_timer = conn.profile.expiry(now, Deadline::at(time));
                }
            }
            Verdict::Adaptive => {}
        }
    }

    /// Holds data that arrived ahead of a hole.
    // RFC 5681 §4.2: out-of-order data SHOULD be acknowledged immediately.
    #[cold]
    fn on_gap(&mut self, conn: &mut Connection, seq: SeqNum, end: SeqNum, fin: bool) {
        // The FIN takes its own position, so that a SACK block covers the whole segment.
        let beyond = end + u64::from(fin);
        if beyond > seq {
            if self.compresses(conn) {
                // Linux, tcp_data_queue: ranges that were not reported yet are forgotten.
                self.reassembly.forget_duplicate();
            }
            // RFC 2883 §4 (1): data that is held already is reported as a duplicate.
            if let Some((start, end)) = self.reassembly.overlap(seq, beyond) {
                self.note_duplicate(conn, start, end);
            }
            if self.extras.arrivals().is_some_and(|arrivals| arrivals.compressed > 0) {
                if self.reassembly.insert_while_ack_waits(seq, beyond) {
                    conn.due |= due::ACK;
                }
            } else {
                let is_linux = conn.handshake.has(feature::ADAPTIVE_ACK);
                let block_from = if is_linux { BlockFrom::Reports } else { BlockFrom::Queue };
                self.reassembly.insert(seq, beyond, block_from);
            }
        }
        if fin {
            self.fin = NonZeroU64::new(end);
        }
        self.acknowledge_each_from_here(conn);
        if !self.compresses(conn) {
            conn.due |= due::ACK;
        }
    }

    // RFC 5681 §4.2: a segment that fills in all or part of a gap SHOULD be acknowledged immediately.
    #[cold]
    fn fill_gap(&mut self, conn: &mut Connection, from: SeqNum) {
        if let Some((start, end)) = self.reassembly.overlap(from, self.nxt) {
            self.note_duplicate(conn, start, end);
        }
        let filled = self.nxt;
        let in_order = self.reassembly.advance(filled);
        self.nxt = self.up_to_fin(in_order);
        if conn.handshake.has(feature::RECEIVER) {
            self.note_filled(filled);
        }
        self.acknowledge_each_from_here(conn);
        if self.reassembly.is_empty() || !self.compresses(conn) {
            conn.due |= due::ACK;
        }
    }

    /// The arrived data is below RCV.NXT, at least partly: the next acknowledgment reports that.
    // RFC 2883 §4 (2): a duplicate below the cumulative acknowledgment is reported in the first block.
    pub fn note_old_duplicate(&mut self, conn: &Connection, seq: SeqNum, segment: &Segment) {
        let end = (seq + u64::from(segment.sequence_length())).min(self.nxt);
        if seq < end {
            self.note_duplicate(conn, seq, end);
        }
    }

    /// These bytes arrived twice. In TIME-WAIT nobody is left for whom that matters, and as in Linux no block reports it.
    fn note_duplicate(&mut self, conn: &Connection, start: SeqNum, end: SeqNum) {
        if conn.handshake.has(feature::SACK) && conn.profile.dsack && conn.handshake.state() != State::TimeWait {
            self.reassembly.note_duplicate(start, end);
        }
    }

    /// True if a segment of `length` sequence numbers from `seq` on overlaps the receive window.
    // RFC 9293 §3.10.7.4, the four cases; as in Linux a segment without length may also stand at the right edge, where
    // a sender that has used the whole window sends its acknowledgments from.
    pub fn is_acceptable(&self, conn: &Connection, seq: SeqNum, length: u32) -> bool {
        let end = seq + u64::from(length);
        if length == 0 {
            seq >= self.nxt && seq <= self.edge
        } else if end <= self.nxt {
            conn.profile.loose_sequence_check && end >= self.last_ack_sent()
        } else {
            seq < self.edge
        }
    }
}
