//! Deadlines: delayed acknowledgment, retransmission, persist.

mod clock;
mod deadline;
mod table;

pub use deadline::Deadline;
pub(crate) use table::Timers;

use crate::Nanos;
use crate::connection::Events;
use crate::connection::{Endpoint, State, due};
use crate::sender::recovery::SetTimer;

impl Endpoint {
    /// Time passed. To be called once `now` reaches [`poll_timeout`](Self::poll_timeout); harmless at other times.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.timers.ack.is_due(now) {
            self.on_ack_timeout();
        }
        if let Some(pacer) = self.extras.pacer_mut() {
            self.due |= if pacer.on_time(now) { due::STREAM } else { 0 };
        }
        if self.timers.retransmit.is_due(now) {
            self.timers.retransmit = Deadline::NEVER;
            self.due |= due::STREAM;
            match self.state {
                State::SynSent | State::SynReceived => self.on_syn_timeout(),
                _ if self.timers.persisting => self.on_persist_timeout(now),
                _ => self.on_data_timeout(now),
            }
        }
        self.check_invariants();
    }

    /// Sets the timer of outstanding data as recovery wants it.
    #[inline]
    pub(crate) fn set_timer(&mut self, now: Nanos, timer: SetTimer) {
        match timer {
            SetTimer::Keep => {}
            SetTimer::Stop => self.timers.retransmit = Deadline::NEVER,
            SetTimer::Rto => self.set_retransmit_timer(now, self.rtt.rto()),
            SetTimer::At(time) => self.timers.retransmit = self.profile.expiry(now, Deadline::at(time)),
        }
    }

    /// Sets the timer of outstanding data, or of the persist state.
    #[inline]
    pub(crate) fn set_retransmit_timer(&mut self, now: Nanos, timeout: Nanos) {
        self.timers.retransmit = self.profile.expiry(now, Deadline::at(now.saturating_add(timeout)));
    }

    fn on_syn_timeout(&mut self) {
        let answering = self.state == State::SynReceived;
        let profile = &self.profile;
        let most = if answering { profile.max_syn_ack_retries } else { profile.max_syn_retries };
        if self.timers.retries >= most {
            return self.finish(State::Closed, Events::TIMED_OUT);
        }
        self.timers.retries += 1;
        // Linux, tcp_syn_linear_timeouts: a lost SYN is no congestion yet, so the first few follow at the same interval.
        if answering || self.timers.retries > profile.linear_syn_timeouts {
            self.rtt.back_off(&profile.rto);
        }
        self.repeat_syn();
    }

    // RFC 6298 §5.4 to §5.6 and RFC 5681 §3.1; or a timer that runs in place of the retransmission timer.
    fn on_data_timeout(&mut self, now: Nanos) {
        // RFC 9293 §3.8.6: a window that shrank to zero is probed in the standard way (MUST-35), first after one RTO
        // (SHLD-29). Linux's scoreboard retransmits the first segment instead.
        let shrunk = self.recovery.scoreboard().is_none() && self.peer_window.bytes < self.mss;
        if shrunk && self.peer_window.bytes == 0 {
            self.snd.nxt = self.snd.una;
            self.timers.persisting = true;
            return self.on_persist_timeout(now);
        }
        if self.recovery.waits_for_timeout() && self.timers.retries >= self.profile.max_retries {
            return self.finish(State::Closed, Events::TIMED_OUT);
        }
        let (recovery, flight) = self.recovery_at(now);
        let facts = recovery.on_timer(&flight);
        self.apply(now, &facts);
        // RFC 9293 §3.8.6: data within the window is retransmitted as usual (SHLD-16), however small the window is.
        self.due |= if shrunk { due::OVERRIDE } else { 0 };
    }

    // RFC 9293 §3.8.6.1: probe a closed window, at increasing intervals, for as long as the peer answers.
    fn on_persist_timeout(&mut self, now: Nanos) {
        if self.timers.retries >= self.profile.max_retries {
            return self.finish(State::Closed, Events::TIMED_OUT);
        }
        self.timers.retries += 1;
        self.due |= if self.peer_window.bytes == 0 { due::PROBE } else { due::OVERRIDE };
        self.timers.persist_backoff = self.timers.persist_backoff.saturating_add(1);
        self.set_retransmit_timer(now, self.persist_interval());
    }

    /// Time until the next probe of a closed window.
    pub(crate) fn persist_interval(&self) -> Nanos {
        let rules = &self.profile.rto;
        let factor = u64::from(rules.backoff).saturating_pow(u32::from(self.timers.persist_backoff));
        self.rtt.rto().saturating_mul(factor).min(rules.maximum_ns)
    }
}
