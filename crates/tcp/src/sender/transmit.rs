//! Decides which segment to send.

use crate::Nanos;
use crate::connection::{Endpoint, State, due};
use crate::segment::{Ecn, Flags, Segment, SentAt};
use crate::sender::initial_window::{IdleCheck, RestartWindow};
use crate::sender::recovery::Recovery;
use crate::sequence::SeqNum;

impl Endpoint {
    /// The next segment to send, or `None` if there is nothing to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let mut segment = Segment::EMPTY;
        self.poll_transmit_into(now, &mut segment).then_some(segment)
    }

    /// As [`poll_transmit`](Self::poll_transmit), but the segment is made where the caller wants it; false if there is
    /// none. It must be empty, or hold the result of an earlier call without options and ECN: a segment is large, and
    /// most need little of it written.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        debug_assert!(
            segment.option_bytes() == 0 && segment.mss.is_none() && segment.ecn == Ecn::NotCapable,
            "{segment:?}"
        );
        let urgent = self.due & due::URGENT;
        if urgent != 0 {
            // Nearly always an ACK: it has no part in the jump by a table.
            if urgent == due::ACK_FIRST {
                self.due &= !due::ACK_FIRST;
                self.bare_segment(now, self.snd.max, segment);
            } else {
                self.urgent_segment(now, segment);
            }
            return true;
        }
        // Linux calls tcp_write_xmit on events only, and its decision depends on the time: a train that waits for an
        // ACK leaves if it is asked later, and a window that is in use is so until then.
        if self.due & due::STREAM != 0 && self.state >= State::Established {
            if !self.only_receives() {
                if self.stream_segment(now, segment) {
                    return true;
                }
                if self.extras.validation().is_some() {
                    self.validate_window(now);
                }
            }
            self.due &= !due::STREAM;
        }
        let acknowledges = self.due & due::ACK != 0;
        if acknowledges {
            self.bare_segment(now, self.snd.max, segment);
        }
        acknowledges
    }

    /// False: [`poll_transmit`](Self::poll_transmit) would find nothing to send now. A hint that costs little: true says
    /// nothing.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        self.due & !due::STREAM != 0 || self.due != 0 && !self.only_receives()
    }

    /// True if all that there is to send is acknowledged, so that there is nothing to retransmit or to probe either, and
    /// there is no window to validate, no pacer and no start-up scheme.
    #[inline]
    fn only_receives(&self) -> bool {
        self.snd.una == self.snd.end() && !self.extras.may_hold_back() && !self.awaits_validation()
    }

    #[cold]
    fn urgent_segment(&mut self, now: Nanos, into: &mut Segment) {
        let next = 1 << (self.due & due::URGENT).trailing_zeros();
        self.due &= !next;
        match next {
            due::RESET => *into = self.reset_segment(now),
            due::SYN => *into = self.syn_segment(now),
            due::ACK_FIRST => self.bare_segment(now, self.snd.max, into),
            due::RETRANSMIT => self.retransmit_first(now, into),
            _ => {
                // A segment left of the peer's window, which must be answered with an ACK that announces the window.
                self.stats.window_probes += 1;
                self.bare_segment(now, self.snd.una - 1, into);
            }
        }
    }

    /// The next segment of the stream: a retransmission over the scoreboard, a probe, or new data.
    #[inline]
    fn stream_segment(&mut self, now: Nanos, into: &mut Segment) -> bool {
        if let Recovery::Scoreboard(scoreboard) = &self.recovery {
            let may_retransmit = scoreboard.may_retransmit();
            if self.holds_back_repairs(now) {
                return false;
            }
            if may_retransmit && self.retransmit_lost(now, into) {
                return true;
            }
        }
        if self.snd.nxt >= self.snd.end() {
            self.write_more(now);
            if self.snd.nxt >= self.snd.end() {
                return false;
            }
        }
        if self.snd.is_idle() {
            self.restart_if_idle(now);
        }
        let probing = self.recovery.is_probing();
        let pushes = self.recovery.pushes() && self.has_new_data();
        if !probing && self.holds_back(now) {
            return false;
        }
        let Some(usable) = self.usable_window(probing) else { return false };
        if !probing && !self.train_may_leave(now, usable) {
            return false;
        }
        let length = if pushes { Some(self.pushed_length(usable)) } else { self.new_data_length(now, usable) };
        let Some(length) = length else {
            if let Recovery::Scoreboard(scoreboard) = &mut self.recovery {
                scoreboard.train.stop();
            }
            return false;
        };
        let start = self.snd.nxt;
        let end = self.transmit(now, start, length, into);
        self.stats.tail_loss_probes += u32::from(probing);
        if let (Recovery::Scoreboard(scoreboard), flight) = self.recovery_at(now) {
            if !probing && scoreboard.train.on_sent() {
                into.flags |= Flags::PSH;
            }
            let reducing = scoreboard.is_reducing();
            let mut timer = scoreboard.on_sent_new(&flight, start, (end - start) as u32);
            if probing {
                timer = timer.then(scoreboard.on_probe_sent(&flight, None));
            }
            if reducing {
                scoreboard.reduction.on_sent();
            }
            self.set_timer(now, timer);
        }
        true
    }

    /// Bytes of new data that cwnd and the peer's window have room for; none: cwnd is full.
    #[inline]
    fn usable_window(&self, probing: bool) -> Option<u64> {
        let mut window = self.peer_window.limited_bytes;
        match &self.recovery {
            Recovery::Counting(counting) => window = window.min(counting.cwnd(self.controller.window(), self.mss)),
            Recovery::Scoreboard(scoreboard) => {
                // Here cwnd counts segments in flight, whatever their size. A bare FIN takes no room in it.
                let bare_fin = self.snd.nxt >= self.snd.data_end;
                let taken = (scoreboard.load(&self.profile) + 1).saturating_mul(self.mss);
                if !probing && !bare_fin && taken > self.controller.window() {
                    return None;
                }
            }
        }
        Some((self.snd.una + u64::from(window)).saturating_sub(self.snd.nxt))
    }

    /// True if the application and the peer's window would let a segment of new data leave.
    #[inline]
    pub(crate) fn has_new_data(&self) -> bool {
        let room = (self.snd.una + u64::from(self.peer_window.limited_bytes)).saturating_sub(self.snd.nxt);
        let waiting = self.snd.unsent();
        waiting > 0 && room >= waiting.min(u64::from(self.mss))
    }

    /// Amount of new data in one segment that Nagle's algorithm does not hold back.
    fn pushed_length(&mut self, usable: u64) -> u32 {
        let remaining = self.record_end(self.snd.nxt).saturating_sub(self.snd.nxt);
        let room = self.payload_room();
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if (1..room).contains(&length) {
            self.snd.small_end = self.snd.nxt + u64::from(length);
        }
        length
    }

    /// A probe of the tail, or a lost segment that cwnd and the peer's window allow.
    fn retransmit_lost(&mut self, now: Nanos, into: &mut Segment) -> bool {
        let edge = self.snd.una + u64::from(self.peer_window.bytes);
        let (Recovery::Scoreboard(scoreboard), flight) = self.recovery_at(now) else { return false };
        let Some((number, sent, as_probe)) = scoreboard.next_to_retransmit(&flight, edge) else { return false };
        let timer = if as_probe {
            scoreboard.on_probe_sent(&flight, Some(number))
        } else {
            if scoreboard.is_reducing() {
                scoreboard.reduction.on_sent();
            }
            scoreboard.on_retransmitted(&flight, number)
        };
        self.stats.tail_loss_probes += u32::from(as_probe);
        self.set_timer(now, timer);
        let length = (sent.end().min(self.snd.data_end) - sent.start.min(self.snd.data_end)) as u32;
        self.transmit(now, sent.start, length, into);
        true
    }

    /// The application writes: if nothing was waiting and cwnd has room, it was the application that limited the rate
    /// until now.
    #[inline]
    pub(crate) fn note_writing(&mut self, now: Nanos) {
        if self.snd.is_idle() && self.profile.idle_check == IdleCheck::OnWrite {
            self.restart_after_idleness(now);
        }
        let idle = self.snd.data_end.saturating_sub(self.snd.nxt) < u64::from(self.mss);
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            if idle {
                scoreboard.limit_by_application(self.controller.window() / self.mss);
            }
        }
    }

    /// Number of bytes of new data that may leave in one segment when the windows have room for `usable`.
    // RFC 9293 §3.8.6.2.1, sender's SWS avoidance: send a full segment or all that there is, or else at
    // least half of the largest window seen, or anything once the override timeout has occurred.
    #[inline]
    fn new_data_length(&mut self, now: Nanos, usable: u64) -> Option<u32> {
        let remaining = self.record_end(self.snd.nxt).saturating_sub(self.snd.nxt);
        let room = self.payload_room();
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if length < room && (u64::from(length) < remaining || length == 0) {
            let allowed = if length > 0 {
                2 * u64::from(length) >= u64::from(self.peer_window.largest_bytes)
                    || self.due & due::OVERRIDE != 0
                    || self.recovery.scoreboard().is_some_and(|scoreboard| scoreboard.train.ends())
            } else {
                // A bare FIN takes room in the peer's window, but none in the congestion window.
                remaining == 0
                    && self.snd.nxt < self.snd.una + u64::from(self.peer_window.bytes)
                    && (self.profile.piggyback_fin || self.snd.nxt == self.snd.una)
            };
            if !allowed {
                self.persist_if_stuck(now);
                return None;
            }
        }
        let end = self.snd.nxt + u64::from(length);
        // As in Linux only the last segment waits: the end of a record that is followed by another one does not.
        if length < room && length > 0 && !self.snd.closing {
            let released = self.due & due::OVERRIDE != 0;
            if end == self.snd.data_end
                && !released
                && self.snd.small.holds_back(self.snd.una, self.snd.nxt, self.snd.small_end)
            {
                // Linux, tcp_check_probe_timer: data held back by a cork is sent when the timeout has passed.
                self.persist_if_stuck(now);
                return None;
            }
            self.snd.small_end = end;
        }
        self.due &= !due::OVERRIDE;
        Some(length)
    }

    /// Starts the persist timer if no acknowledgment is to come that could open the window.
    #[inline]
    fn persist_if_stuck(&mut self, now: Nanos) {
        if self.snd.nxt == self.snd.una && !self.timers.retransmit.is_set() {
            self.timers.persisting = true;
            self.set_retransmit_timer(now, self.persist_interval());
        }
    }

    /// Sends `length` bytes from `position` on, and the FIN if it follows; returns the position after them.
    #[inline]
    fn transmit(&mut self, now: Nanos, position: SeqNum, length: u32, into: &mut Segment) -> SeqNum {
        let mut end = position + u64::from(length);
        let mut flags = Flags::ACK;
        if end == self.snd.data_end {
            if length > 0 {
                flags |= Flags::PSH;
            }
            // The FIN takes room in the peer's window.
            let fits = end < self.snd.una + u64::from(self.peer_window.bytes);
            if self.snd.closing && (length == 0 || self.profile.piggyback_fin && fits) {
                flags |= Flags::FIN;
                end += 1;
                self.on_fin_sent();
            }
        }
        let retransmission = position < self.snd.max;
        if retransmission {
            self.note_retransmission(position);
            self.sharing.burst_was_lost |= self.bursts.is_to_blame(position, self.snd.max);
        }
        if length > 0 {
            self.stats.data_segments_sent += 1;
            self.stats.retransmissions += u32::from(retransmission);
            self.stats.first_flight_segments += u32::from(!retransmission && self.bursts.in_first_flight());
            let last_sent_at = self.last_sent_at.replace(SentAt::new(now));
            // Linux, tcp_write_xmit: new data only.
            self.snd.sent_since_validation |= !retransmission;
            if self.flight_bytes() == 0 {
                self.controller.on_start(now, last_sent_at.map(SentAt::nanos));
            }
            self.pace(now, length);
        }
        self.recovery.on_transmit(now, position, end, retransmission);
        self.snd.on_sent(end);
        // RFC 6298 §5.1: a segment with data starts the timer if it is not running.
        if !self.timers.retransmit.is_set() || self.timers.persisting {
            self.timers.end_persisting();
            self.set_retransmit_timer(now, self.rtt.rto());
        }
        self.segment(now, position, length, retransmission, into);
        into.flags |= flags;
        self.check_invariants();
        end
    }

    /// The first unacknowledged segment again; not more than was sent, and than the peer's window has room for.
    fn retransmit_first(&mut self, now: Nanos, into: &mut Segment) {
        let sent = self.snd.max.min(self.record_end(self.snd.una));
        let length = sent.saturating_sub(self.snd.una).min(self.mss.min(self.peer_window.bytes).into()) as u32;
        self.transmit(now, self.snd.una, length, into);
    }

    // RFC 5681 §4.1: if no data was sent in an interval longer than the RTO, cwnd falls to the restart window.
    #[inline]
    fn restart_if_idle(&mut self, now: Nanos) {
        if self.profile.idle_check == IdleCheck::OnSend && self.snd.nxt != self.snd.data_end && self.has_new_data() {
            self.restart_after_idleness(now);
        }
    }

    /// Nothing is outstanding: applies the restart window if nothing was sent for too long.
    pub(crate) fn restart_after_idleness(&mut self, now: Nanos) {
        // Linux, tcp_slow_start_after_idle_check: not for a controller whose window follows from deliveries.
        if self.controller.is_rate_based() {
            return;
        }
        let idle = self.last_sent_at.map_or(0, |sent_at| now.saturating_sub(sent_at.nanos()));
        if idle <= self.rtt.rto() {
            return;
        }
        let profile = &self.profile;
        let window = profile.restart_window.window_bytes(
            self.controller.window(),
            self.initial_window_bytes(),
            self.mss,
            self.sharing.burst_was_lost,
            // Of an idle time that just exceeds n RTOs, n have passed.
            (idle - 1) / self.rtt.rto(),
        );
        let before = self.controller.window();
        let threshold = profile.restart_window.threshold_bytes(self.controller.ssthresh(), before);
        if threshold > self.controller.ssthresh() {
            self.controller.set_ssthresh(threshold);
        }
        if self.profile.restart_window != RestartWindow::Off {
            if let Some(validation) = self.extras.validation_mut() {
                validation.on_restart(now);
            }
        }
        if window < before {
            self.controller.set_window(window);
            self.stats.idle_restarts += 1;
            self.bursts.restart(self.snd.nxt);
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::receiver::ack::AckPolicy;
    use crate::sender::congestion::CongestionAlgorithm;
    use std::sync::Arc;

    const MS: Nanos = 1_000_000;

    /// The shortest round trip that BBR goes by after 25 s of one segment of `bytes` every half a second, over a path of
    /// 100 ms to a receiver that holds its acknowledgments for 200 ms.
    fn min_rtt_after_lone_segments(bytes: u64) -> Option<Nanos> {
        let bbr = Profile { congestion_control: CongestionAlgorithm::Bbr, ..Profile::linux() };
        let late = Profile { ack: AckPolicy::Delayed { segments: 2, timer_ns: 200 * MS }, ..Profile::linux() };
        let mut ends = [Endpoint::client(Arc::new(bbr), 1), Endpoint::server(Arc::new(late), 2)];
        let mut under_way: Vec<(Nanos, usize, Segment)> = Vec::new();
        ends[0].connect(0);
        for tick in 0..25_000 {
            let now = tick * MS;
            if tick % 500 == 499 {
                ends[0].write(now, bytes);
            }
            for (side, end) in ends.iter_mut().enumerate() {
                end.handle_timeout(now);
                under_way.retain(|&(at, to, ref segment)| {
                    let arrives = at == now && to == side;
                    if arrives {
                        end.handle_segment(now, segment);
                    }
                    !arrives
                });
                while let Some(segment) = end.poll_transmit(now) {
                    under_way.push((now + 50 * MS, 1 - side, segment));
                }
            }
        }
        ends[0].controller.bbr()?.min_rtt()
    }

    #[test]
    fn an_acknowledgement_that_was_probably_held_back_does_not_lengthen_bbrs_shortest_round_trip() {
        assert_eq!(min_rtt_after_lone_segments(100), Some(100 * MS));
        assert_eq!(min_rtt_after_lone_segments(1448), Some(300 * MS), "a full segment is not told apart");
    }
}
