//! Slow start and congestion avoidance as RFC 5681 states them, with the counting variants in use.

use super::interface::{Acknowledged, CongestionControl};
use super::start::{CongestionAvoidance, RenoSettings, SlowStartGrowth, Start};
use super::window::Window;
use crate::Nanos;
use crate::amounts::{Bytes, Segments};

#[derive(Clone, Debug)]
pub(crate) struct Reno {
    loss_window: Bytes,
    /// Acknowledged since cwnd last grew in congestion avoidance (only when counting by window).
    counted: Bytes,
    settings: RenoSettings,
}

impl Reno {
    pub(super) fn new(start: &Start) -> Self {
        Self { loss_window: Bytes(start.loss_window_bytes), counted: Bytes::ZERO, settings: start.settings.reno }
    }

    // RFC 5681 §3.1 equation (4): ssthresh = max (FlightSize / 2, 2*SMSS).
    fn halved(&self, w: &Window, flight: Bytes) -> Bytes {
        let half = flight / 2;
        let whole = if self.settings.whole_segment_ssthresh { half.round_down(w.mss) } else { half };
        whole.max(Segments(2) * w.mss)
    }

    /// Growth in slow start by everything acknowledged, up to the threshold; the rest counts towards
    /// congestion avoidance (Linux's tcp_slow_start).
    pub(super) fn slow_start_by_all(w: &mut Window, bytes: Bytes) -> Bytes {
        let increase = bytes.min(w.ssthresh.saturating_sub(w.cwnd()));
        w.grow(increase);
        bytes - increase
    }

    /// Growth in congestion avoidance.
    #[inline]
    fn avoid(&mut self, w: &mut Window, bytes: Bytes) {
        match self.settings.congestion_avoidance {
            // RFC 5681 §3.1 equation (3): cwnd += SMSS*SMSS/cwnd, and 1 byte if that is 0.
            CongestionAvoidance::PerAck => w.grow(Bytes((w.mss.0 * w.mss.0 / w.cwnd().0).max(1))),
            CongestionAvoidance::PerWindow => self.avoid_by_window(w, bytes),
        }
    }

    // RFC 5681 §3.1: count the bytes acknowledged; when they reach cwnd, cwnd grows by up to SMSS. As in Linux's
    // tcp_cong_avoid_ai, the count under a larger window buys one segment, not many.
    #[inline]
    fn avoid_by_window(&mut self, w: &mut Window, bytes: Bytes) {
        let window = w.cwnd();
        if self.counted >= window {
            self.counted = Bytes::ZERO;
            w.grow(w.mss);
        }
        self.counted += bytes;
        if self.counted >= window {
            let windows = self.counted.0 / window.0;
            self.counted -= Bytes(windows * window.0);
            w.grow(Segments(windows) * w.mss);
        }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, w: &mut Window, _now: Nanos, acknowledged: Acknowledged) {
        let bytes = acknowledged.bytes;
        if w.cwnd() >= w.ssthresh {
            return self.avoid(w, bytes);
        }
        match self.settings.slow_start_growth {
            SlowStartGrowth::PerAck => w.grow(w.mss),
            // RFC 5681 §3.1 equation (2): cwnd += min (N, SMSS).
            SlowStartGrowth::AbcL1 => w.grow(bytes.min(w.mss)),
            SlowStartGrowth::AbcUnlimited => {
                let left_over = Self::slow_start_by_all(w, bytes);
                if left_over > Bytes::ZERO {
                    self.avoid(w, left_over);
                }
            }
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Nanos, flight: Bytes) {
        w.ssthresh = self.halved(w, flight);
        w.set_cwnd(w.ssthresh);
        self.counted = Bytes::ZERO;
    }

    fn on_timeout(&mut self, w: &mut Window, _now: Nanos, flight: Bytes, first: bool) {
        // RFC 5681 §3.1: when a segment has been retransmitted by the timer at least once, ssthresh is held constant.
        if first {
            w.ssthresh = self.halved(w, flight);
        }
        // RFC 5681 §3.1: upon a timeout cwnd MUST be set to no more than the loss window, LW.
        w.set_cwnd(self.loss_window);
        self.counted = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::congestion::CongestionAlgorithm;
    use crate::sender::congestion::controller::Controller;

    fn reno(slow_start_growth: SlowStartGrowth, window_bytes: u32, ssthresh_bytes: Option<u32>) -> Controller {
        Controller::new_in(None, CongestionAlgorithm::Reno, &start(slow_start_growth, window_bytes, ssthresh_bytes))
    }

    fn start(slow_start_growth: SlowStartGrowth, window_bytes: u32, ssthresh_bytes: Option<u32>) -> Start {
        let mut start = Start { window_bytes, ssthresh_bytes, ..Start::of(0) };
        start.settings.reno.slow_start_growth = slow_start_growth;
        start.settings.reno.whole_segment_ssthresh = false;
        start
    }

    // Linux, tcp_current_ssthresh.
    #[test]
    fn three_quarters_of_cwnd_are_the_ssthresh_to_return_to_unless_cwnd_is_being_reduced() {
        let reno = reno(SlowStartGrowth::AbcL1, 19_500, Some(10_000));
        assert_eq!([false, true].map(|reducing| reno.current_ssthresh(reducing)), [13_000, 10_000]);
    }

    #[test]
    fn bytes_counted_before_a_loss_do_not_count_towards_growth_after_it() {
        let mut reno = reno(SlowStartGrowth::AbcL1, 10_000, Some(10_000));
        reno.on_ack(0, Acknowledged { bytes: Bytes(9000) });
        assert_eq!(reno.cwnd(), 10_000);
        reno.on_congestion(0, 10_000);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (5000, 5000));
        reno.on_ack(0, Acknowledged { bytes: Bytes(4000) });
        assert_eq!(reno.cwnd(), 5000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(1000) });
        assert_eq!(reno.cwnd(), 6000);
    }

    #[test]
    fn what_slow_start_leaves_over_counts_towards_congestion_avoidance() {
        let mut reno = reno(SlowStartGrowth::AbcUnlimited, 8000, Some(10_000));
        reno.on_ack(0, Acknowledged { bytes: Bytes(8000) });
        assert_eq!(reno.cwnd(), 10_000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(3000) });
        assert_eq!(reno.cwnd(), 10_000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(1000) });
        assert_eq!(reno.cwnd(), 11_000);
    }

    #[test]
    fn credit_from_a_larger_window_buys_one_segment_and_no_more() {
        let mut reno = reno(SlowStartGrowth::AbcUnlimited, 20_000, Some(10_000));
        reno.on_ack(0, Acknowledged { bytes: Bytes(19_000) });
        reno.set_cwnd(5000);
        reno.set_ssthresh(5000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(1000) });
        assert_eq!(reno.cwnd(), 6000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(4000) });
        assert_eq!(reno.cwnd(), 6000);
        reno.on_ack(0, Acknowledged { bytes: Bytes(1000) });
        assert_eq!(reno.cwnd(), 7000);
    }

    #[test]
    fn how_slow_start_grows_does_not_change_the_threshold_after_a_loss() {
        for growth in [SlowStartGrowth::PerAck, SlowStartGrowth::AbcL1, SlowStartGrowth::AbcUnlimited] {
            for (whole_segment_ssthresh, expected) in [(false, 5500), (true, 5000)] {
                let mut start = start(growth, 11_000, Some(10_000));
                start.settings.reno.whole_segment_ssthresh = whole_segment_ssthresh;
                let mut reno = Controller::new_in(None, CongestionAlgorithm::Reno, &start);
                reno.on_congestion(0, 11_000);
                assert_eq!(reno.ssthresh(), expected, "{growth:?}");
            }
        }
    }
}
