//! A segment arrives on a synchronized connection: whether it is acceptable, and its content.

use super::{Endpoint, State, due, feature};
use crate::Nanos;
use crate::segment::{Flags, Segment};
use crate::sequence::{SeqNum, near};

impl Endpoint {
    /// A segment arrived.
    #[inline]
    pub fn handle_segment(&mut self, now: Nanos, segment: &Segment) {
        self.stats.segments_received += 1;
        self.due |= due::STREAM;
        if self.state >= State::Established {
            self.on_synchronised(now, segment);
        } else {
            self.on_handshake_segment(now, segment);
        }
        self.check_invariants();
    }

    // RFC 9293 §3.10.7.4: check the sequence number, RST, SYN, ACK, then process the payload and FIN. Inlined, since bulk
    // transfers take 3% less CPU time.
    #[inline(always)]
    pub(crate) fn on_synchronised(&mut self, now: Nanos, segment: &Segment) {
        let seq = near(self.rcv.nxt, segment.seq);
        let unusual = segment.flags.intersects(Flags::RST.union(Flags::SYN)) || !segment.flags.contains(Flags::ACK);
        if unusual {
            return self.on_unusual(seq, segment);
        }
        let expected = seq == self.rcv.nxt;
        if !expected && !self.is_acceptable(seq, segment.sequence_length()) {
            // RFC 9293 §3.10.7.4: an unacceptable segment is answered with an acknowledgment.
            self.due |= due::ACK;
            if seq > self.rcv.nxt {
                return;
            }
            // As BSD does (Stevens, TCP/IP Illustrated 2, p. 959), the acknowledgment in a duplicate still counts.
        }
        if self.features & feature::TIMESTAMPS != 0 && !self.passes_paws(now, seq, segment) {
            return;
        }
        if !self.on_acknowledgement(now, seq, segment) {
            return;
        }
        let quickly = self.features & (feature::TIMESTAMPS | feature::ECN) != 0 && self.note_options(now, seq, segment);
        if segment.payload_bytes > 0 || segment.flags.contains(Flags::FIN) {
            self.on_payload(now, seq, segment);
        }
        if quickly {
            self.enter_quickack(Some(2));
        }
    }

    /// RST, SYN, or no ACK.
    #[cold]
    fn on_unusual(&mut self, seq: SeqNum, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.on_reset(seq);
        } else if segment.flags.contains(Flags::SYN) {
            // RFC 9293 §3.10.7.4: a SYN on a synchronized connection is answered with a challenge ACK.
            self.due |= due::ACK;
        } else if self.state == State::TimeWait {
            // As Linux: whatever comes in TIME-WAIT is answered, except for a reset and a bare ACK in order.
            self.due |= due::ACK;
        }
    }

    /// True if a segment of `length` sequence numbers from `seq` on overlaps the receive window.
    // RFC 9293 §3.10.7.4, the four cases; as in Linux a segment without length may also stand at the right edge, where
    // a sender that has used the whole window sends its acknowledgments from.
    pub(crate) fn is_acceptable(&self, seq: SeqNum, length: u32) -> bool {
        let end = seq + u64::from(length);
        if length == 0 {
            seq >= self.rcv.nxt && seq <= self.rcv.edge
        } else if end <= self.rcv.nxt {
            self.profile.loose_sequence_check && end >= self.last_ack_sent()
        } else {
            seq < self.rcv.edge
        }
    }
}
