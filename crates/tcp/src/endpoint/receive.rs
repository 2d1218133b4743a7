//! A segment arrives on a synchronised connection: acceptance, acknowledgement, data.

use super::{Endpoint, State, due};
use crate::ack_policy::Verdict;
use crate::congestion::{Acknowledged, CongestionControl};
use crate::events::Events;
use crate::recovery::{OnAck, OnDuplicate, Outstanding};
use crate::segment::{Flags, Segment};
use crate::sequence::{NOWHERE, Position, near};
use crate::{NEVER, Nanos};

impl Endpoint {
    /// A segment arrived.
    #[inline]
    pub fn handle_segment(&mut self, now: Nanos, segment: &Segment) {
        self.stats.segments_received += 1;
        if self.state >= State::Established {
            self.on_synchronised(now, segment);
        } else {
            self.on_handshake_segment(now, segment);
        }
        self.check_invariants();
    }

    // RFC 9293 §3.10.7.4: check the sequence number, RST, SYN, ACK, then process the payload and FIN.
    pub(super) fn on_synchronised(&mut self, now: Nanos, segment: &Segment) {
        let seq = near(self.rcv_nxt, segment.seq);
        let unusual = segment.flags.intersects(Flags::RST.union(Flags::SYN)) || !segment.flags.contains(Flags::ACK);
        if unusual {
            return self.on_unusual(seq, segment);
        }
        let expected = seq == self.rcv_nxt;
        if !expected && !self.is_acceptable(seq, segment.sequence_length()) {
            // RFC 9293 §3.10.7.4: an unacceptable segment is answered with an acknowledgement.
            self.due |= due::ACK;
            if seq > self.rcv_nxt {
                return;
            }
            // As BSD does (Stevens, TCP/IP Illustrated 2, p. 959), the acknowledgement in a duplicate still counts.
        }
        if !self.on_acknowledgement(now, seq, segment) {
            return;
        }
        if segment.payload_bytes > 0 || segment.flags.contains(Flags::FIN) {
            self.on_payload(now, seq, segment);
        }
    }

    /// RST, SYN, or no ACK.
    #[cold]
    fn on_unusual(&mut self, seq: Position, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.on_reset(seq);
        } else if segment.flags.contains(Flags::SYN) {
            // RFC 9293 §3.10.7.4: a SYN on a synchronised connection is answered with a challenge ACK.
            self.due |= due::ACK;
        }
    }

    /// Whether a segment of `length` sequence numbers from `seq` on overlaps the receive window.
    // RFC 9293 §3.10.7.4, the four cases; as in Linux a segment without length may also stand at the right edge, where
    // a sender that has used the whole window sends its acknowledgements from.
    pub(super) fn is_acceptable(&self, seq: Position, length: u32) -> bool {
        if length == 0 {
            seq >= self.rcv_nxt && seq <= self.rcv_edge
        } else {
            seq < self.rcv_edge && seq + u64::from(length) > self.rcv_nxt
        }
    }

    /// Processes the acknowledgement field; false if the segment is to be dropped.
    #[inline]
    fn on_acknowledgement(&mut self, now: Nanos, seq: Position, segment: &Segment) -> bool {
        let ack = near(self.una, segment.ack);
        if ack > self.highest_sent {
            // RFC 9293 §3.10.7.4: if the ACK acks something not yet sent, send an ACK and drop the segment.
            self.due |= due::ACK;
            return false;
        }
        let window = u32::from(segment.window) << self.snd_shift;
        if ack > self.una {
            self.on_new_ack(now, ack);
            if self.state == State::Closed {
                return false;
            }
        } else if ack == self.una {
            if self.persisting {
                // RFC 9293 §3.8.6.1: a closed window is no reason to give up as long as the peer acknowledges.
                self.retries = 0;
            }
            // RFC 5681 §2: a duplicate acknowledgement: data outstanding, no payload, no SYN or FIN, the greatest
            // acknowledgement received, and the window as it was.
            if self.highest_sent > self.una
                && segment.sequence_length() == 0
                && window == self.peer_window
                && seq >= self.rcv_nxt
            {
                self.on_duplicate_ack(now);
            }
        }
        // RFC 9293 §3.10.7.4: SND.WL1 and SND.WL2 keep old segments from updating the window.
        if ack >= self.una && (seq > self.window_seq || seq == self.window_seq && ack >= self.window_ack) {
            self.window_seq = seq;
            self.window_ack = ack;
            if window != self.peer_window {
                self.set_peer_window(window);
            }
        }
        true
    }

    pub(super) fn set_peer_window(&mut self, window: u32) {
        self.peer_window = window;
        self.send_window = window.min(self.max_send_window);
        self.largest_peer_window = self.largest_peer_window.max(window);
    }

    fn outstanding(&self) -> Outstanding {
        Outstanding {
            first: self.una,
            highest: self.highest_sent,
            flight_bytes: self.flight_bytes(),
            mss_bytes: self.mss,
        }
    }

    fn on_new_ack(&mut self, now: Nanos, ack: Position) {
        let acknowledged_data = ack.min(self.data_end) - self.una.min(self.data_end);
        if self.timed_at != NEVER && ack >= self.timed_end {
            self.rtt.sample(&self.profile.rto, self.timed_at, now);
            self.timed_at = NEVER;
        }
        let before = self.una;
        self.una = ack;
        // After a timeout, segments that the peer already holds need not be sent again.
        self.nxt = self.nxt.max(ack);
        self.retries = 0;
        self.due &= !due::RETRANSMIT;
        if self.burst_end == NOWHERE {
            self.end_burst();
        }
        let outstanding = self.outstanding();
        let mut restart_timer = true;
        match self.recovery.on_ack(acknowledged_data as u32, &outstanding, &mut self.controller) {
            OnAck::Grow => self.controller.on_ack(now, Acknowledged { bytes: acknowledged_data as u32 }),
            OnAck::Repaired => {}
            OnAck::Partial { restart_timer: restart } => {
                self.due |= due::RETRANSMIT;
                self.note_loss();
                restart_timer = restart;
            }
        }
        // RFC 6298 §5.2 and §5.3: stop the timer when all is acknowledged, restart it when new data is.
        if self.una == self.nxt {
            self.retransmit_deadline = NEVER;
        } else if restart_timer {
            self.retransmit_deadline = now.saturating_add(self.rtt.rto());
        }
        if ack >= self.data_end {
            if before < self.data_end {
                self.events |= Events::SENT;
            }
            if ack > self.data_end {
                self.on_fin_acknowledged();
            }
        }
    }

    /// The first acknowledgement since a first flight or restart: what has been sent by now is that burst.
    #[cold]
    fn end_burst(&mut self) {
        self.burst_end = self.highest_sent;
        if self.first_flight_end == NOWHERE {
            self.first_flight_end = self.highest_sent;
        }
    }

    #[cold]
    fn on_duplicate_ack(&mut self, now: Nanos) {
        self.stats.duplicate_acks += 1;
        let outstanding = self.outstanding();
        match self.recovery.on_duplicate_ack(now, &outstanding, &mut self.controller) {
            OnDuplicate::Nothing => return,
            OnDuplicate::Retransmit => self.due |= due::RETRANSMIT,
            OnDuplicate::GoBack => self.nxt = self.una,
        }
        self.stats.fast_retransmits += 1;
        self.note_loss();
        // BSD, Linux and ns-2 restart the timer with a fast retransmit, RFC 6298 leaves it running; with a short RTO
        // a timer that kept running would expire before the retransmission can be acknowledged.
        self.retransmit_deadline = now.saturating_add(self.rtt.rto());
    }

    /// Payload, FIN or both.
    #[inline]
    fn on_payload(&mut self, now: Nanos, seq: Position, segment: &Segment) {
        let mut end = (seq + u64::from(segment.payload_bytes)).min(self.peer_fin);
        let mut fin = segment.flags.contains(Flags::FIN);
        if end > self.rcv_edge {
            // RFC 9293 §3.10.7.4: what lies outside of the window is trimmed off.
            end = self.rcv_edge.max(seq);
            fin = false;
            self.due |= due::ACK;
        }
        if end < self.rcv_nxt || (end == self.rcv_nxt && !fin) {
            // A duplicate, or only bytes after the peer's FIN.
            self.due |= due::ACK;
            return;
        }
        if seq > self.rcv_nxt {
            return self.on_gap(seq, end, fin);
        }
        if end > self.rcv_nxt {
            self.rcv_nxt = end;
            self.events |= Events::READABLE;
            if self.reassembly.is_empty() {
                self.acknowledge_by_policy(now);
            } else {
                self.fill_gap();
            }
        }
        if fin {
            self.peer_fin = end;
        }
        if self.rcv_nxt >= self.peer_fin {
            self.on_peer_fin();
        }
    }

    #[inline]
    fn acknowledge_by_policy(&mut self, now: Nanos) {
        self.unacknowledged_segments += 1;
        match self.profile.ack.on_data(now, self.unacknowledged_segments) {
            Verdict::AtOnce => self.due |= due::ACK,
            Verdict::Until(deadline) => {
                if self.ack_deadline == NEVER {
                    self.ack_deadline = deadline;
                }
            }
        }
    }

    // RFC 5681 §4.2: out-of-order data SHOULD be acknowledged immediately.
    #[cold]
    fn on_gap(&mut self, seq: Position, end: Position, fin: bool) {
        if end > seq {
            self.reassembly.insert(seq, end);
        }
        if fin {
            self.peer_fin = end;
        }
        self.due |= due::ACK;
    }

    // RFC 5681 §4.2: a segment that fills in all or part of a gap SHOULD be acknowledged immediately.
    #[cold]
    fn fill_gap(&mut self) {
        self.rcv_nxt = self.reassembly.advance(self.rcv_nxt).min(self.peer_fin);
        self.due |= due::ACK;
    }
}
