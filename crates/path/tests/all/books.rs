//! A link's counters, rates and policies against plain arithmetic for the same packets.

use firstflight_path::{
    Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket, QuickStartSpec, Rate,
    queue::{DropTailSpec, Limit, QueueSpec},
};
use proptest::prelude::*;

const INTERVAL: Nanos = 100_000_000;
const END: Nanos = 1_050_000_000;
const LIMIT: usize = 6;
const DELAY: Nanos = 50_000_000;

fn spec() -> LinkSpec {
    let queue =
        QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(LIMIT as u32), counts_packet_in_service: false });
    LinkSpec { loss: 0.25, ..LinkSpec::plain(Some(1_000_000), DELAY, queue) }
}

#[derive(Default, Debug, PartialEq)]
struct Counts {
    offered: u64,
    dropped: u64,
    lost: u64,
    sent: u64,
    sent_bytes: u64,
    busy: Nanos,
    waiting: u128,
    most: u32,
}

/// The time that two spans have in common.
fn common(a: (Nanos, Nanos), b: (Nanos, Nanos)) -> Nanos {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn each_interval_counts_what_arrived_waited_and_left_in_it(
        packets in prop::collection::vec((0u64..30_000_000, 40u32..1500, 0.0f64..1.0), 1..120),
    ) {
        let mut link = Link::new(&spec(), Meter::new(END, INTERVAL), 0).unwrap();
        let mut expected: Vec<Counts> = (0..END.div_ceil(INTERVAL)).map(|_| Counts::default()).collect();
        let spans: Vec<_> = (0..END.div_ceil(INTERVAL)).map(|i| (i * INTERVAL, END.min((i + 1) * INTERVAL))).collect();
        let place = |time: Nanos| (time < END).then_some((time / INTERVAL) as usize);
        let (mut now, mut free_at) = (0, 0);
        // (arrival, start of transmission)
        let mut accepted: Vec<(Nanos, Nanos)> = Vec::new();
        for (gap, bytes, draw) in packets {
            now += gap;
            let packet = OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 };
            let outcome = link.offer(now, packet, || 0.5, || draw);
            let waiting = accepted.iter().filter(|(_, start)| *start > now).count();
            let interval = place(now);
            if let Some(at) = interval {
                expected[at].offered += 1;
            }
            if free_at > now && waiting == LIMIT {
                prop_assert_eq!(outcome, LinkOutcome::Dropped);
                if let Some(at) = interval {
                    expected[at].dropped += 1;
                }
                continue;
            }
            let start = now.max(free_at);
            // 8 us a byte at 1 Mbit/s.
            free_at = start + u64::from(bytes) * 8000;
            accepted.push((now, start));
            let lost = draw < 0.25;
            prop_assert_eq!(outcome, if lost { LinkOutcome::Lost } else { LinkOutcome::Arrives(free_at + DELAY) });
            if let Some(at) = interval {
                expected[at].lost += u64::from(lost);
            }
            if let Some(at) = place(free_at) {
                expected[at].sent += 1;
                expected[at].sent_bytes += u64::from(bytes);
            }
            for (counts, span) in expected.iter_mut().zip(&spans) {
                counts.busy += common((start, free_at), *span);
                counts.waiting += u128::from(common((now, start), *span));
            }
        }
        // The queue is longest as an interval begins or as a packet arrives.
        for (counts, span) in expected.iter_mut().zip(&spans) {
            let arrivals = accepted.iter().map(|(arrival, _)| *arrival).filter(|at| (span.0..span.1).contains(at));
            let most = arrivals.chain([span.0]).map(|at| {
                accepted.iter().filter(|(arrival, start)| *arrival <= at && *start > at).count()
            });
            counts.most = most.max().unwrap_or(0) as u32;
        }
        for ((start, length, found), (counts, span)) in link.meter().intervals().zip(expected.iter().zip(&spans)) {
            prop_assert_eq!((start, start + length), *span);
            let found = Counts {
                offered: found.offered_packets,
                dropped: found.dropped_packets,
                lost: found.lost_packets,
                sent: found.sent_packets,
                sent_bytes: found.sent_bytes,
                busy: found.busy,
                waiting: found.waiting,
                most: found.queue_max_packets,
            };
            prop_assert_eq!(&found, counts, "from {}", start);
        }
    }

    #[test]
    fn a_serialization_time_is_the_exact_quotient_to_a_nanosecond(
        bps in 1_000u64..8_000_000_000_000,
        bytes in 0u32..10_000,
    ) {
        let exact = u128::from(bytes) * 8_000_000_000 / u128::from(bps);
        let found = Rate::from_bits_per_second(bps).unwrap().serialization(bytes);
        prop_assert!(u128::from(found).abs_diff(exact) <= 1, "{} bytes at {} bit/s: {} for {}", bytes, bps, found, exact);
    }
}

#[test]
fn a_rate_is_rounded_to_the_nearest_fraction_of_a_nanosecond() {
    // A billion times 3 bytes show the last bit of the fraction.
    let billion = 1_073_741_825;
    for (bps, bytes, ns) in [
        (3, 3, 8_000_000_000),
        (3, 3 * billion, 8_000_000_000 * u64::from(billion)),
        (7, 7, 8_000_000_000),
        (3_000_000_000, 3_000, 8_000),
    ] {
        assert_eq!(Rate::from_bits_per_second(bps).unwrap().serialization(bytes), ns, "{bps} bit/s");
    }
}

#[test]
fn a_quick_start_rate_of_zero_is_refused_and_any_other_is_not() {
    let zero = [QuickStartSpec::Grant { limit_bps: Some(0) }, QuickStartSpec::Lower { rate_bps: 0 }];
    for spec in zero {
        assert_eq!(spec.validate().unwrap_err().field, "quick_start");
    }
    let some = [
        QuickStartSpec::Grant { limit_bps: None },
        QuickStartSpec::Grant { limit_bps: Some(1) },
        QuickStartSpec::Lower { rate_bps: 1 },
        QuickStartSpec::Refuse {},
    ];
    assert!(some.iter().all(|spec| spec.validate().is_ok()));
}

#[test]
fn a_link_answers_quick_start_requests_by_its_policy_only() {
    let mut without = Link::new(&spec(), Meter::new(END, INTERVAL), 0).unwrap();
    assert_eq!(without.answer_quick_start(0, 2), None);
    let lower = LinkSpec { quick_start: Some(QuickStartSpec::Lower { rate_bps: 100_000 }), ..spec() };
    let mut lower = Link::new(&lower, Meter::new(END, INTERVAL), 0).unwrap();
    assert_eq!(lower.answer_quick_start(0, 2), Some(1));
}

#[test]
fn the_transit_of_a_packet_is_its_serialization_and_the_delay() {
    let link = Link::new(&spec(), Meter::new(END, INTERVAL), 0).unwrap();
    assert_eq!(link.transit(1000), 8_000_000 + DELAY);
}
