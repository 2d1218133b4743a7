//! Careful Resume (RFC 9959): half of a saved window once the path is confirmed, and a retreat if it does not fit.

use crate::startup_excess::excess;
use crate::wire::*;
use firstflight_tcp::{AckPolicy, EcnPolicy, Flags, Nanos, Profile, Segment, Startup};
use proptest::prelude::*;

/// A path of 100 ms with a saved window of this number of segments.
fn resuming(saved_window_segments: u32, saved_rtt_ns: Nanos) -> Profile {
    Profile {
        startup: Startup::CarefulResume { saved_window_segments, saved_rtt_ns },
        ack: AckPolicy::EverySegment,
        ..rfc()
    }
}

fn serving(profile: &Profile) -> (Wire, Nanos) {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, 2000 * 1460);
    let start = wire.now;
    (wire, start)
}

fn cwnd(wire: &Wire) -> u32 {
    wire.server.cwnd_bytes() / 1460
}

/// cwnd at the end of the second and the third round, counted from 0.
fn after_the_initial_window(profile: &Profile) -> [u32; 2] {
    let (mut wire, start) = serving(profile);
    [199, 299].map(|ms| {
        wire.run_until(start + ms * MS);
        cwnd(&wire)
    })
}

#[test]
fn the_parameters_have_defaults() {
    let found: Startup = serde_json::from_str(r#"{"scheme":"careful_resume"}"#).unwrap();
    assert_eq!(found, Startup::CarefulResume { saved_window_segments: 100, saved_rtt_ns: 50 * MS });
}

#[test]
fn the_initial_window_leaves_as_in_slow_start() {
    let (mut wire, start) = serving(&resuming(200, 100 * MS));
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn once_it_has_arrived_cwnd_is_half_of_what_was_saved_and_then_slow_start_doubles_it() {
    assert_eq!(after_the_initial_window(&resuming(200, 100 * MS)), [100, 200]);
    assert_eq!(after_the_initial_window(&resuming(201, 100 * MS)), [100, 200]);
}

#[test]
fn what_the_jump_adds_leaves_at_the_jump_per_round_trip() {
    let (mut wire, start) = serving(&resuming(200, 100 * MS));
    wire.run_until(start + 199 * MS);
    // Nine ACKs of the initial window let two each out, and the tenth the jump, one segment per millisecond.
    let expected: Vec<Nanos> =
        [0; 10].into_iter().chain([100 * MS; 18]).chain((0..82).map(|n| (100 + n) * MS)).collect();
    assert_eq!(wire.departures(start), expected);
}

#[test]
fn a_round_trip_of_half_of_the_saved_one_or_of_more_than_ten_times_is_another_path() {
    for (saved_rtt, second) in [(200 * MS, 20), (200 * MS - 2, 100), (10 * MS, 100), (10 * MS - 1, 20)] {
        let expected = [second, 2 * second];
        assert_eq!(after_the_initial_window(&resuming(200, saved_rtt)), expected, "saved: {saved_rtt} ns");
    }
}

#[test]
fn a_window_that_is_no_larger_than_slow_starts_changes_nothing() {
    assert_eq!(after_the_initial_window(&resuming(38, 100 * MS)), [20, 40]);
    assert_eq!(after_the_initial_window(&resuming(44, 100 * MS)), [22, 44]);
}

#[test]
fn a_loss_in_the_initial_window_ends_it() {
    let mut wire = Wire::connected(&resuming(200, 100 * MS), 50 * MS);
    let start = wire.now;
    wire.lose_data_of_server(50 * MS, &[2]);
    wire.server.write(start, 2000 * 1460);
    wire.run_until(start + 1000 * MS);
    assert!(cwnd(&wire) < 40, "{}", cwnd(&wire));
    assert_eq!(wire.server.stats().retransmissions, 1);
}

#[test]
fn a_loss_among_the_unvalidated_retreats_to_half_of_what_was_delivered() {
    let (mut wire, start) = serving(&resuming(200, 100 * MS));
    // Segments 1 to 10 are the initial window, 11 to 28 in flight at the jump, and the 34th after them is lost.
    wire.lose_data_of_server(50 * MS, &[28 + 35]);
    wire.run_until(start + 199 * MS);
    assert_eq!(cwnd(&wire), 100);
    while wire.server.stats().fast_retransmits == 0 {
        wire.step();
    }
    // RFC 9959 appendix B.4: PipeSize is the data in flight, 18, and 34 segments since. Reno adds the three duplicates.
    assert_eq!(wire.server.ssthresh_bytes(), Some((18 + 34) * 1460 / 2));
    assert_eq!(wire.server.cwnd_bytes(), (18 + 34) * 1460 / 2 + 3 * 1460);
}

#[test]
fn after_the_retreat_the_threshold_is_half_of_all_that_was_delivered() {
    let (mut wire, start) = serving(&resuming(200, 100 * MS));
    wire.lose_data_of_server(50 * MS, &[28 + 35]);
    wire.run_until(start + 2000 * MS);
    // PipeSize counts the 18 in flight at the jump and the 82 after it, not the data that the Validating Phase has
    // sent.
    assert_eq!(wire.server.ssthresh_bytes(), Some(100 * 1460 / 2));
    wire.run();
    assert_eq!(wire.client.received_bytes(), 2000 * 1460);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn a_mark_among_the_unvalidated_retreats_as_a_loss_does() {
    let (mut wire, start) = serving(&Profile { ecn: EcnPolicy::On, ..resuming(200, 100 * MS) });
    wire.run_until(start + 150 * MS);
    let ack = bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1 + 10 * 1460);
    wire.inject(Server, Segment { flags: Flags::ACK | Flags::ECE, ..ack });
    // Half of the 18 that were in flight at the jump.
    assert_eq!((cwnd(&wire), wire.server.ssthresh_bytes()), (9, Some(9 * 1460)));
    wire.run();
    assert_eq!(wire.client.received_bytes(), 2000 * 1460);
}

#[test]
fn data_that_does_not_fill_the_jump_takes_cwnd_back_to_what_was_used() {
    let mut wire = Wire::connected(&resuming(200, 100 * MS), 50 * MS);
    let start = wire.now;
    // 28 before the jump, 30 after it.
    wire.server.write(start, 58 * 1460);
    wire.run_until(start + 199 * MS);
    assert_eq!(cwnd(&wire), 100);
    wire.run_until(start + 201 * MS);
    assert!(cwnd(&wire) <= 32, "{}", cwnd(&wire));
}

#[test]
fn the_jump_waits_for_data_that_needs_it() {
    let mut wire = Wire::connected(&resuming(200, 100 * MS), 50 * MS);
    let start = wire.now;
    wire.server.write(start, 15 * 1460);
    wire.run_until(start + 150 * MS);
    assert_eq!(cwnd(&wire), 20);
    wire.server.write(wire.now, 2000 * 1460);
    wire.run_until(start + 201 * MS);
    assert_eq!(cwnd(&wire), 100);
}

#[test]
fn after_a_timeout_the_controller_is_alone() {
    let (mut wire, start) = serving(&resuming(200, 100 * MS));
    wire.run_until(start + 150 * MS);
    wire.set_fate(Box::new(|_| vec![]));
    wire.run_until(start + 2000 * MS);
    wire.set_fate(Box::new(|_| vec![50 * MS]));
    wire.run();
    assert!(wire.server.stats().timeouts > 0);
    assert_eq!(wire.client.received_bytes(), 2000 * 1460);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Half of the saved window, or slow start's twice the largest flight so far, with a segment for each of three
    /// duplicates.
    /// All data fits the peer's window, which would bound the flight and, without validation, not cwnd.
    #[test]
    fn cwnd_is_at_most_half_of_the_saved_one_or_slow_starts_and_all_data_arrives(
        saved in 2u32..1000,
        saved_rtt in MS..300 * MS,
        segments in 1u64..700,
        service in 1_000u64..4 * MS,
        queue in 1u64..300,
        every in 20u64..2000,
    ) {
        let profile = resuming(saved, saved_rtt);
        let bound = |flight: u32| (saved / 2 * 1460).max(2 * flight) + 4 * 1460;
        prop_assert_eq!(excess(&profile, (service, queue, every), segments * 1448, bound), None);
    }
}
