//! The retransmission timer.

use crate::peer::Peer;
use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, Events, Flags, InitialWindow, Profile, RecoveryAlgorithm, RtoRules, RttSamples, ScoreboardRules,
    Segment, State, TailLossProbe, TimerTick,
};

fn times_of(wire: &Wire, number: u32, start: u64) -> Vec<u64> {
    wire.data(Server).iter().filter(|(_, n)| *n == number).map(|(at, _)| at - start).collect()
}

#[test]
fn the_timeout_doubles_up_to_its_cap_and_the_connection_is_given_up() {
    let rto = RtoRules { maximum_ns: 5 * SECOND, ..rfc().rto };
    let mut wire = Wire::connected(&Profile { max_retries: 4, rto, ..rfc() }, 50 * MS);
    let start = wire.now / MS;
    wire.lose(0, |_| true);
    wire.server.write(wire.now, 1000);
    wire.run();
    assert_eq!(times_of(&wire, 0, start), [0, 1000, 3000, 7000, 12_000]);
    assert_eq!(wire.now / MS - start, 17_000);
    assert!(wire.server_events.contains(Events::TIMED_OUT));
    assert_eq!(wire.server.state(), State::Closed);
    assert_eq!(wire.server.stats().timeouts, 4);
}

#[test]
fn a_sender_with_a_scoreboard_gives_up_too_and_its_probe_is_no_retry() {
    let profile = Profile { max_retries: 2, ..Profile::linux() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    wire.lose(0, |_| true);
    wire.server.write(wire.now, 1000);
    wire.run();
    assert!(wire.server_events.contains(Events::TIMED_OUT));
    assert_eq!(wire.server.state(), State::Closed);
    let stats = wire.server.stats();
    assert_eq!((stats.tail_loss_probes, stats.timeouts), (1, 2));
}

/// SRTT in ms at the server after a download, over a path of 30 ms to the client and 50 ms back.
fn srtt_after_a_download(client: &Profile, server: &Profile) -> u64 {
    let mut wire = Wire::between(client, server, 50 * MS);
    wire.set_fate(Box::new(|sent| vec![if sent.from == Server { 30 * MS } else { 50 * MS }]));
    wire.client.connect(0);
    wire.run();
    wire.server.write(wire.now, 20 * 1460);
    wire.run();
    wire.server.srtt().unwrap() / MS
}

#[test]
fn samples_may_be_of_the_acks_own_way_if_both_ends_have_one_clock() {
    let every = Profile { ack: AckPolicy::EverySegment, ..rfc() };
    let one_way = Profile { rto: RtoRules { samples: RttSamples::AckOneWay, ..rfc().rto }, ..every.clone() };
    assert_eq!(srtt_after_a_download(&every, &every), 80);
    assert_eq!(srtt_after_a_download(&one_way, &one_way), 50);
    assert_eq!(srtt_after_a_download(&every, &one_way), 80, "the client does not say when it sent its SYN");
}

#[test]
fn the_back_off_factor_is_a_setting() {
    let rto = RtoRules { backoff: 3, ..rfc().rto };
    let mut wire = Wire::connected(&Profile { max_retries: 2, rto, ..rfc() }, 50 * MS);
    let start = wire.now / MS;
    wire.lose(0, |_| true);
    wire.server.write(wire.now, 1000);
    wire.run();
    assert_eq!(times_of(&wire, 0, start), [0, 1000, 4000]);
}

#[test]
fn a_timeout_sends_one_segment_and_halves_the_flight_into_ssthresh_once() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now;
    wire.lose(50 * MS, move |sent| sent.at < start + 4 * SECOND && sent.from == Server);
    wire.server.write(wire.now, 10 * 1460);
    wire.run_until(start + SECOND);
    assert_eq!(wire.server.cwnd_bytes(), 1460);
    assert_eq!(wire.server.ssthresh_bytes(), Some(5 * 1460));
    assert_eq!(wire.server.flight_bytes(), 1460);
    wire.run_until(start + 3 * SECOND);
    assert_eq!(wire.server.stats().timeouts, 2);
    assert_eq!(wire.server.ssthresh_bytes(), Some(5 * 1460), "held while the same segment times out again");
    wire.run();
    assert_eq!(wire.client.received_bytes(), 10 * 1460);
}

#[test]
fn the_loss_window_is_a_setting() {
    let mut wire = Wire::connected(&Profile { loss_window_segments: 2, ..rfc() }, 50 * MS);
    let start = wire.now;
    wire.lose(50 * MS, move |sent| sent.at == start);
    wire.server.write(wire.now, 10 * 1460);
    wire.run_until(start + SECOND);
    assert_eq!(wire.server.cwnd_bytes(), 2 * 1460);
    assert_eq!(wire.server.flight_bytes(), 2 * 1460);
}

#[test]
fn data_that_the_peer_already_holds_is_not_retransmitted_after_a_timeout() {
    // All but the first two of ten are lost in a way that leaves no duplicate ACKs to act upon.
    let mut wire = Wire::connected(&Profile { duplicate_ack_threshold: 200, ..rfc() }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[3]);
    wire.server.write(wire.now, 10 * 1460);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 10 * 1460);
    assert_eq!(wire.server.stats().timeouts, 1);
    assert_eq!(wire.server.stats().retransmissions, 1);
}

#[test]
fn karn_takes_no_sample_from_what_was_sent_twice_and_keeps_the_back_off() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let srtt = wire.server.srtt();
    let start = wire.now;
    wire.lose(50 * MS, move |sent| sent.at < start + 500 * MS);
    wire.server.write(wire.now, 1460);
    wire.run();
    assert_eq!(wire.server.acknowledged_bytes(), 1460);
    assert_eq!(wire.server.srtt(), srtt);
    assert_eq!(wire.server.rto(), 2 * SECOND, "backed off until a sample comes");
    wire.server.write(wire.now, 2 * 1460);
    wire.run();
    assert_eq!(wire.server.rto(), SECOND);
}

#[test]
fn an_acknowledgement_of_new_data_restarts_the_timer() {
    let rto = RtoRules { minimum_ns: 300 * MS, ..rfc().rto };
    let initial_window = InitialWindow::Fixed { segments: 4 };
    let mut wire = Wire::connected(&Profile { rto, initial_window, ..rfc() }, 50 * MS);
    let start = wire.now / MS;
    wire.lose_data_of_server(50 * MS, &[3, 4]);
    wire.server.write(wire.now, 4 * 1460);
    wire.run();
    // The acknowledgment of the first two came at 100 ms and restarted the timer.
    assert_eq!(times_of(&wire, 2, start), [0, 400]);
}

// RFC 6298 §5.3 restarts the timer with an RTO; RFC 7765 §4 subtracts the time since the first outstanding segment was sent.
#[test]
fn without_restart_the_timer_counts_from_when_the_first_outstanding_segment_was_sent() {
    for (timer_restart, after_ack) in [(true, 300), (false, 200)] {
        for tail_loss_probe in [None, Some(TailLossProbe { max_ack_delay_ns: 200 * MS })] {
            let probes = tail_loss_probe.is_some();
            let mut peer = counting(timer_restart, tail_loss_probe);
            assert_eq!(peer.write(3), [0, 1, 2]);
            peer.wait(100);
            peer.ack(1, &[]);
            let sent = peer.wait(1000);
            // A probe of the tail leaves at 2 SRTT, but not later than the timer would expire.
            let expected = if probes { 100 + 200.min(after_ack) } else { 100 + after_ack };
            assert_eq!(sent[0].0, expected, "{timer_restart} {probes}");
        }
    }
}

#[test]
fn without_restart_a_retransmission_has_a_timeout_of_its_own() {
    let mut peer = counting(false, None);
    peer.write(3);
    assert_eq!(peer.wait(300), [(300, 0)]);
    // The next two are retransmitted, though they were sent 350 ms before; the timeout stays doubled.
    peer.wait(50);
    assert_eq!(peer.ack(1, &[]), [1, 2]);
    assert_eq!(peer.wait(599), []);
    assert_eq!(peer.wait(1), [(950, 1)]);
}

/// RFC 6675's scoreboard, an RTT of 100 ms and an RTO of 300 ms.
fn counting(timer_restart: bool, tail_loss_probe: Option<TailLossProbe>) -> Peer {
    let rules = ScoreboardRules { timer_restart, tail_loss_probe, ..ScoreboardRules::default() };
    let rto = RtoRules { minimum_ns: 300 * MS, ..rfc().rto };
    Peer::new(&Profile { sack: true, rto, recovery: RecoveryAlgorithm::Scoreboard(rules), ..rfc() })
}

#[test]
fn one_segment_is_timed_at_a_time() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, 2 * 1460);
    wire.run_until(wire.now + 40 * MS);
    wire.server.write(wire.now, 2 * 1460);
    wire.run_until(wire.now + 200 * MS);
    assert_eq!(wire.server.srtt(), Some(100 * MS));
}

#[test]
fn the_timeout_is_three_seconds_after_a_syn_that_had_to_be_repeated() {
    for (after_syn_loss, expected) in [(rfc().rto.after_syn_loss, 3 * SECOND), (None, 2 * SECOND)] {
        let rto = RtoRules { after_syn_loss, ..rfc().rto };
        let mut wire = Wire::new(&Profile { rto, ..rfc() }, 50 * MS);
        let mut first = true;
        wire.lose(50 * MS, move |_| std::mem::take(&mut first));
        wire.client.connect(0);
        wire.run();
        assert_eq!(wire.client.srtt(), None);
        assert_eq!(wire.client.rto(), expected);
        assert_eq!(wire.server.srtt(), Some(100 * MS));
    }
}

#[test]
fn a_call_before_the_deadline_is_harmless() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, 1460);
    wire.pump();
    let deadline = wire.server.poll_timeout();
    for now in wire.now..wire.now + 100 {
        wire.server.handle_timeout(now);
        assert!(wire.server.poll_transmit(now).is_none());
    }
    assert_eq!(wire.server.poll_timeout(), deadline);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn retries_count_for_one_segment_and_begin_anew_with_the_next() {
    let mut wire = Wire::connected(&Profile { max_retries: 2, ..rfc() }, 50 * MS);
    // Each new byte is lost twice.
    let (mut last, mut count) = (0, 0);
    wire.lose(50 * MS, move |sent| {
        if sent.segment.payload_bytes == 0 {
            return false;
        }
        count = if sent.segment.seq == last { count + 1 } else { 1 };
        last = sent.segment.seq;
        count <= 2
    });
    for _ in 0..4 {
        wire.server.write(wire.now, 100);
        wire.run();
    }
    assert_eq!(wire.client.received_bytes(), 400);
    assert_eq!(wire.server.stats().timeouts, 8);
}

#[test]
fn acknowledgments_after_a_timeout_carry_the_highest_sequence_number_sent() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.lose(50 * MS, |sent| sent.from == Server && sent.segment.payload_bytes > 0);
    wire.server.write(wire.now, 5 * 1460);
    wire.run_until(wire.now + 1500 * MS);
    wire.client.write(wire.now, 2 * 1460);
    wire.run_until(wire.now + 60 * MS);
    let ack = wire.log.iter().rfind(|sent| sent.from == Server).unwrap().segment;
    assert_eq!((ack.payload_bytes, ack.seq), (0, SERVER_ISN + 1 + 5 * 1460));
}

#[test]
fn a_fast_retransmit_restarts_the_timer() {
    let rto = RtoRules { minimum_ns: 300 * MS, ..rfc().rto };
    let mut wire = Wire::connected(&Profile { rto, ..rfc() }, 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    let start = wire.now;
    for number in 0..4 {
        wire.run_until(start + number * 40 * MS);
        wire.server.write(wire.now, 1460);
    }
    // Duplicates at 140, 180 and 220 ms; the data that they retransmit is acknowledged at 320 ms.
    wire.run();
    assert_eq!(times_of(&wire, 0, start / MS), [0, 220]);
    assert_eq!(wire.server.stats().timeouts, 0);
}

#[test]
fn a_retransmitted_syn_does_not_count_against_the_data() {
    let mut wire = Wire::new(&Profile { max_retries: 2, ..rfc() }, 50 * MS);
    let mut count = 0;
    // One SYN, then the first data three times with nothing between.
    wire.lose(50 * MS, move |sent| {
        let counts = sent.from == Client && (sent.segment.payload_bytes > 0 || sent.segment.flags == Flags::SYN);
        count += u32::from(counts);
        counts && [1, 3, 4].contains(&count)
    });
    wire.client.connect(0);
    wire.client.write(0, 80);
    wire.run();
    assert_eq!(wire.server.received_bytes(), 80);
    assert_eq!(wire.client.stats().timeouts, 2);
}

/// A server with five segments sent and three duplicate ACKs handled, but not polled since.
fn before_the_poll() -> Wire {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.lose(0, |_| true);
    wire.server.write(wire.now, 5 * 1460);
    wire.pump();
    wire.log.clear();
    for _ in 0..3 {
        let duplicate = Segment { window: 32768, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1) };
        wire.server.handle_segment(wire.now, &duplicate);
    }
    assert_eq!(wire.server.stats().fast_retransmits, 1);
    wire
}

#[test]
fn an_acknowledgement_before_the_poll_takes_back_the_retransmission() {
    let mut wire = before_the_poll();
    let all = Segment { window: 32768, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1 + 5 * 1460) };
    wire.inject(Server, all);
    assert!(wire.log.is_empty());
    assert!(!wire.server.poll_timeout().is_set());
}

#[test]
fn a_timeout_before_the_poll_takes_the_place_of_the_retransmission() {
    let mut wire = before_the_poll();
    let deadline = wire.server.poll_timeout().time().unwrap();
    wire.server.handle_timeout(deadline);
    wire.pump();
    assert_eq!(wire.log.len(), 1);
    assert_eq!(wire.server.flight_bytes(), 1460);
}

#[test]
fn the_rfc_profile_tries_a_syn_for_three_minutes_and_data_for_longer_than_100_seconds() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.lose(0, |_| true);
    wire.client.connect(0);
    wire.run();
    assert!(wire.client_events.contains(Events::TIMED_OUT));
    assert!((180 * SECOND..200 * SECOND).contains(&wire.now), "{} s", wire.now / SECOND);

    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now;
    wire.lose(0, |_| true);
    wire.server.write(start, 1000);
    wire.run();
    assert!(wire.server_events.contains(Events::TIMED_OUT));
    assert!(wire.now - start > 100 * SECOND);
}

#[test]
fn linux_repeats_a_syn_five_times_at_the_same_interval_and_gives_up_after_131_seconds() {
    let mut wire = Wire::new(&Profile::linux(), 0);
    wire.set_fate(Box::new(|_| vec![]));
    wire.client.connect(0);
    wire.run();
    let seconds: Vec<_> = wire.syns(Client).iter().map(|ms| ms / 1000).collect();
    assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(wire.now, 131 * SECOND);
    assert!(wire.client_events.contains(Events::TIMED_OUT));
}

#[test]
fn a_tick_delays_the_timers_of_outstanding_data_to_its_multiples() {
    // The SYN's timeout, the probe of the tail after two round trips and 2 ms, and the timeout after it.
    let linux = Profile { timer_tick: Some(TimerTick { period_ns: 7 * MS, wheel: false }), ..Profile::linux() };
    let mut wire = Wire::new(&linux, 50 * MS);
    let mut count = 0;
    wire.lose(50 * MS, move |_| {
        count += 1;
        count == 1
    });
    wire.client.connect(0);
    wire.run_until(2 * SECOND);
    assert_eq!(wire.log[1].at, 1001 * MS);
    let start = wire.now;
    assert!(start % (7 * MS) != 0);
    wire.lose(0, |_| true);
    wire.server.write(start, 3 * 1448);
    wire.run_until(start + SECOND);
    let again: Vec<u64> = wire.log.iter().filter(|sent| sent.segment.retransmission).map(|sent| sent.at).collect();
    assert!(again.len() >= 3, "{again:?}");
    assert!(again.iter().all(|at| *at % (7 * MS) == 0), "{again:?}");
    assert!((202 * MS..209 * MS).contains(&(again[1] - start)), "{again:?}");
}
