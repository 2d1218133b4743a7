//! Each controller against its paper's or its RFC's closed form.

use super::{Alone, MILLISECOND, MSS, Path, SECOND};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::profile::choices::Choices;
use crate::sender::congestion::{CongestionAlgorithm, Hystart};

/// In a buffer so large nothing is lost.
const ENDLESS: Path = Path { buffer_segments: u64::MAX, ..Path::USUAL };
/// The path without its queue: 125 segments of bandwidth-delay product and the one that the bottleneck serves.
const PIPE_SEGMENTS: u32 = 126;

fn cubic(hystart: Hystart) -> CongestionAlgorithm {
    CongestionAlgorithm::Cubic { hystart }
}

/// Windows at the end of each round, in segments.
fn windows(run: &Alone) -> Vec<u32> {
    run.rounds.iter().map(|round| round.window).collect()
}

#[test]
fn slow_start_doubles_every_round() {
    for algorithm in [
        CongestionAlgorithm::Reno,
        cubic(Hystart::Off),
        cubic(Hystart::HystartPlusPlus),
        CongestionAlgorithm::Westwood,
        CongestionAlgorithm::Vegas,
    ] {
        let mut run = Alone::new(algorithm, Path::unlimited(SECOND / 10, None));
        run.run_rounds(6);
        // A round ends with the first segment that was sent after it began.
        assert_eq!(windows(&run), [11, 21, 41, 81, 161, 321], "{algorithm:?}");
    }
}

#[test]
fn slow_start_of_hystart_plus_plus_counts_eight_segments_an_acknowledgement_at_most() {
    use crate::sender::congestion::Acknowledged;
    let mut run = Alone::new(cubic(Hystart::HystartPlusPlus), Path::USUAL);
    run.controller.on_ack(0, Acknowledged { bytes: Bytes(10 * MSS) });
    assert_eq!(run.window_segments(), 18);
    let mut run = Alone::new(cubic(Hystart::Hystart), Path::USUAL);
    run.controller.on_ack(0, Acknowledged { bytes: Bytes(10 * MSS) });
    assert_eq!(run.window_segments(), 20);
}

/// Mean window in segments over ten cycles of the sawtooth that a loss every `n` segments makes.
fn mean_under_loss(algorithm: CongestionAlgorithm, round_trip: Nanos, n: u64, expected: f64) -> f64 {
    let mut run = Alone::new(algorithm, Path::unlimited(round_trip, Some(n)));
    run.controller.set_ssthresh(expected as u32 * MSS);
    run.run_until_losses(10);
    run.mean_window(10)
}

// Mathis et al. 1997: W = sqrt(3/2 / p) with an acknowledgment for each segment. A round trip of recovery without
// growth and the rounding to whole segments cost two or three segments, whatever the window.
#[test]
fn renos_sawtooth_has_the_mean_of_the_square_root_law() {
    for n in [500, 2000, 10_000, 50_000, 200_000] {
        let law = (1.5 * n as f64).sqrt();
        let mean = mean_under_loss(CongestionAlgorithm::Reno, SECOND / 10, n, law);
        assert!((law - 3.0..law).contains(&mean), "p = 1/{n}: {mean:.2} against {law:.2}");
    }
}

// RFC 9438 §4.3 and §5.2: in the Reno-friendly region the mean is sqrt(alpha (1 + beta) / (2 (1 - beta) p)), which with
// alpha = 3 (1 - beta) / (1 + beta) is Reno's sqrt(3/2 / p). CUBIC loses to rounding as Reno does.
#[test]
fn in_the_reno_friendly_region_cubics_window_has_renos_mean() {
    for n in [500, 2000, 10_000] {
        let law = (1.5 * n as f64).sqrt();
        let mean = mean_under_loss(cubic(Hystart::Off), SECOND / 50, n, law);
        assert!((law - 3.0..law).contains(&mean), "p = 1/{n}: {mean:.2} against {law:.2}");
    }
}

// RFC 9438 §5.1: on long paths with little loss the mean is (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4).
#[test]
fn on_long_paths_cubics_window_has_the_mean_of_rfc_9438() {
    for n in [50_000, 200_000, 500_000] {
        let law = (0.4f64 * 3.7 / 1.2).powf(0.25) * (0.1 * n as f64).powf(0.75);
        let mean = mean_under_loss(cubic(Hystart::Off), SECOND / 10, n, law);
        let error = mean / law - 1.0;
        assert!(error.abs() < 0.03, "p = 1/{n}: {mean:.1} against {law:.1}");
    }
}

// RFC 9438 §4.2: W(t) = C (t - K)^3 + W_max with K = cbrt(W_max (1 - beta) / C).
#[test]
fn between_losses_cubics_window_follows_the_curve_of_rfc_9438() {
    let mut run = Alone::new(cubic(Hystart::Off), Path::unlimited(SECOND / 10, None));
    run.run_rounds(3);
    run.controller.set_cwnd(1000 * MSS);
    run.controller.on_congestion(run.now, 1000 * MSS);
    let (w_max, begin) = (1000.0, run.now);
    // The first round trip acknowledges the data that slow start had in flight, which is less than a window.
    run.run_rounds(2);
    let k = (w_max * 0.3 / 0.4f64).cbrt();
    while run.now < begin + 16 * SECOND {
        run.run_rounds(1);
        let t = (run.now - begin) as f64 / 1e9;
        let curve = 0.4 * (t - k).powi(3) + w_max;
        // Below the plateau Linux rounds the target up; and credit kept from slower growth buys a segment early.
        let ahead = f64::from(run.window_segments()) - curve;
        assert!((-1.0..2.0).contains(&ahead), "at {t:.1} s: {} against {curve:.1}", run.window_segments());
    }
}

// Brakmo and Peterson §3.2: in equilibrium between alpha and beta segments queue at the bottleneck.
#[test]
fn vegas_keeps_two_to_four_segments_queued() {
    let mut run = Alone::new(CongestionAlgorithm::Vegas, Path::USUAL);
    run.run_rounds(100);
    run.rounds.clear();
    run.run_rounds(200);
    for round in &run.rounds {
        let queued = round.window - (PIPE_SEGMENTS - 1);
        assert!((2..=5).contains(&queued) && round.events.is_empty(), "{round:?}");
    }
}

#[test]
fn vegas_leaves_slow_start_before_the_buffer_overflows() {
    let mut run = Alone::new(CongestionAlgorithm::Vegas, ENDLESS);
    run.run_rounds(10);
    let most = run.rounds.iter().map(|round| round.window).max().unwrap();
    // One round later than the first queueing, and doubling until then.
    assert!(most <= 3 * PIPE_SEGMENTS, "{most}");
}

// Grieco and Mascolo 2004: ssthresh = BWE * RTTmin, here the path's 1250 bytes/ms times 101 ms.
#[test]
fn westwoods_threshold_is_the_bandwidth_times_the_shortest_round_trip() {
    let mut run = Alone::new(CongestionAlgorithm::Westwood, Path::USUAL);
    run.run_until(60 * SECOND);
    run.controller.on_congestion(run.now, run.flight_bytes());
    // Both are whole ticks or bytes a tick, rounded down twice in the filters: two percent.
    let ssthresh = run.controller.ssthresh() / MSS;
    assert!((123..=PIPE_SEGMENTS).contains(&ssthresh), "{ssthresh}");
}

#[test]
fn westwood_does_not_halve_a_window_that_the_buffer_did_not_inflate() {
    let mut run = Alone::new(CongestionAlgorithm::Westwood, Path { lose_every: Some(20_000), ..Path::USUAL });
    run.run_until(60 * SECOND);
    run.controller.set_cwnd(PIPE_SEGMENTS * MSS);
    run.controller.on_congestion(run.now, PIPE_SEGMENTS * MSS);
    assert!(run.window_segments() > PIPE_SEGMENTS * 9 / 10, "{}", run.window_segments());
}

#[test]
fn bbr_fills_the_link_with_little_queue() {
    let mut run = Alone::new(CongestionAlgorithm::Bbr, Path::USUAL);
    run.run_until(3 * SECOND);
    let (begin, delivered, losses) = (run.now, run.delivered, run.losses);
    run.rounds.clear();
    run.run_until(10 * SECOND);
    let rate = (run.delivered - delivered) as f64 * 8e-6 / ((run.now - begin) as f64 / 1e9);
    assert!((9.8..=10.0).contains(&rate), "{rate} Mbit/s");
    assert_eq!(run.losses, losses);
    // A quarter of the pipe while probing, with the aggregates added, and nothing most of the time.
    assert!(run.rounds.iter().all(|round| round.queue <= u64::from(PIPE_SEGMENTS / 4 + 8)));
    let empty = run.rounds.iter().filter(|round| round.queue <= 5).count();
    assert!(2 * empty > run.rounds.len(), "{empty} of {}", run.rounds.len());
}

// The window is two bandwidth-delay products, three aggregates of two segments, rounded up to an even number, and two
// segments more in the probing phase.
#[test]
fn bbrs_window_is_two_bandwidth_delay_products() {
    let mut run = Alone::new(CongestionAlgorithm::Bbr, Path::USUAL);
    run.run_until(3 * SECOND);
    run.rounds.clear();
    run.run_until(10 * SECOND);
    for round in &run.rounds {
        assert!([2 * PIPE_SEGMENTS + 8, 2 * PIPE_SEGMENTS + 10].contains(&round.window), "{round:?}");
    }
}

#[test]
fn bbrs_startup_doubles_the_delivery_every_round() {
    let path = Path { segment_time: 1000, ..ENDLESS };
    let mut run = Alone::new(CongestionAlgorithm::Bbr, path);
    let mut delivered = Vec::new();
    for _ in 0..8 {
        let before = run.delivered;
        run.run_rounds(1);
        delivered.push((run.delivered - before) as f64);
    }
    // At first the initial window limits the sender rather than the rate.
    for pair in delivered[3..].windows(2) {
        assert!((1.9..=2.2).contains(&(pair[1] / pair[0])), "{delivered:?}");
    }
}

#[test]
fn bbr_looks_at_the_empty_path_every_ten_seconds() {
    let mut run = Alone::new(CongestionAlgorithm::Bbr, Path::USUAL);
    run.run_until(35 * SECOND);
    let probes = run.rounds.iter().filter(|round| round.events.contains(&"PROBE_RTT")).map(|round| round.time);
    let probes: Vec<_> = probes.collect();
    assert_eq!(probes.len(), 3);
    for pair in probes.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((10 * SECOND..11 * SECOND).contains(&gap), "{probes:?}");
    }
}

#[test]
fn bbrs_first_phase_follows_from_the_seed_alone() {
    let run = |_| {
        let mut run = Alone::new(CongestionAlgorithm::Bbr, Path::USUAL);
        run.run_rounds(40);
        windows(&run)
    };
    assert_eq!(run(1), run(2));
}

/// Window at which slow start ended, in segments, and whether anything was lost by then.
fn slow_start_exit(algorithm: CongestionAlgorithm, path: Path) -> (u32, bool) {
    let mut run = Alone::new(algorithm, path);
    while run.controller.known_ssthresh().is_none() {
        run.step();
    }
    (run.controller.ssthresh() / MSS, run.losses > 0)
}

#[test]
fn hystart_leaves_slow_start_before_the_buffer_overflows() {
    let (window, lost) = slow_start_exit(cubic(Hystart::Hystart), Path::USUAL);
    assert!(!lost && (PIPE_SEGMENTS..2 * PIPE_SEGMENTS).contains(&window), "{window}");
    let (_, lost) = slow_start_exit(cubic(Hystart::Off), Path::USUAL);
    assert!(lost);
}

// A train of acknowledgments 0.8 ms apart passes half the shortest round trip and half a millisecond, 50.9 ms, with the
// 64th after the first of the round, which found a window of 80.
#[test]
fn the_train_detector_fires_when_the_train_is_half_a_round_trip_long() {
    assert_eq!(slow_start_exit(cubic(Hystart::AckTrain), Path::USUAL).0, 80 + 64);
}

// A rise of an eighth, 12.6 ms, counts if the first nine samples of a round are all that late: the first round with a
// standing queue is the one that begins with a window of 320.
#[test]
fn the_delay_detector_fires_with_the_ninth_sample_of_the_first_round_that_is_late_throughout() {
    assert_eq!(slow_start_exit(cubic(Hystart::Delay), ENDLESS).0, 320 + 8);
}

// RFC 9406 §4.2: conservative slow start grows a quarter as fast, for five rounds, and then slow start is over.
#[test]
fn hystart_plus_plus_grows_a_quarter_as_fast_for_five_rounds_and_then_ends_slow_start() {
    let mut run = Alone::new(cubic(Hystart::HystartPlusPlus), ENDLESS);
    while run.controller.known_ssthresh().is_none() {
        run.step();
    }
    let windows = windows(&run);
    // The first of the five rounds is a partial one.
    for pair in windows[windows.len() - 4..].windows(2) {
        assert!((pair[0] * 5 / 4).abs_diff(pair[1]) <= 1, "{windows:?}");
    }
    let [.., earlier, before, _, _, _, _] = windows[..] else { panic!("{windows:?}") };
    assert!(before > earlier * 3 / 2, "{windows:?}");
}

#[test]
fn an_undo_restores_window_and_threshold() {
    let all = Choices::all().congestion_control.into_iter();
    for algorithm in all.filter(|algorithm| *algorithm != CongestionAlgorithm::Bbr).chain([cubic(Hystart::Hystart)]) {
        let mut run = Alone::new(algorithm, Path::USUAL);
        run.run_rounds(40);
        let before = (run.controller.cwnd(), run.controller.ssthresh());
        run.controller.on_timeout(run.now, run.flight_bytes(), true);
        assert_eq!(run.controller.cwnd(), MSS, "{algorithm:?}");
        run.controller.on_undo(run.now, before.0, before.1);
        assert_eq!(run.controller.cwnd(), before.0, "{algorithm:?}");
        // Westwood's threshold may be higher after the timeout than before.
        assert!(run.controller.ssthresh() >= before.1, "{algorithm:?}");
    }
}

// RFC 9438 §4.6 and §4.7: beta = 0.7, and with fast convergence W_max = cwnd (1 + beta) / 2 for a window that did not
// come up to the last one; Linux's fractions are 717 and 1741 of 1024.
#[test]
fn a_smaller_window_than_last_time_makes_cubic_aim_lower() {
    let mut run = Alone::new(cubic(Hystart::Off), Path::unlimited(SECOND / 10, None));
    run.controller.set_cwnd(1000 * MSS);
    run.controller.on_congestion(0, 1000 * MSS);
    assert_eq!(run.window_segments(), 1000 * 717 / 1024);
    run.controller.on_congestion(0, 700 * MSS);
    assert_eq!(run.window_segments(), 700 * 717 / 1024);
    // The plateau is at 595 segments rather than 700: after K = cbrt((595 - 490) / 0.4) = 6.4 s.
    run.run_until(6 * SECOND + 400 * MILLISECOND);
    assert!(run.window_segments().abs_diff(700 * 1741 / 2048) <= 1, "{}", run.window_segments());
}
