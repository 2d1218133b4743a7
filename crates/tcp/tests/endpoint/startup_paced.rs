//! The initial window spread over the first round trip.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, InitialWindow, Profile, Startup};

fn paced(over_rtt_percent: u32) -> Profile {
    Profile { startup: Startup::Paced { over_rtt_percent }, ack: AckPolicy::EverySegment, ..rfc() }
}

/// A connection over 100 ms of round trip whose server has `bytes` to send from now on.
fn serving(profile: &Profile, bytes: u64) -> Wire {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, bytes);
    wire
}

#[test]
fn the_initial_window_leaves_in_equal_steps_over_the_round_trip() {
    let mut wire = serving(&paced(100), 10 * 1460);
    let start = wire.now;
    wire.run();
    assert_eq!(wire.departures(start), (0..10).map(|n| 10 * n * MS).collect::<Vec<_>>());
}

#[test]
fn a_share_of_the_round_trip_makes_the_steps_shorter() {
    let mut wire = serving(&paced(50), 10 * 1460);
    let start = wire.now;
    wire.run();
    assert_eq!(wire.departures(start), (0..10).map(|n| 5 * n * MS).collect::<Vec<_>>());
}

#[test]
fn steps_that_are_no_whole_number_of_nanoseconds_do_not_drift() {
    let profile = Profile { initial_window: InitialWindow::Fixed { segments: 7 }, ..paced(100) };
    let mut wire = serving(&profile, 7 * 1460);
    let start = wire.now;
    wire.run();
    assert_eq!(wire.departures(start), (0..7).map(|n| n * 100 * MS / 7).collect::<Vec<_>>());
}

#[test]
fn after_the_first_round_trip_acknowledgments_clock_the_sender() {
    let mut wire = serving(&paced(100), 100 * 1460);
    let start = wire.now;
    wire.run_until(start + 199 * MS);
    // Each acknowledgment, 10 ms after the one before it, releases two segments back to back.
    let second: Vec<_> = wire.departures(start).split_off(10);
    assert_eq!(second, (0..10).flat_map(|n| [100 * MS + 10 * n * MS; 2]).collect::<Vec<_>>());
}

#[test]
fn an_application_that_writes_late_is_not_paced_after_the_first_round_trip() {
    let mut wire = serving(&paced(100), 2 * 1460);
    let start = wire.now;
    wire.run_until(start + 200 * MS);
    wire.server.write(wire.now, 8 * 1460);
    wire.run();
    let departures = wire.departures(start);
    assert_eq!(departures[..2], [0, 10 * MS]);
    assert_eq!(departures[2..], [200 * MS; 8]);
}

#[test]
fn a_small_receive_window_is_spread_over_the_whole_round_trip() {
    let profile = Profile { receive_window_bytes: 4 * 1460, window_scaling: false, ..paced(100) };
    let mut wire = serving(&profile, 4 * 1460);
    let start = wire.now;
    wire.run();
    assert_eq!(wire.departures(start), [0, 25 * MS, 50 * MS, 75 * MS]);
}

#[test]
fn without_a_round_trip_from_the_handshake_the_window_leaves_at_once() {
    let mut wire = Wire::new(&paced(100), 50 * MS);
    let mut lost = false;
    wire.lose(50 * MS, move |sent| sent.from == Server && !std::mem::replace(&mut lost, true));
    wire.connect();
    wire.server.write(wire.now, 10 * 1460);
    let start = wire.now;
    wire.run();
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn a_loss_in_a_paced_window_is_answered_as_ever() {
    let profile = Profile { initial_window: InitialWindow::Fixed { segments: 8 }, ..paced(100) };
    let mut wire = Wire::connected(&profile, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[3]);
    wire.server.write(wire.now, 20 * 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 20 * 1460);
    let stats = wire.server.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmissions, stats.timeouts), (1, 1, 0));
}

#[test]
fn nothing_waits_once_the_connection_is_aborted() {
    let mut wire = serving(&paced(100), 10 * 1460);
    wire.run_until(wire.now + 15 * MS);
    wire.server.abort(wire.now);
    while wire.server.poll_transmit(wire.now).is_some() {}
    assert!(!wire.server.poll_timeout().is_set());
}

#[test]
fn the_rate_shows_while_segments_are_paced() {
    let mut wire = serving(&paced(100), 100 * 1460);
    wire.run_until(wire.now + 15 * MS);
    assert_eq!(wire.server.info().pacing_rate, Some(146_000));
    wire.run_until(wire.now + 115 * MS);
    assert_eq!(wire.server.info().pacing_rate, None);
}
