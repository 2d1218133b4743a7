//! Aggregation of acknowledgments: how much more was acknowledged at a time than the bandwidth explains. The window
//! is larger by that much, so that sending goes on between bursts of acknowledgments.

use super::{BANDWIDTH_SHIFT, scaled_product};
use crate::Nanos;

/// Rounds after which the older of the two maxima gives way.
const WINDOW_ROUNDS: u32 = 5;
/// The allowance is at most the data that the bandwidth delivers in this time.
const MOST_NS: u64 = 100_000_000;
/// An epoch in which this number of segments was acknowledged has lasted long enough.
const EPOCH_SEGMENTS: u64 = 1 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Nanos,
    /// Segments acknowledged in the epoch.
    acknowledged: u64,
    /// Largest excess in segments over the last five to ten rounds, in two halves.
    excess: [u64; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// An epoch begins, for sending begins again after an idle time.
    pub fn restart(&mut self, now: Nanos) {
        self.epoch_start = now;
        self.acknowledged = 0;
    }

    /// This number of segments was acknowledged.
    pub fn on_delivery(&mut self, now: Nanos, segments: u32, round_start: bool, bandwidth: u64, window: u32) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.excess[self.current] = 0;
            }
        }
        let mut expected = delivered_in(bandwidth, now.saturating_sub(self.epoch_start));
        if self.acknowledged <= expected || self.acknowledged + u64::from(segments) >= EPOCH_SEGMENTS {
            self.restart(now);
            expected = 0;
        }
        self.acknowledged += u64::from(segments);
        let excess = (self.acknowledged - expected).min(window.into());
        self.excess[self.current] = self.excess[self.current].max(excess);
    }

    /// Segments to add to the window.
    pub fn allowance(&self, bandwidth: u64) -> u64 {
        self.excess[0].max(self.excess[1]).min(delivered_in(bandwidth, MOST_NS))
    }
}

/// Segments that a bandwidth delivers in some time.
fn delivered_in(bandwidth: u64, time: Nanos) -> u64 {
    u64::try_from(scaled_product(bandwidth, time) >> BANDWIDTH_SHIFT).unwrap_or(u64::MAX)
}
