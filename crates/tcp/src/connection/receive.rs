//! A segment arrives on a synchronized connection: whether it is acceptable, and its content.

use super::Endpoint;
use super::handshake::{State, feature};
use super::shared::{Connection, due};
use crate::receiver::payload::Arrival;
use crate::segment::{Flags, Segment};
use crate::sender::acknowledgement::Answer;
use crate::sequence::{SeqNum, near};
use crate::{Nanos, SECOND};

impl Endpoint {
    /// A segment arrived.
    #[inline]
    pub fn handle_segment(&mut self, now: Nanos, segment: &Segment) {
        self.conn.stats.segments_received += 1;
        self.conn.due |= due::STREAM;
        if self.conn.handshake.state >= State::Established {
            self.on_synchronized(now, segment);
        } else {
            self.on_handshake_segment(now, segment);
        }
        self.check_invariants();
    }

    // RFC 9293 §3.10.7.4: check the sequence number, RST, SYN, ACK, then process the payload and FIN. Inlined, since bulk
    // transfers take 3% less CPU time.
    #[inline(always)]
    pub(crate) fn on_synchronized(&mut self, now: Nanos, segment: &Segment) {
        let next = self.receiver.next();
        let seq = near(next, segment.seq);
        let unusual = segment.flags.intersects(Flags::RST.union(Flags::SYN)) || !segment.flags.contains(Flags::ACK);
        if unusual {
            return self.on_unusual(now, seq, segment);
        }
        if seq != next && !self.receiver.is_acceptable(&self.conn, seq, segment.sequence_length()) {
            // RFC 9293 §3.10.7.4: an unacceptable segment is answered with an acknowledgment.
            self.answer_invalid(now, segment);
            if seq > next {
                return;
            }
            // As BSD does (Stevens, TCP/IP Illustrated 2, p. 959), the acknowledgment in a duplicate still counts.
        }
        if self.conn.handshake.has(feature::TIMESTAMPS) && !self.passes_paws(now, seq, segment) {
            return;
        }
        let age = |conn: &Connection| self.receiver.echoed_age(conn, now, segment);
        match self.sender.on_acknowledgement(&mut self.conn, now, (seq, next), segment, age) {
            Answer::Refused => return self.send_challenge_ack(now),
            Answer::Taken => {}
            Answer::OfFin => {
                self.on_fin_acknowledged();
                if self.conn.handshake.state == State::Closed {
                    return;
                }
            }
        }
        if self.conn.handshake.has(feature::TIMESTAMPS) {
            self.note_timestamps(now, seq, segment);
        }
        if segment.payload_bytes > 0 || segment.flags.contains(Flags::FIN) {
            self.on_payload(now, seq, segment);
        }
    }

    #[inline]
    fn on_payload(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        match self.receiver.on_payload(&mut self.conn, now, self.sender.rtt().rto(), seq, segment) {
            Arrival::Old => return,
            Arrival::New => {}
            Arrival::End => self.on_peer_fin(),
        }
        if self.conn.handshake.has(feature::ADAPTIVE_ACK) {
            let srtt = self.sender.srtt(&self.conn.profile);
            self.receiver.acknowledge_adaptively(&mut self.conn, now, srtt);
        }
    }

    /// RST, SYN, or no ACK.
    #[cold]
    fn on_unusual(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.on_reset(now, seq);
        } else if segment.flags.contains(Flags::SYN) {
            // RFC 9293 §3.10.7.4: a SYN on a synchronized connection is answered with a challenge ACK.
            self.send_challenge_ack(now);
        } else if self.conn.handshake.state == State::TimeWait {
            // As Linux: whatever comes in TIME-WAIT is answered, except for a reset and a bare ACK in order.
            self.conn.due |= due::ACK;
        }
    }

    /// Acknowledges a segment that is outside of the window or that PAWS rejects.
    // Linux, tcp_oow_rate_limited: always one with data; only with bare ACKs can two endpoints answer each other without end.
    #[cold]
    pub(crate) fn answer_invalid(&mut self, now: Nanos, segment: &Segment) {
        if segment.sequence_length() > 0 {
            self.conn.due |= due::ACK;
        } else {
            self.send_challenge_ack(now);
        }
    }

    /// Sends a challenge ACK, unless one was sent in the last 500 ms.
    // RFC 5961 §7: ACK throttling. Linux, tcp_invalid_ratelimit: at most one per 500 ms.
    #[cold]
    pub(crate) fn send_challenge_ack(&mut self, now: Nanos) {
        let memory = self.receiver.memory_or_new(&self.conn.profile, self.sender.snd().iss);
        if now >= memory.next_challenge_ack {
            memory.next_challenge_ack = now + SECOND / 2;
            self.conn.due |= due::ACK;
        }
    }
}
