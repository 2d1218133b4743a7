//! Fast retransmit and fast recovery, sequence by sequence.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, InitialWindow, Profile, RecoveryAlgorithm};

fn profile(recovery: RecoveryAlgorithm) -> Profile {
    Profile {
        recovery,
        ack: AckPolicy::EverySegment,
        initial_window: InitialWindow::Fixed { segments: 8 },
        initial_ssthresh_segments: Some(8),
        ..rfc()
    }
}

/// A wire whose server has 8 segments of cwnd at ssthresh, 100 ms of round trip, and loses those data segments.
fn losing(recovery: RecoveryAlgorithm, numbers: &'static [u32]) -> (Wire, u64) {
    let mut wire = Wire::connected(&profile(recovery), 50 * MS);
    wire.lose_data_of_server(50 * MS, numbers);
    let start = wire.now / MS;
    wire.server.write(wire.now, 60 * 1460);
    (wire, start)
}

/// Segments sent in each round trip of 100 ms.
fn by_round(wire: &Wire, start: u64, rounds: u64) -> Vec<Vec<u32>> {
    let data = wire.data(Server);
    (0..rounds).map(|round| sent_at(&data, start + 100 * round)).collect()
}

fn finished(wire: &mut Wire) {
    wire.run();
    assert_eq!(wire.client.received_bytes(), 60 * 1460);
}

#[test]
fn reno_repairs_one_loss_with_half_the_window() {
    // Segment 2 of 0..7 is lost. ACKs of 0 and 1 let 8 and 9 out; then 5 duplicates come from the first flight.
    let (mut wire, start) = losing(RecoveryAlgorithm::Reno, &[3]);
    wire.run_until((start + 100) * MS);
    // Flight at the third duplicate: 2..=9, 8 segments (cwnd a little over 8): ssthresh 4, cwnd 4 + 3 + 2 = 9.
    assert_eq!(wire.server.ssthresh_bytes(), 4 * 1460);
    assert_eq!(wire.server.cwnd_bytes(), 9 * 1460);
    wire.run_until((start + 200) * MS);
    // 8 and 9 give two duplicates more, cwnd 11; before them the retransmission's ACK is not there yet.
    assert_eq!(by_round(&wire, start, 2), [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![8, 9, 2, 10]]);
    let stats = *wire.server.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmissions, stats.timeouts), (1, 1, 0));
    finished(&mut wire);
    assert_eq!(wire.server.stats().retransmissions, 1);
}

#[test]
fn reno_leaves_recovery_with_ssthresh_at_the_first_new_acknowledgement() {
    let (mut wire, start) = losing(RecoveryAlgorithm::Reno, &[3]);
    let mut before_exit = 0;
    while wire.server.acknowledged_bytes() <= 2 * 1460 {
        before_exit = wire.server.cwnd_bytes();
        wire.step();
    }
    assert_eq!(wire.now / MS, start + 200);
    assert_eq!(wire.server.cwnd_bytes(), 4 * 1460);
    assert!(before_exit > 4 * 1460);
    finished(&mut wire);
}

#[test]
fn reno_halves_twice_for_two_losses_in_one_window() {
    let (mut wire, _) = losing(RecoveryAlgorithm::Reno, &[2, 5]);
    finished(&mut wire);
    let stats = wire.server.stats();
    assert!(stats.fast_retransmits + stats.timeouts >= 2);
    assert_eq!(stats.first_flight_segments, 8);
}

#[test]
fn new_reno_repairs_two_losses_with_one_reduction_and_no_timeout() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NewReno, &[2, 5]);
    wire.run_until((start + 200) * MS);
    // 1 and 4 are lost. 100 ms: ACK of 0 lets 8 out; the third duplicate (of 2, 3, 5, 6, 7) retransmits 1.
    // 200 ms: the ACK of 1 to 3 is partial and retransmits 4.
    let rounds = by_round(&wire, start, 3);
    assert_eq!(rounds[1][..2], [8, 1]);
    assert!(rounds[2].contains(&4));
    finished(&mut wire);
    let stats = wire.server.stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts, stats.retransmissions), (1, 0, 2));
}

#[test]
fn new_reno_repairs_one_hole_a_round_trip() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NewReno, &[1, 2, 3, 4]);
    finished(&mut wire);
    let data = wire.data(Server);
    let again: Vec<_> =
        (0..4).map(|number| data.iter().filter(|(_, n)| *n == number).nth(1).unwrap().0 - start).collect();
    assert_eq!(again, [100, 200, 300, 400]);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn new_reno_deflates_by_what_a_partial_acknowledgement_covers() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NewReno, &[2, 5]);
    // At the third duplicate: flight 1..=8, 8 segments and a bit of cwnd, ssthresh 4, cwnd 4 + 3, and 2 duplicates.
    wire.run_until((start + 100) * MS);
    assert_eq!(wire.server.cwnd_bytes(), 9 * 1460);
    while wire.server.acknowledged_bytes() < 4 * 1460 {
        wire.step();
    }
    // One duplicate more came from segment 8: 10. The partial ACK covers 1, 2, 3: 10 - 3 + 1.
    assert_eq!(wire.server.cwnd_bytes(), 8 * 1460);
    finished(&mut wire);
}

#[test]
fn new_reno_leaves_recovery_without_a_burst() {
    let (mut wire, _) = losing(RecoveryAlgorithm::NewReno, &[1]);
    let mut bursts = Vec::new();
    wire.pump();
    while wire.next() != firstflight_tcp::NEVER {
        let before = wire.server.stats().data_segments_sent;
        wire.step();
        bursts.push(wire.server.stats().data_segments_sent - before);
    }
    assert!(bursts.iter().all(|&burst| burst <= 2), "{bursts:?}");
}

#[test]
fn tahoe_slow_starts_from_the_hole() {
    let (mut wire, start) = losing(RecoveryAlgorithm::Tahoe, &[3]);
    wire.run_until((start + 100) * MS);
    assert_eq!(wire.server.ssthresh_bytes(), 4 * 1460);
    assert_eq!(wire.server.cwnd_bytes(), 1460);
    assert_eq!(by_round(&wire, start, 2)[1], [8, 9, 2]);
    wire.run_until((start + 200) * MS);
    // The ACK of 2 covers all up to 9, so nothing that arrived is sent again: two new segments.
    assert_eq!(sent_at(&wire.data(Server), start + 200), [10, 11]);
    finished(&mut wire);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn two_duplicates_are_no_loss() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::NewReno), 50 * MS);
    let mut count = 0;
    // The first segment is overtaken by two.
    wire.set_fate(Box::new(move |sent| {
        count += u32::from(sent.from == Server);
        vec![if sent.from == Server && count == 1 { 60 * MS } else { 50 * MS }]
    }));
    wire.server.write(wire.now, 3 * 1460);
    wire.run();
    assert_eq!(wire.server.stats().duplicate_acks, 2);
    assert_eq!(wire.server.stats().retransmissions, 0);
}

#[test]
fn the_threshold_is_a_setting() {
    let mut wire =
        Wire::connected(&Profile { duplicate_ack_threshold: 1, ..profile(RecoveryAlgorithm::Reno) }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 2 * 1460);
    wire.run();
    assert_eq!(wire.server.stats().fast_retransmits, 1);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn duplicates_after_a_timeout_do_not_pass_for_a_new_loss() {
    for recovery in [RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::Reno, RecoveryAlgorithm::NewReno] {
        let mut wire = Wire::connected(&profile(recovery), 50 * MS);
        let start = wire.now;
        wire.server.write(start, 30 * 1460);
        // A stall of 2 s in both directions, nothing lost: a spurious timeout sends segments again that the client has.
        wire.set_fate(Box::new(move |sent| {
            vec![if sent.from == Client && sent.at < start + 60 * MS { 2 * SECOND } else { 50 * MS }]
        }));
        wire.run();
        assert_eq!(wire.client.received_bytes(), 30 * 1460);
        assert_eq!(wire.server.stats().fast_retransmits, 0, "{recovery:?}");
        assert_eq!(wire.server.stats().timeouts, 1, "{recovery:?}");
    }
}

#[test]
fn a_window_update_is_no_duplicate_acknowledgement() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::Reno), 50 * MS);
    wire.server.write(wire.now, 1460);
    wire.pump();
    let segment = wire.log[0].segment;
    for window in [30000, 30001, 30002, 30003] {
        let update =
            firstflight_tcp::Segment { seq: CLIENT_ISN + 1, ack: segment.seq, window, payload_bytes: 0, ..segment };
        wire.inject(Server, update);
    }
    assert_eq!(wire.server.stats().duplicate_acks, 0);
}
