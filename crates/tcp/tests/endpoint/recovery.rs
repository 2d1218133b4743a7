//! Fast retransmit and fast recovery, sequence by sequence.

use crate::peer::Peer;
use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, InitialWindow, Profile, RecoveryAlgorithm, RecoveryExit, RenoRules, RtoRules, Segment, Stats,
};

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
    let (mut wire, start) = losing(RecoveryAlgorithm::RENO, &[3]);
    wire.run_until((start + 100) * MS);
    // Flight at the third duplicate: 2..=9, 8 segments (cwnd a little over 8): ssthresh 4, cwnd 4 + 3 + 2 = 9.
    assert_eq!(wire.server.ssthresh_bytes(), Some(4 * 1460));
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
    let (mut wire, start) = losing(RecoveryAlgorithm::RENO, &[3]);
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
fn reno_may_leave_recovery_with_what_is_in_flight_and_two_segments_more() {
    let exit = profile(RecoveryAlgorithm::Reno(RenoRules { exit: RecoveryExit::FlightPlusTwo }));
    let mut wire = Wire::connected(&exit, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[3]);
    wire.server.write(wire.now, 60 * 1460);
    while wire.server.acknowledged_bytes() <= 2 * 1460 {
        wire.step();
    }
    // 8 and 9, sent before recovery, and 10, sent in it, are in flight.
    assert_eq!(wire.server.cwnd_bytes(), (3 + 2) * 1460);
    finished(&mut wire);
}

#[test]
fn a_fast_retransmit_may_back_the_timer_off() {
    for (backoff_at_fast_retransmit, factor) in [(false, 1), (true, 2)] {
        let reno = profile(RecoveryAlgorithm::RENO);
        let rto = RtoRules { backoff_at_fast_retransmit, ..reno.rto };
        let mut wire = Wire::connected(&Profile { rto, ..reno }, 50 * MS);
        // The retransmission is lost, too: the timer recovers it.
        wire.lose_data_of_server(50 * MS, &[3, 11]);
        wire.server.write(wire.now, 60 * 1460);
        while wire.server.stats().timeouts == 0 {
            wire.step();
        }
        let data = wire.data(Server);
        let sent: Vec<u64> = data.iter().filter(|&&(_, number)| number == 2).map(|&(at, _)| at).collect();
        assert_eq!(wire.now / MS - sent[1], factor * 1000, "{backoff_at_fast_retransmit}");
    }
}

#[test]
fn new_reno_repairs_two_losses_with_one_reduction_and_no_timeout() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NEW_RENO, &[2, 5]);
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
    let (mut wire, start) = losing(RecoveryAlgorithm::NEW_RENO, &[1, 2, 3, 4]);
    finished(&mut wire);
    let data = wire.data(Server);
    let again: Vec<_> =
        (0..4).map(|number| data.iter().filter(|(_, n)| *n == number).nth(1).unwrap().0 - start).collect();
    assert_eq!(again, [100, 200, 300, 400]);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn new_reno_deflates_by_what_a_partial_acknowledgement_covers() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NEW_RENO, &[2, 5]);
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
    let (mut wire, _) = losing(RecoveryAlgorithm::NEW_RENO, &[1]);
    let mut bursts = Vec::new();
    wire.pump();
    while wire.next().is_set() {
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
    assert_eq!(wire.server.ssthresh_bytes(), Some(4 * 1460));
    assert_eq!(wire.server.cwnd_bytes(), 1460);
    assert_eq!(by_round(&wire, start, 2)[1], [8, 9, 2]);
    wire.run_until((start + 200) * MS);
    // The ACK of 2 covers all up to 9, so nothing that arrived is retransmitted: two new segments.
    assert_eq!(sent_at(&wire.data(Server), start + 200), [10, 11]);
    finished(&mut wire);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn two_duplicates_are_no_loss() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::NEW_RENO), 50 * MS);
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
        Wire::connected(&Profile { duplicate_ack_threshold: 1, ..profile(RecoveryAlgorithm::RENO) }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 2 * 1460);
    wire.run();
    assert_eq!(wire.server.stats().fast_retransmits, 1);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn duplicates_after_a_timeout_do_not_pass_for_a_new_loss() {
    for recovery in [RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::RENO, RecoveryAlgorithm::NEW_RENO] {
        let mut wire = Wire::connected(&profile(recovery), 50 * MS);
        let start = wire.now;
        // Nothing is lost, but the first flight stalls until just after the timeout. Its ACKs set go-back-N off, so
        // that the client gets everything twice and answers with duplicate ACKs.
        wire.set_fate(Box::new(move |sent| {
            vec![if sent.from == Server && sent.at == start { 1030 * MS } else { 50 * MS }]
        }));
        wire.server.write(start, 30 * 1460);
        wire.run();
        assert_eq!(wire.client.received_bytes(), 30 * 1460);
        let stats = wire.server.stats();
        assert!(stats.duplicate_acks >= 3, "{recovery:?}: {stats:?}");
        assert_eq!((stats.timeouts, stats.fast_retransmits), (1, 0), "{recovery:?}");
    }
}

#[test]
fn new_reno_restarts_the_timer_for_the_first_partial_acknowledgement_only() {
    let rto = RtoRules { minimum_ns: 350 * MS, ..rfc().rto };
    let initial_window = InitialWindow::Fixed { segments: 16 };
    let mut wire = Wire::connected(&Profile { rto, initial_window, ..profile(RecoveryAlgorithm::NEW_RENO) }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let start = wire.now;
    wire.server.write(start, 60 * 1460);
    // A hole is closed each 100 ms: fast retransmit at 100, partial ACKs at 200, 300, 400, 500.
    wire.run_until(start + 549 * MS);
    assert_eq!(wire.server.stats().timeouts, 0);
    wire.run_until(start + 550 * MS);
    assert_eq!(wire.server.stats().timeouts, 1, "350 ms after the first partial acknowledgement");
    finished(&mut wire);
}

#[test]
fn new_reno_ends_with_two_segments_of_window_when_nothing_is_left_in_flight() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::NEW_RENO), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 8 * 1460);
    wire.run();
    assert_eq!(wire.server.ssthresh_bytes(), Some(4 * 1460));
    assert_eq!(wire.server.cwnd_bytes(), 2 * 1460);
}

#[test]
fn no_round_trip_is_measured_across_a_repair() {
    let (mut wire, start) = losing(RecoveryAlgorithm::NEW_RENO, &[3, 5]);
    // Segment 8 leaves at 100 ms and is acknowledged at 300 ms, behind two holes.
    wire.run_until((start + 301) * MS);
    assert!(wire.server.acknowledged_bytes() > 8 * 1460);
    assert_eq!(wire.server.srtt(), Some(100 * MS));
}

#[test]
fn several_losses_in_one_window_cost_reno_a_halving_each() {
    let initial_window = InitialWindow::Fixed { segments: 16 };
    for (recovery, halvings) in [(RecoveryAlgorithm::RENO, 2), (RecoveryAlgorithm::NEW_RENO, 1)] {
        let mut wire = Wire::connected(
            &Profile { initial_window, initial_ssthresh_segments: Some(16), ..profile(recovery) },
            50 * MS,
        );
        wire.lose_data_of_server(50 * MS, &[2, 5]);
        wire.server.write(wire.now, 60 * 1460);
        finished(&mut wire);
        assert_eq!(wire.server.stats().fast_retransmits, halvings, "{recovery:?}");
        assert_eq!(wire.server.stats().timeouts, 0, "{recovery:?}");
        assert_eq!(wire.server.stats().retransmissions, 2, "{recovery:?}");
    }
}

#[test]
fn an_old_segment_is_no_duplicate_acknowledgement() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::RENO), 50 * MS);
    wire.lose(0, |_| true);
    wire.server.write(wire.now, 5 * 1460);
    wire.pump();
    // The window is the one that the client announced last: 1 MiB at a shift of 5.
    let old = Segment { seq: CLIENT_ISN, window: 32768, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1) };
    for _ in 0..5 {
        wire.inject(Server, old);
    }
    assert_eq!(wire.server.stats().duplicate_acks, 0);
    wire.inject(Server, Segment { seq: CLIENT_ISN + 1, ..old });
    assert_eq!(wire.server.stats().duplicate_acks, 1);
}

#[test]
fn a_window_update_is_no_duplicate_acknowledgement() {
    let mut wire = Wire::connected(&profile(RecoveryAlgorithm::RENO), 50 * MS);
    wire.server.write(wire.now, 1460);
    wire.pump();
    for window in [30000, 30001, 30002, 30003] {
        wire.inject(Server, Segment { window, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1) });
    }
    assert_eq!(wire.server.stats().duplicate_acks, 0);
}

// RFC 6675 §5 step 4.3.
#[test]
fn with_sack_the_first_repair_leaves_at_once_though_the_window_is_full() {
    let sack = Profile { sack: true, ..profile(RecoveryAlgorithm::SCOREBOARD) };
    let mut wire = Wire::connected(&sack, 50 * MS);
    let mut count = 0;
    // The first is lost, the others arrive one a millisecond.
    wire.set_fate(Box::new(move |sent| match sent.from {
        Client => vec![50 * MS],
        Server => {
            count += 1;
            if count == 1 { vec![] } else { vec![50 * MS + count * MS] }
        }
    }));
    let start = wire.now / MS;
    wire.server.write(wire.now, 60 * 1460);
    wire.run_until((start + 110) * MS);
    // With the third SACK 4 of 8 are in flight, as many as the halved window holds.
    assert_eq!(wire.data(Server)[8], (start + 104, 0));
    finished(&mut wire);
}

// RFC 6675 §4, NextSeg () rule (3).
#[test]
fn with_sack_and_nothing_new_to_send_a_hole_below_a_sack_is_repaired_without_a_timeout() {
    let sack = Profile { sack: true, ..profile(RecoveryAlgorithm::SCOREBOARD) };
    let mut wire = Wire::connected(&sack, 50 * MS);
    // Segment 6 is the last but one, so that only one SACK will ever be above it.
    wire.lose_data_of_server(50 * MS, &[4, 7]);
    wire.server.write(wire.now, 8 * 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 8 * 1460);
    let stats = wire.server.stats();
    assert_eq!((stats.retransmissions, stats.timeouts), (2, 0));
}

/// The server's statistics after it sent this number of segments and a FIN, of which those with `numbers` were lost.
fn closed_after(profile: &Profile, segments: u32, numbers: &'static [u32]) -> Stats {
    let profile = Profile { initial_window: InitialWindow::Fixed { segments }, ..profile.clone() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    wire.lose_data_of_server(50 * MS, numbers);
    wire.server.write(wire.now, u64::from(segments) * u64::from(wire.server.mss_bytes()));
    wire.server.close(wire.now);
    wire.run();
    assert_eq!(wire.client.received_bytes(), u64::from(segments) * u64::from(wire.server.mss_bytes()));
    *wire.server.stats()
}

#[test]
fn a_fin_on_the_last_segment_does_not_count_as_one_more_for_early_retransmit() {
    let early = Profile { early_retransmit: true, ..profile(RecoveryAlgorithm::NEW_RENO) };
    let stats = closed_after(&early, 3, &[1]);
    assert_eq!((stats.early_retransmits, stats.fast_retransmits, stats.timeouts), (1, 1, 0));
    let ordinary = closed_after(&profile(RecoveryAlgorithm::NEW_RENO), 3, &[1]);
    assert_eq!((ordinary.fast_retransmits, ordinary.timeouts), (0, 1));
}

#[test]
fn a_fin_on_the_last_segment_does_not_count_as_a_third_one_above_the_hole() {
    let counting = Profile { sack: true, ..profile(RecoveryAlgorithm::SCOREBOARD) };
    // Above the first of three segments two are delivered, above the first of four three.
    assert_eq!(closed_after(&counting, 3, &[1]).fast_retransmits, 0);
    let stats = closed_after(&counting, 4, &[1]);
    assert_eq!((stats.fast_retransmits, stats.early_retransmits, stats.timeouts), (1, 0, 0));
}

#[test]
fn without_sack_the_repair_of_a_real_loss_is_not_taken_back() {
    let linux = linux_with(|rules| {
        rules.rack = false;
        rules.tail_loss_probe = None;
        rules.undo_by_dsack = false;
    });
    let mut wire = Wire::connected(&Profile { sack: false, dsack: false, ..linux }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[4]);
    wire.server.write(wire.now, 64 * 1448);
    wire.run();
    let stats = wire.server.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmissions, stats.spurious_recoveries_undone), (1, 1, 0));
    let ssthresh = wire.server.ssthresh_bytes().unwrap();
    assert!(ssthresh < 20 * 1448, "{ssthresh}");
}

// Linux, tcp_check_sack_reneging: half an RTT after an ACK that ends below a SACKed segment, but 10 ms at least, the timer
// expires.
#[test]
fn a_peer_that_discards_what_it_has_sacked_gets_it_after_half_an_rtt() {
    let mut peer = Peer::new(&Profile::linux());
    peer.write(4);
    peer.wait(100);
    peer.ack(0, &[[1, 2]]);
    peer.ack(1, &[]);
    assert_eq!(peer.wait_for_segment().0, 50 * MS);
}
