//! The receive window: closed, small, and opened again.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Profile, Segment};

fn small_buffer() -> Profile {
    Profile { receive_window_bytes: 4 * 1460, window_scaling: false, ack: AckPolicy::EverySegment, ..rfc() }
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 30 * SECOND);
    assert_eq!(wire.client.received_bytes(), 4 * 1460);
    assert_eq!(wire.client.readable_bytes(), 4 * 1460);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn a_closed_window_is_probed_at_growing_intervals_for_ever() {
    let mut wire = Wire::connected(&Profile { max_retries: 2, ..small_buffer() }, 50 * MS);
    let start = wire.now / MS;
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 400 * SECOND);
    let probes: Vec<_> = wire.acks(Server).iter().map(|(at, _)| at - start).collect();
    assert_eq!(probes[..4], [1100, 3100, 7100, 15_100]);
    assert_eq!(probes[6] - probes[5], 60_000);
    assert_eq!(wire.server.stats().window_probes as usize, probes.len());
    // Opened for a moment and closed again, the window is probed from the first interval on.
    let start = wire.now / MS;
    wire.log.clear();
    wire.client.read(u64::MAX);
    wire.run_until(wire.now + 2 * SECOND);
    assert_eq!(wire.acks(Server)[0].0 - start, 1150);
    wire.client.read(u64::MAX);
    wire.client_reads = true;
    wire.run();
    assert_eq!(wire.client.received_bytes(), 100_000);
}

#[test]
fn a_peer_that_answers_no_probe_is_given_up() {
    let mut wire = Wire::connected(&Profile { max_retries: 2, ..small_buffer() }, 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 500 * MS);
    wire.lose(0, |_| true);
    wire.run();
    assert!(wire.server_events.contains(firstflight_tcp::Events::TIMED_OUT));
}

#[test]
fn a_lost_window_update_is_found_by_the_probe() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    let start = wire.now;
    wire.client_reads = false;
    wire.server.write(wire.now, 20_000);
    wire.run_until(start + 500 * MS);
    wire.lose(50 * MS, move |sent| sent.from == Client && sent.at == start + 500 * MS);
    wire.client.read(u64::MAX);
    wire.client_reads = true;
    wire.run();
    assert_eq!(wire.client.received_bytes(), 20_000);
    assert!(wire.server.stats().window_probes > 0);
}

#[test]
fn reading_opens_the_window_with_an_update_but_not_byte_by_byte() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 8 * 1460);
    wire.run_until(wire.now + 500 * MS);
    wire.log.clear();
    for _ in 0..1460 {
        assert_eq!(wire.client.read(1), 1);
        wire.pump();
    }
    assert!(wire.log.is_empty(), "less than half of the buffer is free");
    wire.client.read(1460);
    wire.pump();
    assert_eq!(wire.log.len(), 1);
    assert_eq!(wire.log[0].segment.window, 2920);
}

#[test]
fn two_segments_read_are_announced_to_a_sender_that_cannot_send() {
    let mut wire = Wire::connected(&Profile { receive_window_bytes: 20 * 1460, ..small_buffer() }, 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 500 * MS);
    wire.log.clear();
    wire.client.read(2919);
    wire.pump();
    assert!(wire.log.is_empty());
    wire.client.read(1);
    wire.pump();
    assert_eq!(wire.log[0].segment.window, 2920);
}

#[test]
fn the_window_does_not_open_by_less_than_a_segment() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 500 * MS);
    wire.client.read(1459);
    wire.run_until(wire.now + SECOND);
    let answer = wire.log.iter().rfind(|sent| sent.from == Client).unwrap();
    assert!(wire.server.stats().window_probes > 0);
    assert_eq!(answer.segment.window, 0);
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    let update = |seq, payload_bytes, window| Segment { payload_bytes, window, ..bare_ack(seq, SERVER_ISN + 1) };
    wire.inject(Server, update(CLIENT_ISN + 1, 100, 5840));
    wire.inject(Server, update(CLIENT_ISN + 101, 100, 2920));
    wire.inject(Server, update(CLIENT_ISN + 1, 100, 5840));
    wire.server.write(wire.now, 100_000);
    wire.pump();
    assert_eq!(wire.server.flight_bytes(), 2920);
    wire.inject(Server, update(CLIENT_ISN + 201, 0, 5840));
    assert_eq!(wire.server.flight_bytes(), 5840);
}

#[test]
fn the_sender_sends_no_silly_segments_into_a_small_window() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 50_000);
    for _ in 0..3000 {
        wire.client.read(100);
        wire.run_until(wire.now + 10 * MS);
    }
    assert_eq!(wire.client.received_bytes(), 50_000);
    let data = wire.log.iter().filter(|sent| sent.from == Server && sent.segment.payload_bytes > 0);
    let small = data.filter(|sent| sent.segment.payload_bytes < 1460).count();
    assert!(small <= 1, "{small} small segments");
}

#[test]
fn a_buffer_smaller_than_a_segment_still_carries_the_stream() {
    let profile = Profile { receive_window_bytes: 1000, window_scaling: false, ..rfc() };
    let mut wire = Wire::connected(&profile, 5 * MS);
    let start = wire.now;
    wire.server.write(wire.now, 10_000);
    wire.server.close(wire.now);
    while wire.client.received_bytes() < 10_000 {
        wire.step();
    }
    assert_eq!((wire.now - start) / MS, 95, "a round trip for each kilobyte");
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn a_fin_waits_for_room_in_the_window() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.client_reads = false;
    wire.server.write(wire.now, 4 * 1460);
    wire.run_until(wire.now + 200 * MS);
    wire.server.close(wire.now);
    wire.run_until(wire.now + 10 * SECOND);
    assert_eq!(wire.server.state(), firstflight_tcp::State::Established);
    assert!(wire.server.stats().window_probes > 0);
    wire.client.read(u64::MAX);
    wire.run();
    assert_eq!(wire.server.state(), firstflight_tcp::State::FinWait2);
}

#[test]
fn a_transfer_limited_by_the_window_runs_at_one_window_a_round_trip() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    let start = wire.now;
    wire.server.write(wire.now, 400 * 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 400 * 1460);
    let last = wire.log.iter().rfind(|sent| sent.from == Server).unwrap().at;
    assert_eq!((last - start) / MS, 9_900);
    assert_eq!(wire.server.stats().retransmissions, 0);
}

#[test]
fn scaled_windows_let_a_megabyte_fly() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, 20_000_000);
    let mut most = 0;
    while wire.client.received_bytes() < 20_000_000 {
        wire.step();
        most = most.max(wire.server.flight_bytes());
    }
    assert!((1_000_000..=1 << 20).contains(&most), "{most}");
}

#[test]
fn what_lies_right_of_the_window_is_dropped_with_its_acknowledgement() {
    let mut wire = Wire::connected(&small_buffer(), 50 * MS);
    wire.lose(0, |_| true);
    wire.server_reads = false;
    wire.server.write(wire.now, 1000);
    wire.pump();
    wire.log.clear();
    let ack = SERVER_ISN + 1 + 1000;
    wire.inject(Server, Segment { payload_bytes: 100, ..bare_ack(CLIENT_ISN + 1 + 4 * 1460, ack) });
    assert_eq!(wire.acks(Server).len(), 1);
    assert_eq!(wire.server.acknowledged_bytes(), 0);
    // Of a segment that begins inside, the rest is trimmed off.
    wire.inject(Server, Segment { payload_bytes: 10_000, ..bare_ack(CLIENT_ISN + 1, ack) });
    assert_eq!(wire.server.received_bytes(), 4 * 1460);
    assert_eq!(wire.server.acknowledged_bytes(), 1000);
}

#[test]
fn an_endless_stream_can_be_written() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, u64::MAX);
    wire.server.write(wire.now, u64::MAX);
    wire.run_until(wire.now + 5 * SECOND);
    assert!(wire.client.received_bytes() > 10_000_000);
    wire.server.close(wire.now);
    wire.run_until(wire.now + SECOND);
    assert_eq!(wire.server.state(), firstflight_tcp::State::Established);
}
