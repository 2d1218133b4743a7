//! The restart window.

use crate::wire::*;
use firstflight_tcp::{IdleCheck, Profile, RestartWindow};

/// Segments sent back to back after a transfer of 100 segments and an idle time.
fn burst_after(profile: &Profile, idle: u64, lose_in_first_flight: bool) -> usize {
    let mut wire = Wire::connected(profile, 50 * MS);
    if lose_in_first_flight {
        wire.lose_data_of_server(50 * MS, &[5]);
    }
    wire.server.write(wire.now, 100 * 1460);
    while wire.server.acknowledged_bytes() < 100 * 1460 {
        wire.step();
    }
    let last = wire.log.iter().rfind(|sent| sent.from == Server && sent.segment.payload_bytes > 0).unwrap().at;
    wire.run_until(last + idle);
    let start = wire.now / MS;
    wire.server.write(wire.now, 100 * 1460);
    wire.pump();
    sent_at(&wire.data(Server), start).len()
}

#[test]
fn an_idle_time_longer_than_the_rto_restarts_from_the_initial_window() {
    assert_eq!(burst_after(&rfc(), 1001 * MS, false), 10);
}

#[test]
fn a_shorter_idle_time_keeps_the_window() {
    assert!(burst_after(&rfc(), 1000 * MS, false) > 10);
}

#[test]
fn a_restart_window_of_one_segment_is_kept_to() {
    let restart_window = RestartWindow::Fixed { segments: 1 };
    assert_eq!(burst_after(&Profile { restart_window, ..rfc() }, 2 * SECOND, false), 1);
}

#[test]
fn the_restart_can_be_switched_off() {
    let restart_window = RestartWindow::Off;
    assert!(burst_after(&Profile { restart_window, ..rfc() }, 100 * SECOND, false) > 10);
}

#[test]
fn a_loss_in_the_first_flight_brings_the_restart_window_back_to_rfc_3390() {
    let profile = Profile { restart_window: RestartWindow::Rfc6928, ..rfc() };
    assert_eq!(burst_after(&profile, 5 * SECOND, false), 10);
    assert_eq!(burst_after(&profile, 5 * SECOND, true), 3);
    assert_eq!(burst_after(&rfc(), 5 * SECOND, true), 10, "RFC 5681 knows no such rule");
}

#[test]
fn a_loss_in_a_first_flight_of_less_than_4_kb_is_no_reason_to_fall_back() {
    for (segments, expected) in [(2, 10), (3, 3)] {
        let mut wire = Wire::connected(&Profile { restart_window: RestartWindow::Rfc6928, ..rfc() }, 50 * MS);
        wire.lose_data_of_server(50 * MS, &[1]);
        wire.server.write(wire.now, segments * 1460);
        wire.run();
        wire.server.write(wire.now, 100 * 1460);
        wire.run();
        wire.run_until(wire.now + 10 * SECOND);
        wire.server.write(wire.now, 100 * 1460);
        wire.pump();
        assert_eq!(wire.server.flight_bytes() / 1460, expected, "{segments} segments");
    }
}

#[test]
fn a_loss_in_a_restart_burst_counts_as_well() {
    let profile = Profile { restart_window: RestartWindow::Rfc6928, ..rfc() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    for expected in [10, 10, 3] {
        wire.run_until(wire.now + 10 * SECOND);
        let start = wire.now / MS;
        if wire.server.stats().idle_restarts == 1 || wire.server.acknowledged_bytes() > 0 {
            wire.lose_data_of_server(50 * MS, &[2]);
        }
        wire.server.write(wire.now, 100 * 1460);
        wire.run();
        assert_eq!(sent_at(&wire.data(Server), start).len(), expected);
    }
}

#[test]
fn data_that_was_never_sent_before_is_no_restart() {
    let profile = Profile { restart_window: RestartWindow::Fixed { segments: 1 }, ..rfc() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    wire.run_until(100 * SECOND);
    wire.server.write(wire.now, 100 * 1460);
    wire.pump();
    assert_eq!(wire.data(Server).len(), 10);
}

#[test]
fn a_loss_in_a_restart_burst_of_less_than_4_kb_does_not_count() {
    let mut wire = Wire::connected(&Profile { restart_window: RestartWindow::Rfc6928, ..rfc() }, 50 * MS);
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    wire.run_until(wire.now + 10 * SECOND);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 2 * 1460);
    wire.run();
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    wire.run_until(wire.now + 10 * SECOND);
    wire.server.write(wire.now, 100 * 1460);
    wire.pump();
    assert_eq!(wire.server.flight_bytes(), 10 * 1460);
}

#[test]
fn a_fin_after_an_idle_time_is_no_restart() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    wire.run_until(wire.now + 10 * SECOND);
    wire.server.close(wire.now);
    wire.run();
    assert_eq!(wire.server.stats().idle_restarts, 0);
}

#[test]
fn linux_halves_the_window_for_each_timeout_of_idleness_and_raises_the_threshold() {
    for (idle_ms, segments) in [(190, 64), (310, 32), (650, 16), (1300, 10), (10_000, 10)] {
        let window = RestartWindow::Halving.window_bytes(64_000, 10_000, 1000, false, (idle_ms * MS - 1) / (300 * MS));
        assert_eq!(window, segments * 1000, "{idle_ms} ms");
    }
    // A window below the initial one stays.
    assert_eq!(RestartWindow::Halving.window_bytes(4500, 10_000, 1000, false, 5), 4500);
}

#[test]
fn time_with_a_closed_window_is_idle_if_idleness_is_looked_for_on_sending_whatever_the_restart_window() {
    for restart_window in [RestartWindow::Rfc5681, RestartWindow::Halving] {
        for (idle_check, restarts) in [(IdleCheck::OnSend, 1), (IdleCheck::OnWrite, 0)] {
            let profile = Profile { restart_window, idle_check, receive_window_bytes: 64 * 1460, ..rfc() };
            let mut wire = Wire::connected(&profile, 50 * MS);
            wire.client_reads = false;
            wire.server.write(wire.now, 200 * 1460);
            wire.run_until(wire.now + 30 * SECOND);
            assert_eq!(wire.client.readable_bytes(), 64 * 1460, "the window is closed");
            wire.client_reads = true;
            wire.client.read(64 * 1460);
            wire.pump();
            wire.run();
            assert_eq!(wire.server.stats().idle_restarts, restarts, "{restart_window:?}, {idle_check:?}");
        }
    }
}

// Linux, tcp_cwnd_restart: `while ((delta -= rto) > 0)`.
#[test]
fn an_idle_time_of_just_two_rtos_halves_the_window_once_and_a_nanosecond_more_twice() {
    for (more, halvings) in [(0, 1), (1, 2)] {
        let profile = Profile { restart_window: RestartWindow::Halving, idle_check: IdleCheck::OnSend, ..rfc() };
        let mut wire = Wire::connected(&profile, 50 * MS);
        wire.server.write(wire.now, 100 * 1460);
        wire.run();
        let last = wire.log.iter().rfind(|sent| sent.from == Server).unwrap().at;
        let (before, rto) = (wire.server.cwnd_bytes() / 1460, wire.server.info().rto_ns);
        wire.run_until(last + 2 * rto + more);
        wire.server.write(wire.now, 1460);
        wire.pump();
        assert!(before >> 2 > 10, "above the initial window");
        assert_eq!(wire.server.cwnd_bytes() / 1460, before >> halvings);
    }
}
