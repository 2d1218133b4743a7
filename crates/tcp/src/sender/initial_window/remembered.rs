//! The window that earlier connections to the same destination came to.

use super::{Outcome, StartingPoint};
use crate::Nanos;
use crate::profile::{Lesson, MemoryOf, Remembered};

/// Segments times this number: means need more than whole segments.
const SCALE: u64 = 256;

/// The entry of one destination.
#[derive(Clone, Copy, Debug, Default)]
pub struct DestinationMemory {
    window: Option<u64>,
    ssthresh: Option<u64>,
    /// Only a loss has set the window: the first sample replaces it.
    unsampled: bool,
    renewed_at: Nanos,
}

impl DestinationMemory {
    /// Starting point of a connection that is opened now.
    // RFC 9040 §6.1, table 1: old_ssthresh and old_sendcwnd initialise a new TCB.
    pub fn starting_point(&self, policy: &Remembered, now: Nanos) -> StartingPoint {
        let known = self.forget_old(policy, now);
        let segments = |value: u64| ((value + SCALE / 2) / SCALE).max(1) as u32;
        let least = if policy.lesson == Lesson::Last { 1 } else { policy.start_segments };
        let window = known.window.map_or(policy.start_segments, segments);
        StartingPoint {
            window_segments: window.max(least).min(policy.max_segments),
            ssthresh_segments: known.ssthresh.map(|value| segments(value).max(2)),
        }
    }

    /// Takes in the windows, in segments, of the connections that are alive now; for [`MemoryOf::Live`].
    pub fn observe(&mut self, policy: &Remembered, now: Nanos, windows: impl IntoIterator<Item = u32>) {
        let (count, sum) =
            windows.into_iter().fold((0, 0), |(count, sum), window| (count + 1, sum + u64::from(window)));
        if policy.of == MemoryOf::Live && count > 0 {
            self.renew(policy, now, sum * SCALE / count, None);
        }
    }

    /// Adds the outcome of a connection that has ended.
    // RFC 9040 §6.2, table 3: at CLOSE, old_ssthresh and old_sendcwnd become merge(curr, old).
    pub fn learn(&mut self, policy: &Remembered, now: Nanos, outcome: &Outcome) {
        let ssthresh = outcome.ssthresh_segments.filter(|_| policy.ssthresh && policy.of == MemoryOf::Closed);
        let lost = outcome.retransmissions > 0;
        let overshot = 2 * outcome.largest_window_segments > 3 * outcome.initial_window_segments;
        let window = match policy.lesson {
            Lesson::Last => outcome.window_segments,
            Lesson::LossAwareFirstFlight if lost && overshot => return,
            Lesson::LossAware | Lesson::LossAwareFirstFlight if lost => return self.halve(policy, now, outcome),
            _ => outcome.largest_window_segments.min(outcome.delivered_segments),
        };
        self.renew(policy, now, u64::from(window) * SCALE, ssthresh.map(|n| u64::from(n) * SCALE));
    }

    fn halve(&mut self, policy: &Remembered, now: Nanos, outcome: &Outcome) {
        *self = self.forget_old(policy, now);
        self.unsampled |= self.window.is_none();
        let old = self.window.unwrap_or(u64::from(outcome.initial_window_segments) * SCALE);
        self.window = Some((old / 2).max(u64::from(policy.start_segments) * SCALE));
        self.renewed_at = now;
    }

    // RFC 9040 §8.1: information can become invalid over time.
    fn forget_old(self, policy: &Remembered, now: Nanos) -> Self {
        if now.saturating_sub(self.renewed_at) > policy.lifetime_ns { Self::default() } else { self }
    }

    fn renew(&mut self, policy: &Remembered, now: Nanos, window: u64, ssthresh: Option<u64>) {
        *self = self.forget_old(policy, now);
        // RFC 9040 §6.2: merge() may be an exponential decay, new = (1-alpha)*old + alpha*new; without an old value,
        // the current one is cached (§6.3).
        let weight = u64::from(policy.weight_percent);
        let merge = |old: Option<u64>, new: u64| old.map_or(new, |old| (old * (100 - weight) + new * weight) / 100);
        self.window = Some(merge(self.window.filter(|_| !self.unsampled), window));
        self.unsampled = false;
        if let Some(ssthresh) = ssthresh {
            self.ssthresh = Some(merge(self.ssthresh, ssthresh));
        }
        self.renewed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    fn policy(of: MemoryOf) -> Remembered {
        Remembered { of, ssthresh: true, ..Remembered::default() }
    }

    fn outcome(window_segments: u32, ssthresh_segments: Option<u32>) -> Outcome {
        Outcome {
            window_segments,
            ssthresh_segments,
            initial_window_failed: false,
            initial_window_segments: 10,
            largest_window_segments: window_segments,
            delivered_segments: 1000,
            retransmissions: 0,
        }
    }

    fn window(memory: &DestinationMemory, policy: &Remembered, now: Nanos) -> u32 {
        memory.starting_point(policy, now).window_segments
    }

    #[test]
    fn an_unknown_destination_gets_the_start_value() {
        let memory = DestinationMemory::default();
        let start = memory.starting_point(&policy(MemoryOf::Closed), 5 * SECOND);
        assert_eq!(start, StartingPoint { window_segments: 10, ssthresh_segments: None });
    }

    #[test]
    fn closed_connections_merge_with_what_is_remembered() {
        let policy = policy(MemoryOf::Closed);
        let mut memory = DestinationMemory::default();
        memory.learn(&policy, 0, &outcome(40, None));
        assert_eq!(window(&memory, &policy, SECOND), 40);
        memory.learn(&policy, SECOND, &outcome(20, Some(16)));
        memory.learn(&policy, SECOND, &outcome(30, Some(8)));
        let start = memory.starting_point(&policy, SECOND);
        assert_eq!(start, StartingPoint { window_segments: 30, ssthresh_segments: Some(12) });
    }

    #[test]
    fn live_connections_count_with_their_mean() {
        let policy = policy(MemoryOf::Live);
        let mut memory = DestinationMemory::default();
        memory.observe(&policy, 0, [20, 30, 70]);
        assert_eq!(window(&memory, &policy, 0), 40);
        memory.observe(&policy, 0, []);
        assert_eq!(window(&memory, &policy, 0), 40);
        memory.observe(&policy, SECOND, [80]);
        assert_eq!(window(&memory, &policy, SECOND), 60);
    }

    #[test]
    fn live_connections_are_nothing_to_a_memory_of_closed_ones() {
        let policy = policy(MemoryOf::Closed);
        let mut memory = DestinationMemory::default();
        memory.observe(&policy, 0, [20, 30, 70]);
        assert_eq!(window(&memory, &policy, 0), 10);
    }

    fn learned(lesson: Lesson, outcomes: &[Outcome]) -> u32 {
        let policy = Remembered { lesson, weight_percent: 25, ..policy(MemoryOf::Closed) };
        let mut memory = DestinationMemory::default();
        for outcome in outcomes {
            memory.learn(&policy, 0, outcome);
        }
        window(&memory, &policy, 0)
    }

    #[test]
    fn the_largest_window_counts_up_to_what_was_delivered() {
        let first = Outcome { window_segments: 20, largest_window_segments: 40, ..outcome(0, None) };
        let short = Outcome { delivered_segments: 20, ..first };
        assert_eq!(learned(Lesson::Largest, &[first, short]), 35);
        assert_eq!(learned(Lesson::Largest, &[Outcome { retransmissions: 9, ..first }]), 40);
        assert_eq!(learned(Lesson::Largest, &[Outcome { largest_window_segments: 4, ..first }]), 10, "the floor");
    }

    #[test]
    fn a_retransmission_halves_what_is_remembered() {
        let (clean, lossy) = (outcome(40, None), Outcome { retransmissions: 1, ..outcome(40, None) });
        assert_eq!(learned(Lesson::LossAware, &[clean, lossy]), 20);
        assert_eq!(learned(Lesson::LossAware, &[clean, lossy, lossy, lossy]), 10);
        let first = Outcome { initial_window_segments: 32, ..lossy };
        assert_eq!(learned(Lesson::LossAware, &[first]), 16);
        assert_eq!(learned(Lesson::LossAware, &[first, clean]), 40, "the first sample replaces it");
    }

    #[test]
    fn an_overshoot_of_slow_start_teaches_nothing_with_the_discriminant() {
        let clean = outcome(40, None);
        let at = |largest_window_segments| Outcome {
            retransmissions: 1,
            initial_window_segments: 40,
            largest_window_segments,
            ..clean
        };
        assert_eq!(learned(Lesson::LossAwareFirstFlight, &[clean, at(61)]), 40);
        assert_eq!(learned(Lesson::LossAwareFirstFlight, &[clean, at(60)]), 20);
    }

    #[test]
    fn what_is_not_renewed_is_forgotten() {
        let policy = policy(MemoryOf::Closed);
        let mut memory = DestinationMemory::default();
        memory.learn(&policy, 0, &outcome(40, None));
        assert_eq!(window(&memory, &policy, 90 * SECOND), 40);
        assert_eq!(window(&memory, &policy, 90 * SECOND + 1), 10);
        memory.learn(&policy, 100 * SECOND, &outcome(20, None));
        assert_eq!(window(&memory, &policy, 100 * SECOND), 20, "not merged with what was forgotten");
    }

    #[test]
    fn the_cap_holds_and_one_segment_is_the_least() {
        let policy = policy(MemoryOf::Closed);
        let mut memory = DestinationMemory::default();
        memory.learn(&policy, 0, &outcome(5000, None));
        assert_eq!(window(&memory, &policy, 0), 100);
        let mut memory = DestinationMemory::default();
        memory.learn(&policy, 0, &outcome(0, None));
        assert_eq!(window(&memory, &policy, 0), 1);
    }
}
