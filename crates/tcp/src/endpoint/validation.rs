//! Congestion-window validation where it meets the endpoint: what each burst used of the window.

use super::Endpoint;
use crate::Nanos;
use crate::congestion::CongestionControl;
use crate::profile::WindowValidation;
use crate::window_validation::{Burst, Unused};

/// What validation has to know of a repair.
pub(super) struct Repair {
    recovering: bool,
    window_bytes: u32,
    flight_bytes: u32,
}

impl Endpoint {
    /// The state of repair before an acknowledgement is processed, if validation has a say in repairs.
    #[inline]
    pub(super) fn repair(&self) -> Option<Repair> {
        self.extras.validation().filter(|validation| validation.governs_repairs()).map(|_| Repair {
            recovering: self.is_recovering(),
            window_bytes: self.controller.window(),
            flight_bytes: self.flight_bytes(),
        })
    }

    fn is_recovering(&self) -> bool {
        match &self.selective {
            Some(selective) => selective.progress().recovering,
            None => self.recovery.is_recovering(),
        }
    }

    /// An acknowledgement was processed: what validation makes of a repair that began or ended with it.
    #[inline]
    pub(super) fn validate_repair(&mut self, before: Option<Repair>) {
        if let Some(before) = before
            && self.is_recovering() != before.recovering
        {
            self.validate_repair_edge(&before);
        }
    }

    #[cold]
    fn validate_repair_edge(&mut self, before: &Repair) {
        let Some(validation) = self.extras.validation_mut() else { return };
        let retransmissions = self.stats.retransmissions;
        let segments = if before.recovering {
            validation.on_recovered(retransmissions)
        } else {
            let flight = before.flight_bytes.div_ceil(self.mss);
            validation.on_congestion(flight, before.window_bytes / self.mss, retransmissions)
        };
        if let Some(segments) = segments {
            self.controller.set_ssthresh(segments.saturating_mul(self.mss).max(2 * self.mss));
            self.controller.set_window(segments.saturating_mul(self.mss));
        }
    }

    /// The retransmission timer expired.
    pub(super) fn validate_timeout(&mut self, now: Nanos) {
        if let Some(validation) = self.extras.validation_mut() {
            validation.on_timeout(now);
        }
    }

    /// Nothing more leaves now: notes how much of the window that used, and gives up what was long unused.
    pub(super) fn validate_window(&mut self, now: Nanos) {
        if !self.sent_since_validation && self.una == self.highest_sent {
            // Nothing is in flight: whatever the window, it did not limit.
            return;
        }
        let window = self.cwnd_bytes() / self.mss;
        let (outstanding, in_flight) = match &self.selective {
            Some(selective) => (selective.outstanding(), selective.in_flight()),
            None => {
                let segments = self.flight_bytes().div_ceil(self.mss);
                (segments, segments)
            }
        };
        let limited = in_flight >= window;
        if !(self.sent_since_validation || limited) {
            return;
        }
        self.sent_since_validation = false;
        let initial_window_segments = self.initial_window_bytes() / self.mss;
        let Some(validation) = self.extras.validation_mut() else { return };
        validation.on_transmit(
            now,
            &Burst {
                limited,
                outstanding_segments: outstanding,
                una: self.una,
                nxt: self.nxt,
                window_segments: window,
                in_slow_start: self.controller.window() < self.controller.ssthresh(),
            },
        );
        let open = self.selective.as_ref().is_none_or(|selective| selective.is_open());
        let applies = self.profile.window_validation == WindowValidation::Rfc7661 || self.profile.app_limited_decay;
        if !open || !applies || self.controller.is_rate_based() {
            return;
        }
        let unused = Unused { window_segments: window, initial_window_segments, rto: self.rtt.rto() };
        if let Some(shrunk) = validation.unused(now, &unused) {
            self.controller.set_window(shrunk.window_segments * self.mss);
            let least = shrunk.least_ssthresh_segments * self.mss;
            let ssthresh = self.controller.ssthresh().max(least);
            self.controller.set_ssthresh(ssthresh);
        }
    }

    /// Whether an acknowledgement lets the window grow; `advances`: it is of new data.
    #[inline]
    pub(super) fn window_may_grow(&mut self, now: Nanos, advances: bool) -> bool {
        let is_recovering = advances && self.is_recovering();
        let Some(validation) = self.extras.validation_mut() else { return true };
        let window = self.controller.window() / self.mss;
        if advances && !is_recovering {
            let srtt = self.rtt.smoothed(&self.profile.rto).unwrap_or(0);
            validation.on_ack(now, self.una, self.nxt, srtt, window);
        }
        validation.allows_growth(window, self.controller.window() < self.controller.ssthresh())
    }
}
