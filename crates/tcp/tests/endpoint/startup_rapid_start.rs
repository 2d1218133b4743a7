//! Rapid Start (draft-kazuho-ccwg-rapid-start-02): a larger paced first flight, then threefold growth until a queue
//! builds.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Profile, RtoRules, Startup};

fn rapid() -> Profile {
    Profile {
        startup: serde_json::from_str(r#"{"scheme":"rapid_start"}"#).unwrap(),
        ack: AckPolicy::EverySegment,
        ..rfc()
    }
}

fn serving(profile: &Profile, segments: u64) -> (Wire, u64) {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, segments * 1460);
    let start = wire.now;
    (wire, start)
}

#[test]
fn the_drafts_parameters_are_the_defaults() {
    let expected = Startup::RapidStart { window_factor: 2, growth: 3, queue_delay_ns: 4 * MS, queue_delay_percent: 10 };
    assert_eq!(rapid().startup, expected);
}

#[test]
fn twice_the_initial_window_leaves_in_equal_steps_over_the_round_trip() {
    let (mut wire, start) = serving(&rapid(), 1000);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), (0..20).map(|n| 5 * n * MS).collect::<Vec<_>>());
}

#[test]
fn the_window_grows_threefold_a_round_trip_while_no_queue_is_seen() {
    let (mut wire, start) = serving(&rapid(), 1000);
    let windows: Vec<_> = (1..4)
        .map(|round| {
            wire.run_until(start + (100 * round + 99) * MS);
            wire.server.cwnd_bytes() / 1460
        })
        .collect();
    assert_eq!(windows, [60, 180, 540]);
}

#[test]
fn the_window_grows_twofold_once_round_trips_are_longer() {
    // From the second round trip on, the server's data waits in a queue: 3 ms, 30 ms.
    for (queue, expected) in [(3 * MS, 180), (30 * MS, 120)] {
        let (mut wire, start) = serving(&rapid(), 1000);
        wire.set_fate(Box::new(move |sent| {
            let waits = if sent.from == Server && sent.at >= start + 100 * MS { queue } else { 0 };
            vec![50 * MS + waits]
        }));
        // The first round's acknowledgments bring 60 segments out; the second round shows the queue.
        wire.run_until(start + 199 * MS + queue);
        assert_eq!(wire.server.cwnd_bytes(), 60 * 1460);
        wire.run_until(start + 299 * MS + queue);
        let window = wire.server.cwnd_bytes() / 1460;
        assert_eq!(window, expected, "a queue of {queue} ns");
    }
}

#[test]
fn the_threshold_of_delay_is_the_smaller_of_both() {
    let with = |queue_delay_ns, queue_delay_percent| Profile {
        startup: Startup::RapidStart { window_factor: 2, growth: 3, queue_delay_ns, queue_delay_percent },
        ..rapid()
    };
    for (profile, expected) in [(with(4 * MS, 10), 120), (with(6 * MS, 10), 180), (with(6 * MS, 4), 120)] {
        let (mut wire, start) = serving(&profile, 1000);
        wire.set_fate(Box::new(move |sent| {
            vec![50 * MS + if sent.from == Server && sent.at >= start + 100 * MS { 5 * MS } else { 0 }]
        }));
        wire.run_until(start + 304 * MS);
        assert_eq!(wire.server.cwnd_bytes() / 1460, expected);
    }
}

#[test]
fn after_losses_the_window_is_half_of_what_was_delivered() {
    // 20 segments in flight, 8 of them lost: the retreat is to half of the other 12, where slow start would keep 10.
    let mut wire = Wire::connected(&rapid(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1, 2, 3, 4, 5, 6, 7, 8]);
    wire.server.write(wire.now, 20 * 1460);
    wire.run();
    let stats = wire.server.stats();
    assert_eq!((stats.retransmissions, stats.timeouts), (8, 0));
    assert_eq!(wire.server.ssthresh_bytes(), Some(6 * 1460));
}

#[test]
fn the_retreat_begins_with_a_pause_of_a_sixth_of_the_window() {
    let mut wire = Wire::connected(&rapid(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 1000 * 1460);
    while wire.server.stats().fast_retransmits == 0 {
        wire.step();
    }
    // 20 segments in flight: 5/6 of them, less 5/6 of the one that is lost, and the three that have left the network.
    let window = 20 * 1460 * 5 / 6 - 1460 * 5 / 6;
    assert_eq!(wire.server.cwnd_bytes(), window + 3 * 1460);
    // Each further duplicate takes a third of a segment off, and stands for one that has left the network.
    while wire.server.stats().duplicate_acks == 3 {
        wire.step();
    }
    assert_eq!(wire.server.cwnd_bytes(), window - 1460 / 3 + 4 * 1460);
}

#[test]
fn the_retreat_keeps_a_sixth_however_much_was_lost() {
    // One hole is filled in each round trip, which takes a patient timer.
    let patient = RtoRules { minimum_ns: 10 * SECOND, ..rfc().rto };
    let mut wire = Wire::connected(&Profile { rto: patient, ..rapid() }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    wire.server.write(wire.now, 20 * 1460);
    wire.run();
    assert_eq!(wire.server.stats().timeouts, 0);
    assert_eq!(wire.server.ssthresh_bytes(), Some(20 * 1460 / 6));
}

#[test]
fn after_the_first_recovery_the_controller_is_alone() {
    let mut wire = Wire::connected(&rapid(), 50 * MS);
    let start = wire.now;
    wire.lose_data_of_server(50 * MS, &[20]);
    wire.server.write(wire.now, 400 * 1460);
    wire.run_until(start + 400 * MS);
    let before = wire.server.cwnd_bytes();
    wire.run_until(start + 500 * MS);
    assert!(wire.server.cwnd_bytes() <= before + 1460, "congestion avoidance");
    wire.run();
    assert_eq!(wire.client.received_bytes(), 400 * 1460);
}

#[test]
fn without_a_round_trip_it_is_slow_start_with_the_initial_window() {
    let mut wire = Wire::new(&rapid(), 50 * MS);
    let mut lost = false;
    wire.lose(50 * MS, move |sent| sent.from == Server && !std::mem::replace(&mut lost, true));
    wire.connect();
    let start = wire.now;
    wire.server.write(start, 1000 * 1460);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn after_a_timeout_the_controller_is_alone() {
    let mut wire = Wire::connected(&rapid(), 50 * MS);
    let start = wire.now;
    // Nothing gets through after the 12th segment, until the timer expires.
    let mut count = 0;
    wire.lose(50 * MS, move |sent| {
        count += u32::from(sent.from == Server && sent.segment.payload_bytes > 0);
        sent.from == Server && count > 12 && sent.at < start + 500 * MS
    });
    wire.server.write(wire.now, 50 * 1460);
    while wire.server.stats().timeouts == 0 {
        wire.step();
    }
    let acknowledged = wire.server.acknowledged_bytes();
    while wire.server.acknowledged_bytes() == acknowledged {
        wire.step();
    }
    assert_eq!(wire.server.cwnd_bytes(), 2 * 1460, "slow start, not threefold growth");
}
