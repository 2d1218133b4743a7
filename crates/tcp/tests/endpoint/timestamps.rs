//! The timestamps option (RFC 7323): negotiation, echo, protection against wrapped sequence numbers.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Flags, Profile, Segment, Timestamps};
use std::num::NonZeroU16;

fn stamped() -> Profile {
    Profile { timestamps: true, ack: AckPolicy::EverySegment, ..rfc() }
}

fn stamps(segment: &Segment) -> (u32, u32) {
    let Timestamps { value, echo } = segment.timestamps.expect("the option is there");
    (value, echo)
}

/// A data segment of the server, from byte `from` on, with this timestamp.
fn data(from: u32, value: u32) -> Segment {
    Segment {
        seq: SERVER_ISN + 1 + from,
        ack: CLIENT_ISN + 1,
        payload_bytes: 100,
        window: 65535,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Segment::EMPTY
    }
}

/// The client's timestamp echo after a segment arrived, and the number of bytes it has in order.
fn echo(wire: &mut Wire, segment: Segment) -> (u32, u64) {
    wire.log.clear();
    wire.inject(Client, segment);
    (stamps(&wire.log[0].segment).1, wire.client.received_bytes())
}

#[test]
fn timestamps_are_on_only_if_both_syns_carry_them_and_take_12_bytes_of_each_segment() {
    let plain = Profile { timestamps: false, ..stamped() };
    for (client, server, on) in
        [(stamped(), stamped(), true), (plain.clone(), stamped(), false), (stamped(), plain, false)]
    {
        let mut wire = Wire::between(&client, &server, 10 * MS);
        wire.client.connect(0);
        wire.run_until(SECOND);
        wire.server.write(SECOND, 1);
        wire.run();
        assert_eq!(wire.log[0].segment.timestamps.is_some(), client.timestamps);
        assert!(wire.log[1..].iter().all(|sent| sent.segment.timestamps.is_some() == on));
        assert_eq!([wire.log[0].segment.mss, wire.log[1].segment.mss], [NonZeroU16::new(1460); 2]);
        let mss = if on { 1448 } else { 1460 };
        assert_eq!([wire.client.mss_bytes(), wire.server.mss_bytes()], [mss, mss]);
        assert_eq!(wire.client.info().timestamps, on);
        assert_eq!(wire.client.info().announced_mss_bytes, mss);
    }
}

#[test]
fn values_are_milliseconds_and_come_back_as_echoes() {
    let mut wire = Wire::new(&stamped(), 25 * MS);
    wire.client.connect(0);
    wire.run_until(SECOND);
    wire.server.write(wire.now, 1448);
    wire.run();
    let seen: Vec<_> = wire.log.iter().map(|sent| stamps(&sent.segment)).collect();
    let (client, server) = (CLIENT_ISN, SERVER_ISN);
    assert_eq!(
        seen,
        [
            (client, 0),
            (server + 25, client),
            (client + 50, server + 25),
            (server + 1000, client + 50),
            (client + 1025, server + 1000),
        ]
    );
}

#[test]
fn a_held_back_acknowledgement_echoes_the_first_segment_that_waits() {
    // RFC 7323 §4.3, situation A: the delay of the acknowledgment is part of the round trip.
    let delayed = AckPolicy::Delayed { segments: 2, timer_ns: 200 * MS };
    let mut wire = Wire::connected(&Profile { ack: delayed, ..stamped() }, 10 * MS);
    let start = SERVER_ISN + 20_000;
    wire.inject(Client, data(0, start));
    wire.log.clear();
    wire.inject(Client, data(100, start + 5));
    assert_eq!(stamps(&wire.log[0].segment).1, start);
}

#[test]
fn ahead_of_a_hole_the_echo_stays_and_its_filling_moves_it() {
    // RFC 7323 §4.3, situations B and C.
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    let start = SERVER_ISN + 20_000;
    assert_eq!(echo(&mut wire, data(0, start + 1)), (start + 1, 100));
    assert_eq!(echo(&mut wire, data(200, start + 3)), (start + 1, 100));
    assert_eq!(echo(&mut wire, data(300, start + 4)), (start + 1, 100));
    assert_eq!(echo(&mut wire, data(100, start + 2)), (start + 2, 400));
}

#[test]
fn an_older_timestamp_is_acknowledged_and_dropped() {
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    let start = SERVER_ISN + 20_000;
    echo(&mut wire, data(0, start));
    assert_eq!(echo(&mut wire, data(100, start - 1)), (start, 100));
    assert_eq!(echo(&mut wire, data(100, start.wrapping_sub(1 << 31).wrapping_add(1))), (start, 100));
    assert_eq!(echo(&mut wire, data(100, start)), (start, 200));
}

#[test]
fn a_reset_counts_whatever_its_timestamp() {
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    let start = SERVER_ISN + 20_000;
    echo(&mut wire, data(0, start));
    wire.inject(Client, Segment { flags: Flags::RST, payload_bytes: 0, ..data(100, start - 1000) });
    assert!(wire.client_events.contains(firstflight_tcp::Events::RESET));
}

#[test]
fn a_segment_without_the_option_does_not_abort_the_connection() {
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    assert_eq!(echo(&mut wire, Segment { timestamps: None, ..data(0, 0) }).1, 100);
}

#[test]
fn after_24_days_of_silence_any_timestamp_is_good() {
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    let start = SERVER_ISN + 20_000;
    wire.set_fate(Box::new(|_| vec![]));
    echo(&mut wire, data(0, start));
    wire.run_until(wire.now + 25 * 24 * 3600 * SECOND);
    assert_eq!(echo(&mut wire, data(100, start - 1)), (start - 1, 200));
}

#[test]
fn a_duplicate_acknowledgement_that_was_overtaken_still_counts() {
    let mut wire = Wire::connected(&stamped(), 10 * MS);
    wire.set_fate(Box::new(|_| vec![]));
    wire.server.write(wire.now, 3 * 1448);
    wire.pump();
    let window = (rfc().receive_window_bytes >> 5) as u16;
    let duplicate = |value| Segment {
        window,
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1)
    };
    wire.inject(Server, duplicate(CLIENT_ISN + 12_000));
    let before = wire.server.stats().duplicate_acks;
    wire.inject(Server, duplicate(CLIENT_ISN + 11_990));
    assert_eq!(wire.server.stats().duplicate_acks, before + 1);
    wire.inject(Server, duplicate(CLIENT_ISN + 1_000));
    assert_eq!(wire.server.stats().duplicate_acks, before + 1);
}

#[test]
fn the_echo_measures_a_handshake_that_was_repeated() {
    let mut wire = Wire::new(&stamped(), 50 * MS);
    let mut count = 0;
    wire.lose(50 * MS, move |_| {
        count += 1;
        count == 1
    });
    wire.connect();
    assert_eq!(wire.client.srtt(), Some(100 * MS));
}

#[test]
fn a_round_trip_that_only_a_timestamp_tells_is_never_shorter_than_its_tick() {
    let delay = 20_000;
    let profile = Profile { ack: AckPolicy::EverySegment, ..Profile::linux() };
    let mut wire = Wire::connected(&profile, delay);
    wire.lose_data_of_server(delay, &[1, 2]);
    wire.server.write(wire.now, 100_000);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 100_000);
    assert!(wire.server.stats().retransmissions > 0);
    assert_eq!(wire.server.info().min_rtt_ns, Some(2 * delay));
}

#[test]
fn an_echo_of_the_tick_of_the_retransmission_does_not_tell_of_the_original() {
    let delay = 20_000;
    let profile = Profile { ack: AckPolicy::EverySegment, ..Profile::linux() };
    let mut wire = Wire::connected(&profile, delay);
    wire.run_until(5 * MS + 100_000);
    wire.lose_data_of_server(delay, &[1, 2]);
    wire.server.write(wire.now, 20_000);
    wire.run_until(6 * MS);
    assert_eq!(wire.client.received_bytes(), 20_000);
    let stats = wire.server.stats();
    assert!(stats.retransmissions >= 2);
    assert_eq!((stats.timeouts, stats.spurious_recoveries_undone), (0, 0));
}
