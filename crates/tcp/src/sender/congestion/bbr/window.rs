//! BBR's window: the target for data in flight, and the effect of recovery on it.

use super::{
    AGGREGATE_BYTES, AGGREGATE_SEGMENTS, AGGREGATE_SHIFT, BANDWIDTH_SHIFT, Bbr, INITIAL, LEAST, LossRecovery, Mode,
    UNIT, scaled_product,
};
use crate::amounts::{Bytes, LARGEST_WINDOW, Segments};
use crate::sender::congestion::{CongestionControl, Delivery, Window};

impl Bbr {
    /// Bandwidth times shortest round trip times gain, in segments, rounded up.
    fn product(&self, bandwidth: u64, gain: u32) -> u64 {
        let Some(min_rtt) = self.min_rtt else {
            return INITIAL.0.into();
        };
        (scaled_product(bandwidth, min_rtt) * u128::from(gain) / u128::from(UNIT)).div_ceil(1 << BANDWIDTH_SHIFT) as u64
    }

    /// Segments that leave together.
    fn aggregate(&self) -> u64 {
        let bytes = (self.pacing_rate >> AGGREGATE_SHIFT).min(AGGREGATE_BYTES);
        let least = self.min_train_segments().unwrap_or(1);
        (bytes / u64::from(self.mss)).max(least.into()).min(AGGREGATE_SEGMENTS)
    }

    /// Adds to a window the data held by the endpoints of the path: an aggregate each in the sender's queue, in its
    /// card and in the receiver; and rounds up to an even number for delayed acknowledgments.
    fn with_aggregates(&self, segments: u64) -> u64 {
        let segments = segments + 3 * self.aggregate();
        let probing_up = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        segments + segments % 2 + if probing_up { 2 } else { 0 }
    }

    /// The target for data in flight at a gain, in segments.
    pub(super) fn target_flight(&self, gain: u32) -> u64 {
        self.with_aggregates(self.product(self.bandwidth.get(), gain))
    }

    /// Segments in flight, as far as the next departure is concerned.
    pub(super) fn flight(&self, flight: Bytes) -> u64 {
        let departing = if self.pacing_gain > UNIT { self.aggregate() } else { 0 };
        u64::from(flight.full_segments(self.mss).0) + departing
    }

    pub(super) fn bytes(&self, segments: u64) -> Bytes {
        Segments(u32::try_from(segments).unwrap_or(u32::MAX)).bytes(self.mss).min(Bytes(LARGEST_WINDOW))
    }

    /// Remembers a window that is worth coming back to.
    pub(super) fn save_window(&mut self, w: &mut Window) {
        let cut = self.recovery >= LossRecovery::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_window = if cut { self.prior_window.max(w.cwnd()) } else { w.cwnd() };
    }

    /// Follows recovery; true: as much is to be sent as was delivered.
    fn recover_or_restore(&mut self, cwnd: &mut Bytes, delivery: &Delivery) -> bool {
        let supplied = Bytes(delivery.flight_bytes.saturating_add(delivery.newly_delivered_bytes));
        *cwnd = cwnd.saturating_sub(Bytes(delivery.newly_lost_bytes)).max(self.mss);
        let recovery = match delivery {
            Delivery { in_loss: true, .. } => LossRecovery::Loss,
            Delivery { in_recovery: true, .. } => LossRecovery::Recovery,
            _ => LossRecovery::None,
        };
        if recovery == LossRecovery::Recovery && self.recovery != LossRecovery::Recovery {
            self.conserving = true;
            self.round_end = delivery.delivered_bytes;
            *cwnd = supplied;
        } else if recovery == LossRecovery::None && self.recovery != LossRecovery::None {
            self.conserving = false;
            *cwnd = (*cwnd).max(self.prior_window);
        }
        self.recovery = recovery;
        if self.conserving {
            *cwnd = (*cwnd).max(supplied);
        }
        self.conserving
    }

    pub(super) fn update_window(&mut self, w: &mut Window, delivery: &Delivery) {
        let mut cwnd = w.cwnd();
        if delivery.newly_delivered_bytes > 0 && !self.recover_or_restore(&mut cwnd, delivery) {
            self.grow_towards_target(&mut cwnd, delivery);
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(LEAST * self.mss);
        }
        w.set_cwnd(cwnd);
    }

    fn grow_towards_target(&self, cwnd: &mut Bytes, delivery: &Delivery) {
        let bandwidth = self.bandwidth.get();
        let allowance = if self.pipe_is_full { self.aggregation.allowance(bandwidth) } else { 0 };
        let target = self.bytes(self.with_aggregates(self.product(bandwidth, self.window_gain) + allowance));
        let grown = cwnd.saturating_add(Bytes(delivery.newly_delivered_bytes));
        // Linux, bbr_set_cwnd: tp->delivered < TCP_INIT_CWND, and the SYN or SYN-ACK was the first that was delivered.
        let initial = u64::from(Segments(INITIAL.0 - 1) * self.mss);
        if self.pipe_is_full {
            *cwnd = grown.min(target);
        } else if *cwnd < target || delivery.delivered_bytes < initial {
            *cwnd = grown;
        }
        *cwnd = (*cwnd).max(LEAST * self.mss);
    }
}
