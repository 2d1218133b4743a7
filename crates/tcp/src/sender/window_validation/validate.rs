//! The sender validates its window.

use super::Burst;
use crate::Nanos;
use crate::connection::shared::Connection;
use crate::event::Trigger;
use crate::sender::Sender;
use crate::sender::recovery::Facts;

impl Sender {
    /// The profile validates windows.
    pub(crate) fn validates_window(&self) -> bool {
        self.extras.validation().is_some()
    }

    /// The profile validates windows, and data was sent since the last time.
    pub(crate) fn awaits_validation(&self) -> bool {
        self.snd.sent_since_validation && self.validates_window()
    }

    /// No more is sent now: records the used part of the window, and gives up a part that was unused for long.
    pub(crate) fn validate_window(&mut self, conn: &Connection, now: Nanos) {
        if !self.snd.sent_since_validation && self.snd.is_idle() {
            // Nothing is in flight: whatever the window, it did not limit.
            return;
        }
        let window = self.cwnd_bytes(conn) / conn.handshake.mss();
        let (outstanding, in_flight, waits) = match self.recovery.scoreboard() {
            Some(scoreboard) => (scoreboard.outstanding(), scoreboard.in_flight(), scoreboard.train.limited),
            None => {
                let segments = self.snd.flight().div_ceil(conn.handshake.mss());
                (segments, segments, false)
            }
        };
        let limited = in_flight >= window || waits;
        // Linux, tcp_write_xmit: data that was sent, or could not be; tcp_push_pending_frames: with nothing to send it
        // is not asked.
        if !(self.snd.sent_since_validation || limited && self.snd.nxt < self.snd.end()) {
            return;
        }
        self.snd.sent_since_validation = false;
        let burst = Burst {
            limited,
            outstanding_segments: outstanding,
            una: self.snd.una,
            nxt: self.snd.nxt,
            window_segments: window,
            in_slow_start: self.controller.cwnd() < self.controller.ssthresh(),
            initial_window_segments: self.initial_window_bytes(conn) / conn.handshake.mss(),
            rto: self.rtt.rto(),
            // Linux, tcp_cwnd_application_limited: a full socket buffer (SOCK_NOSPACE) is not the application's limit.
            open: self.recovery.is_open() && self.snd.unwritten == 0,
        };
        let Some(validation) = self.extras.validation_mut() else { return };
        let left = validation.on_burst(now, &burst);
        if let Some(segments) = left.filter(|_| !self.controller.is_rate_based()) {
            self.controller.set_ssthresh(self.controller.current_ssthresh(false));
            self.controller.set_cwnd(segments * conn.handshake.mss());
            self.publish(conn, now, Trigger::ApplicationLimited);
        }
    }

    /// An ACK arrived: outside of recovery the window before it is considered for growth.
    #[inline]
    pub(crate) fn validate_acknowledged(&mut self, now: Nanos, facts: &Facts) {
        if let Some(validation) = self.extras.validation_mut() {
            if facts.advanced && !facts.fast_recovery.was_on() {
                validation.begin_period(now);
            }
        }
    }

    /// True if the delivered data lets cwnd grow.
    // Linux asks with the window that a recovery ends with (tcp_cong_avoid).
    #[inline]
    pub(crate) fn cwnd_may_grow(&self, conn: &Connection) -> bool {
        let window = self.controller.cwnd();
        let in_slow_start = window < self.controller.ssthresh();
        self.extras
            .validation()
            .is_none_or(|validation| validation.allows_growth(window / conn.handshake.mss(), in_slow_start))
    }
}
