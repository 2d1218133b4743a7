//! Decides which segment to send.

use crate::Nanos;
use crate::connection::shared::{Connection, due};
use crate::event::Trigger;
use crate::profile::{IdleCheck, RestartWindow};
use crate::segment::{Flags, SentAt};
use crate::sender::Sender;
use crate::sender::recovery::{Recovery, Scoreboard};
use crate::sequence::SeqNum;

/// A segment of the stream that leaves.
pub(crate) struct StreamSegment {
    pub position: SeqNum,
    pub payload_bytes: u32,
    /// PSH and FIN.
    pub flags: Flags,
    pub retransmission: bool,
}

impl Sender {
    /// True if all that there is to send is acknowledged, so that there is nothing to retransmit or to probe either, and
    /// there is no window to validate, no pacer and no start-up scheme.
    pub fn only_receives(&self) -> bool {
        self.snd.una == self.snd.end() && !self.extras.may_hold_back() && !self.awaits_validation()
    }

    /// The next segment of the stream: a retransmission over the scoreboard, a probe, or new data, for which `room` says how
    /// much payload it may have.
    #[inline]
    pub fn stream_segment(
        &mut self,
        conn: &mut Connection,
        now: Nanos,
        room: impl Fn(&Connection) -> u32,
    ) -> Option<StreamSegment> {
        if let Recovery::Scoreboard(scoreboard) = &self.recovery {
            let may_retransmit = scoreboard.may_retransmit();
            if self.holds_back_retransmissions(now) {
                return None;
            }
            if may_retransmit {
                if let Some(segment) = self.retransmit_lost(conn, now) {
                    return Some(segment);
                }
            }
        }
        if self.snd.nxt >= self.snd.end() {
            self.write_more(conn, now);
            if self.snd.nxt >= self.snd.end() {
                return None;
            }
        }
        if self.snd.is_idle() {
            self.restart_if_idle(conn, now);
        }
        let probing = self.recovery.is_probing();
        let pushes = self.recovery.pushes() && self.has_new_data(conn);
        if !probing && self.holds_back(conn, now) {
            return None;
        }
        let usable = self.usable_window(conn, probing)?;
        if !probing && !self.train_may_leave(conn, now, usable) {
            return None;
        }
        let room = room(conn);
        let length =
            if pushes { Some(self.pushed_length(room, usable)) } else { self.new_data_length(conn, now, room, usable) };
        let Some(length) = length else {
            if let Recovery::Scoreboard(scoreboard) = &mut self.recovery {
                scoreboard.train.stop();
            }
            return None;
        };
        let start = self.snd.nxt;
        let mut segment = self.transmit(conn, now, start, length, true);
        let taken = (self.snd.nxt - start) as u32;
        conn.stats.tail_loss_probes += u32::from(probing);
        if let (Recovery::Scoreboard(scoreboard), flight) = self.recovery_at(conn, now) {
            if !probing && scoreboard.train.on_sent() {
                segment.flags |= Flags::PSH;
            }
            let reducing = scoreboard.is_reducing();
            let mut timer = scoreboard.on_sent_new(&flight, start, taken);
            if probing {
                timer = timer.then(scoreboard.on_probe_sent(&flight, None));
            }
            if reducing {
                scoreboard.reduction.on_sent();
            }
            self.set_timer(conn, now, timer);
        }
        Some(segment)
    }

    /// Bytes of new data that cwnd and the peer's window have room for; none: cwnd is full.
    #[inline]
    fn usable_window(&self, conn: &Connection, probing: bool) -> Option<u64> {
        let mut window = self.peer_window.limited_bytes;
        match &self.recovery {
            Recovery::Counting(counting) => {
                window = window.min(counting.cwnd(self.controller.cwnd(), conn.handshake.mss()))
            }
            Recovery::Scoreboard(scoreboard) => {
                // Here cwnd counts segments in flight, whatever their size. A bare FIN takes no room in it.
                let bare_fin = self.snd.nxt >= self.snd.data_end;
                let taken = (scoreboard.load(&conn.profile) + 1).saturating_mul(conn.handshake.mss());
                if !probing && !bare_fin && taken > self.controller.cwnd() {
                    return None;
                }
            }
        }
        Some((self.snd.una + u64::from(window)).saturating_sub(self.snd.nxt))
    }

    /// True if the application and the peer's window would let a segment of new data leave.
    pub(crate) fn has_new_data(&self, conn: &Connection) -> bool {
        self.snd.has_new_data(&self.peer_window, conn.handshake.mss())
    }

    /// Amount of new data in one segment that Nagle's algorithm does not hold back.
    fn pushed_length(&mut self, room: u32, usable: u64) -> u32 {
        let remaining = self.record_end(self.snd.nxt).saturating_sub(self.snd.nxt);
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if (1..room).contains(&length) {
            self.snd.small_end = self.snd.nxt + u64::from(length);
        }
        length
    }

    /// A probe of the tail, or a lost segment that cwnd and the peer's window allow.
    fn retransmit_lost(&mut self, conn: &mut Connection, now: Nanos) -> Option<StreamSegment> {
        let edge = self.snd.una + u64::from(self.peer_window.bytes);
        let (Recovery::Scoreboard(scoreboard), flight) = self.recovery_at(conn, now) else { return None };
        let (number, sent, as_probe) = scoreboard.next_to_retransmit(&flight, edge)?;
        let timer = if as_probe {
            scoreboard.on_probe_sent(&flight, Some(number))
        } else {
            if scoreboard.is_reducing() {
                scoreboard.reduction.on_sent();
            }
            scoreboard.on_retransmitted(&flight, number)
        };
        conn.stats.tail_loss_probes += u32::from(as_probe);
        self.set_timer(conn, now, timer);
        let length = (sent.end().min(self.snd.data_end) - sent.start.min(self.snd.data_end)) as u32;
        // Linux, __tcp_retransmit_skb: a full segment does not take what follows it along.
        let with_fin = sent.end() > self.snd.data_end || length < conn.handshake.mss();
        Some(self.transmit(conn, now, sent.start, length, with_fin))
    }

    /// The application writes: if nothing was waiting and cwnd has room, it was the application that limited the rate
    /// until now.
    #[inline]
    pub(crate) fn note_writing(&mut self, conn: &mut Connection, now: Nanos) {
        if self.snd.is_idle() && conn.profile.idle_check == IdleCheck::OnWrite {
            self.restart_after_idleness(conn, now);
        }
        let idle = self.snd.data_end.saturating_sub(self.snd.nxt) < u64::from(conn.handshake.mss());
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            if idle {
                scoreboard.limit_by_application(self.controller.cwnd() / conn.handshake.mss());
            }
        }
    }

    /// Number of bytes of new data that may leave in one segment when the windows have room for `usable`.
    // RFC 9293 §3.8.6.2.1, sender's SWS avoidance: send a full segment or all that there is, or else at
    // least half of the largest window seen, or anything once the override timeout has occurred.
    #[inline]
    fn new_data_length(&mut self, conn: &mut Connection, now: Nanos, room: u32, usable: u64) -> Option<u32> {
        let remaining = self.record_end(self.snd.nxt).saturating_sub(self.snd.nxt);
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if length < room && (u64::from(length) < remaining || length == 0) {
            let allowed = if length > 0 {
                2 * u64::from(length) >= u64::from(self.peer_window.largest_bytes)
                    || conn.due & due::OVERRIDE != 0
                    || self.recovery.scoreboard().is_some_and(|scoreboard| scoreboard.train.ends())
            } else {
                // A bare FIN takes room in the peer's window, but none in the congestion window.
                remaining == 0
                    && self.snd.nxt < self.snd.una + u64::from(self.peer_window.bytes)
                    && (conn.profile.piggyback_fin || self.snd.nxt == self.snd.una)
            };
            if !allowed {
                self.persist_if_stuck(conn, now);
                return None;
            }
        }
        let end = self.snd.nxt + u64::from(length);
        // As in Linux only the last segment waits: the end of a record that is followed by another one does not.
        if length < room && length > 0 && !self.snd.closing {
            let released = conn.due & due::OVERRIDE != 0;
            if end == self.snd.data_end
                && !released
                && self.snd.small.holds_back(self.snd.una, self.snd.nxt, self.snd.small_end)
            {
                // Linux, tcp_check_probe_timer: data held back by a cork is sent when the timeout has passed.
                self.persist_if_stuck(conn, now);
                return None;
            }
            self.snd.small_end = end;
        }
        conn.due &= !due::OVERRIDE;
        Some(length)
    }

    /// Starts the persist timer if no acknowledgment is to come that could open the window.
    #[inline]
    fn persist_if_stuck(&mut self, conn: &Connection, now: Nanos) {
        if self.snd.nxt == self.snd.una && !self.timers.retransmit.is_set() {
            self.timers.persisting = true;
            self.set_retransmit_timer(conn, now, self.persist_interval(conn));
        }
    }

    /// Sends `length` bytes from `position` on, and the FIN if it follows and may leave with them.
    #[inline]
    fn transmit(
        &mut self,
        conn: &mut Connection,
        now: Nanos,
        position: SeqNum,
        length: u32,
        with_fin: bool,
    ) -> StreamSegment {
        let mut end = position + u64::from(length);
        let mut flags = Flags::ACK;
        if end == self.snd.data_end {
            if length > 0 {
                flags |= Flags::PSH;
            }
            // The FIN takes room in the peer's window.
            let fits = end < self.snd.una + u64::from(self.peer_window.bytes);
            if self.snd.closing && with_fin && (length == 0 || conn.profile.piggyback_fin && fits) {
                flags |= Flags::FIN;
                end += 1;
                conn.on_fin_sent();
            }
        }
        let retransmission = position < self.snd.max;
        if retransmission {
            self.note_retransmission(conn, position);
            self.sharing.burst_was_lost |= self.bursts.is_to_blame(position, self.snd.max);
        }
        if length > 0 {
            conn.stats.data_segments_sent += 1;
            conn.stats.retransmissions += u32::from(retransmission);
            conn.stats.first_flight_segments += u32::from(!retransmission && self.bursts.in_first_flight());
            let last_sent_at = self.last_sent_at.replace(SentAt::new(now));
            // Linux, tcp_write_xmit: new data only.
            self.snd.sent_since_validation |= !retransmission;
            if self.snd.flight() == 0 {
                self.controller.on_start(now, last_sent_at.map(SentAt::nanos));
            }
            self.pace(now, length);
        }
        self.recovery.on_transmit(now, position, end, retransmission);
        self.snd.on_sent(end);
        // RFC 6298 §5.1: a segment with data starts the timer if it is not running.
        if !self.timers.retransmit.is_set() || self.timers.persisting {
            self.timers.end_persisting();
            self.restart_timer(conn, now);
        }
        StreamSegment { position, payload_bytes: length, flags, retransmission }
    }

    /// The first unacknowledged segment again; not more than was sent, and than the peer's window has room for.
    pub fn retransmit_first(&mut self, conn: &mut Connection, now: Nanos) -> StreamSegment {
        let sent = self.snd.max.min(self.record_end(self.snd.una));
        let length =
            sent.saturating_sub(self.snd.una).min(conn.handshake.mss().min(self.peer_window.bytes).into()) as u32;
        self.transmit(conn, now, self.snd.una, length, true)
    }

    // RFC 5681 §4.1: if no data was sent in an interval longer than the RTO, cwnd falls to the restart window.
    #[inline]
    fn restart_if_idle(&mut self, conn: &mut Connection, now: Nanos) {
        if conn.profile.idle_check == IdleCheck::OnSend && self.snd.nxt != self.snd.data_end && self.has_new_data(conn)
        {
            self.restart_after_idleness(conn, now);
        }
    }

    /// Nothing is outstanding: applies the restart window if nothing was sent for too long.
    pub(crate) fn restart_after_idleness(&mut self, conn: &mut Connection, now: Nanos) {
        // Linux, tcp_slow_start_after_idle_check: not for a controller whose window follows from deliveries.
        if self.controller.is_rate_based() {
            return;
        }
        let idle = self.last_sent_at.map_or(0, |sent_at| now.saturating_sub(sent_at.nanos()));
        if idle <= self.rtt.rto() {
            return;
        }
        let profile = &conn.profile;
        let window = profile.restart_window.window_bytes(
            self.controller.cwnd(),
            self.initial_window_bytes(conn),
            conn.handshake.mss(),
            self.sharing.burst_was_lost,
            // Of an idle time that just exceeds n RTOs, n have passed.
            (idle - 1) / self.rtt.rto(),
        );
        let before = self.controller.cwnd();
        if profile.restart_window == RestartWindow::Halving {
            let reducing = self.recovery.scoreboard().is_some_and(Scoreboard::is_reducing);
            self.controller.set_ssthresh(self.controller.current_ssthresh(reducing));
        }
        if conn.profile.restart_window != RestartWindow::Off {
            if let Some(validation) = self.extras.validation_mut() {
                validation.on_restart(now);
            }
        }
        if window < before {
            self.controller.set_cwnd(window);
            conn.stats.idle_restarts += 1;
            self.bursts.restart(self.snd.nxt);
            self.publish(conn, now, Trigger::IdleRestart);
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Endpoint;
    use crate::profile::{AckPolicy, Profile};
    use crate::segment::Segment;
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
        ends[0].sender().controller.bbr()?.min_rtt()
    }

    #[test]
    fn an_acknowledgement_that_was_probably_held_back_does_not_lengthen_bbrs_shortest_round_trip() {
        assert_eq!(min_rtt_after_lone_segments(100), Some(100 * MS));
        assert_eq!(min_rtt_after_lone_segments(1448), Some(300 * MS), "a full segment is not told apart");
    }
}
