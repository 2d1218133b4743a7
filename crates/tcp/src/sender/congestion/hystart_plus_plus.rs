//! HyStart++ (RFC 9406): when the round trip rises in slow start, growth becomes four times slower (conservative slow
//! start); if the rise lasts, slow start ends, and if it does not, slow start goes on as before.

use super::interface::RoundTrip;
use super::shortest::Shortest;
use crate::Nanos;
use crate::amounts::{Bytes, Segments};
use crate::sequence::SeqNum;

// RFC 9406 §4.3: recommended values.
const MIN_RTT_THRESH: Nanos = 4_000_000;
const MAX_RTT_THRESH: Nanos = 16_000_000;
const MIN_RTT_DIVISOR: Nanos = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments that one acknowledgment counts for at most, if segments are not paced.
const L: Segments = Segments(8);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    /// Conservative slow start, in its so-many-th round; `baseline` is the shortest round trip of the round that ended
    /// ordinary slow start.
    Conservative {
        rounds: u32,
        baseline: Nanos,
    },
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct HystartPlusPlus {
    phase: Phase,
    paced: bool,
    samples: u32,
    /// windowEnd: the round ends when this position is acknowledged.
    round_end: SeqNum,
    last_round_ns: Shortest,
    this_round_ns: Shortest,
}

impl HystartPlusPlus {
    // RFC 9406 §4.2: lastRoundMinRTT = infinity, currentRoundMinRTT = infinity.
    pub(super) fn new(paced: bool) -> Self {
        let (last_round_ns, this_round_ns) = (Shortest::default(), Shortest::default());
        Self { phase: Phase::SlowStart, paced, samples: 0, round_end: 0, last_round_ns, this_round_ns }
    }

    // RFC 9406 §4.2: if loss or ECN marking is observed at any time during standard slow start or CSS, enter
    // congestion avoidance. §4.3: use it only for the initial slow start.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Done;
    }

    /// Slow start was left.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Growth of the window; none once slow start was left.
    pub(super) fn growth(&self, bytes: Bytes, mss: Bytes) -> Option<Bytes> {
        // RFC 9406 §4.2: cwnd = cwnd + min(N, L * SMSS). §4.3: L = infinity if paced.
        let bytes = if self.paced { bytes } else { bytes.min(L * mss) };
        match self.phase {
            Phase::SlowStart => Some(bytes),
            // RFC 9406 §4.2: cwnd = cwnd + (min(N, L * SMSS) / CSS_GROWTH_DIVISOR).
            Phase::Conservative { .. } => Some(bytes / CSS_GROWTH_DIVISOR),
            Phase::Done => None,
        }
    }

    /// True: slow start is to end here.
    pub(super) fn on_round_trip(&mut self, sample: &RoundTrip) -> bool {
        if self.phase == Phase::Done {
            return false;
        }
        if sample.una >= self.round_end && self.end_round(sample.nxt) {
            self.stop();
            return true;
        }
        let this_round = self.this_round_ns.measure(sample.rtt);
        self.samples += 1;
        if self.samples >= N_RTT_SAMPLE {
            self.compare_rounds(this_round);
        }
        false
    }

    /// A round begins. True if it would be one too many of conservative slow start.
    // RFC 9406 §4.2: CSS lasts at most CSS_ROUNDS rounds; if the transition into CSS happens in the middle of a round,
    // that partial round counts towards the limit.
    fn end_round(&mut self, next: SeqNum) -> bool {
        self.round_end = next;
        self.last_round_ns = std::mem::take(&mut self.this_round_ns);
        self.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            if *rounds == CSS_ROUNDS {
                return true;
            }
            *rounds += 1;
        }
        false
    }

    fn compare_rounds(&mut self, this_round: Nanos) {
        match (self.phase, self.last_round_ns.get()) {
            // RFC 9406 §4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH));
            // if currentRoundMinRTT >= lastRoundMinRTT + RttThresh, exit slow start and enter CSS.
            (Phase::SlowStart, Some(last_round)) => {
                let threshold = (last_round / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if this_round >= last_round + threshold {
                    self.phase = Phase::Conservative { rounds: 1, baseline: this_round };
                }
            }
            // RFC 9406 §4.2: if currentRoundMinRTT < cssBaselineMinRtt, resume slow start.
            (Phase::Conservative { baseline, .. }, _) if this_round < baseline => self.phase = Phase::SlowStart,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    /// A round of `samples` acknowledgments of which each takes `rtt_ms`; true if slow start ended.
    fn round(hystart: &mut HystartPlusPlus, number: u64, samples: u64, rtt_ms: u64) -> bool {
        (0..samples).any(|sample| {
            let una = number * 1000 + sample;
            let sample = RoundTrip { rtt: rtt_ms * MILLISECOND, una, nxt: (number + 1) * 1000 };
            hystart.on_round_trip(&sample)
        })
    }

    #[test]
    fn eight_late_samples_make_slow_start_conservative() {
        let mut hystart = HystartPlusPlus::new(false);
        round(&mut hystart, 1, 8, 80);
        round(&mut hystart, 2, 7, 90);
        assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), Some(Bytes(4000)));
        round(&mut hystart, 3, 8, 102);
        assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), Some(Bytes(1000)));
    }

    #[test]
    fn a_rise_below_an_eighth_changes_nothing() {
        let mut hystart = HystartPlusPlus::new(false);
        for (number, rtt_ms) in [(1, 80), (2, 89), (3, 98)] {
            round(&mut hystart, number, 8, rtt_ms);
        }
        assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), Some(Bytes(4000)));
    }

    #[test]
    fn slow_start_ends_after_five_conservative_rounds() {
        let mut hystart = HystartPlusPlus::new(false);
        round(&mut hystart, 1, 8, 80);
        for number in 2..=6 {
            assert!(!round(&mut hystart, number, 8, 100), "round {number}");
            assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), Some(Bytes(1000)));
        }
        assert!(round(&mut hystart, 7, 1, 100));
        assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), None);
    }

    #[test]
    fn slow_start_resumes_when_the_delay_falls_again() {
        let mut hystart = HystartPlusPlus::new(false);
        round(&mut hystart, 1, 8, 80);
        round(&mut hystart, 2, 8, 100);
        round(&mut hystart, 3, 8, 99);
        assert_eq!(hystart.growth(Bytes(4000), Bytes(1000)), Some(Bytes(4000)));
    }

    #[test]
    fn an_acknowledgement_counts_for_eight_segments_unless_segments_are_paced() {
        assert_eq!(HystartPlusPlus::new(false).growth(Bytes(20_000), Bytes(1000)), Some(Bytes(8000)));
        assert_eq!(HystartPlusPlus::new(true).growth(Bytes(20_000), Bytes(1000)), Some(Bytes(20_000)));
    }
}
