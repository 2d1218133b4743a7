//! Slow start and congestion avoidance as RFC 5681 states them, with the counting variants in use.

use super::{Acknowledged, CongestionAvoidance, CongestionControl, SlowStartGrowth, Start};
use crate::Nanos;
use crate::profile::LARGEST_WINDOW;

#[derive(Clone, Debug)]
pub(crate) struct Reno {
    window: u32,
    ssthresh: u32,
    mss: u32,
    loss_window: u32,
    /// Bytes acknowledged since cwnd last grew in congestion avoidance (only when counting by window).
    counted: u32,
    slow_start_growth: SlowStartGrowth,
    congestion_avoidance: CongestionAvoidance,
}

impl Reno {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            window: start.window_bytes,
            ssthresh: start.ssthresh_bytes,
            mss: start.mss_bytes,
            loss_window: start.loss_window_bytes,
            counted: 0,
            slow_start_growth: start.slow_start_growth,
            congestion_avoidance: start.congestion_avoidance,
        }
    }

    // RFC 5681 §3.1 equation (4): ssthresh = max (FlightSize / 2, 2*SMSS).
    fn halved(&self, flight_bytes: u32) -> u32 {
        (flight_bytes / 2).max(2 * self.mss)
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_sent(&mut self, _now: Nanos, _bytes: u32) {}

    #[inline]
    fn on_ack(&mut self, _now: Nanos, acknowledged: Acknowledged) {
        let increase = if self.window < self.ssthresh {
            match self.slow_start_growth {
                SlowStartGrowth::PerAck => self.mss,
                // RFC 5681 §3.1 equation (2): cwnd += min (N, SMSS).
                SlowStartGrowth::Bytes => acknowledged.bytes.min(self.mss),
            }
        } else {
            match self.congestion_avoidance {
                // RFC 5681 §3.1 equation (3): cwnd += SMSS*SMSS/cwnd, and 1 byte if that is 0.
                CongestionAvoidance::PerAck => (self.mss * self.mss / self.window).max(1),
                // RFC 5681 §3.1: count the bytes acknowledged; when they reach cwnd, cwnd grows by up to SMSS.
                CongestionAvoidance::PerWindow => {
                    self.counted += acknowledged.bytes;
                    if self.counted < self.window {
                        return;
                    }
                    self.counted -= self.window;
                    self.mss
                }
            }
        };
        // No peer can announce more than the largest window, so a larger cwnd would mean nothing.
        self.window = (self.window + increase).min(LARGEST_WINDOW);
    }

    fn on_congestion(&mut self, _now: Nanos, flight_bytes: u32) {
        self.ssthresh = self.halved(flight_bytes);
        self.window = self.ssthresh;
        self.counted = 0;
    }

    fn on_timeout(&mut self, _now: Nanos, flight_bytes: u32, first: bool) {
        // RFC 5681 §3.1: when a segment has been retransmitted by the timer at least once, ssthresh is held constant.
        if first {
            self.ssthresh = self.halved(flight_bytes);
        }
        // RFC 5681 §3.1: upon a timeout cwnd MUST be set to no more than the loss window, LW.
        self.window = self.loss_window;
        self.counted = 0;
    }

    #[inline]
    fn window(&self) -> u32 {
        self.window
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn set_window(&mut self, bytes: u32) {
        self.window = bytes.min(LARGEST_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_counted_before_a_loss_do_not_count_towards_growth_after_it() {
        let mut reno = Reno::new(&Start {
            mss_bytes: 1000,
            window_bytes: 10_000,
            ssthresh_bytes: 10_000,
            loss_window_bytes: 1000,
            slow_start_growth: SlowStartGrowth::Bytes,
            congestion_avoidance: CongestionAvoidance::PerWindow,
        });
        reno.on_ack(0, Acknowledged { bytes: 9000 });
        assert_eq!(reno.window(), 10_000);
        reno.on_congestion(0, 10_000);
        assert_eq!((reno.window(), reno.ssthresh()), (5000, 5000));
        reno.on_ack(0, Acknowledged { bytes: 4000 });
        assert_eq!(reno.window(), 5000);
        reno.on_ack(0, Acknowledged { bytes: 1000 });
        assert_eq!(reno.window(), 6000);
    }
}
