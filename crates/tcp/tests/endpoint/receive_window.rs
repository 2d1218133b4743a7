//! A receive window that begins small and grows.

use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, Endpoint, Flags, InitialWindow, Nanos, Profile, ReceiveWindowGrowth, Segment, Timestamps,
};
use std::num::NonZeroU16;
use std::sync::Arc;

const MEBIBYTE: u32 = 1 << 20;

/// Payload of segments of 1460 bytes that fits into a receive buffer of this nominal size: Linux takes half of the
/// memory for payload until it sees that a segment of this size takes 2304 bytes.
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

/// Linux with the tcp_rmem of kernels before 6.16, which announce windows in units of 128.
fn of_6_mb() -> Profile {
    Profile { receive_window_bytes: 3 * MEBIBYTE, ..Profile::linux() }
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
    // Linux's announced windows at an MSS of 1460; with timestamps a server counts segments of 1448.
    assert_eq!(fields, [64240, 64240]);
    let mut wire = Wire::new(&Profile { timestamps: true, ..growing() }, 10 * MS);
    wire.client.connect(0);
    wire.run_until(SECOND);
    let fields: Vec<_> = wire.log.iter().take(2).map(|sent| sent.segment.window).collect();
    assert_eq!(fields, [64240, 65160]);
    // The shift for a buffer of 6 MiB.
    assert_eq!(wire.log[0].segment.window_scale, Some(7));
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
    // Each of up to 60 acknowledgments rounds the rest up to a multiple of 128.
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
fn growth_brings_quick_acknowledgments() {
    // Linux, tcp_grow_window: each segment that opens the window is acknowledged immediately.
    let linux = Profile::linux();
    let (wire, _) = bulk(&Profile { receive_window_bytes: 3 * MEBIBYTE, ..linux }, true);
    let acks = wire.acks(Client).len();
    let segments = wire.data(Server).len();
    assert!(acks > segments / 2 && acks < segments, "{acks} of {segments}");
}

#[test]
fn the_window_grows_as_linux_6_18_was_seen_to_announce_it() {
    // A download over 70 ms and 10 Mbit/s: 64240 on the SYN, then units of 128; two segments more for each that arrives, up to
    // the payload that 128 KiB hold in segments that take 2304 bytes, one of which is in the queue.
    let mut wire = Wire::between(
        &Profile { initial_window: InitialWindow::Fixed { segments: 10 }, ..of_6_mb() },
        &Profile { initial_window: InitialWindow::Fixed { segments: 10 }, ..of_6_mb() },
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
        wire.client.read(100);
        wire.run_until(wire.now + 10 * MS);
    }
    let opened: Vec<u64> = windows(&wire).into_iter().skip(count).map(|(_, window)| window).collect();
    let first = *opened.iter().find(|window| **window > 0).expect("in the end there is room");
    assert!(first >= 1460, "{first}");
}

/// A Linux receiver whose peer announced an MSS of 536 and sends segments of other lengths all the same.
struct Receiver(Endpoint);

impl Receiver {
    const PEER_ISN: u32 = 9;

    fn new() -> Self {
        let mut receiver = Self(Endpoint::server(Arc::new(of_6_mb()), SERVER_ISN));
        let syn = Segment {
            flags: Flags::SYN,
            mss: NonZeroU16::new(536),
            window_scale: Some(7),
            sack_permitted: true,
            ..Segment::EMPTY
        };
        receiver.take(Segment { seq: Self::PEER_ISN, window: 65535, ..syn });
        receiver.take(bare_ack(Self::PEER_ISN + 1, SERVER_ISN + 1));
        receiver
    }

    /// This number of bytes from this one on, counted from 0, arrives; returns the window that its ACK announces.
    fn window_after_bytes(&mut self, offset: u32, payload_bytes: u32) -> u64 {
        let seq = Self::PEER_ISN + 1 + offset;
        let ack = self.take(Segment { payload_bytes, ..bare_ack(seq, SERVER_ISN + 1) }).unwrap();
        self.0.advertised_window_bytes(&ack)
    }

    fn take(&mut self, segment: Segment) -> Option<Segment> {
        self.0.handle_segment(0, &segment);
        self.0.poll_transmit(0)
    }

    /// So many segments of 536 bytes arrive.
    fn take_many(&mut self, count: u32) {
        for number in 0..count {
            let seq = Self::PEER_ISN + 1 + 536 * number;
            self.take(Segment { payload_bytes: 536, ..bare_ack(seq, SERVER_ISN + 1) });
        }
    }

    /// A segment arrives, by its number from 0; returns the window that its ACK announces.
    fn window_after(&mut self, number: u32) -> u64 {
        self.window_after_bytes(1400 * number, 1400)
    }
}

// Linux, tcp_openreq_init_rwin: the route's MSS, not the peer's.
#[test]
fn the_first_window_counts_in_segments_of_our_own_mss() {
    let mut server = Endpoint::server(Arc::new(Profile::linux()), SERVER_ISN);
    server.handle_segment(
        0,
        &Segment { flags: Flags::SYN, mss: NonZeroU16::new(1000), window_scale: Some(7), ..Segment::EMPTY },
    );
    assert_eq!(server.poll_transmit(0).unwrap().window, 64240);
}

// Linux, __tcp_grow_window: 300 bytes take 1280 of memory, so they open it by two segments of the peer's size.
#[test]
fn segments_that_waste_memory_open_the_window_by_less() {
    let mut receiver = Receiver::new();
    receiver.window_after_bytes(0, 1400);
    receiver.0.read(u64::MAX);
    let before = receiver.window_after_bytes(1400, 1400);
    receiver.0.read(u64::MAX);
    let after = receiver.window_after_bytes(2800, 300);
    assert_eq!(before, 70_144, "64,240 and twice 2920, in units of 128");
    assert_eq!(after, 72_960, "twice 1400 more");
}

// The memory of the trimmed segment would be free only once the bytes that were not accepted had been read.
#[test]
fn a_segment_that_reaches_past_the_window_leaves_no_memory_behind_when_what_was_accepted_is_read() {
    let profile = Profile {
        mss_bytes: 7840,
        receive_window_bytes: 32_768,
        receive_window_growth: Some(ReceiveWindowGrowth { initial_bytes: 16_384 }),
        ack: AckPolicy::EverySegment,
        ..rfc()
    };
    let mut receiver = Receiver(Endpoint::server(Arc::new(profile), SERVER_ISN));
    let syn = Segment { flags: Flags::SYN, mss: NonZeroU16::new(7840), window_scale: Some(0), ..Segment::EMPTY };
    receiver.take(Segment { seq: Receiver::PEER_ISN, window: 65535, ..syn });
    receiver.take(bare_ack(Receiver::PEER_ISN + 1, SERVER_ISN + 1));
    receiver.window_after_bytes(0, 7840);
    receiver.window_after_bytes(7840, 7840);
    receiver.0.read(u64::MAX);
    let opened = receiver.0.poll_transmit(0).expect("a window update");
    assert_eq!(receiver.0.advertised_window_bytes(&opened), 15_680);
    receiver.window_after_bytes(15_680, 7840);
    let left = receiver.window_after_bytes(23_520, 7840);
    assert_eq!(receiver.window_after_bytes(31_360, left as u32 + 320), 0);
    assert_eq!(receiver.0.received_bytes(), 31_360 + left, "320 bytes lie past the window");
    receiver.0.read(u64::MAX);
    let opened = receiver.0.poll_transmit(0).expect("a window update");
    assert_eq!(receiver.0.advertised_window_bytes(&opened), 15_680);
}

// Linux, tcp_space: 131,072 bytes of buffer, of which a segment of 536 takes 1280.
#[test]
fn what_is_not_read_takes_the_memory_of_its_blocks() {
    let mut receiver = Receiver::new();
    receiver.take_many(100);
    receiver.0.handle_timeout(SECOND);
    let left = receiver.0.poll_transmit(SECOND).unwrap();
    assert_eq!(receiver.0.advertised_window_bytes(&left), 12_032, "what is left of the first window");
    // A larger window is announced once it is twice the rest.
    receiver.0.read(30 * 536);
    assert_eq!(receiver.0.poll_transmit(SECOND), None);
    receiver.0.read(10 * 536);
    let opened = receiver.0.poll_transmit(SECOND).unwrap();
    assert_eq!(receiver.0.advertised_window_bytes(&opened), 27_136, "half of 131,072 - 60 * 1280");
}

// Linux, tcp_clamp_window: data within an announced window is accepted, and the buffer grows to hold it.
#[test]
fn a_buffer_that_holds_more_than_it_should_grows() {
    let mut receiver = Receiver::new();
    receiver.take_many(119);
    assert_eq!(receiver.0.readable_bytes(), 119 * 536, "in 152 KB of memory");
}

// Linux, tcp_sequence accepts a segment that ends at the latest acknowledgment, RFC 9293 §3.10.7.4 does not.
#[test]
fn the_timestamp_of_a_duplicate_is_echoed_with_the_loose_check_alone() {
    for (loose_sequence_check, echo) in [(true, 7), (false, 6)] {
        let profile = Profile { loose_sequence_check, ..Profile::linux() };
        let mut receiver = Receiver(Endpoint::server(Arc::new(profile), SERVER_ISN));
        let stamped = |value| Some(Timestamps { value, echo: 0 });
        let syn = Segment { flags: Flags::SYN, mss: NonZeroU16::new(1460), timestamps: stamped(4), ..Segment::EMPTY };
        receiver.take(Segment { seq: Receiver::PEER_ISN, window: 65535, ..syn });
        let next = bare_ack(Receiver::PEER_ISN + 1, SERVER_ISN + 1);
        receiver.take(Segment { timestamps: stamped(5), ..next });
        let echoed = [6, 7].map(|value| {
            let ack = receiver.take(Segment { payload_bytes: 1000, timestamps: stamped(value), ..next });
            ack.unwrap().timestamps.unwrap().echo
        });
        assert_eq!(echoed, [6, echo]);
    }
}

// Linux, __tcp_ack_snd_check: three duplicates immediately, the others after an RTT / 20, 1 ms at most.
#[test]
fn acks_for_a_hole_are_merged_after_the_third() {
    let mut receiver = Receiver::new();
    receiver.take_many(30);
    receiver.0.read(u64::MAX);
    receiver.0.poll_transmit(0);
    let arrives = |receiver: &mut Receiver, number: u32| {
        let seq = Receiver::PEER_ISN + 1 + 536 * number;
        receiver.take(Segment { payload_bytes: 536, ..bare_ack(seq, SERVER_ISN + 1) })
    };
    // The window does not open any more, so nothing is acknowledged quickly for that.
    let answered: Vec<_> = (32..40).map(|number| arrives(&mut receiver, number).is_some()).collect();
    assert_eq!(answered, [true, true, true, false, false, false, false, false]);
    assert_eq!(receiver.0.poll_timeout().time(), Some(0), "without an RTT there is no wait");
    receiver.0.handle_timeout(0);
    let ack = receiver.0.poll_transmit(0).unwrap();
    let first = Receiver::PEER_ISN + 1 + 536 * 32;
    assert_eq!(ack.sack.as_slice(), [[first, first + 8 * 536]]);
}

// Linux, tcp_rcv_rtt_measure_ts and __tcp_ack_snd_check: the receiver measures its RTT whether or not its buffer may grow.
#[test]
fn acks_for_a_hole_are_merged_in_a_window_that_does_not_grow() {
    let mut wire = Wire::new(&Profile { receive_window_growth: None, ..Profile::linux() }, 20 * MS);
    wire.connect();
    wire.server.write(wire.now, 60 * 1448);
    wire.run_until(wire.now + 130 * MS);
    wire.lose_data_of_server(20 * MS, &[1]);
    let (before, start) = (wire.acks(Client).len(), wire.now);
    wire.server.write(wire.now, 30 * 1448);
    wire.run_until(start + 50 * MS);
    // 29 arrive in one instant ahead of the hole: three are acknowledged immediately, the others after 1 ms.
    let acks: Vec<_> = wire.acks(Client).split_off(before).into_iter().map(|(at, _)| at - start / MS).collect();
    assert_eq!(acks, [20, 20, 20, 21]);
}

// Linux, tcp_select_initial_window and tcp_init_buffer_space: the field of a SYN limits the announced value, not the
// window.
#[test]
fn a_window_that_begins_above_64_kib_is_announced_whole_after_the_syn() {
    let growth = Some(ReceiveWindowGrowth { initial_bytes: MEBIBYTE });
    let client = Profile { receive_window_growth: growth, ..growing() };
    let unscaled = Profile { window_scaling: false, receive_window_bytes: 65_535, ..rfc() };
    for (server, expected) in [(&client, [65_535, 718 * 1460]), (&unscaled, [65_535, 65_535])] {
        let mut wire = Wire::between(&client, server, 10 * MS);
        wire.client.connect(0);
        wire.run_until(SECOND);
        let announced = windows(&wire).into_iter().map(|(_, window)| window).collect::<Vec<_>>();
        assert!(announced[1] >= expected[1] && announced[1] < expected[1] + 128, "{announced:?}");
        assert_eq!(announced[0], expected[0]);
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

// Linux, __tcp_select_window: each ACK of a receiver with less than half of its buffer free ends quick ACKs, one that
// announces the same window as the ACK before it as well.
#[test]
fn a_repeated_window_in_a_full_buffer_ends_quick_acks() {
    let mut receiver = Receiver(Endpoint::server(Arc::new(Profile::linux()), SERVER_ISN));
    let stamped = |value, segment| Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..segment };
    let syn = Segment { flags: Flags::SYN, mss: NonZeroU16::new(1460), window_scale: Some(7), ..Segment::EMPTY };
    receiver.take(stamped(1000, Segment { seq: Receiver::PEER_ISN, window: 65535, ..syn }));
    let first = Receiver::PEER_ISN + 1;
    receiver.take(stamped(1000, bare_ack(first, SERVER_ISN + 1)));
    let data = |number: u32| Segment { payload_bytes: 1448, ..bare_ack(first + 1448 * number, SERVER_ISN + 1) };
    for number in 0..40 {
        receiver.take(stamped(1000, data(number)));
    }
    let old = receiver.take(stamped(900, data(0))).expect("an ACK of a segment too old");
    let repeated = receiver.take(stamped(900, data(0))).expect("and of another");
    assert_eq!(old.window, repeated.window);
    assert_eq!(receiver.take(stamped(1000, data(40))), None, "acknowledged after the delay");
}
