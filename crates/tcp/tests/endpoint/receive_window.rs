//! A receive window that begins small and grows.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Endpoint, Flags, InitialWindow, Nanos, Profile, ReceiveWindowGrowth, Segment};
use std::sync::Arc;

const MEBIBYTE: u32 = 1 << 20;

/// Payload of segments of 1460 bytes that a receive buffer has room for which is said to hold so much: Linux takes half of
/// the memory for payload until it sees that such a segment takes 2304 bytes.
fn room(bytes: u32) -> u64 {
    2 * u64::from(bytes) * (1460 * 256 / 2304) / 256
}

fn growing() -> Profile {
    Profile {
        receive_window_bytes: 3 * MEBIBYTE,
        receive_window_growth: Some(ReceiveWindowGrowth { initial_bytes: 65536 }),
        ack: AckPolicy::EverySegment,
        ..rfc()
    }
}

/// Windows that the client announced, in bytes, with the times in milliseconds.
fn windows(wire: &Wire) -> Vec<(Nanos, u64)> {
    let ours = wire.log.iter().filter(|sent| sent.from == Client);
    ours.map(|sent| (sent.at / MS, wire.client.advertised_window_bytes(&sent.segment))).collect()
}

#[test]
fn the_first_window_is_half_of_the_buffer_in_whole_segments() {
    let mut wire = Wire::new(&growing(), 10 * MS);
    wire.client.connect(0);
    wire.run_until(SECOND);
    let fields: Vec<_> = wire.log.iter().take(2).map(|sent| sent.segment.window).collect();
    // What Linux announces at an MSS of 1460; with timestamps a server counts segments of 1448.
    assert_eq!(fields, [64240, 64240]);
    let mut wire = Wire::new(&Profile { timestamps: true, ..growing() }, 10 * MS);
    wire.client.connect(0);
    wire.run_until(SECOND);
    let fields: Vec<_> = wire.log.iter().take(2).map(|sent| sent.segment.window).collect();
    assert_eq!(fields, [64240, 65160]);
    // The shift for a buffer of 6 MiB.
    assert_eq!(wire.log[0].segment.window_scale, 7);
}

/// A bulk transfer of the server to a client with this profile; the windows it announced.
fn bulk(profile: &Profile, client_reads: bool) -> (Wire, Vec<(Nanos, u64)>) {
    let mut wire = Wire::between(profile, &Profile { initial_window: InitialWindow::Linux, ..growing() }, 50 * MS);
    wire.connect();
    wire.client_reads = client_reads;
    wire.server.write(wire.now, 3 * u64::from(MEBIBYTE));
    wire.run_until(wire.now + 20 * SECOND);
    let windows = windows(&wire);
    (wire, windows)
}

#[test]
fn a_reader_that_keeps_up_gets_a_window_for_a_sender_in_slow_start() {
    let (wire, windows) = bulk(&growing(), true);
    assert_eq!(wire.client.received_bytes(), 3 * u64::from(MEBIBYTE));
    assert_eq!(windows[0].1, 67200);
    let largest = windows.iter().map(|(_, window)| *window).max().unwrap();
    assert!(largest > u64::from(MEBIBYTE) && largest <= room(3 * MEBIBYTE), "{largest}");
    // The window never limits the sender: it takes as many rounds as with a large window from the start.
    let (open, _) = bulk(&Profile { receive_window_growth: None, ..growing() }, true);
    let end = |wire: &Wire| wire.data(Server).last().unwrap().0;
    assert_eq!(end(&wire), end(&open));
}

#[test]
fn the_right_edge_of_the_window_never_moves_back() {
    for reads in [true, false] {
        let (wire, _) = bulk(&growing(), reads);
        let mut edge = 0;
        for sent in wire.log.iter().filter(|sent| sent.from == Client) {
            let acknowledged = u64::from(sent.segment.ack.wrapping_sub(SERVER_ISN));
            let next = acknowledged + wire.client.advertised_window_bytes(&sent.segment);
            // A window is announced in units of its scale.
            assert!(next + (1 << 7) > edge, "{next} after {edge}");
            edge = edge.max(next);
        }
    }
}

#[test]
fn a_reader_that_sleeps_gets_no_more_than_the_buffer_at_the_start() {
    let (wire, windows) = bulk(&growing(), false);
    let received = wire.client.received_bytes();
    // Each of up to 60 acknowledgements rounds what is left up to a multiple of 128.
    assert!(received > 65536 && received <= room(65536) + 60 * 128, "{received}");
    assert_eq!(windows.last().unwrap().1, 0);
}

#[test]
fn the_window_is_bounded_by_the_largest_buffer() {
    let (_, windows) = bulk(&Profile { receive_window_bytes: 200_000, ..growing() }, true);
    let largest = windows.iter().map(|(_, window)| *window).max().unwrap();
    assert!(largest <= room(200_000) && largest > room(200_000) - 2 * 1460, "{largest}");
}

#[test]
fn growth_brings_quick_acknowledgements() {
    // Linux, tcp_grow_window: each segment that opens the window is acknowledged at once.
    let linux = Profile::linux();
    let (wire, _) = bulk(&Profile { receive_window_bytes: 3 * MEBIBYTE, ..linux }, true);
    let acks = wire.acks(Client).len();
    let segments = wire.data(Server).len();
    assert!(acks > segments / 2 && acks < segments, "{acks} of {segments}");
}

#[test]
fn the_window_grows_as_linux_6_18_was_seen_to_announce_it() {
    // A download over 70 ms and 10 Mbit/s: 64240 on the SYN, then units of 128; two segments more for each that arrives, up to
    // what 128 KiB hold of segments that take 2304 bytes, one of which is in the queue.
    let mut wire = Wire::between(
        &Profile { initial_window: InitialWindow::Fixed { segments: 10 }, ..Profile::linux() },
        &Profile { initial_window: InitialWindow::Fixed { segments: 10 }, ..Profile::linux() },
        35 * MS,
    );
    wire.connect();
    wire.server.write(wire.now, 14480);
    wire.run_until(wire.now + SECOND);
    let announced: Vec<_> = windows(&wire).into_iter().map(|(_, window)| window).take(7).collect();
    assert_eq!(announced, [67200, 70144, 72960, 75904, 78848, 80512, 80512]);
}

// RFC 9293 §3.8.6.2.2, MUST-39.
#[test]
fn a_reader_that_takes_little_at_a_time_makes_no_silly_window() {
    let (mut wire, before) = bulk(&growing(), false);
    assert_eq!(before.last().unwrap().1, 0);
    let count = before.len();
    for _ in 0..600 {
        wire.client.read(wire.now, 100);
        wire.run_until(wire.now + 10 * MS);
    }
    let opened: Vec<u64> = windows(&wire).into_iter().skip(count).map(|(_, window)| window).collect();
    let first = *opened.iter().find(|window| **window > 0).expect("in the end there is room");
    assert!(first >= 1460, "{first}");
}

/// A Linux receiver whose peer announced an MSS of 536 and sends segments of 1400 bytes all the same.
struct Receiver(Endpoint);

impl Receiver {
    const PEER_ISN: u32 = 9;

    fn new() -> Self {
        let mut receiver = Self(Endpoint::server(Arc::new(Profile::linux()), SERVER_ISN));
        let syn = Segment { flags: Flags::SYN, mss: 536, window_scale: 7, sack_permitted: true, ..Segment::EMPTY };
        receiver.take(Segment { seq: Self::PEER_ISN, window: 65535, ..syn });
        receiver.take(bare_ack(Self::PEER_ISN + 1, SERVER_ISN + 1));
        receiver
    }

    fn take(&mut self, segment: Segment) -> Option<Segment> {
        self.0.handle_segment(0, &segment);
        self.0.poll_transmit(0)
    }

    /// A segment arrives, by its number from 0; answers the window that its ACK announces.
    fn window_after(&mut self, number: u32) -> u64 {
        let seq = Self::PEER_ISN + 1 + 1400 * number;
        let ack = self.take(Segment { payload_bytes: 1400, ..bare_ack(seq, SERVER_ISN + 1) }).unwrap();
        self.0.advertised_window_bytes(&ack)
    }
}

// Linux, tcp_grow_window: 2 * advmss.
#[test]
fn what_arrives_ahead_of_a_hole_opens_the_window_by_two_segments_of_our_mss() {
    let mut receiver = Receiver::new();
    let first = receiver.window_after(1);
    let last = (2..4).map(|number| receiver.window_after(number)).last().unwrap();
    let grown = last - first;
    assert!(grown.abs_diff(2 * 2 * 1460) < 128, "{grown} bytes, announced in units of 128");
}

// Linux, tcp_data_queue_ofo: all the bits are present, so the segment is dropped.
#[test]
fn what_is_held_already_does_not_open_the_window() {
    let mut receiver = Receiver::new();
    let first = receiver.window_after(1);
    assert_eq!(receiver.window_after(1), first);
    assert!(receiver.window_after(2) > first);
}
