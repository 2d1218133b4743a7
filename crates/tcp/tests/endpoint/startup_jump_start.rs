//! Jump-Start: the whole flow over the first round trip.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Profile, RecoveryAlgorithm, Startup};

fn jumping() -> Profile {
    Profile { startup: Startup::JumpStart, ack: AckPolicy::EverySegment, ..rfc() }
}

/// A connection over 100 ms of round trip, and the moment at which its server gets `segments` to send.
fn serving(profile: &Profile, segments: u64) -> (Wire, u64) {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, segments * 1460);
    let start = wire.now;
    (wire, start)
}

#[test]
fn the_whole_flow_leaves_in_equal_steps_over_the_round_trip() {
    let (mut wire, start) = serving(&jumping(), 50);
    wire.run();
    assert_eq!(wire.departures(start), (0..50).map(|n| 2 * n * MS).collect::<Vec<_>>());
    assert_eq!(wire.client.received_bytes(), 50 * 1460);
}

#[test]
fn the_peers_window_bounds_the_jump() {
    let profile = Profile { receive_window_bytes: 20 * 1460, window_scaling: false, ..jumping() };
    let (mut wire, start) = serving(&profile, 50);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), (0..20).map(|n| 5 * n * MS).collect::<Vec<_>>());
    wire.run_until(start + 149 * MS);
    // Data beyond the jump follows as acknowledgments arrive: none of them opens the window further.
    assert_eq!(wire.departures(start)[20..], (20..30).map(|n| 5 * n * MS).collect::<Vec<_>>());
    assert_eq!(wire.server.cwnd_bytes(), 20 * 1460);
}

#[test]
fn a_jump_that_arrived_is_the_window_that_congestion_avoidance_grows_from() {
    let (mut wire, start) = serving(&jumping(), 50);
    wire.run_until(start + 199 * MS);
    assert_eq!(wire.server.cwnd_bytes(), 50 * 1460);
    assert_eq!(wire.server.ssthresh_bytes(), Some(50 * 1460));
    wire.server.write(wire.now, 50 * 1460);
    wire.run();
    let grown = wire.server.cwnd_bytes();
    assert!((51 * 1460 - 100..=51 * 1460).contains(&grown), "about one segment in the second round trip, not {grown}");
}

#[test]
fn a_flow_within_the_initial_window_is_paced_and_changes_nothing() {
    let (mut wire, start) = serving(&jumping(), 4);
    wire.run();
    assert_eq!(wire.departures(start), [0, 25 * MS, 50 * MS, 75 * MS]);
    assert_eq!(wire.server.cwnd_bytes(), 14 * 1460);
    assert_eq!(wire.server.ssthresh_bytes(), None);
}

#[test]
fn after_losses_the_window_is_half_of_what_was_delivered() {
    for (lost, delivered) in [(&[11][..], 49), (&[11, 12, 13, 14, 15, 16, 17, 18, 19, 20], 40)] {
        let mut wire = Wire::connected(&jumping(), 50 * MS);
        wire.lose_data_of_server(50 * MS, lost);
        wire.server.write(wire.now, 50 * 1460);
        wire.run();
        assert_eq!(wire.client.received_bytes(), 50 * 1460);
        let stats = wire.server.stats();
        assert_eq!((stats.retransmissions as usize, stats.timeouts), (lost.len(), 0));
        assert!(wire.server.ssthresh_bytes().unwrap() <= delivered * 1460 / 2);
    }
}

#[test]
fn the_half_counts_the_whole_jump_less_retransmitted_bytes() {
    // 10 of 50 lost, the first of them first: 40 delivered. Without that rule the threshold would be 25 segments.
    let mut wire = Wire::connected(&jumping(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    wire.server.write(wire.now, 50 * 1460);
    wire.run();
    assert_eq!(wire.server.stats().retransmissions, 10);
    assert_eq!(wire.server.ssthresh_bytes(), Some(20 * 1460));
}

#[test]
fn a_timeout_leaves_half_of_what_was_acknowledged() {
    let mut wire = Wire::connected(&jumping(), 50 * MS);
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
    assert_eq!(wire.server.ssthresh_bytes(), Some(6 * 1460));
    assert_eq!(wire.server.cwnd_bytes(), 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 50 * 1460);
}

#[test]
fn a_loss_after_the_jump_is_answered_as_ever() {
    let (mut wire, start) = serving(&jumping(), 40);
    wire.run_until(start + 250 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 40 * 1460);
    wire.run();
    assert_eq!(wire.server.ssthresh_bytes(), Some(20 * 1460));
}

#[test]
fn without_a_round_trip_there_is_no_jump() {
    let mut wire = Wire::new(&jumping(), 50 * MS);
    let mut lost = false;
    wire.lose(50 * MS, move |sent| sent.from == Server && !std::mem::replace(&mut lost, true));
    wire.connect();
    let start = wire.now;
    wire.server.write(wire.now, 50 * 1460);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn every_recovery_delivers_a_jump_through_losses() {
    for recovery in
        [RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::RENO, RecoveryAlgorithm::NEW_RENO, RecoveryAlgorithm::SCOREBOARD]
    {
        let mut wire = Wire::connected(&Profile { recovery, ..jumping() }, 50 * MS);
        wire.lose_data_of_server(50 * MS, &[5, 6, 20, 21, 22, 40, 60, 61]);
        wire.server.write(wire.now, 200 * 1460);
        wire.run();
        assert_eq!(wire.client.received_bytes(), 200 * 1460, "{recovery:?}");
    }
}

#[test]
fn a_loss_ends_the_pacing_of_a_jump_over_a_path_that_became_shorter() {
    // The handshake took 100 ms and data takes 10, so the duplicates arrive long before the last step.
    let mut wire = Wire::connected(&jumping(), 50 * MS);
    let start = wire.now;
    wire.lose_data_of_server(5 * MS, &[1]);
    wire.server.write(start, 50 * 1460);
    wire.run();
    let departures = wire.departures(start);
    assert_eq!(departures[..10], [0, 2, 4, 6, 8, 10, 12, 14, 16, 20].map(|ms| ms * MS));
    assert!(departures.iter().all(|&at| at < 98 * MS), "a paced jump ends at 98 ms: {departures:?}");
    assert_eq!(wire.client.received_bytes(), 50 * 1460);
}
