//! When the receiver acknowledges.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, InitialWindow, Profile};

const DELAYED: AckPolicy = AckPolicy::Delayed { segments: 2, timer_ns: 200 * MS };

/// Acknowledgments, in milliseconds from the write and segments covered, of a flight of `segments`.
fn acknowledgments(ack: AckPolicy, segments: u32) -> Vec<(u64, u32)> {
    let mut wire = Wire::connected(&Profile { ack, ..rfc() }, 50 * MS);
    let start = wire.now;
    wire.server.write(start, u64::from(segments) * 1460);
    wire.run();
    wire.acks(Client).iter().map(|&(at, bytes)| (at - start / MS, bytes / 1460)).collect()
}

#[test]
fn every_segment_is_acknowledged_at_once_without_delay() {
    assert_eq!(acknowledgments(AckPolicy::EverySegment, 3), [(50, 1), (50, 2), (50, 3)]);
}

#[test]
fn every_second_segment_is_acknowledged_and_the_odd_one_after_200_ms() {
    assert_eq!(acknowledgments(DELAYED, 4), [(50, 2), (50, 4)]);
    assert_eq!(acknowledgments(DELAYED, 5), [(50, 2), (50, 4), (250, 5)]);
    assert_eq!(acknowledgments(DELAYED, 1), [(250, 1)]);
}

#[test]
fn the_heartbeat_acknowledges_at_multiples_of_its_interval() {
    let heartbeat = AckPolicy::Heartbeat { segments: 2, interval_ns: 200 * MS, every_segment_bytes: None };
    for (written_at, acknowledged_at) in [(10_000, 10_200), (10_100, 10_200), (10_149, 10_200), (10_150, 10_400)] {
        let mut wire = Wire::connected(&Profile { ack: heartbeat, ..rfc() }, 50 * MS);
        wire.run_until(written_at * MS);
        wire.server.write(wire.now, 1460);
        wire.run();
        assert_eq!(wire.acks(Client), [(acknowledged_at, 1460)]);
    }
}

/// ACKs of every segment for 16 kB, then of every second one.
fn like_ns2() -> Profile {
    let ack = AckPolicy::Heartbeat { segments: 2, interval_ns: 100 * MS, every_segment_bytes: Some(16 * 1024) };
    Profile { ack, initial_window: InitialWindow::Fixed { segments: 40 }, ..rfc() }
}

#[test]
fn every_segment_is_acknowledged_for_16_kb_and_then_every_second() {
    let mut wire = Wire::connected(&like_ns2(), 50 * MS);
    wire.server.write(wire.now, 20 * 1460);
    wire.run();
    let covered: Vec<u32> = wire.acks(Client).iter().map(|&(_, bytes)| bytes / 1460).collect();
    // 11 segments are 16,060 bytes, 12 are more than 16,384.
    assert_eq!(covered, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 20]);
}

#[test]
fn the_segment_that_ends_with_the_last_of_those_bytes_is_acknowledged_with_the_next() {
    let ack = AckPolicy::Heartbeat { segments: 2, interval_ns: 100 * MS, every_segment_bytes: Some(3 * 1460) };
    let covered = |segments| acknowledgments(ack, segments).iter().map(|&(_, bytes)| bytes).collect::<Vec<_>>();
    assert_eq!(covered(6), [1, 2, 4, 6]);
}

#[test]
fn every_segment_is_acknowledged_for_16_kb_after_disorder() {
    let mut wire = Wire::connected(&Profile { duplicate_ack_threshold: 100, ..like_ns2() }, 50 * MS);
    // Segment 21 of 40 arrives behind segment 22.
    let mut count = 0;
    wire.set_fate(Box::new(move |sent| {
        count += u32::from(sent.from == Server);
        vec![if sent.from == Server && count == 21 { 51 * MS } else { 50 * MS }]
    }));
    wire.server.write(wire.now, 22 * 1460);
    let first = wire.now;
    wire.run_until(first + 60 * MS);
    wire.server.write(wire.now, 14 * 1460);
    wire.run();
    let covered: Vec<u32> = wire.acks(Client).iter().map(|&(_, bytes)| bytes / 1460).skip(11).collect();
    // 13, 15, 17, 19, the duplicate at 20, the hole filled; from there 11 segments one by one, then every second.
    assert_eq!(covered, [13, 15, 17, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 35, 36]);
}

#[test]
fn the_timer_starts_with_the_first_segment_that_waits() {
    let mut wire =
        Wire::connected(&Profile { ack: AckPolicy::Delayed { segments: 3, timer_ns: 200 * MS }, ..rfc() }, 0);
    let start = wire.now;
    wire.server.write(start, 1460);
    wire.run_until(start + 100 * MS);
    wire.server.write(wire.now, 1460);
    wire.run();
    assert_eq!(wire.acks(Client), [((start + 200 * MS) / MS, 2920)]);
}

#[test]
fn out_of_order_data_and_a_filled_hole_are_acknowledged_at_once() {
    let mut wire = Wire::connected(&Profile { ack: DELAYED, duplicate_ack_threshold: 100, ..rfc() }, 50 * MS);
    let start = wire.now / MS;
    // The second of five segments is late by 30 ms.
    let mut count = 0;
    wire.set_fate(Box::new(move |sent| {
        count += u32::from(sent.from == Server);
        vec![if sent.from == Server && count == 2 { 80 * MS } else { 50 * MS }]
    }));
    wire.server.write(wire.now, 5 * 1460);
    wire.run();
    let acks: Vec<_> = wire.acks(Client).iter().map(|&(at, bytes)| (at - start, bytes / 1460)).collect();
    assert_eq!(acks, [(50, 1), (50, 1), (50, 1), (80, 5)]);
    assert_eq!(wire.server.stats().duplicate_acks, 2);
}

#[test]
fn a_duplicate_is_acknowledged_at_once() {
    let mut wire = Wire::connected(&Profile { ack: DELAYED, ..rfc() }, 50 * MS);
    wire.set_fate(Box::new(|sent| if sent.from == Server { vec![50 * MS, 60 * MS] } else { vec![50 * MS] }));
    let start = wire.now / MS;
    wire.server.write(wire.now, 1460);
    wire.run();
    assert_eq!(wire.acks(Client), [(start + 60, 1460)]);
    assert_eq!(wire.client.received_bytes(), 1460);
}

#[test]
fn an_acknowledgement_rides_on_data_of_the_application() {
    let mut wire = Wire::connected(&Profile { ack: DELAYED, ..rfc() }, 50 * MS);
    wire.client.write(wire.now, 100);
    wire.run_until(wire.now + 150 * MS);
    wire.server.write(wire.now, 100);
    wire.run();
    assert!(wire.acks(Server).is_empty());
    assert_eq!(wire.client.stats().timeouts, 0);
}

#[test]
fn reading_at_once_does_not_upset_the_policy() {
    // A window of four segments: each read frees a quarter of the buffer.
    let profile = Profile {
        ack: DELAYED,
        receive_window_bytes: 4 * 1460,
        initial_window: InitialWindow::Fixed { segments: 4 },
        ..rfc()
    };
    let mut wire = Wire::connected(&profile, 50 * MS);
    wire.server.write(wire.now, 40 * 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 40 * 1460);
    assert_eq!(wire.acks(Client).len(), 20);
}
