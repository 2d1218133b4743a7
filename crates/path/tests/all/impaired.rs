//! Links that impair packets, and their meters' counts.

use firstflight_path::{
    Distribution, DuplicationSpec, Holding, ImpairmentSpec, JitterSpec, Left, Link, LinkOutcome, LinkSpec, Meter,
    Nanos, OfferedPacket, ReorderingSpec, WakeSpec,
    queue::{CodelSpec, DropTailSpec, Limit, QueueSpec},
};

const MS: Nanos = 1_000_000;
const DELAY: Nanos = 7 * MS;
const PACKETS: u64 = 400;

fn drop_tail() -> QueueSpec {
    QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(9), counts_packet_in_service: false })
}

/// 12 Mbit/s: 1500 bytes a millisecond.
fn spec(impairments: &[ImpairmentSpec], queue: QueueSpec) -> LinkSpec {
    LinkSpec { impairments: impairments.to_vec(), ..LinkSpec::plain(Some(12_000_000), DELAY, queue) }
}

fn link(spec: &LinkSpec) -> Link {
    Link::new(spec, Meter::new(1000 * MS, 1000 * MS), 3).unwrap()
}

fn packet(carries_data: bool) -> OfferedPacket {
    OfferedPacket { bytes: 1500, ecn_capable: false, carries_data, ends_train: false, connection: 0, class: 0 }
}

/// A draw of each packet's own: the golden ratio's multiples, which are spread evenly.
fn draw(number: u64) -> f64 {
    number as f64 * 0.618_033_988_749_895 % 1.0
}

/// When packets that come one a millisecond arrive, with their copies; none: it was lost.
fn arrivals(link: &mut Link) -> Vec<Option<(Nanos, Option<Nanos>)>> {
    let offer = |number| match link.offer(number * MS, packet(true), || 0.5, || draw(number)) {
        LinkOutcome::Arrives(time) => Some((time, link.copy())),
        LinkOutcome::Lost => {
            assert_eq!(link.copy(), None, "what is lost does not come twice");
            None
        }
        other => panic!("{other:?}"),
    };
    (0..PACKETS).map(offer).collect()
}

const TWICE: ImpairmentSpec = ImpairmentSpec::Duplication(DuplicationSpec { share: 1.0, delay_ns: 3 * MS });

#[test]
fn a_copy_comes_as_long_after_its_packet_as_the_link_says_and_is_counted() {
    let mut link = link(&spec(&[TWICE], drop_tail()));
    let expected = (0..PACKETS).map(|number| (number + 1) * MS + DELAY).map(|at| Some((at, Some(at + 3 * MS))));
    assert_eq!(arrivals(&mut link), expected.collect::<Vec<_>>());
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.duplicated_packets, counts.reordered_packets, counts.sent_packets), (PACKETS, 0, PACKETS));
}

#[test]
fn a_late_packet_is_late_by_the_delay_and_those_that_overtake_it_are_counted() {
    let late = ImpairmentSpec::Reordering(ReorderingSpec { share: 0.1, delay_ns: 2 * MS + MS / 2 });
    let mut link = link(&spec(&[late], drop_tail()));
    let found = arrivals(&mut link);
    let mut latest = 0;
    let (mut late, mut overtaking) = (0, 0);
    for (number, arrival) in (1u64..).zip(found) {
        let (at, copy) = arrival.unwrap();
        let delay = at - number * MS - DELAY;
        assert!((delay == 0 || delay == 2 * MS + MS / 2) && copy.is_none(), "{delay}");
        late += u64::from(delay > 0);
        overtaking += u64::from(at < latest);
        latest = latest.max(at);
    }
    assert!((20..60).contains(&late), "{late} of 400");
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.reordered_packets, counts.duplicated_packets), (overtaking, 0));
    assert!(overtaking > late, "two come behind each late one before it does");
}

/// Runs of another version can be repeated only if the same packets are late in this one.
#[test]
fn a_key_and_the_packets_own_draws_decide_which_packets_are_late() {
    let late = ImpairmentSpec::Reordering(ReorderingSpec { share: 0.1, delay_ns: MS });
    let found = arrivals(&mut link(&spec(&[late], drop_tail())));
    let late = (1..).zip(found).filter(|(number, arrival)| arrival.unwrap().0 > number * MS + DELAY);
    assert_eq!(late.map(|(number, _)| number).take(8).collect::<Vec<u64>>(), [25, 36, 41, 74, 82, 83, 87, 96]);
}

#[test]
fn what_is_lost_is_neither_late_nor_doubled() {
    let mut link = link(&LinkSpec { loss: 0.25, ..spec(&[TWICE], drop_tail()) });
    let lost: Vec<bool> = arrivals(&mut link).iter().map(Option::is_none).collect();
    assert_eq!(lost, (0..PACKETS).map(|number| draw(number) < 0.25).collect::<Vec<_>>());
    let lost = lost.iter().filter(|lost| **lost).count() as u64;
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.lost_packets, counts.duplicated_packets), (lost, PACKETS - lost));
    assert_eq!(counts.sent_packets, PACKETS);
}

#[test]
fn a_queue_that_decides_on_departure_sends_copies_too() {
    let queue = QueueSpec::Codel(CodelSpec { limit: Limit::Packets(9), target_ns: MS, interval_ns: MS, ecn: false });
    let spec = spec(&[TWICE], queue);
    let (mut link, mut holding) = (link(&spec), Holding::new(&spec, 0).unwrap().unwrap());
    let mut left: Vec<Left<u64>> = Vec::new();
    for number in 0..5 {
        holding.offer(&mut link, number * MS, packet(true), number, |_| 0.5, &mut left);
    }
    let copies: Vec<_> = left.iter().map(|left| (left.outcome, left.copy)).collect();
    let at = |number: u64| (number + 1) * MS + DELAY;
    assert_eq!(
        copies,
        (0..5).map(|number| (LinkOutcome::Arrives(at(number)), Some(at(number) + 3 * MS))).collect::<Vec<_>>()
    );
}

#[test]
fn exponential_jitter_exceeds_its_mean_once_in_e_and_twice_its_mean_once_in_e_squared() {
    let jitter = |distribution| ImpairmentSpec::Jitter(JitterSpec { distribution, mean_ns: 5 * MS, keep_order: false });
    let delays = |distribution| -> Vec<Nanos> {
        let mut link = link(&spec(&[jitter(distribution)], drop_tail()));
        let found = arrivals(&mut link);
        (1..).zip(found).map(|(number, arrival)| arrival.unwrap().0 - number * MS - DELAY).collect()
    };
    let share =
        |delays: &[Nanos], above: Nanos| delays.iter().filter(|delay| **delay > above).count() as f64 / PACKETS as f64;
    let exponential = delays(Distribution::Exponential);
    // Of 400 draws a share has a standard error of at most 0.025.
    for (above, expected) in [(0, 1.0), (5 * MS, 0.368), (10 * MS, 0.135)] {
        let found = share(&exponential, above);
        assert!((found - expected).abs() < 0.08, "{found} above {above}");
    }
    let uniform = delays(Distribution::Uniform);
    assert!(uniform.iter().all(|delay| *delay < 10 * MS));
    assert!((share(&uniform, 5 * MS) - 0.5).abs() < 0.08);
}

#[test]
fn only_what_keeps_the_order_and_comes_once_does_not_reorder() {
    let jitter = |keep_order| {
        ImpairmentSpec::Jitter(JitterSpec { distribution: Distribution::Uniform, mean_ns: MS, keep_order })
    };
    let late = ImpairmentSpec::Reordering(ReorderingSpec { share: 0.1, delay_ns: MS });
    for (impairments, reorders) in [
        (vec![], false),
        (vec![jitter(true)], false),
        (vec![jitter(false)], true),
        (vec![jitter(true), late], true),
        (vec![TWICE], true),
    ] {
        assert_eq!(spec(&impairments, drop_tail()).reorders(), reorders, "{impairments:?}");
    }
}

#[test]
fn a_row_has_the_counters_of_its_interval_and_the_mean_queue() {
    let spec = LinkSpec { lose: vec![2], ..spec(&[TWICE], drop_tail()) };
    let mut link = Link::new(&spec, Meter::new(25 * MS, 10 * MS), 0).unwrap();
    // One is on the line, nine wait, the eleventh is dropped.
    for _ in 0..11 {
        link.offer(20 * MS, packet(true), || 0.5, || 0.5);
    }
    let (start, length, counts) = link.meter().intervals().last().unwrap();
    let row = counts.row(4, 2, start, length);
    assert_eq!((row.replicate, row.link, row.interval_start_s, row.interval_s), (4, 2, 0.02, 0.005));
    assert_eq!((row.offered_packets, row.dropped_packets, row.marked_packets, row.lost_packets), (11, 1, 0, 1));
    assert_eq!((row.reordered_packets, row.duplicated_packets), (0, 9));
    // The fifth leaves as the meter ends.
    assert_eq!((row.sent_packets, row.sent_bytes, row.busy_s), (4, 6000, 0.005));
    // Nine wait in the first millisecond, five in the last: (9 + 8 + 7 + 6 + 5) / 5.
    assert_eq!((row.queue_mean_packets, row.queue_max_packets), (7.0, 9));
}

#[test]
fn a_far_end_that_slept_takes_the_first_packet_later_and_those_behind_it_in_order() {
    let wake = ImpairmentSpec::Wake(WakeSpec { delay_ns: 3 * MS, after_ns: 10 * MS });
    let mut link = link(&spec(&[wake], drop_tail()));
    // Each packet takes 1 ms to transmit. The third and the fifth follow a pause of 10 ms at the far end, the fourth one of
    // 9 ms; a packet that waits for another is taken with it.
    let found = [0, 1, 11, 20, 30, 31, 36].map(|at| match link.offer(at * MS, packet(true), || 0.5, || 0.5) {
        LinkOutcome::Arrives(time) => time,
        other => panic!("{other:?}"),
    });
    assert_eq!(found.map(|time| (time - DELAY) / MS), [4, 4, 15, 21, 34, 34, 37]);
}
