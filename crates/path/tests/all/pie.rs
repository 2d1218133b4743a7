//! PIE against the pseudo-code of RFC 8033 section 4 and its appendix A, with the delay of a line whose rate is known.

use firstflight_path::{
    Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket,
    queue::{Limit, PieSpec, QueueSpec},
};
use proptest::prelude::*;

const MILLISECOND: Nanos = 1_000_000;
/// 8 Mbit/s: a byte a microsecond.
const NANOS_A_BYTE: Nanos = 1_000;

fn link(spec: PieSpec) -> Link {
    let spec = LinkSpec::plain(Some(8_000_000_000 / NANOS_A_BYTE), 0, QueueSpec::Pie(spec));
    Link::new(&spec, Meter::new(Nanos::MAX / 2, Nanos::MAX / 2), 0).unwrap()
}

fn usual(ecn: bool) -> PieSpec {
    PieSpec {
        limit: Limit::Packets(1000),
        target_ns: 15 * MILLISECOND,
        update_ns: 15 * MILLISECOND,
        max_burst_ns: 150 * MILLISECOND,
        derandomize: true,
        ecn,
    }
}

/// The RFC's variables.
struct Reference {
    spec: PieSpec,
    /// Packets accepted: when each one's transmission begins, and its bytes.
    accepted: Vec<(Nanos, u32)>,
    free_at: Nanos,
    last_update: i64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    burst_allowance: f64,
    largest: u32,
}

impl Reference {
    fn calculate_drop_prob(&mut self, at: Nanos) {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let target = seconds(self.spec.target_ns);
        let qdelay = seconds(self.free_at.saturating_sub(at));
        let mut p = 0.125 * (qdelay - target) + 1.25 * (qdelay - self.qdelay_old);
        for (below, divisor) in
            [(0.000001, 2048.0), (0.00001, 512.0), (0.0001, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)]
        {
            if self.drop_prob < below {
                p /= divisor;
                break;
            }
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = (self.burst_allowance - seconds(self.spec.update_ns)).max(0.0);
        if self.burst_allowance < 1e-9 {
            self.burst_allowance = 0.0;
        }
        if self.drop_prob == 0.0 && qdelay < target / 2.0 && self.qdelay_old < target / 2.0 {
            self.burst_allowance = seconds(self.spec.max_burst_ns);
        }
        self.qdelay_old = qdelay;
    }

    fn drop_early(&mut self, waiting_bytes: u64, draw: f64) -> bool {
        let target = self.spec.target_ns as f64 / 1e9;
        if self.qdelay_old < target / 2.0 && self.drop_prob < 0.2 || waiting_bytes <= 2 * u64::from(self.largest) {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 { false } else { self.accu_prob >= 8.5 || draw < self.drop_prob }
    }

    fn enque(&mut self, now: Nanos, packet: OfferedPacket, draw: f64) -> LinkOutcome {
        let update = self.spec.update_ns as i64;
        while self.last_update + update <= now as i64 {
            self.last_update += update;
            self.calculate_drop_prob(self.last_update as Nanos);
        }
        self.largest = self.largest.max(packet.bytes);
        let waiting: Vec<u32> =
            self.accepted.iter().filter(|(start, _)| *start > now).map(|(_, bytes)| *bytes).collect();
        let Limit::Packets(limit) = self.spec.limit else { panic!("a test in packets") };
        let mut marked = false;
        if self.free_at > now {
            if waiting.len() as u32 >= limit {
                self.accu_prob = 0.0;
                return LinkOutcome::Dropped;
            }
            let bytes = waiting.iter().map(|&bytes| u64::from(bytes)).sum();
            if self.burst_allowance == 0.0 && self.drop_early(bytes, draw) {
                self.accu_prob = 0.0;
                if !(self.spec.ecn && packet.ecn_capable && self.drop_prob < 0.1) {
                    return LinkOutcome::Dropped;
                }
                marked = true;
            }
        }
        let start = self.free_at.max(now);
        self.accepted.push((start, packet.bytes));
        self.free_at = start + Nanos::from(packet.bytes) * NANOS_A_BYTE;
        if marked { LinkOutcome::Marked(self.free_at) } else { LinkOutcome::Arrives(self.free_at) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn pie_drops_marks_and_admits_as_the_rfc(
        bursts in prop::collection::vec((0..200 * MILLISECOND, 1..80u32, 40..=1500u32, any::<bool>()), 1..60),
        limit in 20..400u32, ecn in any::<bool>(), seed in any::<u64>(),
    ) {
        let spec = PieSpec { limit: Limit::Packets(limit), ..usual(ecn) };
        let mut link = link(spec);
        let update = spec.update_ns as i64;
        let mut reference = Reference {
            spec, accepted: vec![], free_at: 0, last_update: -update, drop_prob: 0.0, accu_prob: 0.0, qdelay_old: 0.0,
            burst_allowance: 0.15, largest: 0,
        };
        let mut state = seed | 1;
        let mut now = 0;
        for (pause, packets, bytes, ecn_capable) in bursts {
            now += pause;
            for _ in 0..packets {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let draw = (state >> 11) as f64 / (1u64 << 53) as f64;
                let packet = OfferedPacket { bytes, ecn_capable, carries_data: true, ends_train: false, connection: 0, class: 0 };
                prop_assert_eq!(link.offer(now, packet, || draw, || 1.0), reference.enque(now, packet, draw));
                now += 400_000;
            }
        }
    }
}

/// Fates of packets of 1000 bytes that come twice as fast as the line takes them, half of which want a mark.
fn flood(spec: PieSpec, packets: u64) -> Vec<LinkOutcome> {
    let mut link = link(spec);
    let mut draw = 0.0;
    (0..packets)
        .map(|number| {
            draw = (draw + 0.618_033_988_749_895_f64) % 1.0;
            let packet = OfferedPacket {
                bytes: 1000,
                ecn_capable: true,
                carries_data: true,
                ends_train: false,
                connection: 0,
                class: 0,
            };
            link.offer(number * MILLISECOND / 2, packet, || draw, || 1.0)
        })
        .collect()
}

#[test]
fn a_burst_passes_and_then_the_delay_is_brought_down_to_the_target() {
    let outcomes = flood(usual(false), 20_000);
    let first = outcomes.iter().position(|outcome| *outcome == LinkOutcome::Dropped).unwrap();
    assert!(first as u64 >= 2 * 150, "the first {first} packets come within the burst allowance of 150 ms");
    let late = outcomes.iter().enumerate().skip(15_000).filter_map(|(number, outcome)| match outcome {
        LinkOutcome::Arrives(at) => Some((at - number as u64 * MILLISECOND / 2) as f64 / 1e6),
        _ => None,
    });
    let delays: Vec<f64> = late.collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((8.0..30.0).contains(&mean), "{mean} ms");
}

#[test]
fn marks_give_way_to_drops_once_a_tenth_of_the_packets_would_be_marked() {
    let outcomes = flood(usual(true), 20_000);
    let marked = outcomes.iter().filter(|outcome| matches!(outcome, LinkOutcome::Marked(_))).count();
    let last_marked = outcomes.iter().rposition(|outcome| matches!(outcome, LinkOutcome::Marked(_))).unwrap();
    assert!(marked > 2 && last_marked < 1_000, "{marked} marked, the last of them packet {last_marked}");
    assert!(outcomes[1_000..].contains(&LinkOutcome::Dropped), "half of them are too many, so drops must do it");
}

#[test]
fn impossible_parameters_are_refused() {
    let build = |spec: PieSpec| QueueSpec::Pie(spec).build(|_| 1);
    assert!(build(PieSpec { limit: Limit::Packets(0), ..usual(false) }).is_err());
    assert!(build(PieSpec { target_ns: 0, ..usual(false) }).is_err());
    assert!(build(PieSpec { update_ns: 0, ..usual(false) }).is_err());
}
