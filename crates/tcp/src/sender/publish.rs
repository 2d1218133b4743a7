//! The sender's events, if anybody listens. Without a listener the cost is the test of one bit per ACK.

use crate::Nanos;
use crate::connection::handshake::feature;
use crate::connection::shared::Connection;
use crate::event::{CongestionState, Listener, SenderEvent, Trigger};
use crate::sender::Sender;
use crate::sender::recovery::{Edges, Facts};
use crate::sender::startup::Startup;
use std::collections::VecDeque;

impl Sender {
    /// From now on events are kept; of a connection that is established only later, from then on.
    pub fn listen(&mut self, conn: &Connection) {
        let (state, ssthresh_bytes) = (self.congestion_state(), self.controller.ssthresh());
        let listener = Listener { state, ssthresh_bytes, events: VecDeque::new() };
        self.extras.get_or_new(&conn.profile).listener = Some(Box::new(listener));
    }

    pub fn next_event(&mut self) -> Option<SenderEvent> {
        self.extras.listener_mut()?.events.pop_front()
    }

    /// Something happened that is to be known whether or not the state changes.
    #[inline]
    pub(super) fn publish(&mut self, conn: &Connection, now: Nanos, trigger: Trigger) {
        if conn.handshake.has(feature::LISTENER) {
            self.push(conn, now, self.congestion_state(), trigger);
        }
    }

    /// The consequences of an ACK or a timeout are drawn.
    #[cold]
    pub(super) fn publish_consequences(&mut self, conn: &Connection, now: Nanos, facts: &Facts) {
        use Trigger::{Ecn, Loss, Recovered, TailLoss, Timeout, Undo};
        let Some(listener) = self.extras.listener_mut() else { return };
        let ssthresh = self.controller.ssthresh();
        let lowered = ssthresh < std::mem::replace(&mut listener.ssthresh_bytes, ssthresh);
        let new = self.congestion_state();
        // One ACK may end a recovery and begin the next.
        let begins = Edges::ENTERED | Edges::REDUCED | Edges::RESTARTED | Edges::TIMED_OUT;
        let between = if facts.edges.intersects(begins) { self.open_state() } else { new };
        for (edge, trigger, state) in [
            (Edges::TAIL_LOSS, TailLoss, between),
            (Edges::UNDONE, Undo, between),
            (Edges::LEFT, Recovered, between),
            (Edges::ENTERED, Loss, new),
            (Edges::REDUCED, Ecn, new),
            (Edges::RESTARTED, Loss, new),
            (Edges::TIMED_OUT, Timeout, new),
        ] {
            // What ends an undone recovery, or comes before its end, is no event of its own.
            if facts.edges.intersects(edge) && (trigger != Recovered || self.is_news(state)) {
                self.push(conn, now, state, trigger);
            }
        }
        if self.is_news(new) {
            let trigger = match self.extras.listener().map(|listener| listener.state) {
                Some(CongestionState::Recovery) => Recovered,
                // A rate-based controller has no use for ssthresh.
                Some(CongestionState::SlowStart) if lowered || self.controller.is_rate_based() => {
                    self.slow_start_end(conn)
                }
                _ => Trigger::Ssthresh,
            };
            self.push(conn, now, new, trigger);
        }
    }

    fn is_news(&self, state: CongestionState) -> bool {
        self.extras.listener().is_some_and(|listener| listener.state != state)
    }

    /// Why slow start ended without congestion.
    fn slow_start_end(&self, conn: &Connection) -> Trigger {
        let scheme = self.extras.startup().and_then(|startup| startup.scheme().slow_start_end());
        let default = if conn.profile.startup == Startup::Window { Trigger::Controller } else { Trigger::Startup };
        scheme.or_else(|| self.controller.slow_start_end()).unwrap_or(default)
    }

    fn congestion_state(&self) -> CongestionState {
        if self.recovery.is_recovering(self.snd.una) { CongestionState::Recovery } else { self.open_state() }
    }

    /// The congestion state outside of recovery.
    fn open_state(&self) -> CongestionState {
        if self.controller.in_slow_start() { CongestionState::SlowStart } else { CongestionState::CongestionAvoidance }
    }

    fn push(&mut self, conn: &Connection, now: Nanos, new: CongestionState, trigger: Trigger) {
        let cwnd_bytes = self.cwnd_bytes(conn);
        let Some(listener) = self.extras.listener_mut() else { return };
        let old = std::mem::replace(&mut listener.state, new);
        let ssthresh_bytes = self.controller.known_ssthresh();
        listener.events.push_back(SenderEvent { time: now, old, new, trigger, cwnd_bytes, ssthresh_bytes });
    }
}
