//! RED against the paper's own rules.

use firstflight_path::{
    Fate, Link, LinkSpec, Meter, Nanos,
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
    }
}

fn link(red: RedSpec) -> Link {
    let spec = LinkSpec { rate_bps: Some(12_000_000), delay_ns: 0, loss: 0.0, queue: QueueSpec::Red(red) };
    Link::new(&spec, Meter::new(Nanos::MAX / 2, Nanos::MAX / 2)).unwrap()
}

/// Offers packets at one moment, with draws that never drop before they must.
fn burst(link: &mut Link, packets: usize, now: Nanos, draw: f64) -> Vec<bool> {
    (0..packets).map(|_| link.offer(now, 1500, || draw) != Fate::Dropped).collect()
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
    assert!(firstflight_path::queue::Red::new(&red, 1).is_err(), "a probability above 1 is refused");

    // A queue held at 10 packets (one offered a service time) sees p_b = 0.1 x (10 - 5) / (15 - 5) = 0.05.
    let mut link = link(spec());
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for _ in 0..11 {
        link.offer(0, 1500, || 0.999_999);
    }
    let (mut gaps, mut since, mut now) = (Vec::new(), 0, 0);
    while gaps.len() < 4000 {
        now += MILLISECOND;
        since += 1;
        while link.waiting_packets(now) < 10 {
            if link.offer(now, 1500, &mut uniform) == Fate::Dropped {
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
