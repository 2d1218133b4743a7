//! The retransmission and persist timers, and what is done when they expire.

use crate::connection::handshake::State;
use crate::connection::shared::{Connection, due};
use crate::event::Trigger;
use crate::sender::Sender;
use crate::sender::recovery::SetTimer;
use crate::{Deadline, Nanos};

impl Sender {
    /// Time passed; true: the connection is to be given up.
    pub fn on_time(&mut self, conn: &mut Connection, now: Nanos) -> bool {
        if let Some(pacer) = self.extras.pacer_mut() {
            conn.due |= if pacer.on_time(now) { due::STREAM } else { 0 };
        }
        if !self.timers.retransmit.is_due(now) {
            return false;
        }
        self.timers.retransmit = Deadline::NEVER;
        conn.due |= due::STREAM;
        match conn.handshake.state() {
            State::SynSent | State::SynReceived => self.on_syn_timeout(conn),
            _ if self.timers.persisting => self.on_persist_timeout(conn, now),
            _ => self.on_data_timeout(conn, now),
        }
    }

    /// Sets the timer of outstanding data as recovery wants it.
    #[inline]
    pub(crate) fn set_timer(&mut self, conn: &Connection, now: Nanos, timer: SetTimer) {
        match timer {
            SetTimer::Keep => {}
            SetTimer::Stop => self.timers.retransmit = Deadline::NEVER,
            SetTimer::Rto => self.restart_timer(conn, now),
            SetTimer::At(time) => self.timers.retransmit = conn.profile.expiry(now, Deadline::at(time)),
        }
    }

    /// One retransmission timeout from now.
    #[inline]
    pub fn restart_timer(&mut self, conn: &Connection, now: Nanos) {
        self.set_retransmit_timer(conn, now, self.rtt.rto());
    }

    /// Sets the timer of outstanding data, or of the persist state.
    #[inline]
    pub(super) fn set_retransmit_timer(&mut self, conn: &Connection, now: Nanos, timeout: Nanos) {
        self.timers.retransmit = conn.profile.expiry(now, Deadline::at(now.saturating_add(timeout)));
    }

    fn on_syn_timeout(&mut self, conn: &mut Connection) -> bool {
        let answering = conn.handshake.state() == State::SynReceived;
        let profile = &conn.profile;
        let most = if answering { profile.max_syn_ack_retries } else { profile.max_syn_retries };
        if self.timers.retries >= most {
            return true;
        }
        self.timers.retries += 1;
        // Linux, tcp_syn_linear_timeouts: a lost SYN is no congestion yet, so the first few follow at the same interval.
        if answering || self.timers.retries > profile.linear_syn_timeouts {
            self.rtt.back_off(&profile.rto);
        }
        self.repeat_syn(conn);
        false
    }

    // RFC 6298 §5.4 to §5.6 and RFC 5681 §3.1; or a timer that runs in place of the retransmission timer.
    fn on_data_timeout(&mut self, conn: &mut Connection, now: Nanos) -> bool {
        // RFC 9293 §3.8.6: a window that shrank to zero is probed in the standard way (MUST-35), first after one RTO
        // (SHLD-29). Linux's scoreboard retransmits the first segment instead.
        let shrunk = self.recovery.scoreboard().is_none() && self.peer_window.bytes < conn.handshake.mss();
        if shrunk && self.peer_window.bytes == 0 {
            self.snd.nxt = self.snd.una;
            self.timers.persisting = true;
            return self.on_persist_timeout(conn, now);
        }
        if self.recovery.waits_for_timeout() && self.timers.retries >= conn.profile.max_retries {
            return true;
        }
        let (recovery, flight) = self.recovery_at(conn, now);
        let facts = recovery.on_timer(&flight);
        self.apply(conn, now, &facts);
        if self.recovery.is_probing() {
            self.publish(conn, now, Trigger::Probe);
        }
        // RFC 9293 §3.8.6: data within the window is retransmitted as usual (SHLD-16), however small the window is.
        conn.due |= if shrunk { due::OVERRIDE } else { 0 };
        false
    }

    // RFC 9293 §3.8.6.1: probe a closed window, at increasing intervals, for as long as the peer answers.
    fn on_persist_timeout(&mut self, conn: &mut Connection, now: Nanos) -> bool {
        if self.timers.retries >= conn.profile.max_retries {
            return true;
        }
        self.timers.retries += 1;
        if self.peer_window.bytes == 0 {
            conn.due |= due::PROBE;
            self.publish(conn, now, Trigger::WindowProbe);
        } else {
            conn.due |= due::OVERRIDE;
        }
        self.timers.persist_backoff = self.timers.persist_backoff.saturating_add(1);
        self.set_retransmit_timer(conn, now, self.persist_interval(conn));
        false
    }

    /// Time until the next probe of a closed window.
    pub(crate) fn persist_interval(&self, conn: &Connection) -> Nanos {
        let rules = &conn.profile.rto;
        let factor = u64::from(rules.backoff).saturating_pow(u32::from(self.timers.persist_backoff));
        self.rtt.rto().saturating_mul(factor).min(rules.maximum_ns)
    }
}
