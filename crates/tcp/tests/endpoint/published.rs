//! The events that a sender publishes: why slow start ended, and what else became of its congestion state.

use crate::wire::*;
use CongestionState::{CongestionAvoidance, Recovery, SlowStart};
use firstflight_tcp::{
    AckPolicy, CongestionAlgorithm, CongestionState, EcnPolicy, Hystart, InitialWindow, Nanos, Profile,
    RecoveryAlgorithm, RestartWindow, StartingPoint, Startup, Trigger, WindowValidation, event_words,
};

type Change = (CongestionState, CongestionState, Trigger);

/// Linux's rules with an ACK per segment, and a window that the receiver does not bound.
fn linux(congestion_control: CongestionAlgorithm) -> Profile {
    let ack = AckPolicy::EverySegment;
    Profile { congestion_control, ack, receive_window_growth: None, receive_window_bytes: 1 << 24, ..Profile::linux() }
}

fn reno() -> Profile {
    linux(CongestionAlgorithm::Reno)
}

/// A server that listens and is connected to a client 50 ms away.
fn listening(profile: &Profile) -> Wire {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.listen();
    wire
}

/// The server's events so far.
fn changes(wire: &mut Wire) -> Vec<Change> {
    let events = std::iter::from_fn(|| wire.server.poll_sender_event());
    events.map(|event| (event.old, event.new, event.trigger)).collect()
}

/// The events of a transfer of so many segments of which these are lost.
fn losing(profile: &Profile, segments: u64, numbers: &'static [u32]) -> Vec<Change> {
    let mut wire = listening(profile);
    wire.lose_data_of_server(50 * MS, numbers);
    wire.server.write(wire.now, segments * 1448);
    wire.run();
    changes(&mut wire)
}

/// The first event of an endless transfer over a link that serves a segment in this time, behind a queue without end.
fn first_over(profile: &Profile, service: Nanos) -> Option<Change> {
    first_of(listening(profile), service)
}

fn first_of(mut wire: Wire, service: Nanos) -> Option<Change> {
    let mut free_at = 0;
    wire.set_fate(Box::new(move |sent| {
        if sent.from == Client {
            return vec![50 * MS];
        }
        free_at = free_at.max(sent.at) + service;
        vec![free_at - sent.at + 50 * MS]
    }));
    wire.server.write(wire.now, 100_000 * 1448);
    wire.run_until(wire.now + 5 * SECOND);
    changes(&mut wire).first().copied()
}

#[test]
fn a_loss_ends_slow_start_and_recovery_ends_when_its_data_is_acknowledged() {
    for profile in [reno(), rfc()] {
        let expected = [(SlowStart, Recovery, Trigger::Loss), (Recovery, CongestionAvoidance, Trigger::Recovered)];
        assert_eq!(losing(&profile, 30, &[5]), expected);
    }
}

#[test]
fn an_event_has_the_time_and_the_windows_after_it() {
    let mut wire = listening(&reno());
    let start = wire.now;
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 30 * 1448);
    wire.run();
    let event = wire.server.poll_sender_event().unwrap();
    assert_eq!((event.time, event.trigger), (start + 100 * MS, Trigger::Loss));
    assert_eq!(event.ssthresh_bytes, Some(5 * 1448));
    assert!(event.cwnd_bytes <= 10 * 1448);
}

#[test]
fn a_timeout_ends_slow_start_until_the_data_is_acknowledged_that_was_outstanding() {
    // The ten of the first round: cwnd has grown to an ssthresh of five when they are repaired.
    let found = losing(&rfc(), 100, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let expected = [(SlowStart, Recovery, Trigger::Timeout), (Recovery, CongestionAvoidance, Trigger::Recovered)];
    assert_eq!(found, expected);
}

#[test]
fn a_timer_that_expires_again_is_another_event_of_the_same_recovery() {
    let found = losing(&rfc(), 1, &[1, 2]);
    assert_eq!(found[..2], [(SlowStart, Recovery, Trigger::Timeout), (Recovery, Recovery, Trigger::Timeout)]);
}

#[test]
fn the_detector_that_ended_slow_start_is_named() {
    let cubic = |hystart| linux(CongestionAlgorithm::Cubic { hystart });
    for (profile, trigger) in [
        (cubic(Hystart::AckTrain), Trigger::AckTrain),
        (cubic(Hystart::Delay), Trigger::Delay),
        (cubic(Hystart::Hystart), Trigger::AckTrain),
        (cubic(Hystart::HystartPlusPlus), Trigger::ConservativeSlowStart),
        (linux(CongestionAlgorithm::Vegas), Trigger::Queue),
        (linux(CongestionAlgorithm::Bbr), Trigger::FullPipe),
        (Profile { startup: Startup::Suss, ..cubic(Hystart::Hystart) }, Trigger::AckTrain),
    ] {
        let found = first_over(&profile, MS);
        assert_eq!(found, Some((SlowStart, CongestionAvoidance, trigger)), "{profile:?}");
    }
}

#[test]
fn a_jump_start_ends_slow_start_when_all_of_it_has_arrived() {
    for profile in [reno(), linux(CongestionAlgorithm::Vegas)] {
        let found = first_over(&Profile { startup: Startup::JumpStart, ..profile }, MS / 100);
        assert_eq!(found, Some((SlowStart, CongestionAvoidance, Trigger::Startup)));
    }
}

#[test]
fn an_initial_ssthresh_ends_slow_start_when_cwnd_has_grown_to_it() {
    let profile = Profile { initial_ssthresh_segments: Some(40), ..reno() };
    assert_eq!(first_over(&profile, 0), Some((SlowStart, CongestionAvoidance, Trigger::Ssthresh)));
    // Below the initial window there is no slow start that could end.
    assert_eq!(first_over(&Profile { initial_ssthresh_segments: Some(5), ..reno() }, 0), None);
}

#[test]
fn an_ecn_mark_is_a_recovery_of_its_own_trigger() {
    for profile in [reno(), rfc()] {
        let mut wire = listening(&Profile { ecn: EcnPolicy::On, ..profile });
        wire.server.write(wire.now, 30 * 1448);
        wire.pump();
        wire.now += 100 * MS;
        let (seq, ack) = (wire.client.initial_sequence() + 1, wire.server.initial_sequence() + 1 + 2 * 1448);
        let mut echo = bare_ack(seq, ack);
        (echo.flags, echo.window) = (echo.flags | firstflight_tcp::Flags::ECE, 65535);
        wire.inject(Server, echo);
        assert_eq!(changes(&mut wire).first(), Some(&(SlowStart, Recovery, Trigger::Ecn)));
    }
}

#[test]
fn the_probe_of_a_lost_tail_and_the_recovery_by_it_are_published() {
    let mut wire = listening(&reno());
    wire.lose_data_of_server(50 * MS, &[10]);
    for _ in 0..2 {
        wire.server.write(wire.now, 10 * 1448);
        wire.run();
    }
    let expected = [(SlowStart, SlowStart, Trigger::Probe), (SlowStart, CongestionAvoidance, Trigger::TailLoss)];
    assert_eq!(changes(&mut wire), expected);
}

#[test]
fn a_spurious_recovery_is_undone() {
    let mut wire = listening(&Profile { initial_window: InitialWindow::Fixed { segments: 20 }, ..reno() });
    let mut count = 0;
    // The second segment is late by more than RACK waits.
    wire.set_fate(Box::new(move |sent| {
        count += u32::from(sent.from == Server && sent.segment.payload_bytes > 0);
        vec![if sent.from == Server && count == 2 { 110 * MS } else { 50 * MS }]
    }));
    wire.server.write(wire.now, 100 * 1448);
    wire.run();
    let found = changes(&mut wire);
    assert_eq!(found[..2], [(SlowStart, Recovery, Trigger::Loss), (Recovery, SlowStart, Trigger::Undo)]);
    assert_eq!(wire.server.stats().spurious_recoveries_undone, 1);
}

#[test]
fn an_idle_time_restarts_with_an_event() {
    let mut wire = listening(&Profile { restart_window: RestartWindow::Rfc5681, ..rfc() });
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    wire.run_until(wire.now + 100 * SECOND);
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    assert_eq!(changes(&mut wire), [(SlowStart, SlowStart, Trigger::IdleRestart)]);
}

#[test]
fn an_unused_part_of_cwnd_is_given_up_with_an_event() {
    let window_validation = WindowValidation::CwndLimited { app_limited_decay: true };
    let mut wire = listening(&Profile { restart_window: RestartWindow::Off, window_validation, ..reno() });
    wire.server.write(wire.now, 100 * 1448);
    wire.run();
    for _ in 0..2 {
        wire.server.write(wire.now, 1448);
        wire.run_until(wire.now + 500 * MS);
    }
    assert_eq!(changes(&mut wire), [(SlowStart, SlowStart, Trigger::ApplicationLimited)]);
}

#[test]
fn each_probe_of_a_closed_window_is_an_event() {
    let mut wire = listening(&Profile { receive_window_bytes: 10_000, ..rfc() });
    wire.client_reads = false;
    wire.server.write(wire.now, 100_000);
    wire.run_until(wire.now + 10 * SECOND);
    let probes = wire.server.stats().window_probes as usize;
    assert!(probes > 1);
    assert_eq!(changes(&mut wire), vec![(SlowStart, SlowStart, Trigger::WindowProbe); probes]);
}

#[test]
fn tahoe_slow_starts_when_the_data_of_the_loss_is_acknowledged() {
    let found = losing(&Profile { recovery: RecoveryAlgorithm::Tahoe, ..rfc() }, 60, &[5]);
    let expected = [
        (SlowStart, Recovery, Trigger::Loss),
        (Recovery, SlowStart, Trigger::Recovered),
        (SlowStart, CongestionAvoidance, Trigger::Ssthresh),
    ];
    assert_eq!(found, expected);
}

#[test]
fn bbr_names_the_full_pipe_whatever_ssthresh_was_before() {
    let mut wire = Wire::new(&linux(CongestionAlgorithm::Bbr), 50 * MS);
    wire.server.start_from(StartingPoint { window_segments: 10, ssthresh_segments: Some(2) });
    wire.connect();
    wire.server.listen();
    assert_eq!(first_of(wire, MS), Some((SlowStart, CongestionAvoidance, Trigger::FullPipe)));
}

#[test]
fn every_event_has_words() {
    let words = event_words();
    let of = |(old, new, trigger): Change| words[old as usize][new as usize][trigger as usize].as_str();
    assert_eq!(of((SlowStart, CongestionAvoidance, Trigger::AckTrain)), "slow start ends (ack train)");
    assert_eq!(of((SlowStart, Recovery, Trigger::Loss)), "slow start ends (loss)");
    assert_eq!(of((CongestionAvoidance, Recovery, Trigger::Ecn)), "recovery (ecn)");
    assert_eq!(of((Recovery, SlowStart, Trigger::Undo)), "undo");
    assert_eq!(of((SlowStart, SlowStart, Trigger::IdleRestart)), "idle restart");
    assert!(words.iter().flatten().all(|row| row.len() == Trigger::NAMES.len()));
}

#[test]
fn nobody_hears_of_what_was_before_or_of_another_connection_in_the_same_memory() {
    let mut wire = Wire::connected(&reno(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[5]);
    wire.server.write(wire.now, 30 * 1448);
    wire.run();
    assert_eq!(wire.server.poll_sender_event(), None);
    wire.server.listen();
    let profile = std::sync::Arc::new(reno());
    wire.server.restart_as_server(&profile, 1);
    wire.client.restart_as_client(&profile, 2);
    wire.connect();
    wire.lose_data_of_server(50 * MS, &[5]);
    wire.server.write(wire.now, 30 * 1448);
    wire.run();
    assert_eq!(wire.server.poll_sender_event(), None);
}

#[test]
fn listening_changes_nothing() {
    let sent = |listens: bool| {
        let mut wire = Wire::connected(&Profile::linux(), 50 * MS);
        if listens {
            wire.server.listen();
            wire.client.listen();
        }
        wire.lose_data_of_server(50 * MS, &[5, 40, 41, 99, 120]);
        wire.server.write(wire.now, 120 * 1448);
        wire.run();
        wire.log.iter().map(|sent| (sent.at, sent.segment)).collect::<Vec<_>>()
    };
    assert_eq!(sent(true), sent(false));
}
