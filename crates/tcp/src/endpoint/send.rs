//! What to send.

use super::{Endpoint, OPEN, State, due};
use crate::congestion::CongestionControl;
use crate::restart_window::{FALLBACK_BYTES, IdleCheck};
use crate::segment::{Flags, Segment};
use crate::sequence::Position;
use crate::{NEVER, Nanos};

impl Endpoint {
    /// The next segment to send, or `None` if there is nothing to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let mut segment = Segment::EMPTY;
        self.poll_transmit_into(now, &mut segment).then_some(segment)
    }

    /// As [`poll_transmit`](Self::poll_transmit), but the segment is made where the caller wants it; false if there is
    /// none. A segment is large and written field by field: moving it at once waits until all of that has settled.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        if self.due & due::URGENT != 0 {
            self.urgent_segment(now, segment);
            return true;
        }
        if self.selective.is_some() {
            if self.state >= State::Established && self.selective_segment(now, segment) {
                return true;
            }
        } else if self.nxt < self.stream_end() && self.state >= State::Established && self.stream_segment(now, segment)
        {
            return true;
        }
        if self.extras.validation().is_some() && self.state >= State::Established {
            self.validate_window(now);
        }
        let acknowledges = self.due & due::ACK != 0;
        if acknowledges {
            self.bare_segment(now, self.highest_sent, segment);
        }
        acknowledges
    }

    /// One past the last position that we have to send: data and, once closing, the FIN.
    #[inline]
    pub(super) fn stream_end(&self) -> Position {
        self.data_end + u64::from(self.closing)
    }

    #[cold]
    fn urgent_segment(&mut self, now: Nanos, into: &mut Segment) {
        let next = 1 << (self.due & due::URGENT).trailing_zeros();
        self.due &= !next;
        match next {
            due::RESET => *into = self.reset_segment(now),
            due::SYN => *into = self.syn_segment(now),
            due::ACK_FIRST => self.bare_segment(now, self.highest_sent, into),
            due::RETRANSMIT => self.retransmit_first(now, into),
            _ => {
                // A segment left of the peer's window, which must be answered with an ACK that tells the window.
                self.stats.window_probes += 1;
                self.bare_segment(now, self.una - 1, into);
            }
        }
    }

    /// The next segment of the stream, if the windows allow one.
    #[inline]
    fn stream_segment(&mut self, now: Nanos, into: &mut Segment) -> bool {
        if self.una == self.highest_sent {
            self.restart_if_idle(now);
        }
        if self.holds_back(now) {
            return false;
        }
        let cwnd = self.recovery.window(&self.controller, self.mss);
        let edge = self.una + u64::from(cwnd.min(self.send_window));
        let Some(length) = self.new_data_length(now, edge.saturating_sub(self.nxt)) else { return false };
        self.transmit(now, self.nxt, length, into);
        true
    }

    /// How many bytes of new data may leave in one segment when the windows have room for `usable`.
    // RFC 9293 §3.8.6.2.1, sender's SWS avoidance: send a full segment or all that there is, or else at
    // least half of the largest window seen, or anything once the override timeout has occurred.
    #[inline]
    pub(super) fn new_data_length(&mut self, now: Nanos, usable: u64) -> Option<u32> {
        let remaining = self.record_end(self.nxt).saturating_sub(self.nxt);
        let room = self.payload_room();
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if length < room && (u64::from(length) < remaining || length == 0) {
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
        let end = self.nxt + u64::from(length);
        // As in Linux only the last segment waits: the end of a record that is followed by another one does not.
        if length < room && length > 0 && !self.closing {
            let released = self.due & due::OVERRIDE != 0;
            if end == self.data_end
                && !released
                && (self.corked || self.nagle.holds(self.una, self.nxt, self.small_end))
            {
                // Linux, tcp_check_probe_timer: what a cork holds back leaves when the timeout has passed.
                self.persist_if_stuck(now);
                return None;
            }
            self.small_end = end;
        }
        self.due &= !due::OVERRIDE;
        Some(length)
    }

    /// Starts the persist timer if no acknowledgement is to come that could open the window.
    #[inline]
    fn persist_if_stuck(&mut self, now: Nanos) {
        if self.nxt == self.una && self.retransmit_deadline == NEVER {
            self.persisting = true;
            self.set_retransmit_timer(now, self.persist_interval());
        }
    }

    /// Sends `length` bytes from `position` on, and the FIN if it follows.
    #[inline]
    pub(super) fn transmit(&mut self, now: Nanos, position: Position, length: u32, into: &mut Segment) {
        let mut end = position + u64::from(length);
        let mut flags = Flags::ACK;
        if end == self.data_end {
            if length > 0 {
                flags = flags | Flags::PSH;
            }
            if self.closing && (length == 0 || self.profile.piggyback_fin) {
                flags = flags | Flags::FIN;
                end += 1;
                self.on_fin_sent();
            }
        }
        let retransmission = position < self.highest_sent;
        if retransmission {
            self.note_sent_again(position);
        }
        if length > 0 {
            self.stats.data_segments_sent += 1;
            self.stats.retransmissions += u32::from(retransmission);
            self.stats.first_flight_segments += u32::from(!retransmission && self.first_flight == OPEN);
            self.data_sent_at = now;
            self.sent_since_validation = true;
            self.controller.on_sent(now, length, self.flight_bytes());
            self.pace(now, length);
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
            if self.persisting {
                // Probes counted, not retransmissions.
                self.retries = 0;
            }
            self.persisting = false;
            self.persist_backoff = 0;
            self.set_retransmit_timer(now, self.rtt.rto());
        }
        self.segment(now, position, length, retransmission, into);
        into.flags = into.flags | flags;
        self.check_invariants();
    }

    /// The first unacknowledged segment again; not more than was sent.
    fn retransmit_first(&mut self, now: Nanos, into: &mut Segment) {
        let sent = self.highest_sent.min(self.record_end(self.una));
        let length = sent.saturating_sub(self.una).min(u64::from(self.mss)) as u32;
        self.launch_delivered(0, length);
        self.transmit(now, self.una, length, into);
    }

    // RFC 5681 §4.1: if no data was sent in an interval longer than the RTO, cwnd falls to the restart window.
    #[inline]
    pub(super) fn restart_if_idle(&mut self, now: Nanos) {
        if self.profile.idle_check == IdleCheck::OnSend && self.nxt != self.data_end && self.has_new_data() {
            self.restart_after_idleness(now);
        }
    }

    /// Nothing is outstanding: applies the restart window if nothing was sent for too long.
    pub(super) fn restart_after_idleness(&mut self, now: Nanos) {
        // Linux, tcp_slow_start_after_idle_check: not for a controller whose window follows from deliveries.
        if self.controller.is_rate_based() {
            return;
        }
        if self.data_sent_at == NEVER || now.saturating_sub(self.data_sent_at) <= self.rtt.rto() {
            return;
        }
        let profile = &self.profile;
        let window = profile.restart_window.window_bytes(
            self.controller.window(),
            self.initial_window_bytes(),
            self.mss,
            self.burst_was_lost,
            // Of an idle time that just exceeds n RTOs, n have passed.
            (now.saturating_sub(self.data_sent_at) - 1) / self.rtt.rto(),
        );
        let before = self.controller.window();
        let threshold = profile.restart_window.threshold_bytes(self.controller.ssthresh(), before);
        if threshold > self.controller.ssthresh() {
            self.controller.set_ssthresh(threshold);
        }
        if window < before {
            self.controller.set_window(window);
            self.stats.idle_restarts += 1;
            self.burst_start = self.nxt;
            self.burst = OPEN;
        }
    }

    /// Something at the first unacknowledged position counts as lost: remember it if a burst was to blame.
    pub(super) fn note_loss(&mut self) {
        self.note_loss_at(self.una);
    }

    /// As [`note_loss`](Self::note_loss), for a loss at another position.
    pub(super) fn note_loss_at(&mut self, position: Position) {
        let end = (self.burst_start + u64::from(self.burst)).min(self.highest_sent);
        if position >= self.burst_start && position < end && end - self.burst_start > FALLBACK_BYTES {
            self.burst_was_lost = true;
        }
    }
}
