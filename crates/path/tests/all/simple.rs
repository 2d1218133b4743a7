//! The short code paths of a simple link: `pass` and `pass_or_lose` have the result of `offer`, or report that they cannot be
//! used.

use firstflight_path::{
    Interval, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket,
    queue::{CodelSpec, DropTailSpec, Limit, QueueSpec},
};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const DELAY: Nanos = 7 * MS;

fn drop_tail(limit: Limit, counts_packet_in_service: bool) -> QueueSpec {
    QueueSpec::DropTail(DropTailSpec { limit, counts_packet_in_service })
}

/// 8 Mbit/s: 1000 bytes a millisecond.
fn spec(queue: QueueSpec) -> LinkSpec {
    LinkSpec::plain(Some(8_000_000), DELAY, queue)
}

fn link(spec: &LinkSpec) -> Link {
    Link::new(spec, Meter::new(1000 * MS, 1000 * MS), 0).unwrap()
}

fn packet(bytes: u32) -> OfferedPacket {
    OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 }
}

fn offer(link: &mut Link, now: Nanos, bytes: u32) -> LinkOutcome {
    link.offer(now, packet(bytes), || 0.5, || 0.5)
}

fn counts(link: &Link) -> Vec<(Nanos, Nanos, Interval)> {
    link.meter().intervals().map(|(start, length, counts)| (start, length, *counts)).collect()
}

proptest! {
    #[test]
    fn what_passes_fares_and_is_counted_as_if_it_were_offered(
        packets in prop::collection::vec((0..4 * MS, 1u32..3000), 1..80),
        limit in prop_oneof![(1..6u32).prop_map(Limit::Packets), (1..9000u64).prop_map(Limit::Bytes)],
        counts_in_service in any::<bool>(),
        rate_bps in prop_oneof![Just(None), Just(Some(8_000_000))],
        interval in prop_oneof![Just(5 * MS), Just(33 * MS), Just(100 * MS)],
    ) {
        let spec = LinkSpec { rate_bps, ..spec(drop_tail(limit, counts_in_service)) };
        let new = || Link::new(&spec, Meter::new(100 * MS, interval), 0).unwrap();
        let (mut offered, mut passed) = (new(), new());
        let mut now = 0;
        for (pause, bytes) in packets {
            now += pause;
            let outcome = offer(&mut offered, now, bytes);
            match passed.pass(now, bytes) {
                Some(arrival) => prop_assert_eq!(outcome, LinkOutcome::Arrives(arrival)),
                None => prop_assert_eq!(outcome, offer(&mut passed, now, bytes)),
            }
            prop_assert_eq!(passed.waiting_packets(now), offered.waiting_packets(now));
            if outcome != LinkOutcome::Dropped {
                let expected = offered.last_transmission(bytes);
                prop_assert_eq!(passed.last_transmission(bytes), expected);
                prop_assert_eq!(outcome, LinkOutcome::Arrives(expected.1 + DELAY));
            }
        }
        prop_assert_eq!(counts(&passed), counts(&offered));
    }
}

proptest! {
    #[test]
    fn what_passes_or_is_lost_fares_and_is_counted_as_if_it_were_offered(
        packets in prop::collection::vec((0..4 * MS, 1u32..3000, 0.0..1.0, any::<bool>()), 1..80),
        limit in prop_oneof![(1..6u32).prop_map(Limit::Packets), (1..9000u64).prop_map(Limit::Bytes)],
        lose in prop_oneof![Just(vec![]), Just(vec![1, 3, 4])],
        interval in prop_oneof![Just(5 * MS), Just(100 * MS)],
    ) {
        let spec = LinkSpec { loss: 0.5, lose, ..spec(drop_tail(limit, false)) };
        let new = || Link::new(&spec, Meter::new(100 * MS, interval), 0).unwrap();
        let (mut offered, mut passed) = (new(), new());
        let mut now = 0;
        for (pause, bytes, draw, carries_data) in packets {
            now += pause;
            let offer = |link: &mut Link| link.offer(now, OfferedPacket { carries_data, ..packet(bytes) }, || 0.5, || draw);
            let outcome = offer(&mut offered);
            let found = passed.pass_or_lose(now, bytes, carries_data, || draw);
            prop_assert_eq!(found.unwrap_or_else(|| offer(&mut passed)), outcome);
            prop_assert_eq!(passed.waiting_packets(now), offered.waiting_packets(now));
        }
        prop_assert_eq!(counts(&passed), counts(&offered));
    }
}

#[test]
fn a_packet_passes_if_the_line_is_idle_or_the_queue_has_room() {
    // A limit of three that wait; of two, if the packet on the line counts.
    for (counts_in_service, waiting) in [(false, 3), (true, 2)] {
        let mut link = link(&spec(drop_tail(Limit::Packets(3), counts_in_service)));
        let passed: Vec<_> = (0..5).map(|_| link.pass(0, 1000)).collect();
        let expected = |number| (number <= waiting).then_some((number + 1) * MS + DELAY);
        assert_eq!(passed, (0..5).map(expected).collect::<Vec<_>>());
        // A millisecond later one has left.
        assert_eq!(link.pass(MS, 1000), Some((waiting + 2) * MS + DELAY));
        assert_eq!(link.pass(MS, 1000), None);
    }
    // Bytes that wait have room likewise; where the packet on the line counts, the queue itself decides.
    let mut full = link(&spec(drop_tail(Limit::Bytes(2000), false)));
    let passed = [1000, 1000, 1001, 1000, 1].map(|bytes| full.pass(0, bytes));
    assert_eq!(passed, [Some(MS + DELAY), Some(2 * MS + DELAY), None, Some(3 * MS + DELAY), None]);
    let mut link = link(&spec(drop_tail(Limit::Bytes(5000), true)));
    assert_eq!([link.pass(0, 1000), link.pass(0, 1000)], [Some(MS + DELAY), None]);
    assert_eq!(link.pass(MS, 1000), Some(2 * MS + DELAY), "the line is idle the moment that it ends");
}

#[test]
fn a_packet_that_leaves_in_a_later_interval_of_the_meter_does_not_pass() {
    let limit = drop_tail(Limit::Packets(9), false);
    let metered = |end| Link::new(&spec(limit.clone()), Meter::new(end, 2 * MS), 0).unwrap();
    let mut at_once = metered(10 * MS);
    assert_eq!([at_once.pass(0, 1999).is_some(), metered(10 * MS).pass(0, 2000).is_some()], [true, false]);
    let mut in_turn = metered(10 * MS);
    assert_eq!([1000, 1000, 999].map(|bytes| in_turn.pass(0, bytes).is_some()), [true, false, true]);
    // After the end of the meter nothing is counted, and nothing can be counted wrongly.
    let mut late = metered(10 * MS);
    assert_eq!([late.pass(10 * MS, 5000), late.pass(10 * MS, 5000)], [Some(22 * MS), Some(27 * MS)]);
    assert!(counts(&late).iter().all(|(_, _, counts)| *counts == Interval::default()));
}

#[test]
fn nothing_passes_where_more_than_the_room_decides() {
    let simple = spec(drop_tail(Limit::Packets(9), false));
    let codel = CodelSpec { limit: Limit::Packets(9), target_ns: MS, interval_ns: MS, ecn: false };
    for spec in [
        LinkSpec { loss: 0.1, ..simple.clone() },
        LinkSpec { lose: vec![1], ..simple.clone() },
        LinkSpec { queue: QueueSpec::Codel(codel), ..simple.clone() },
    ] {
        assert_eq!(link(&spec).pass(0, 1000), None, "{spec:?}");
        let draws_a_loss = link(&spec).pass_or_lose(0, 1000, true, || 0.0).is_some();
        assert_eq!(draws_a_loss, spec.queue == simple.queue, "{spec:?}");
        let mut watched = link(&spec);
        watched.offer_all();
        assert_eq!(watched.pass_or_lose(0, 1000, true, || 0.0), None, "{spec:?}");
    }
}

#[test]
fn a_restarted_link_is_a_new_one() {
    let before = spec(drop_tail(Limit::Bytes(2500), true));
    let after = [
        spec(drop_tail(Limit::Packets(2), false)),
        LinkSpec { loss: 0.9, ..spec(drop_tail(Limit::Packets(2), false)) },
        LinkSpec { rate_bps: Some(4_000_000), delay_ns: MS, ..before.clone() },
    ];
    for spec in after {
        let (mut new, mut restarted) = (link(&spec), link(&before));
        for _ in 0..5 {
            offer(&mut restarted, 0, 1000);
        }
        restarted.restart(&spec, || 0).unwrap();
        assert_eq!(restarted.waiting_packets(0), 0);
        for now in [0, 0, 0, 0, 2 * MS] {
            assert_eq!(restarted.pass(now, 1000), new.pass(now, 1000), "{spec:?}");
            assert_eq!(offer(&mut restarted, now, 900), offer(&mut new, now, 900), "{spec:?}");
            assert_eq!(restarted.waiting_packets(now), new.waiting_packets(now));
        }
    }
    assert!(link(&before).restart(&LinkSpec { loss: 2.0, ..before.clone() }, || 0).is_err());
}

#[test]
fn a_packet_leaves_a_token_bucket_at_one_moment_and_takes_the_delay_alone() {
    let shaped = LinkSpec {
        burst: Some(firstflight_path::BucketSpec { bytes: 1600 }),
        ..spec(drop_tail(Limit::Packets(9), false))
    };
    let mut link = link(&shaped);
    assert_eq!(link.transit(1000), DELAY);
    // The first leaves a deficit of 1400 bytes, which is made good after 1.4 ms.
    for (bytes, at) in [(3000, 5), (1000, 5 + 1_400_000)] {
        assert_eq!(offer(&mut link, 5, bytes), LinkOutcome::Arrives(at + DELAY));
        assert_eq!(link.last_transmission(bytes), (at, at));
    }
}
