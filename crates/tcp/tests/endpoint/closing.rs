//! The ways a connection ends.

use crate::wire::*;
use firstflight_tcp::{Events, Flags, Profile, Segment, State};
use std::num::NonZeroU16;

fn states(wire: &Wire) -> (State, State) {
    (wire.client.state(), wire.server.state())
}

#[test]
fn one_side_closes_and_the_other_follows() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.close(wire.now);
    wire.run();
    assert_eq!(states(&wire), (State::FinWait2, State::CloseWait));
    assert!(wire.server_events.contains(Events::PEER_CLOSED));
    wire.server.write(wire.now, 5000);
    wire.server.close(wire.now);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 5000);
    assert_eq!(states(&wire), (State::TimeWait, State::Closed));
    assert!(wire.client_events.contains(Events::CLOSED) && wire.server_events.contains(Events::CLOSED));
    assert!(wire.client.is_finished() && wire.server.is_finished());
    assert!(!wire.client.poll_timeout().is_set(), "TIME-WAIT costs nothing");
}

#[test]
fn the_fin_rides_on_the_last_data_and_is_acknowledged_at_once() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now / MS;
    wire.server.write(wire.now, 1000);
    wire.server.close(wire.now);
    wire.run();
    assert_eq!(wire.log.len(), 2);
    assert!(wire.log[0].segment.flags.contains(Flags::FIN | Flags::PSH | Flags::ACK));
    assert_eq!(wire.acks(Client), [(start + 50, 1001)]);
}

#[test]
fn both_sides_may_close_at_once() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.write(wire.now, 300);
    wire.client.close(wire.now);
    wire.server.close(wire.now);
    wire.run_until(wire.now + 60 * MS);
    assert_eq!(states(&wire), (State::Closing, State::Closing));
    wire.run();
    assert_eq!(states(&wire), (State::TimeWait, State::TimeWait));
    assert_eq!(wire.server.received_bytes(), 300);
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now;
    wire.lose(50 * MS, move |sent| sent.at == start);
    wire.client.close(wire.now);
    wire.run();
    assert_eq!(states(&wire), (State::FinWait2, State::CloseWait));
    assert_eq!(wire.client.stats().timeouts, 1);
}

#[test]
fn time_wait_acknowledges_a_fin_that_comes_again() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.close(wire.now);
    wire.run();
    let start = wire.now;
    // The ACK of the server's FIN is lost.
    wire.lose(50 * MS, move |sent| sent.from == Client && sent.at == start + 50 * MS);
    wire.server.close(wire.now);
    wire.run();
    assert_eq!(states(&wire), (State::TimeWait, State::Closed));
    assert_eq!(wire.server.stats().timeouts, 1);
    assert_eq!(wire.acks(Client).iter().filter(|(at, _)| *at > start / MS).count(), 2);
}

#[test]
fn a_fin_ahead_of_a_hole_counts_only_when_the_hole_is_filled() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[1]);
    wire.server.write(wire.now, 3 * 1460);
    wire.server.close(wire.now);
    wire.run_until(wire.now + 60 * MS);
    assert!(!wire.client_events.contains(Events::PEER_CLOSED));
    assert_eq!(wire.client.received_bytes(), 0);
    wire.run();
    assert!(wire.client_events.contains(Events::PEER_CLOSED));
    assert_eq!(wire.client.received_bytes(), 3 * 1460);
}

#[test]
fn abort_resets_the_peer() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.abort(wire.now);
    wire.run();
    assert_eq!(states(&wire), (State::Closed, State::Closed));
    assert!(wire.server_events.contains(Events::RESET));
    assert!(wire.client_events.contains(Events::CLOSED));
}

#[test]
fn abort_with_lost_data_under_way_resets_the_peer_all_the_same() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now;
    wire.lose(50 * MS, move |sent| sent.segment.payload_bytes > 0 && sent.at == start);
    wire.client.write(wire.now, 3000);
    wire.pump();
    wire.client.abort(wire.now);
    wire.run();
    // The first RST is ahead of the number that the server expects and is challenged; the second answers the challenge.
    assert_eq!(states(&wire), (State::Closed, State::Closed));
    assert!(wire.server_events.contains(Events::RESET));
}

fn reset(seq: u32) -> Segment {
    Segment { flags: Flags::RST, ..bare_ack(seq, 0) }
}

#[test]
fn a_reset_counts_only_at_the_expected_sequence_number() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.inject(Server, reset(CLIENT_ISN));
    assert!(wire.log.is_empty(), "left of the window: ignored");
    wire.inject(Server, reset(CLIENT_ISN + 100_000_000));
    assert!(wire.log.is_empty(), "right of the window: ignored");
    wire.inject(Server, reset(CLIENT_ISN + 2));
    assert_eq!(wire.log.len(), 1, "within the window: challenged");
    assert_eq!(wire.server.state(), State::Established);
    wire.inject(Server, reset(CLIENT_ISN + 1));
    assert_eq!(wire.server.state(), State::Closed);
    assert!(wire.server_events.contains(Events::RESET));
}

#[test]
fn a_syn_on_a_live_connection_is_challenged() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.inject(Server, Segment { flags: Flags::SYN, mss: NonZeroU16::new(1460), ..reset(CLIENT_ISN + 50) });
    assert_eq!(wire.server.state(), State::Established);
    assert_eq!(wire.acks(Server).len(), 1);
}

#[test]
fn a_closed_endpoint_answers_strays_with_a_reset_but_never_a_reset() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.abort(wire.now);
    wire.pump();
    wire.log.clear();
    wire.inject(Server, Segment { flags: Flags::ACK, ack: 99, payload_bytes: 10, ..reset(CLIENT_ISN + 1) });
    assert_eq!((wire.log[0].segment.flags, wire.log[0].segment.seq), (Flags::RST, 99));
    wire.inject(Server, reset(CLIENT_ISN + 1));
    assert_eq!(wire.log.len(), 1);
}

#[test]
fn closing_with_data_in_a_lossy_flight_still_delivers_everything() {
    let profile = Profile { max_retries: 50, ..rfc() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    let mut count = 0u32;
    wire.lose(50 * MS, move |_| {
        count += 1;
        count % 4 == 0
    });
    wire.client.write(wire.now, 40_000);
    wire.client.close(wire.now);
    wire.server.write(wire.now, 70_000);
    wire.server.close(wire.now);
    wire.run();
    assert!(wire.client.is_finished() && wire.server.is_finished());
    assert_eq!((wire.server.received_bytes(), wire.client.received_bytes()), (40_000, 70_000));
}

#[test]
fn sent_tells_when_all_that_was_written_is_acknowledged() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now / MS;
    wire.server_events = Events::NONE;
    wire.server.write(wire.now, 2920);
    while !wire.server_events.contains(Events::SENT) {
        wire.step();
    }
    assert_eq!(wire.now / MS, start + 100);
    assert!(wire.client_events.contains(Events::READABLE));
}

#[test]
fn bytes_beyond_the_peers_fin_are_not_received() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let first = CLIENT_ISN + 1;
    let ack = |seq, payload_bytes, flags| Segment { payload_bytes, flags, ..bare_ack(seq, SERVER_ISN + 1) };
    wire.inject(Server, ack(first + 50, 50, Flags::ACK | Flags::FIN));
    wire.inject(Server, ack(first + 100, 1000, Flags::ACK));
    wire.inject(Server, ack(first, 2000, Flags::ACK));
    assert_eq!(wire.server.received_bytes(), 100);
    assert_eq!(wire.server.readable_bytes(), 100);
    assert_eq!(wire.server.state(), State::CloseWait);
    wire.server_events = Events::NONE;
    wire.inject(Server, ack(first + 101, 1000, Flags::ACK));
    assert!(wire.server_events.is_empty());
    assert_eq!(wire.server.received_bytes(), 100);
    assert_eq!(wire.log.last().unwrap().segment.ack, first + 101);
}

#[test]
fn abort_in_time_wait_or_twice_tells_nothing_new() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.close(wire.now);
    wire.server.close(wire.now);
    wire.run();
    wire.client_events = Events::NONE;
    wire.log.clear();
    wire.client.abort(wire.now);
    wire.client.abort(wire.now);
    wire.run();
    assert_eq!(wire.client.state(), State::Closed);
    assert_eq!(wire.client_events, Events::NONE);
    assert!(wire.log.is_empty());
}

#[test]
fn the_acknowledgement_of_the_last_fin_ends_the_connection_whatever_comes_with_it() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.client.close(wire.now);
    wire.run();
    wire.server.close(wire.now);
    wire.pump();
    assert_eq!(wire.server.state(), State::LastAck);
    wire.log.clear();
    let last = bare_ack(CLIENT_ISN + 1, SERVER_ISN + 2);
    wire.inject(Server, Segment { payload_bytes: 10, flags: Flags::ACK | Flags::FIN, ..last });
    assert_eq!(wire.server.state(), State::Closed);
    assert!(wire.log.is_empty());
}
