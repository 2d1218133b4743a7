//! The sender fills its write queue, and decides whether a train leaves.

use super::Room;
use super::write_queue::{BUFFER_WINDOWS, BUFFER_WINDOWS_BBR, HEADERS, Push, SK_BUFF, size_goal};
use crate::Nanos;
use crate::connection::handshake::State;
use crate::connection::shared::{Connection, ENDLESS, due};
use crate::profile::{Trains, WindowPacing};
use crate::segment::SentAt;
use crate::sender::Sender;
use crate::sender::pacing::{PacedBy, Pacer};

impl Sender {
    /// The application writes `bytes` more: as much as the buffer has room for, and the rest later.
    #[inline]
    pub(crate) fn queue_write(&mut self, conn: &mut Connection, now: Nanos, bytes: u64) {
        self.snd.unwritten = self.snd.unwritten.saturating_add(bytes).min(ENDLESS.saturating_sub(self.snd.data_end));
        // Linux, tcp_sendmsg_locked: data written during the handshake is copied at its end.
        if conn.handshake.state() >= State::Established || conn.profile.recovery.scoreboard().trains.is_none() {
            self.copy(conn, now, true);
        }
    }

    /// An application that waits for room in the buffer writes more if the kernel wakes it.
    #[inline]
    pub(crate) fn write_more(&mut self, conn: &mut Connection, now: Nanos) {
        if self.snd.unwritten > 0 {
            self.copy(conn, now, false);
        }
    }

    /// The bytes that an application can write now, in sk_buffs of `size` bytes.
    fn room(&mut self, conn: &Connection, writing: bool, size: u64) -> u64 {
        let Some(rules) = conn.profile.send_buffer else { return u64::MAX };
        let (cwnd, mss, unsent) =
            (self.controller.cwnd(), conn.handshake.mss().max(1), self.snd.data_end.saturating_sub(self.snd.nxt));
        let (in_flight, sk_buffs) = match self.recovery.scoreboard() {
            Some(scoreboard) => (scoreboard.in_flight(), scoreboard.sk_buffs()),
            None => (self.snd.flight() / mss, self.snd.flight().div_ceil(mss)),
        };
        let memory = self.snd.data_end.saturating_sub(self.snd.una)
            + (u64::from(sk_buffs) + unsent.div_ceil(size)) * (HEADERS + SK_BUFF);
        // Linux, tcp_should_expand_sndbuf: the buffer does not grow while it is cwnd that limits the sender.
        if self.snd.buffer == 0 || unsent == 0 && in_flight < cwnd / mss {
            let windows = if self.controller.is_rate_based() { BUFFER_WINDOWS_BBR } else { BUFFER_WINDOWS };
            self.snd.buffer = self.snd.buffer.max(rules.bytes(mss, cwnd, windows));
        }
        let buffer = u64::from(self.snd.buffer);
        // Linux, sk_stream_write_space: a waiting application is woken when a third of the buffer is free. It begins an
        // sk_buff as long as there is room (sk_stream_memory_free).
        if memory >= buffer || !writing && 3 * memory > 2 * buffer {
            return 0;
        }
        // With nothing before it, an sk_buff is sent train by train while it is filled (tcp_push_one). Its rest takes more
        // data without a look at the room: all that cwnd allows, if nothing paces.
        let edge = self.snd.una + u64::from(self.peer_window.limited_bytes);
        let free = u64::from((cwnd / mss).saturating_sub(in_flight)) * u64::from(mss);
        let sent =
            if unsent == 0 && self.extras.pacer().is_none() { free.min(edge.saturating_sub(self.snd.nxt)) } else { 0 };
        let more = buffer.saturating_sub(memory + sent).div_ceil(size + HEADERS + SK_BUFF);
        sent + more.max(u64::from(sent > 0)) * size
    }

    fn copy(&mut self, conn: &mut Connection, now: Nanos, writing: bool) {
        let size = size_goal(conn.handshake.mss(), self.peer_window.largest_bytes);
        let bytes = self.room(conn, writing, size).min(self.snd.unwritten);
        if bytes == 0 {
            return;
        }
        let (next, end) = (self.snd.nxt, self.snd.data_end);
        self.snd.unwritten -= bytes;
        self.snd.data_end += bytes;
        self.snd.closing |= self.snd.closes_later && self.snd.unwritten == 0;
        conn.due |= due::STREAM;
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            if !writing && end.saturating_sub(next) < u64::from(conn.handshake.mss()) {
                // Linux, tcp_rate_check_app_limited.
                scoreboard.limit_by_application(self.controller.cwnd() / conn.handshake.mss());
            }
            if conn.profile.recovery.scoreboard().trains.is_some() {
                scoreboard.train.queue.copy(now, next, end, size);
            }
        }
    }

    /// True if a segment of new data leaves now, as part of a train.
    #[inline]
    pub(crate) fn train_may_leave(&mut self, conn: &mut Connection, now: Nanos, peer_room: u64) -> bool {
        let Some(scoreboard) = self.recovery.scoreboard_mut() else { return true };
        if scoreboard.train.left > 0 {
            return true;
        }
        let Some(rules) = conn.profile.recovery.scoreboard().trains else { return true };
        self.next_train(conn, now, peer_room, rules)
    }

    /// Bytes of data that the next train may have.
    // Linux, tcp_mss_split_point: without the part of a segment that Nagle's algorithm or a cork holds back behind the
    // others of the train; a record ends a train (tcp_tso_should_defer, eor).
    fn free_bytes(&self, conn: &Connection) -> u64 {
        let (snd, mss) = (&self.snd, u64::from(conn.handshake.mss()));
        let end = self.record_end(snd.nxt);
        let bytes = end.saturating_sub(snd.nxt);
        let held = end == snd.data_end && !snd.closing && snd.small.holds_back(snd.una, snd.nxt + mss, snd.small_end);
        if held { bytes / mss * mss } else { bytes }
    }

    fn next_train(&mut self, conn: &mut Connection, now: Nanos, peer_room: u64, rules: Trains) -> bool {
        self.write_more(conn, now);
        let waiting = self.snd.data_end.saturating_sub(self.snd.nxt);
        let free = self.free_bytes(conn);
        let pacer = self.extras.pacer();
        let in_flight_of_scheme = pacer.is_some_and(|pacer| matches!(pacer.by, PacedBy::Startup { .. }));
        let Some(scoreboard) = self.recovery.scoreboard_mut() else { return true };
        // A single segment is Nagle's affair; a start-up scheme spreads its flight segment by segment.
        if waiting <= u64::from(conn.handshake.mss()) || in_flight_of_scheme {
            return true;
        }
        let queue = &mut scoreboard.train.queue;
        let first_queued = queue.first_bytes(now, self.snd.nxt);
        let half = u64::from(self.peer_window.largest_bytes / 2);
        let push = if waiting > first_queued { queue.push(now, self.snd.nxt, first_queued, half) } else { Push::None };
        let size = size_goal(conn.handshake.mss(), self.peer_window.largest_bytes);
        let window = self.controller.cwnd();
        let srtt = self.rtt.smoothed(&conn.profile.rto);
        let (windows, flight) = ((window, self.controller.ssthresh()), self.snd.flight());
        let by_window =
            || Some(WindowPacing::LINUX.rate(windows, conn.handshake.mss(), flight, srtt?).bytes_per_second());
        let room = Room {
            now,
            mss: conn.handshake.mss(),
            window,
            segments: (window / conn.handshake.mss()).saturating_sub(scoreboard.load(&conn.profile)),
            rate: pacer.and_then(Pacer::rate).or_else(by_window),
            min_segments: self.controller.min_train_segments(),
            peer_room,
            peer_window: u64::from(self.peer_window.bytes),
            waiting,
            closing: self.snd.closing,
            free,
            srtt,
            shortest_rtt: scoreboard.shortest_rtt(),
            last_sent_at: pacer.and_then(Pacer::release).or(self.last_sent_at.map(SentAt::nanos)),
            head_sent_at: scoreboard.head_sent_at(),
        };
        let full = rules.full(&room);
        // Linux, tcp_tso_should_defer: recovery does not wait.
        let waits = !scoreboard.is_in_recovery_or_loss()
            && push != Push::One
            && rules.waits(&room, full)
            && (push == Push::Forced || !room.takes_first(first_queued, full));
        if waits {
            let free = u64::from(room.segments) * u64::from(conn.handshake.mss());
            scoreboard.train.limited = free < peer_room && free <= waiting;
            return false;
        }
        let first = first_queued.max(u64::from(room.length(full)) * u64::from(conn.handshake.mss())).min(waiting);
        let first = if push == Push::None { first } else { first_queued };
        // The window cuts off a part within an sk_buff, behind a whole segment of it.
        let within = if peer_room <= first { peer_room } else { (peer_room - first) % size };
        let behind_whole = self.snd.nxt + u64::from(conn.handshake.mss());
        let holds_part = within <= u64::from(conn.handshake.mss())
            || self.snd.small.holds_back(self.snd.una, behind_whole, self.snd.small_end);
        let mut length = room.departing(full, holds_part);
        if push == Push::Forced {
            length = length.min(first_queued.div_ceil(conn.handshake.mss().into()) as u32);
        }
        let end = self.snd.nxt + u64::from(length) * u64::from(conn.handshake.mss());
        match push {
            Push::None => {}
            Push::One => scoreboard.train.queue.restart_first(end),
            Push::Forced => scoreboard.train.queue.rest = end,
        }
        (scoreboard.train.left, scoreboard.train.several) = (length, length > 1);
        scoreboard.train.limited = false;
        true
    }
}
