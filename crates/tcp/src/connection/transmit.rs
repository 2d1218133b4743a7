//! Hands out the segments that are due.

use super::Endpoint;
use super::handshake::State;
use super::shared::{Connection, due};
use crate::Nanos;
use crate::segment::Segment;
use crate::sender::transmit::StreamSegment;
use crate::sequence::SeqNum;

impl Endpoint {
    /// The next segment to send, or `None` if there is nothing to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let mut segment = Segment::EMPTY;
        self.poll_transmit_into(now, &mut segment).then_some(segment)
    }

    /// As [`poll_transmit`](Self::poll_transmit), but the segment is made where the caller wants it, since it is large; false
    /// if there is none.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        let urgent = self.conn.due & due::URGENT;
        if urgent != 0 {
            // Nearly always an ACK: it has no part in the jump by a table.
            if urgent == due::ACK_FIRST {
                self.conn.due &= !due::ACK_FIRST;
                self.bare_segment(now, self.sender.snd().max, segment);
            } else {
                self.urgent_segment(now, segment);
            }
            return true;
        }
        // Linux calls tcp_write_xmit on events only, and its decision depends on the time: a train that waits for an
        // ACK leaves if it is asked later, and a window that is in use is so until then.
        if self.conn.due & due::STREAM != 0 && self.conn.handshake.state >= State::Established {
            if !self.sender.only_receives() {
                let room = |conn: &Connection| self.receiver.payload_room(conn);
                if let Some(data) = self.sender.stream_segment(&mut self.conn, now, room) {
                    self.data_segment(now, &data, segment);
                    return true;
                }
                if self.sender.validates_window() {
                    self.sender.validate_window(&self.conn, now);
                }
            }
            self.conn.due &= !due::STREAM;
        }
        let acknowledges = self.conn.due & due::ACK != 0;
        if acknowledges {
            self.bare_segment(now, self.sender.snd().max, segment);
        }
        acknowledges
    }

    /// False: [`poll_transmit`](Self::poll_transmit) would find nothing to send now. A hint that costs little: true says
    /// nothing.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        let due = self.conn.due;
        due & !due::STREAM != 0 || due != 0 && !self.sender.only_receives()
    }

    #[cold]
    fn urgent_segment(&mut self, now: Nanos, into: &mut Segment) {
        let next = 1 << (self.conn.due & due::URGENT).trailing_zeros();
        self.conn.due &= !next;
        match next {
            due::RESET => *into = self.reset_segment(now),
            due::SYN => *into = self.syn_segment(now),
            due::ACK_FIRST => self.bare_segment(now, self.sender.snd().max, into),
            due::RETRANSMIT => {
                let data = self.sender.retransmit_first(&mut self.conn, now);
                self.data_segment(now, &data, into);
            }
            _ => {
                // A segment left of the peer's window, which must be answered with an ACK that announces the window.
                self.conn.stats.window_probes += 1;
                self.bare_segment(now, self.sender.snd().una - 1, into);
            }
        }
    }

    /// A segment without payload.
    #[inline]
    fn bare_segment(&mut self, now: Nanos, position: SeqNum, into: &mut Segment) {
        self.sender.on_bare_sent(now);
        self.receiver.segment(&mut self.conn, now, position, 0, false, into);
    }

    #[inline]
    fn data_segment(&mut self, now: Nanos, data: &StreamSegment, into: &mut Segment) {
        let StreamSegment { position, payload_bytes, flags, retransmission } = *data;
        self.receiver.segment(&mut self.conn, now, position, payload_bytes, retransmission, into);
        into.flags |= flags;
        self.check_invariants();
    }
}
