//! RED against the paper's own rules.

use firstflight_path::{
    Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket,
    queue::{QueueSpec, RedSpec},
};

const MILLISECOND: Nanos = 1_000_000;

fn spec() -> RedSpec {
    RedSpec {
        limit_packets: 100,
        counts_packet_in_service: false,
        min_threshold_packets: 5.0,
        max_threshold_packets: 15.0,
        max_probability: 0.1,
        weight: 1.0,
        gentle: false,
        mean_packet_bytes: 1500,
        ecn: false,
    }
}

fn link(red: RedSpec) -> Link {
    let spec = LinkSpec::plain(Some(12_000_000), 0, QueueSpec::Red(red));
    Link::new(&spec, Meter::new(Nanos::MAX / 2, Nanos::MAX / 2), 0).unwrap()
}

fn packet(ecn_capable: bool) -> OfferedPacket {
    OfferedPacket { bytes: 1500, ecn_capable, carries_data: true, ends_train: false, connection: 0, class: 0 }
}

/// Offers packets at one moment, with draws that never drop before they must.
fn burst(link: &mut Link, packets: usize, now: Nanos, draw: f64) -> Vec<bool> {
    (0..packets).map(|_| link.offer(now, packet(false), || draw, || draw) != LinkOutcome::Dropped).collect()
}

#[test]
fn below_the_lower_threshold_nothing_is_dropped() {
    assert!(burst(&mut link(spec()), 6, 0, 0.0).iter().all(|&accepted| accepted));
}

#[test]
fn at_the_upper_threshold_everything_is_dropped() {
    // With weight 1 the average is the queue: the 17th arrival finds 15 waiting and one in service.
    let accepted = burst(&mut link(spec()), 20, 0, 0.999);
    assert_eq!(accepted.iter().filter(|&&accepted| accepted).count(), 16);
}

#[test]
fn gentle_mode_drops_with_rising_probability_up_to_twice_the_threshold() {
    let accepted = burst(&mut link(RedSpec { gentle: true, ..spec() }), 60, 0, 0.9999999);
    let held = accepted.iter().filter(|&&accepted| accepted).count();
    assert!((17..=31).contains(&held), "{held}");
}

#[test]
fn a_low_draw_drops_as_soon_as_the_average_passes_the_lower_threshold() {
    let accepted = burst(&mut link(spec()), 8, 0, 0.0);
    // Seven find an average of at most 5, where p_b is 0 and a draw of 0 is not below it.
    assert_eq!(accepted, [true, true, true, true, true, true, true, false]);
}

/// Floyd and Jacobson, section 7: with p_b fixed, the gap between drops is uniform on 1 to 1/p_b.
#[test]
fn drops_are_spread_evenly_over_the_arrivals() {
    let red = RedSpec { max_threshold_packets: 1e9, max_probability: 1e8, ..spec() };
    assert!(QueueSpec::Red(red).build(|_| 1).is_err(), "a probability above 1 is refused");

    // A queue held at 10 packets (one offered a service time) sees p_b = 0.1 x (10 - 5) / (15 - 5) = 0.05.
    let mut link = link(spec());
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for _ in 0..11 {
        link.offer(0, packet(false), || 0.999_999, || 0.999_999);
    }
    let (mut gaps, mut since, mut now) = (Vec::new(), 0, 0);
    while gaps.len() < 4000 {
        now += MILLISECOND;
        since += 1;
        while link.waiting_packets(now) < 10 {
            if link.offer(now, packet(false), &mut uniform, || 1.0) == LinkOutcome::Dropped {
                gaps.push(since);
                since = 0;
            }
        }
    }
    let mean = gaps.iter().sum::<i32>() as f64 / gaps.len() as f64;
    // 1/p_b = 1/0.045 or 1/0.05 as the queue seen is 9 or 10: a uniform gap has half of that as its mean.
    assert!((9.0..=13.0).contains(&mean), "{mean}");
    assert!(gaps.iter().all(|&gap| gap <= 26), "no gap beyond 1/p_b and the slack of the queue seen");
}

/// Offers packets at one time and returns the outcome of each.
fn outcomes(link: &mut Link, packets: usize, ecn_capable: bool, draw: f64) -> Vec<LinkOutcome> {
    (0..packets).map(|_| link.offer(0, packet(ecn_capable), || draw, || draw)).collect()
}

fn count(outcomes: &[LinkOutcome], wanted: impl Fn(&LinkOutcome) -> bool) -> usize {
    outcomes.iter().filter(|outcome| wanted(outcome)).count()
}

fn is_marked(outcome: &LinkOutcome) -> bool {
    matches!(outcome, LinkOutcome::Marked(_))
}

#[test]
fn an_ecn_capable_packet_is_marked_where_another_is_dropped() {
    let red = RedSpec { ecn: true, ..spec() };
    let other = outcomes(&mut link(red.clone()), 8, false, 0.0);
    let capable = outcomes(&mut link(red), 8, true, 0.0);
    assert_eq!(count(&other, |outcome| *outcome == LinkOutcome::Dropped), 1);
    assert_eq!(other[..7], capable[..7]);
    // It waits its turn like any other: seven packets of 1 ms each are before it.
    assert_eq!(capable[7], LinkOutcome::Marked(8 * MILLISECOND));
}

#[test]
fn a_queue_that_was_not_told_to_marks_nothing() {
    let outcomes = outcomes(&mut link(spec()), 15, true, 0.0);
    assert_eq!(count(&outcomes, is_marked), 0);
    assert!(outcomes.contains(&LinkOutcome::Dropped));
}

/// RFC 3168 section 7: beyond the upper threshold a router drops, also ECN-capable packets.
#[test]
fn from_the_upper_threshold_on_ecn_capable_packets_are_dropped() {
    let outcomes = outcomes(&mut link(RedSpec { ecn: true, ..spec() }), 40, true, 0.0);
    let marked = count(&outcomes, is_marked);
    // The 17th to be let in finds 15 waiting.
    assert_eq!(count(&outcomes, |outcome| *outcome == LinkOutcome::Dropped), 40 - 16);
    assert!(marked > 5 && outcomes[16..].iter().all(|outcome| *outcome == LinkOutcome::Dropped), "{marked} marked");
}

#[test]
fn gentle_mode_marks_up_to_twice_the_upper_threshold() {
    let outcomes = outcomes(&mut link(RedSpec { ecn: true, gentle: true, ..spec() }), 60, true, 0.0);
    assert_eq!(count(&outcomes, |outcome| *outcome == LinkOutcome::Dropped), 60 - 31);
    assert!(outcomes[16..31].iter().all(is_marked));
}

#[test]
fn a_full_queue_drops_ecn_capable_packets() {
    // The average hardly moves, so that only the limit is left to drop.
    let red = RedSpec { ecn: true, limit_packets: 20, weight: 1e-9, ..spec() };
    let outcomes = outcomes(&mut link(red), 40, true, 0.0);
    assert_eq!(
        (count(&outcomes, |outcome| *outcome == LinkOutcome::Dropped), count(&outcomes, is_marked)),
        (40 - 21, 0)
    );
}

#[test]
fn the_meter_counts_marks_as_packets_that_were_let_in() {
    let mut link = link(RedSpec { ecn: true, ..spec() });
    let outcomes = outcomes(&mut link, 40, true, 0.0);
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!(counts.marked_packets, count(&outcomes, is_marked) as u64);
    assert_eq!((counts.offered_packets, counts.dropped_packets, counts.sent_packets), (40, 24, 16));
}
