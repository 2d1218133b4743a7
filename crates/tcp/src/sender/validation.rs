//! Congestion-window validation where it meets the endpoint: the part of the window that each burst used.

use crate::Nanos;
use crate::connection::Endpoint;
use crate::profile::WindowValidation;
use crate::sender::recovery::Facts;
use crate::sender::window_validation::{Burst, Unused};

impl Endpoint {
    /// Fast recovery began: the result of validation. `cwnd_before`: before this ACK.
    pub(crate) fn validate_congestion(&mut self, cwnd_before: u32) {
        let flight = self.flight_bytes().div_ceil(self.mss);
        let Some(validation) = self.extras.validation_mut() else { return };
        let segments = validation.on_congestion(flight, cwnd_before / self.mss, self.stats.retransmissions);
        self.set_validated(segments);
    }

    /// Fast recovery ended: likewise.
    pub(crate) fn validate_recovered(&mut self) {
        let Some(validation) = self.extras.validation_mut() else { return };
        let segments = validation.on_recovered(self.stats.retransmissions);
        self.set_validated(segments);
    }

    fn set_validated(&mut self, segments: Option<u32>) {
        if let Some(segments) = segments {
            self.controller.set_ssthresh(segments.saturating_mul(self.mss).max(2 * self.mss));
            self.controller.set_window(segments.saturating_mul(self.mss));
        }
    }

    /// The profile validates windows, and data was sent since the last time.
    #[inline]
    pub(crate) fn awaits_validation(&self) -> bool {
        self.snd.sent_since_validation && self.extras.validation().is_some()
    }

    /// No more is sent now: records the used part of the window, and gives up a part that was unused for long.
    pub(crate) fn validate_window(&mut self, now: Nanos) {
        if !self.snd.sent_since_validation && self.snd.is_idle() {
            // Nothing is in flight: whatever the window, it did not limit.
            return;
        }
        let window = self.cwnd_bytes() / self.mss;
        let (outstanding, in_flight, waits) = match self.recovery.scoreboard() {
            Some(scoreboard) => (scoreboard.outstanding(), scoreboard.in_flight(), scoreboard.train.limited),
            None => {
                let segments = self.flight_bytes().div_ceil(self.mss);
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
        let initial_window_segments = self.initial_window_bytes() / self.mss;
        let Some(validation) = self.extras.validation_mut() else { return };
        validation.on_transmit(
            now,
            &Burst {
                limited,
                outstanding_segments: outstanding,
                una: self.snd.una,
                nxt: self.snd.nxt,
                window_segments: window,
                in_slow_start: self.controller.window() < self.controller.ssthresh(),
            },
        );
        let open = self.recovery.is_open();
        let applies = match self.profile.window_validation {
            WindowValidation::Off => false,
            WindowValidation::CwndLimited { app_limited_decay } => app_limited_decay,
            WindowValidation::Rfc7661 => true,
        };
        if !applies || self.controller.is_rate_based() {
            return;
        }
        let unused = Unused { window_segments: window, initial_window_segments, rto: self.rtt.rto(), open };
        if let Some(shrunk) = validation.unused(now, &unused) {
            self.note_lower_cwnd(self.controller.window());
            self.controller.set_window(shrunk.window_segments * self.mss);
            let least = shrunk.least_ssthresh_segments * self.mss;
            let ssthresh = self.controller.ssthresh().max(least);
            self.controller.set_ssthresh(ssthresh);
        }
    }

    /// An ACK arrived: validates the window before it.
    #[inline]
    pub(crate) fn validate_acknowledged(&mut self, now: Nanos, facts: &Facts) {
        let Some(validation) = self.extras.validation_mut() else { return };
        if facts.advanced && !facts.fast_recovery.was_on() {
            let srtt = self.rtt.smoothed(&self.profile.rto).unwrap_or(0);
            validation.on_ack(now, self.snd.una, self.snd.nxt, srtt, self.controller.window() / self.mss);
        }
    }

    /// True if the delivered data lets cwnd grow.
    // Linux asks with the window that a recovery ends with (tcp_cong_avoid).
    #[inline]
    pub(crate) fn cwnd_may_grow(&self) -> bool {
        let window = self.controller.window();
        let in_slow_start = window < self.controller.ssthresh();
        self.extras.validation().is_none_or(|validation| validation.allows_growth(window / self.mss, in_slow_start))
    }
}
