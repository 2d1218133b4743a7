//! Proportional integral controller enhanced: RFC 8033, with its names. It decides on arrival.
//!
//! The queueing delay is the wait of a packet that arrived at the time of the update: for a link with a known rate
//! it need not be estimated (section 4.3 estimates it where it is not).

use super::{Arrival, Limit, Verdict};
use crate::{Nanos, SpecError, spec::spec};

spec! {
    /// Proportional Integral controller Enhanced (RFC 8033), which drops at random on arrival.
    ///
    /// Every `update` the probability follows the delay in the queue, which is to be `target`; a burst of `max_burst` after
    /// the queue was empty passes. `derandomize` spreads the drops. With `ecn`, packets of ECN-capable connections are
    /// marked instead as long as the probability is below 0.1. Beyond `limit` arrivals are dropped.
    pub struct PieSpec {
        /// limit; arriving packets beyond it are dropped
        limit: Limit = Limit::Packets(1000),
        /// target queueing delay
        target_ns: Nanos [> 0] = 15_000_000,
        /// time between updates of the drop probability
        update_ns: Nanos [> 0] = 15_000_000,
        /// burst length that passes without drops after an empty queue
        max_burst_ns: Nanos = 150_000_000,
        /// derandomize drops (RFC 8033 section 5.4)
        derandomize: bool = true,
        /// CE-mark packets of ECN-capable connections instead of dropping them, while the drop probability is below 0.1
        #[serde(default)]
        ecn: bool = false,
    }
}

impl Copy for PieSpec {}

/// A PIE queue.
#[derive(Clone, Debug)]
pub struct Pie {
    spec: PieSpec,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: Nanos,
    burst_allowance: Nanos,
    /// When the probability is updated next.
    next_update: Nanos,
    /// The largest packet so far.
    largest_packet: u32,
}

// Section 4.2: in 1/s; the RFC's 1/8 and 1 + 1/4.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
// Section 5.1.
const MARK_ECN_THRESHOLD: f64 = 0.1;

impl Pie {
    /// Builds the queue, which needs no serialization time.
    ///
    /// # Errors
    /// A limit of zero.
    pub fn new(spec: &PieSpec, _serialization: &impl Fn(u32) -> Nanos) -> Result<Pie, SpecError> {
        spec.limit.validate()?;
        Ok(Pie {
            spec: *spec,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0,
            burst_allowance: spec.max_burst_ns,
            next_update: 0,
            largest_packet: 0,
        })
    }

    /// Decides on the arriving packet: section 4.1.
    // Out of line: most links have drop tail, and its code path must stay short.
    #[inline(never)]
    pub fn on_arrival(&mut self, arrival: Arrival<'_>, random: &mut impl FnMut() -> f64) -> Verdict {
        self.update(&arrival);
        self.largest_packet = self.largest_packet.max(arrival.bytes);
        if !arrival.serving {
            return Verdict::Admit;
        }
        let bytes = arrival.backlog.bytes() + u64::from(arrival.bytes);
        if self.spec.limit.is_exceeded_by(arrival.backlog.packets() + 1, bytes) {
            self.accu_prob = 0.0;
            return Verdict::Drop;
        }
        if self.burst_allowance > 0 || !self.drops_early(&arrival, random) {
            return Verdict::Admit;
        }
        self.accu_prob = 0.0;
        if self.spec.ecn && arrival.ecn_capable && self.drop_prob < MARK_ECN_THRESHOLD {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// `drop_early` of sections 4.1 and 5.4.
    fn drops_early(&mut self, arrival: &Arrival<'_>, random: &mut impl FnMut() -> f64) -> bool {
        let is_uncongested = self.qdelay_old < self.spec.target_ns / 2 && self.drop_prob < 0.2;
        if is_uncongested || arrival.backlog.bytes() <= 2 * u64::from(self.largest_packet) {
            return false;
        }
        if self.spec.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        random() < self.drop_prob
    }

    /// The updates that were due before this arrival, sections 4.2 and 4.4.
    fn update(&mut self, arrival: &Arrival<'_>) {
        while self.next_update <= arrival.now {
            let qdelay = arrival.free_at.saturating_sub(self.next_update);
            self.step(qdelay);
            self.next_update += self.spec.update_ns;
            let is_at_rest = self.drop_prob == 0.0 && self.qdelay_old == 0 && !arrival.serving;
            if is_at_rest && self.burst_allowance == self.spec.max_burst_ns {
                // Until the arrival all updates see the same state as this one.
                let missed = (arrival.now - self.next_update.min(arrival.now)) / self.spec.update_ns;
                self.next_update += missed * self.spec.update_ns;
            }
        }
    }

    fn step(&mut self, qdelay: Nanos) {
        let seconds = |nanos: i128| nanos as f64 / 1e9;
        let (current, target) = (i128::from(qdelay), i128::from(self.spec.target_ns));
        let mut p = ALPHA * seconds(current - target) + BETA * seconds(current - i128::from(self.qdelay_old));
        // Table of section 4.2: small probabilities change in small steps.
        p /= match self.drop_prob {
            prob if prob < 0.000_001 => 2048.0,
            prob if prob < 0.000_01 => 512.0,
            prob if prob < 0.000_1 => 128.0,
            prob if prob < 0.001 => 32.0,
            prob if prob < 0.01 => 8.0,
            prob if prob < 0.1 => 2.0,
            _ => 1.0,
        };
        // Section 5.5: no jump of more than 2 % once the probability is high.
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if qdelay == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update_ns);
        let is_low = |qdelay: Nanos| qdelay < self.spec.target_ns / 2;
        if self.drop_prob == 0.0 && is_low(qdelay) && is_low(self.qdelay_old) {
            self.burst_allowance = self.spec.max_burst_ns;
        }
        self.qdelay_old = qdelay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backlog;

    const MS: Nanos = 1_000_000;

    fn pie(drop_prob: f64, qdelay_old: Nanos) -> Pie {
        let spec = PieSpec {
            limit: Limit::Packets(1000),
            target_ns: 15 * MS,
            update_ns: 15 * MS,
            max_burst_ns: 150 * MS,
            derandomize: true,
            ecn: false,
        };
        let pie = Pie::new(&spec, &|_| 1).unwrap();
        Pie { drop_prob, qdelay_old, burst_allowance: 100 * MS, ..pie }
    }

    /// The probability after an update.
    fn updated(drop_prob: f64, qdelay_old: Nanos, qdelay: Nanos) -> f64 {
        let mut pie = pie(drop_prob, qdelay_old);
        pie.step(qdelay);
        pie.drop_prob
    }

    // RFC 8033 section 4.2: alpha (0.030 - 0.015) = 0.001875, divided by a power of two while the probability is small.
    #[test]
    fn a_small_probability_changes_in_small_steps() {
        for (below, divisor) in
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0), (0.2, 1.0)]
        {
            let just_below = below * 0.999_999;
            let found = updated(just_below, 30 * MS, 30 * MS) - just_below;
            assert!((found * divisor / 0.001_875 - 1.0).abs() < 1e-9, "{found} below {below}");
        }
        for (at, divisor) in
            [(0.0, 2048.0), (1e-6, 512.0), (1e-5, 128.0), (1e-4, 32.0), (1e-3, 8.0), (1e-2, 2.0), (1e-1, 1.0)]
        {
            let found = updated(at, 30 * MS, 30 * MS) - at;
            assert!((found * divisor / 0.001_875 - 1.0).abs() < 1e-9, "{found} at {at}");
        }
    }

    // Section 5.5, and 4.2 for the end of a queue.
    #[test]
    fn a_high_probability_rises_by_a_fiftieth_at_most_and_falls_by_another_without_a_queue() {
        // 0.125 (1 - 0.015) + 1.25 (1 - 0.03) = 1.335625.
        for (before, after) in [(0.1, 0.12), (0.5, 0.52), (0.09, 0.09 + 1.335_625 / 2.0), (0.999, 1.0)] {
            assert!((updated(before, 30 * MS, 1000 * MS) - after).abs() < 1e-12, "{before}");
        }
        assert!((updated(0.5, 0, 0) - (0.5 - 0.001_875) * 0.98).abs() < 1e-12);
        // 0.125 (0 - 0.015) + 1.25 (0 - 0.001) without the fiftieth.
        assert!((updated(0.5, MS, 0) - (0.5 - 0.003_125)).abs() < 1e-12);
        assert_eq!(updated(0.0001, 30 * MS, 0), 0.0);
    }

    // Section 4.4: a new allowance once both delays are below half of the target and nothing is dropped.
    #[test]
    fn the_burst_allowance_is_renewed_only_when_the_queue_was_short_twice() {
        let half = 15 * MS / 2;
        for (drop_prob, old, qdelay, allowance) in [
            (0.0, half - 1, half - 1, 150),
            (0.0, half, half - 1, 85),
            (0.0, half - 1, half, 85),
            (0.5, half - 1, half - 1, 85),
        ] {
            let mut pie = pie(drop_prob, old);
            pie.step(qdelay);
            assert_eq!(pie.burst_allowance, allowance * MS, "{drop_prob} {old} {qdelay}");
        }
    }

    fn backlog(packets: &[u32]) -> Backlog {
        let mut backlog = Backlog::default();
        packets.iter().zip(1..).for_each(|(&bytes, start)| backlog.push(start, bytes));
        backlog
    }

    fn arrival(backlog: &Backlog, bytes: u32) -> Arrival<'_> {
        Arrival { now: 0, bytes, ecn_capable: false, backlog, serving: true, free_at: 4_000 }
    }

    /// Whether a packet is dropped early that finds these others, with this draw.
    fn drops_early(pie: &mut Pie, others: &[u32], draw: f64) -> bool {
        pie.largest_packet = 1_000;
        pie.drops_early(&arrival(&backlog(others), 1_000), &mut || draw)
    }

    // RFC 8033 section 5.4: none below 0.85, one for certain from 8.5 on.
    #[test]
    fn the_sum_of_probabilities_decides_before_the_draw_does() {
        for (before, draw, drops, after) in [
            (0.5, 0.0, false, 0.75),
            (0.75, 0.0, true, 1.0),
            (8.0, 0.9, false, 8.25),
            (8.25, 0.9, true, 8.5),
            (9.0, 0.9, true, 9.25),
        ] {
            let mut pie = Pie { accu_prob: before, ..pie(0.25, 30 * MS) };
            assert_eq!((drops_early(&mut pie, &[1_000; 3], draw), pie.accu_prob), (drops, after), "{before}");
        }
    }

    // RFC 8033 section 4.1: no drop while the queue holds no more than two packets, here of the largest size so far.
    #[test]
    fn a_queue_as_short_as_two_of_the_largest_packets_drops_nothing_early() {
        for (bytes, drops) in [(1_999, false), (2_000, false), (2_001, true)] {
            let mut pie = Pie { accu_prob: 8.5, ..pie(0.25, 30 * MS) };
            assert_eq!(drops_early(&mut pie, &[bytes], 0.9), drops, "{bytes} bytes");
        }
    }

    // RFC 8033 section 4.1: no drop while the delay was below half of the target and the probability is below 0.2.
    #[test]
    fn a_short_delay_and_a_low_probability_together_drop_nothing_early() {
        let half = 15 * MS / 2;
        for (drop_prob, qdelay_old, drops) in
            [(0.199, half - 1, false), (0.199, half, true), (0.2, half - 1, true), (0.2, 0, true)]
        {
            let mut pie = Pie { accu_prob: 8.5, ..pie(drop_prob, qdelay_old) };
            assert_eq!(drops_early(&mut pie, &[3_000], 0.9), drops, "{drop_prob} {qdelay_old}");
        }
    }

    #[test]
    fn a_limit_in_bytes_counts_those_that_wait_and_those_that_come() {
        for (bytes, verdict) in [(1_000, Verdict::Admit), (1_001, Verdict::Drop)] {
            let mut pie = pie(0.0, 0);
            pie.spec.limit = Limit::Bytes(3_000);
            assert_eq!(pie.on_arrival(arrival(&backlog(&[2_000]), bytes), &mut || 0.0), verdict, "{bytes} bytes");
        }
    }
}
