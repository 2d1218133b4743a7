//! BBR's modes: filling the pipe, draining it, probing for bandwidth, probing for the RTT.

use super::{
    Bbr, CYCLE, DRAIN_GAIN, FULL_GROWTH, FULL_ROUNDS, HIGH_GAIN, LEAST, MIN_RTT_TIME, Mode, PROBE_RTT_TIME, UNIT,
    WINDOW_GAIN,
};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::sender::congestion::{Delivery, Window};

impl Bbr {
    /// The shortest round trip that it goes by.
    #[cfg(test)]
    pub(crate) fn min_rtt(&self) -> Option<Nanos> {
        self.min_rtt
    }

    /// The mode's name in the paper.
    #[cfg(test)]
    pub(in crate::sender::congestion) fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "STARTUP",
            Mode::Drain => "DRAIN",
            Mode::ProbeBandwidth => "PROBE_BW",
            Mode::ProbeRtt => "PROBE_RTT",
        }
    }

    pub(super) fn enter_probe_bandwidth(&mut self, now: Nanos) {
        self.mode = Mode::ProbeBandwidth;
        // Any phase but the one that drains. The multiplier and increment of Numerical Recipes' generator.
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.phase = (CYCLE.len() - (self.seed >> 16) as usize % (CYCLE.len() - 1)) % CYCLE.len();
        self.phase_start = now;
    }

    pub(super) fn leave_probe_rtt(&mut self, w: &mut Window, now: Nanos) {
        self.min_rtt_at = Some(now);
        w.set_cwnd(w.cwnd().max(self.prior_window));
        if self.pipe_is_full {
            self.enter_probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    pub(super) fn update_phase(&mut self, now: Nanos, delivery: &Delivery) {
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(now, delivery) {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_start = now;
        }
    }

    fn phase_is_over(&self, now: Nanos, delivery: &Delivery) -> bool {
        let long_enough = self.min_rtt.is_some_and(|rtt| now - self.phase_start > rtt);
        let flight = self.flight(Bytes(delivery.prior_flight_bytes));
        match self.pacing_gain {
            UNIT => long_enough,
            // Probing lasts until the flight is as large as it should get, or something is lost.
            gain if gain > UNIT => long_enough && (delivery.newly_lost_bytes > 0 || flight >= self.target_flight(gain)),
            // Draining ends early once the queue is gone.
            _ => long_enough || flight <= self.target_flight(UNIT),
        }
    }

    pub(super) fn check_full_pipe(&mut self, app_limited: bool) {
        if self.pipe_is_full || !self.round_start || app_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth * FULL_GROWTH / u64::from(UNIT) {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.pipe_is_full = self.full_rounds >= FULL_ROUNDS;
    }

    pub(super) fn check_drain(&mut self, w: &mut Window, now: Nanos, flight: Bytes) {
        if self.mode == Mode::Startup && self.pipe_is_full {
            self.mode = Mode::Drain;
            w.ssthresh = self.bytes(self.target_flight(UNIT));
        }
        if self.mode == Mode::Drain && self.flight(flight) <= self.target_flight(UNIT) {
            self.enter_probe_bandwidth(now);
        }
    }

    pub(super) fn update_min_rtt(&mut self, w: &mut Window, now: Nanos, delivery: &Delivery) {
        let expired = self.min_rtt_at.is_some_and(|at| now > at + MIN_RTT_TIME);
        if let Some(rtt) = delivery.rtt {
            if self.min_rtt.is_none_or(|shortest| rtt < shortest) || expired && !delivery.ack_delayed {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = Some(now);
            }
        }
        if expired && !self.restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(w);
            self.probe_rtt_end = None;
            self.limited.0 = delivery.delivered_bytes;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(w, now, delivery);
        }
        self.restarting &= delivery.sample_bytes == 0;
    }

    /// PROBE_RTT lasts 200 ms and a round from when the flight is down to four segments.
    fn probe_rtt(&mut self, w: &mut Window, now: Nanos, delivery: &Delivery) {
        self.limited.1 = delivery.delivered_bytes + u64::from(delivery.flight_bytes);
        match self.probe_rtt_end {
            None if Bytes(delivery.flight_bytes) <= LEAST * self.mss => {
                self.probe_rtt_end = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.round_end = delivery.delivered_bytes;
            }
            None => {}
            Some(end) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && now > end {
                    self.leave_probe_rtt(w, now);
                }
            }
        }
    }

    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], WINDOW_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }
}
