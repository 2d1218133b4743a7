//! Links whose rate changes.

use firstflight_path::{
    BucketSpec, Holding, Left, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket, ScheduleSpec, StepsSpec,
    TraceSpec,
    queue::{CodelSpec, DropTailSpec, Limit, QueueSpec},
};

const MS: Nanos = 1_000_000;
const DELAY: Nanos = 7 * MS;
const END: Nanos = 10_000 * MS;

fn drop_tail(packets: u32) -> QueueSpec {
    QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(packets), counts_packet_in_service: false })
}

fn steps(steps: &[(Nanos, u64)], repeat_ns: Option<Nanos>) -> Option<ScheduleSpec> {
    Some(ScheduleSpec::Steps(StepsSpec { steps: steps.to_vec(), repeat_ns }))
}

fn trace(opportunities_ms: &[u32]) -> Option<ScheduleSpec> {
    Some(ScheduleSpec::Trace(TraceSpec { opportunities_ms: opportunities_ms.into() }))
}

fn spec(rate_schedule: Option<ScheduleSpec>, queue: QueueSpec) -> LinkSpec {
    LinkSpec { rate_schedule, ..LinkSpec::plain(Some(12_000_000), DELAY, queue) }
}

fn link(spec: &LinkSpec) -> Link {
    Link::new(spec, Meter::new(END, END), 0).unwrap()
}

fn packet(bytes: u32) -> OfferedPacket {
    OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 }
}

/// When each of `packets` (arrival, bytes) arrives; none: it was dropped.
fn arrivals(link: &mut Link, packets: &[(Nanos, u32)]) -> Vec<Option<Nanos>> {
    let offer = |&(now, bytes): &(Nanos, u32)| match link.offer(now, packet(bytes), || 0.5, || 0.5) {
        LinkOutcome::Arrives(time) => Some(time),
        _ => None,
    };
    packets.iter().map(offer).collect()
}

/// The same before a link whose queue decides on departure.
fn departures(spec: &LinkSpec, packets: &[(Nanos, u32)]) -> Vec<Left<usize>> {
    let (mut link, mut holding) = (link(spec), Holding::new(spec, 0).unwrap().unwrap());
    let mut left = Vec::new();
    for (number, &(now, bytes)) in packets.iter().enumerate() {
        holding.offer(&mut link, now, packet(bytes), number, |_| 0.5, &mut left);
    }
    holding.advance(&mut link, END, |_| 0.5, &mut left);
    left
}

fn lazy_codel(limit: Limit) -> QueueSpec {
    QueueSpec::Codel(CodelSpec { limit, target_ns: END, interval_ns: END, ecn: false })
}

/// Packets of three sizes, with pauses.
fn coming() -> Vec<(Nanos, u32)> {
    (0..300).map(|number| (number / 7 * 9 * MS + number % 7 * MS / 3, [1500, 40, 700][number as usize % 3])).collect()
}

#[test]
fn a_schedule_of_one_rate_is_that_rate() {
    let constant = arrivals(&mut link(&spec(None, drop_tail(5))), &coming());
    for schedule in [steps(&[(0, 12_000_000)], None), steps(&[(0, 12_000_000), (MS, 12_000_000)], Some(3 * MS))] {
        assert_eq!(arrivals(&mut link(&spec(schedule, drop_tail(5))), &coming()), constant);
    }
}

#[test]
fn a_queue_fills_while_the_rate_is_low_and_what_finds_it_full_is_dropped() {
    // 1500 bytes take 1 ms, and from 10 ms on 10 ms.
    let spec = spec(steps(&[(0, 12_000_000), (10 * MS, 1_200_000)], None), drop_tail(2));
    let coming: Vec<(Nanos, u32)> = (0..20).map(|number| (number * MS, 1500)).collect();
    let mut link = link(&spec);
    let found = arrivals(&mut link, &coming);
    let expected = (1..=10).map(Some).chain([Some(20), Some(30), Some(40)]).chain([None; 7]);
    assert_eq!(found, expected.map(|end| end.map(|end| end * MS + DELAY)).collect::<Vec<_>>());
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.sent_packets, counts.dropped_packets, counts.busy), (13, 7, 40 * MS));
}

#[test]
fn packets_wait_for_the_opportunities_of_a_trace_in_the_queue() {
    let spec = spec(trace(&[10, 10, 20]), drop_tail(2));
    let mut link = link(&spec);
    // Two wait for 10 ms; the third finds the queue full. At 11 ms there is room again.
    let found = arrivals(&mut link, &[(0, 1500), (1, 1500), (2, 1500), (11 * MS, 1500), (12 * MS, 100)]);
    assert_eq!(found, [Some(10), Some(10), None, Some(20), Some(30)].map(|end| end.map(|end: u64| end * MS + DELAY)));
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    // By the mean rate: 1 ms for 1500 bytes.
    assert_eq!((counts.sent_packets, counts.busy, counts.queue_max_packets), (4, 3 * MS + MS / 15 + 1, 2));
    assert_eq!(counts.waiting, u128::from(10 * MS + (10 * MS - 1) + 9 * MS + 18 * MS));
}

#[test]
fn a_queue_that_decides_on_departure_sends_at_the_same_times() {
    for schedule in [
        steps(&[(0, 12_000_000), (5 * MS, 0), (40 * MS, 3_000_000)], Some(70 * MS)),
        trace(&[3, 4, 4, 9, 31, 32, 33, 60]),
    ] {
        let by_arrival = arrivals(&mut link(&spec(schedule.clone(), drop_tail(10_000))), &coming());
        let left = departures(&spec(schedule, lazy_codel(Limit::Packets(10_000))), &coming());
        let by_departure: Vec<_> = left
            .iter()
            .map(|left| match left.outcome {
                LinkOutcome::Arrives(time) => Some(time),
                _ => None,
            })
            .collect();
        assert_eq!(by_departure, by_arrival);
        assert!(left.iter().all(|left| left.at >= left.arrived));
    }
}

#[test]
fn a_rate_that_changes_needs_its_mean_and_no_token_bucket() {
    let with = |spec: LinkSpec| Link::new(&spec, Meter::new(0, 1), 0).unwrap_err().to_string();
    let changing = spec(steps(&[(0, 12_000_000)], None), drop_tail(1));
    assert!(with(LinkSpec { rate_bps: None, ..changing.clone() }).contains("mean"));
    let burst = Some(BucketSpec { bytes: 1600 });
    assert!(with(LinkSpec { burst, ..changing }).contains("token bucket"));
}
