//! SUSS (SIGCOMM 2024): a fourfold window while ACK trains and RTTs say that doubling will go on.

use crate::startup_excess::excess;
use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, CongestionAlgorithm, EcnPolicy, Flags, Hystart, InitialWindow, Nanos, Profile, RecoveryAlgorithm,
    Segment, Startup, SynLossResponse, TailLossProbe, WindowPacing,
};
use proptest::prelude::*;

/// SUSS as the profile `linux` would have it, over an initial window of this number of segments.
fn suss(segments: u32) -> Profile {
    Profile {
        startup: Startup::Suss,
        initial_window: InitialWindow::Fixed { segments },
        ack: AckPolicy::EverySegment,
        receive_window_growth: None,
        ..linux_with(|rules| rules.trains = None)
    }
}

const MSS: u32 = 1448;

/// cwnd of the server in segments.
fn cwnd(wire: &Wire) -> u32 {
    wire.server.cwnd_bytes() / MSS
}

/// A server that has a lot to send, 100 ms from its client, and when it began.
fn serving(profile: &Profile) -> (Wire, Nanos) {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, 10_000 * 1448);
    let start = wire.now;
    (wire, start)
}

/// cwnd in segments at the end of each of the first rounds.
fn windows(wire: &mut Wire, start: Nanos, rounds: std::ops::Range<u64>) -> Vec<u32> {
    rounds
        .map(|round| {
            wire.run_until(start + (100 * round + 99) * MS);
            cwnd(wire)
        })
        .collect()
}

/// The client's link serves a segment in this time, behind a queue without end.
fn bottleneck(wire: &mut Wire, service: Nanos) {
    let mut free_at = 0;
    wire.set_fate(Box::new(move |sent| {
        if sent.from == Client {
            return vec![50 * MS];
        }
        free_at = free_at.max(sent.at) + service;
        vec![free_at - sent.at + 50 * MS]
    }));
}

#[test]
fn three_rounds_grow_fourfold_and_the_next_ones_twofold() {
    let (mut wire, start) = serving(&suss(2));
    assert_eq!(windows(&mut wire, start, 1..6), [8, 32, 128, 256, 512]);
}

#[test]
fn the_slow_start_part_leaves_at_once_and_the_rest_paced_after_a_pause() {
    let (mut wire, start) = serving(&suss(4));
    wire.run_until(start + 199 * MS);
    // Eight are clocked out by four ACKs. Another eight follow in half a round trip, after half of the time that the
    // train left free of the other half.
    let expected: Vec<Nanos> =
        [0; 4].into_iter().chain([100 * MS; 8]).chain((0..8).map(|n| 125 * MS + n * 50 * MS / 8)).collect();
    assert_eq!(wire.departures(start), expected);
}

#[test]
fn acks_of_the_paced_part_do_not_open_an_accelerated_window_further() {
    let (mut wire, start) = serving(&suss(2));
    // In the third round four ACKs are clocked, and four of paced segments follow at 225 ms and later.
    wire.run_until(start + 210 * MS);
    assert_eq!(cwnd(&wire), 32);
    wire.run_until(start + 299 * MS);
    assert_eq!(cwnd(&wire), 32);
}

#[test]
fn a_first_train_of_a_quarter_of_the_rtt_is_too_long() {
    // Ten ACKs, spaced by this number of ms, of which nine lie before the last: the train is taken for ten intervals.
    // Beyond the limit it is slow start, and with cwnd at 16 HyStart is active.
    for (service, expected) in [(2 * MS, 40), (3 * MS, 20)] {
        let (mut wire, start) = serving(&suss(10));
        bottleneck(&mut wire, service);
        wire.run_until(start + 199 * MS);
        assert_eq!(cwnd(&wire), expected, "a segment in {service} ns");
    }
}

#[test]
fn a_path_of_ten_milliseconds_is_not_accelerated() {
    for (delay, expected) in [(5 * MS, 20), (6 * MS, 40)] {
        let mut wire = Wire::connected(&suss(10), delay);
        wire.server.write(wire.now, 10_000 * 1448);
        wire.run_until(wire.now + 4 * delay - MS);
        assert_eq!(cwnd(&wire), expected, "{delay} ns one way");
    }
}

#[test]
fn a_path_of_which_no_rtt_is_known_is_not_accelerated() {
    // The handshake and the first segment are retransmitted, the segment by a tail loss probe, so neither gives an RTT.
    // There is no room for a probe with new data.
    let mut profile = Profile {
        startup: Startup::Suss,
        initial_window: InitialWindow::Fixed { segments: 1 },
        max_send_window_segments: Some(1),
        syn_loss_response: SynLossResponse::Keep,
        ack: AckPolicy::EverySegment,
        sack: true,
        recovery: RecoveryAlgorithm::SCOREBOARD,
        ..Profile::rfc()
    };
    if let RecoveryAlgorithm::Scoreboard(rules) = &mut profile.recovery {
        rules.tail_loss_probe = Some(TailLossProbe { max_ack_delay_ns: 200 * MS });
    }
    let mut lost = vec![1460, 0];
    let mut wire = Wire::between(&profile, &profile, 0);
    wire.set_fate(Box::new(move |sent| {
        if sent.from == Server && lost.last() == Some(&sent.segment.payload_bytes) {
            lost.pop();
            return vec![];
        }
        vec![50 * MS]
    }));
    wire.client.connect(0);
    wire.run();
    let start = wire.now;
    wire.server.write(start, 100 * 1460);
    // The ACK of the probe.
    while wire.server.acknowledged_bytes() == 0 {
        wire.step();
    }
    assert_eq!(wire.server.cwnd_bytes() / 1460, 2);
}

// HyStart's exit keeps the window, of which an accelerated one can be unused.
#[test]
fn an_exit_after_accelerated_rounds_keeps_no_more_window_than_is_in_flight() {
    let mut wire = Wire::connected(&suss(2), 50 * MS);
    let start = wire.now;
    // The window becomes 8, 32 and 128, and 60 segments are left for the last. Their RTT is 20 ms longer.
    wire.server.write(start, (2 + 8 + 32 + 60) * 1448);
    wire.set_fate(Box::new(move |sent| vec![if sent.at < start + 299 * MS { 50 } else { 60 } * MS]));
    assert_eq!(windows(&mut wire, start, 1..4), [8, 32, 128]);
    wire.run_until(start + 430 * MS);
    assert!(cwnd(&wire) <= 60, "{}", cwnd(&wire));
}

#[test]
fn a_later_train_that_grows_too_long_ends_acceleration_for_good() {
    // One segment per millisecond: 10 ms of ACKs for the initial window; 40 ms for the next, and 160 would follow.
    let (mut wire, start) = serving(&suss(10));
    bottleneck(&mut wire, MS);
    wire.run_until(start + 199 * MS);
    assert_eq!(cwnd(&wire), 40);
    wire.run_until(start + 300 * MS);
    assert!(cwnd(&wire) <= 80);
}

#[test]
fn a_risen_rtt_ends_acceleration() {
    // From the second round on everything takes longer. With the shortest RTT two rounds ago, a twelfth is the limit.
    for (more, expected) in [(8 * MS, 32), (9 * MS, 16)] {
        let (mut wire, start) = serving(&suss(2));
        wire.set_fate(Box::new(move |sent| {
            vec![50 * MS + if sent.from == Server && sent.at >= start + 100 * MS { more } else { 0 }]
        }));
        wire.run_until(start + 299 * MS);
        assert_eq!(cwnd(&wire), expected, "{more} ns");
    }
}

#[test]
fn a_window_that_was_not_used_is_given_back_when_its_round_ends() {
    let mut wire = Wire::connected(&suss(4), 50 * MS);
    let start = wire.now;
    // The initial window, eight clocked segments, and two of the eight that might be paced.
    wire.server.write(start, (4 + 8 + 2) * u64::from(MSS));
    wire.run_until(start + 199 * MS);
    assert_eq!(cwnd(&wire), 16);
    // Ten were in flight, and eight ACKs have come since.
    wire.run_until(start + 201 * MS);
    assert_eq!(cwnd(&wire), 10 + 8);
}

#[test]
fn a_loss_is_answered_from_what_was_in_flight() {
    let (mut wire, start) = serving(&suss(4));
    // The first of those that are clocked is lost; its duplicates come while the next ones would be paced.
    wire.lose_data_of_server(50 * MS, &[2]);
    wire.run_until(start + 150 * MS);
    let in_flight_at_most = 8 * MSS;
    assert!(wire.server.ssthresh_bytes().unwrap() <= in_flight_at_most);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 10_000 * 1448);
}

#[test]
fn a_mark_is_answered_from_what_was_in_flight() {
    let (mut wire, start) = serving(&Profile { ecn: EcnPolicy::On, ..suss(4) });
    // Eight clocked segments are in flight, and a window of 16 is open.
    wire.run_until(start + 120 * MS);
    assert_eq!((cwnd(&wire), wire.server.flight_bytes()), (16, 8 * MSS));
    let ack = bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1 + 4 * MSS);
    wire.inject(Server, Segment { flags: Flags::ACK | Flags::ECE, ..ack });
    assert_eq!(wire.server.ssthresh_bytes(), Some(5 * MSS), "seven tenths of eight segments, rounded down");
}

#[test]
fn hystart_ends_slow_start_although_a_part_of_the_train_is_paced() {
    // 50 segments are the path's: slow start without HyStart would fill a queue without end.
    let (mut wire, start) = serving(&suss(10));
    bottleneck(&mut wire, 2 * MS);
    wire.run_until(start + 1000 * MS);
    let ssthresh = wire.server.ssthresh_bytes().expect("slow start is over") / MSS;
    assert!((40..=110).contains(&ssthresh), "{ssthresh}");
}

#[test]
fn the_controllers_own_hystart_is_replaced() {
    for hystart in [Hystart::Off, Hystart::HystartPlusPlus] {
        let profile = Profile { congestion_control: CongestionAlgorithm::Cubic { hystart }, ..suss(2) };
        let (mut wire, start) = serving(&profile);
        assert_eq!(windows(&mut wire, start, 1..5), [8, 32, 128, 256]);
    }
}

#[test]
fn it_is_refused_with_other_pacing_and_with_bbr() {
    assert!(
        Profile {
            pacing: Some(WindowPacing { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 }),
            ..suss(10)
        }
        .validate()
        .is_err()
    );
    assert!(Profile { congestion_control: CongestionAlgorithm::Bbr, ..suss(10) }.validate().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Four times the largest flight so far, and a segment that was not full.
    #[test]
    fn cwnd_grows_at_most_fourfold_and_all_data_arrives(
        initial in 1u32..30,
        segments in 1u64..1500,
        service in 1_000u64..4 * MS,
        queue in 1u64..300,
        every in 20u64..2000,
    ) {
        let profile = suss(initial);
        prop_assert_eq!(excess(&profile, (service, queue, every), segments * 1448, |flight| 4 * flight + 2 * MSS), None);
    }
}
