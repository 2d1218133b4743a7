//! What to send, and when a window update is worth sending.

use super::handshake::LARGEST_FIELD;
use super::{Endpoint, State, due};
use crate::congestion::CongestionControl;
use crate::restart_window::FALLBACK_BYTES;
use crate::segment::{Flags, NO_WINDOW_SCALE, Segment};
use crate::sequence::{NOWHERE, Position, wire};
use crate::{NEVER, Nanos};

impl Endpoint {
    /// The next segment to send, or `None` if there is nothing to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        if self.due & due::URGENT != 0 {
            return Some(self.urgent_segment(now));
        }
        if self.nxt < self.stream_end() && self.state >= State::Established {
            let segment = self.stream_segment(now);
            if segment.is_some() {
                return segment;
            }
        }
        (self.due & due::ACK != 0).then(|| self.bare_segment(self.highest_sent))
    }

    /// One past the last position that we have to send: data and, once closing, the FIN.
    #[inline]
    pub(super) fn stream_end(&self) -> Position {
        self.data_end + u64::from(self.closing)
    }

    #[cold]
    fn urgent_segment(&mut self, now: Nanos) -> Segment {
        let next = 1 << (self.due & due::URGENT).trailing_zeros();
        self.due &= !next;
        match next {
            due::RESET => self.reset_segment(),
            due::SYN => self.syn_segment(now),
            due::HANDSHAKE_ACK => self.bare_segment(self.highest_sent),
            due::RETRANSMIT => self.retransmit_first(now),
            _ => {
                // A segment left of the peer's window, which must be answered with an ACK that tells the window.
                self.stats.window_probes += 1;
                self.bare_segment(self.una - 1)
            }
        }
    }

    /// The next segment of the stream, if the windows allow one.
    fn stream_segment(&mut self, now: Nanos) -> Option<Segment> {
        if self.una == self.highest_sent {
            self.restart_if_idle(now);
        }
        let cwnd = self.recovery.window(&self.controller, self.mss);
        let edge = self.una + u64::from(cwnd.min(self.send_window));
        let usable = edge.saturating_sub(self.nxt);
        let remaining = self.data_end.saturating_sub(self.nxt);
        let length = usable.min(remaining).min(u64::from(self.mss)) as u32;
        // RFC 9293 §3.8.6.2.1, sender's SWS avoidance without Nagle: send a full segment or all that there is, or else at
        // least half of the largest window seen, or anything once the override timeout has occurred.
        if length < self.mss && (u64::from(length) < remaining || length == 0) {
            let allowed = if length > 0 {
                2 * u64::from(length) >= u64::from(self.largest_peer_window) || self.due & due::OVERRIDE != 0
            } else {
                // A bare FIN takes room in the peer's window, but none in the congestion window.
                remaining == 0 && self.nxt < self.una + u64::from(self.peer_window)
            };
            if !allowed {
                self.persist_if_stuck(now);
                return None;
            }
        }
        self.due &= !due::OVERRIDE;
        Some(self.transmit(now, self.nxt, length))
    }

    /// Starts the persist timer if no acknowledgement is to come that could open the window.
    #[inline]
    fn persist_if_stuck(&mut self, now: Nanos) {
        if self.nxt == self.una && self.retransmit_deadline == NEVER {
            self.persisting = true;
            self.retransmit_deadline = now.saturating_add(self.persist_interval());
        }
    }

    /// Sends `length` bytes from `position` on, and the FIN if it follows.
    #[inline]
    fn transmit(&mut self, now: Nanos, position: Position, length: u32) -> Segment {
        let mut end = position + u64::from(length);
        let mut flags = Flags::ACK;
        if end == self.data_end {
            if length > 0 {
                flags = flags | Flags::PSH;
            }
            if self.closing {
                flags = flags | Flags::FIN;
                end += 1;
                self.on_fin_sent();
            }
        }
        let retransmission = position < self.highest_sent;
        if length > 0 {
            self.stats.data_segments_sent += 1;
            self.stats.retransmissions += u32::from(retransmission);
            self.stats.first_flight_segments += u32::from(!retransmission && self.first_flight_end == NOWHERE);
            self.data_sent_at = now;
            self.controller.on_sent(now, length);
        }
        // RFC 6298 §3: one segment timed at a time, and Karn's algorithm: no sample from what is sent twice; nor, as in
        // BSD, from a segment that waits behind one sent twice.
        if !retransmission {
            if self.timed_at == NEVER {
                self.timed_at = now;
                self.timed_end = end;
            }
        } else if self.timed_at != NEVER && position < self.timed_end {
            self.timed_at = NEVER;
        }
        self.nxt = self.nxt.max(end);
        self.highest_sent = self.highest_sent.max(end);
        // RFC 6298 §5.1: a segment with data starts the timer if it is not running.
        if self.retransmit_deadline == NEVER || self.persisting {
            self.persisting = false;
            self.persist_backoff = 0;
            self.retransmit_deadline = now.saturating_add(self.rtt.rto());
        }
        let mut segment = self.bare_segment(position);
        segment.payload_bytes = length;
        segment.flags = flags;
        segment.retransmission = retransmission;
        self.check_invariants();
        segment
    }

    /// The first unacknowledged segment again; not more than was sent.
    fn retransmit_first(&mut self, now: Nanos) -> Segment {
        let sent = self.highest_sent.min(self.data_end);
        let length = sent.saturating_sub(self.una).min(u64::from(self.mss)) as u32;
        self.transmit(now, self.una, length)
    }

    /// A segment without payload. Every segment acknowledges, so none is due after it.
    #[inline]
    pub(super) fn bare_segment(&mut self, position: Position) -> Segment {
        self.due &= !(due::ACK | due::HANDSHAKE_ACK);
        self.unacknowledged_segments = 0;
        self.ack_deadline = NEVER;
        self.stats.segments_sent += 1;
        Segment {
            seq: wire(position),
            ack: wire(self.rcv_nxt),
            payload_bytes: 0,
            window: self.announce_window(),
            mss: 0,
            window_scale: NO_WINDOW_SCALE,
            flags: Flags::ACK,
            retransmission: false,
        }
    }

    /// Where the right edge of the receive window could be.
    #[inline]
    fn possible_edge(&self) -> Position {
        self.read_next + u64::from(self.profile.receive_window_bytes)
    }

    /// The window field of a segment that leaves now.
    #[inline]
    fn announce_window(&mut self) -> u16 {
        // RFC 9293 §3.8.6.2.2, receiver's SWS avoidance: the edge moves by min (half the buffer, MSS) or not at all.
        let edge = self.possible_edge();
        let step = (self.profile.receive_window_bytes / 2).min(self.mss);
        if edge >= self.rcv_edge + u64::from(step) {
            self.rcv_edge = edge;
        }
        let window = self.rcv_edge.saturating_sub(self.rcv_nxt) >> self.rcv_shift;
        window.min(u64::from(LARGEST_FIELD)) as u16
    }

    /// Makes an acknowledgement due if the peer may be waiting for a larger window.
    #[inline]
    pub(super) fn update_window_if_needed(&mut self) {
        let opened = self.possible_edge().saturating_sub(self.rcv_edge);
        let buffer = u64::from(self.profile.receive_window_bytes);
        let mss = u64::from(self.mss);
        let left = self.rcv_edge.saturating_sub(self.rcv_nxt);
        // BSD updates whenever two segments or half of the buffer are free. Here that counts only while the peer cannot
        // send two segments, so that an application that reads at once does not upset the acknowledgement policy.
        let wanted = left < 2 * mss && opened >= (2 * mss).min(buffer / 2);
        if wanted && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.due |= due::ACK;
        }
    }

    // RFC 5681 §4.1: if no data was sent in an interval longer than the RTO, cwnd falls to the restart window.
    #[inline]
    fn restart_if_idle(&mut self, now: Nanos) {
        if self.data_sent_at == NEVER
            || now.saturating_sub(self.data_sent_at) <= self.rtt.rto()
            || self.nxt == self.data_end
        {
            return;
        }
        let profile = &self.profile;
        let window = profile.restart_window.window_bytes(
            self.controller.window(),
            profile.initial_window.window_bytes(self.mss),
            self.mss,
            self.burst_was_lost,
        );
        if window < self.controller.window() {
            self.controller.set_window(window);
            self.stats.idle_restarts += 1;
            self.burst_start = self.nxt;
            self.burst_end = NOWHERE;
        }
    }

    /// Something at the first unacknowledged position counts as lost: remember it if a burst was to blame.
    pub(super) fn note_loss(&mut self) {
        let end = self.burst_end.min(self.highest_sent);
        if self.una >= self.burst_start && self.una < end && end - self.burst_start > FALLBACK_BYTES {
            self.burst_was_lost = true;
        }
    }
}
