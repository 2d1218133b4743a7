//! Quick-Start (RFC 4782): a rate asked of the path on the SYN-ACK, and the fate of the answer.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, InitialWindow, Profile, QuickStart, Segment, Startup};

/// Asks for 5.12 Mbit/s, which is 640 000 bytes a second with headers.
const RATE: u8 = 7;
/// Segments of 1500 bytes with headers that fit into 100 ms of it.
const GRANTED_SEGMENTS: u32 = 42;
/// Time between two of them.
const STEP: u64 = 1_500 * 1_000_000_000 / 640_000;

fn asking() -> Profile {
    Profile {
        startup: Startup::QuickStart { rate: RATE, limited_slow_start_segments: 100 },
        ack: AckPolicy::EverySegment,
        ..rfc()
    }
}

#[test]
fn quick_start_alone_asks_for_a_rate() {
    assert!(asking().startup.asks_for_rate());
    for startup in [Startup::Window, Startup::Suss] {
        assert!(!startup.asks_for_rate(), "{startup:?}");
    }
}

/// The path's answer to a request.
type Path = fn(QuickStart) -> QuickStart;

fn lets_pass(option: QuickStart) -> QuickStart {
    option
}

fn lowers(option: QuickStart) -> QuickStart {
    match option {
        QuickStart::Request { rate, approved } => QuickStart::Request { rate: rate.min(6), approved },
        option => option,
    }
}

fn refuses(option: QuickStart) -> QuickStart {
    match option {
        QuickStart::Request { .. } => QuickStart::Request { rate: 0, approved: true },
        option => option,
    }
}

fn ignores(option: QuickStart) -> QuickStart {
    match option {
        QuickStart::Request { rate, .. } => QuickStart::Request { rate, approved: false },
        option => option,
    }
}

/// A connection over 100 ms of round trip whose client asks for nothing and whose server has `segments` to send.
fn serving(path: Path, segments: u64) -> (Wire, u64) {
    let plain = Profile { startup: Startup::Window, ..asking() };
    let mut wire = Wire::between(&plain, &asking(), 50 * MS);
    wire.on_path = Some(path);
    wire.connect_and_keep_the_log();
    wire.server.write(wire.now, segments * 1460);
    let start = wire.now;
    (wire, start)
}

fn options(wire: &Wire, from: Side) -> Vec<(QuickStart, Option<u8>)> {
    let with = wire.log.iter().filter(|sent| sent.from == from);
    with.map(|sent| (sent.segment.quick_start(), sent.segment.quick_start_response()))
        .filter(|options| *options != (QuickStart::None, None))
        .collect()
}

#[test]
fn the_data_sender_asks_on_its_syn_ack_and_reports_before_its_data() {
    let (mut wire, _) = serving(lets_pass, 1);
    wire.run();
    let request = QuickStart::Request { rate: RATE, approved: true };
    assert_eq!(options(&wire, Server), [(request, None), (QuickStart::Report { rate: RATE }, None)]);
    assert_eq!(options(&wire, Client), [(QuickStart::None, Some(RATE))]);
    let first_data = wire.log.iter().find(|sent| sent.from == Server && sent.segment.payload_bytes > 0).unwrap();
    assert_eq!(first_data.segment.quick_start(), QuickStart::Report { rate: RATE });
}

#[test]
fn both_ends_may_ask_each_on_its_syn() {
    let mut wire = Wire::new(&asking(), 50 * MS);
    wire.connect_and_keep_the_log();
    wire.client.write(wire.now, 1);
    wire.server.write(wire.now, 1);
    wire.run();
    let (request, report) = (QuickStart::Request { rate: RATE, approved: true }, QuickStart::Report { rate: RATE });
    // RFC 4782 §4.9: the SYN/ACK carries the response and the server's request, the ACK the response to that.
    assert_eq!(options(&wire, Client), [(request, None), (report, Some(RATE))]);
    assert_eq!(options(&wire, Server), [(request, Some(RATE)), (report, None)]);
}

#[test]
fn a_granted_rate_times_the_round_trip_is_the_window_and_the_rate_its_pace() {
    let (mut wire, start) = serving(lets_pass, 200);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.server.cwnd_bytes(), GRANTED_SEGMENTS * 1460);
    let departures = wire.departures(start);
    assert_eq!(departures, (0..u64::from(GRANTED_SEGMENTS)).map(|n| n * STEP).collect::<Vec<_>>());
}

#[test]
fn a_router_that_lowers_the_rate_halves_the_window() {
    let (mut wire, start) = serving(lowers, 200);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.server.cwnd_bytes(), 21 * 1460);
    assert_eq!(wire.departures(start), (0..21).map(|n| 2 * n * STEP).collect::<Vec<_>>());
}

#[test]
fn refused_or_ignored_the_default_initial_window_leaves_at_once() {
    for (path, answer) in [(refuses as Path, None), (ignores, Some(0))] {
        let (mut wire, start) = serving(path, 200);
        wire.run_until(start + 99 * MS);
        assert_eq!(wire.departures(start), [0; 10]);
        // RFC 4782 §4.3: no response to a rate of zero; §3.1: the sender reports zero all the same.
        let request = (QuickStart::Request { rate: RATE, approved: true }, None);
        assert_eq!(options(&wire, Server), [request, (QuickStart::Report { rate: 0 }, None)]);
        assert_eq!(options(&wire, Client).first().map(|options| options.1), answer.map(Some));
    }
}

#[test]
fn a_grant_below_the_default_initial_window_is_ignored() {
    let modest = Profile {
        startup: Startup::QuickStart { rate: 3, limited_slow_start_segments: 100 },
        ack: AckPolicy::EverySegment,
        ..rfc()
    };
    let mut wire = Wire::connected(&modest, 50 * MS);
    let start = wire.now;
    wire.server.write(start, 200 * 1460);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn a_retransmitted_syn_ack_asks_for_nothing() {
    let mut wire = Wire::new(&asking(), 50 * MS);
    let mut lost = false;
    wire.lose(50 * MS, move |sent| sent.from == Server && !std::mem::replace(&mut lost, true));
    wire.connect_and_keep_the_log();
    let requests: Vec<_> = wire
        .log
        .iter()
        .filter(|sent| sent.from == Server && sent.segment.flags.contains(firstflight_tcp::Flags::SYN))
        .map(|sent| (sent.segment.quick_start(), sent.segment.quick_start_response()))
        .collect();
    // The response to the client's first SYN is not retransmitted either.
    assert_eq!(requests.last(), Some(&(QuickStart::None, None)));
    let start = wire.now;
    wire.server.write(start, 100 * 1460);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 10]);
}

#[test]
fn the_first_acknowledgement_cuts_the_window_to_what_was_used() {
    let (mut wire, start) = serving(lets_pass, 15);
    wire.run_until(start + 101 * MS);
    assert_eq!(wire.server.cwnd_bytes(), 15 * 1460);
    wire.run();
    assert_eq!(wire.server.cwnd_bytes(), 29 * 1460, "14 more acknowledgments in slow start");
}

#[test]
fn slow_start_goes_on_from_there_but_limited() {
    let limited = Profile { startup: Startup::QuickStart { rate: RATE, limited_slow_start_segments: 20 }, ..asking() };
    let mut wire = Wire::connected(&limited, 50 * MS);
    let start = wire.now;
    wire.server.write(start, 200 * 1460);
    wire.run_until(start + 199 * MS);
    // RFC 3742 with max_ssthresh 20: at 42 segments K = int(42 / 10) = 4, so each of 41 ACKs adds a quarter segment.
    let expected = (0..41).fold(42 * 1460, |window, _| window + 1460 / (window / 14_600));
    assert_eq!(wire.server.cwnd_bytes(), expected);
}

#[test]
fn a_loss_in_the_quick_start_window_falls_back_to_the_default_initial_window() {
    let (mut wire, start) = serving(lets_pass, 42);
    wire.lose_data_of_server(50 * MS, &[5]);
    wire.on_path = None;
    while wire.server.stats().fast_retransmits == 0 {
        wire.step();
    }
    // Three duplicates inflate it.
    assert_eq!(wire.server.cwnd_bytes(), 13 * 1460);
    while wire.server.acknowledged_bytes() < 42 * 1460 {
        wire.step();
    }
    assert!(wire.server.cwnd_bytes() <= 10 * 1460);
    // 41 of 42 were delivered; NewReno's FlightSize at the loss was 38.
    assert_eq!(wire.server.ssthresh_bytes(), Some(38 * 1460 / 2));
    assert!(wire.now > start);
}

#[test]
fn many_losses_in_the_window_halve_what_was_delivered_of_it() {
    let (mut wire, _) = serving(lets_pass, 42);
    wire.lose_data_of_server(50 * MS, &[1, 3, 5, 7, 9, 11, 13, 15]);
    wire.run();
    assert_eq!((wire.server.stats().retransmissions, wire.server.stats().timeouts), (8, 0));
    assert_eq!(wire.server.ssthresh_bytes(), Some(34 * 1460 / 2));
}

#[test]
fn a_timeout_in_the_window_halves_what_was_acknowledged_of_it() {
    let (mut wire, _) = serving(lets_pass, 42);
    wire.lose(50 * MS, |sent| {
        sent.from == Side::Server
            && sent.segment.payload_bytes > 0
            && sent.segment.seq.wrapping_sub(SERVER_ISN) > 9 * 1460
    });
    while wire.server.stats().timeouts == 0 {
        wire.step();
    }
    assert_eq!(wire.server.acknowledged_bytes(), 9 * 1460);
    assert_eq!(wire.server.ssthresh_bytes(), Some(9 * 1460 / 2));
}

#[test]
fn rate_codes_double() {
    assert_eq!(QuickStart::bits_per_second(0), 0);
    assert_eq!(QuickStart::bits_per_second(1), 80_000);
    assert_eq!(QuickStart::bits_per_second(15), 1_310_720_000);
    assert_eq!(QuickStart::code_within(79_999), 0);
    assert_eq!(QuickStart::code_within(80_000), 1);
    assert_eq!(QuickStart::code_within(10_000_000), 7);
    assert_eq!(QuickStart::code_within(u64::MAX), 15);
}

#[test]
fn the_default_initial_window_is_the_profiles() {
    let profile = Profile { initial_window: InitialWindow::Rfc3390, ..asking() };
    let mut wire = Wire::between(&Profile { startup: Startup::Window, ..rfc() }, &profile, 50 * MS);
    wire.on_path = Some(refuses);
    wire.connect();
    let start = wire.now;
    wire.server.write(start, 100 * 1460);
    wire.run_until(start + 99 * MS);
    assert_eq!(wire.departures(start), [0; 3]);
}

#[test]
fn a_fin_that_is_retransmitted_before_there_was_data_leaves_the_window_alone() {
    let mut wire = Wire::connected(&Profile { duplicate_ack_threshold: 1, ..asking() }, 50 * MS);
    wire.lose(50 * MS, |_| true);
    wire.client.close(wire.now);
    wire.pump();
    wire.lose(50 * MS, |_| false);
    // The first one changes the window.
    for _ in 0..2 {
        wire.inject(Client, Segment { window: 1000, ..bare_ack(SERVER_ISN + 1, CLIENT_ISN + 1) });
    }
    assert_eq!(wire.client.stats().fast_retransmits, 1);
    wire.server.close(wire.now);
    wire.run();
    assert!(wire.client.is_finished() && wire.client.cwnd_bytes() >= 1460);
}
