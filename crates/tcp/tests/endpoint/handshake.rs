//! Opening a connection, and failing to.

use crate::wire::*;
use firstflight_tcp::{Endpoint, Events, Flags, InitialWindow, Profile, Segment, State};
use std::num::NonZeroU16;
use std::sync::Arc;

#[test]
fn three_segments_open_a_connection() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.client.connect(0);
    wire.run();
    let log: Vec<_> =
        wire.log.iter().map(|s| (s.at / MS, s.from, s.segment.flags, s.segment.seq, s.segment.ack)).collect();
    assert_eq!(
        log,
        [
            (0, Client, Flags::SYN, CLIENT_ISN, 0),
            (50, Server, Flags::SYN | Flags::ACK, SERVER_ISN, CLIENT_ISN + 1),
            (100, Client, Flags::ACK, CLIENT_ISN + 1, SERVER_ISN + 1),
        ]
    );
    assert_eq!((wire.client.state(), wire.server.state()), (State::Established, State::Established));
    assert_eq!(wire.client_events, Events::CONNECTED);
    assert_eq!(wire.server_events, Events::CONNECTED);
    assert_eq!(wire.client.srtt(), Some(100 * MS));
    assert_eq!(wire.server.srtt(), Some(100 * MS));
    assert_eq!(wire.client.peer_initial_sequence(), Some(SERVER_ISN));
}

#[test]
fn data_waits_for_the_handshake_ack_or_rides_on_it() {
    for (data_on_handshake_ack, payloads) in [(false, vec![0, 80]), (true, vec![80])] {
        let mut wire = Wire::new(&Profile { data_on_handshake_ack, ..rfc() }, 50 * MS);
        wire.client.connect(0);
        wire.client.write(0, 80);
        wire.run_until(100 * MS);
        let third: Vec<_> = wire.log[2..].iter().map(|sent| sent.segment.payload_bytes).collect();
        assert_eq!(third, payloads);
        wire.run();
        assert_eq!(wire.server.received_bytes(), 80);
    }
}

#[test]
fn a_lost_syn_is_retransmitted_after_1_3_and_7_seconds_and_then_given_up() {
    let mut wire = Wire::new(&Profile { max_syn_retries: 3, ..rfc() }, 50 * MS);
    wire.lose(0, |_| true);
    wire.client.connect(0);
    wire.run();
    assert_eq!(wire.syns(Client), [0, 1000, 3000, 7000]);
    assert_eq!(wire.now, 15 * SECOND);
    assert_eq!(wire.client_events, Events::TIMED_OUT);
    assert_eq!(wire.client.state(), State::Closed);
}

#[test]
fn a_lost_syn_ack_is_retransmitted_when_the_syn_comes_again() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    let mut first = true;
    wire.lose(50 * MS, move |sent| sent.from == Server && std::mem::take(&mut first));
    wire.client.connect(0);
    wire.run();
    // The server's timer and the client's second SYN meet at 1050 ms.
    assert_eq!(wire.syns(Client), [0, 1000]);
    assert_eq!(wire.syns(Server), [50, 1050]);
    assert_eq!(wire.client.state(), State::Established);
    assert_eq!(wire.server.state(), State::Established);
    assert_eq!(wire.server.stats().syn_retransmissions, 1);
}

#[test]
fn a_syn_ack_without_answer_is_retransmitted_by_its_own_timer() {
    let mut wire = Wire::new(&Profile { max_syn_ack_retries: 2, ..rfc() }, 50 * MS);
    wire.lose(50 * MS, |sent| sent.at > 0);
    wire.client.connect(0);
    wire.pump();
    wire.client = Endpoint::client(Arc::new(rfc()), 1);
    wire.run();
    assert_eq!(wire.syns(Server), [50, 1050, 3050]);
    assert_eq!(wire.server_events, Events::TIMED_OUT);
}

#[test]
fn a_lost_handshake_ack_is_replaced_by_the_data_behind_it() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.lose(50 * MS, |sent| sent.from == Client && sent.at == 100 * MS && sent.segment.payload_bytes == 0);
    wire.client.connect(0);
    wire.client.write(0, 80);
    wire.run();
    assert_eq!(wire.server.received_bytes(), 80);
    assert_eq!(wire.syns(Server), [50]);
}

#[test]
fn a_syn_ack_that_comes_twice_is_acknowledged_again() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.lose(50 * MS, |sent| sent.from == Client && sent.at == 100 * MS);
    wire.client.connect(0);
    wire.run();
    assert_eq!(wire.syns(Server), [50, 1050]);
    assert_eq!(wire.acks(Client), [(100, 0), (1100, 0)]);
    assert_eq!(wire.server.state(), State::Established);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.server = Endpoint::client(Arc::new(rfc()), SERVER_ISN);
    wire.client.connect(0);
    wire.server.connect(0);
    wire.client.write(0, 5000);
    wire.server.write(0, 7000);
    wire.run();
    assert_eq!((wire.client.state(), wire.server.state()), (State::Established, State::Established));
    assert_eq!((wire.client.received_bytes(), wire.server.received_bytes()), (7000, 5000));
    assert_eq!(wire.syns(Client), [0, 50]);
    assert_eq!(wire.client.stats().syn_retransmissions, 0);
    assert_eq!(wire.client.srtt(), Some(100 * MS));
}

#[test]
fn a_simultaneous_open_survives_the_loss_of_one_syn_ack() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.server = Endpoint::client(Arc::new(rfc()), SERVER_ISN);
    wire.lose(50 * MS, |sent| sent.from == Server && sent.at == 50 * MS);
    wire.client.connect(0);
    wire.server.connect(0);
    wire.run();
    assert_eq!((wire.client.state(), wire.server.state()), (State::Established, State::Established));
}

#[test]
fn windows_are_scaled_only_if_both_ends_offer_it() {
    let plain = Profile { window_scaling: false, receive_window_bytes: 65535, ..rfc() };
    for (client, server, shift, window) in
        [(&rfc(), &rfc(), Some(5), 1 << 20), (&rfc(), &plain, None, 65535), (&plain, &rfc(), None, 65535)]
    {
        let mut wire = Wire::between(client, server, 50 * MS);
        wire.client.connect(0);
        wire.client.write(0, 80);
        wire.run();
        assert_eq!(wire.log[1].segment.window_scale, shift);
        assert_eq!(wire.log[1].segment.window, 65535);
        let third = wire.log.iter().rfind(|sent| sent.from == Client).unwrap().segment;
        assert_eq!(wire.client.advertised_window_bytes(&third), window);
        let syn = wire.log[0].segment;
        assert_eq!(wire.client.advertised_window_bytes(&syn), 65535);
    }
}

#[test]
fn a_peer_without_mss_option_gets_536_byte_segments() {
    let mut wire = Wire::new(&rfc(), 0);
    wire.inject(Server, Segment { flags: Flags::SYN, ..bare_ack(77, 0) });
    assert_eq!(wire.server.mss_bytes(), 536);
    assert_eq!(wire.server.peer_initial_sequence(), Some(77));
}

#[test]
fn a_closed_endpoint_refuses_a_connection() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.server.close(0);
    wire.client.connect(0);
    wire.run();
    assert_eq!(wire.log[1].segment.flags, Flags::RST | Flags::ACK);
    assert_eq!(wire.log[1].segment.ack, CLIENT_ISN + 1);
    assert_eq!(wire.client_events, Events::RESET);
    assert_eq!(wire.log.len(), 2);
}

#[test]
fn a_listening_endpoint_refuses_an_acknowledgement_of_nothing() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    let stray = Segment { payload_bytes: 10, ..bare_ack(5, 4242) };
    wire.inject(Server, stray);
    assert_eq!((wire.log[0].segment.flags, wire.log[0].segment.seq), (Flags::RST, 4242));
    assert_eq!(wire.server.state(), State::Listen);
}

#[test]
fn a_connection_closed_during_the_handshake_still_delivers() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.client.connect(0);
    wire.client.write(0, 3000);
    wire.client.close(0);
    wire.run_until(SECOND);
    assert_eq!(wire.server.received_bytes(), 3000);
    assert_eq!(wire.server.state(), State::CloseWait);
}

#[test]
fn the_syn_of_a_simultaneous_open_goes_out_twice_and_is_not_timed() {
    let mut wire = Wire::new(&rfc(), 50 * MS);
    wire.server = Endpoint::client(Arc::new(rfc()), SERVER_ISN);
    wire.client.connect(0);
    wire.server.connect(0);
    wire.run();
    assert_eq!((wire.client.srtt(), wire.client.rto()), (None, SECOND));
}

#[test]
fn a_window_scale_above_14_counts_as_14() {
    for (announced, bytes) in [(13, 1 << 13), (14, 1 << 14), (15, 1 << 14), (200, 1 << 14)] {
        let profile = Profile { mss_bytes: 1024, initial_window: InitialWindow::Fixed { segments: 100 }, ..rfc() };
        let mut wire = Wire::new(&profile, 0);
        wire.lose(0, |_| true);
        wire.inject(
            Server,
            Segment {
                flags: Flags::SYN,
                mss: NonZeroU16::new(1024),
                window_scale: Some(announced),
                ..bare_ack(CLIENT_ISN, 0)
            },
        );
        wire.inject(Server, Segment { window: 1, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 1) });
        wire.server.write(0, 1_000_000);
        wire.pump();
        assert_eq!(wire.server.flight_bytes(), bytes, "shift {announced}");
    }
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_answered_and_dropped() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.inject(Server, Segment { payload_bytes: 10, ..bare_ack(CLIENT_ISN + 1, SERVER_ISN + 2) });
    assert_eq!(wire.acks(Server).len(), 1);
    assert_eq!((wire.server.received_bytes(), wire.server.acknowledged_bytes()), (0, 0));
}

#[test]
fn segments_leave_room_for_a_second_one_in_a_small_window() {
    // Linux, tcp_bound_to_half_wnd: a window of at most 536 bytes holds one segment.
    for (window_bytes, mss_bytes) in [(4_000, 1460), (2_919, 1459), (1_000, 500), (537, 268), (536, 536), (100, 100)] {
        let client = Profile { receive_window_bytes: window_bytes, window_scaling: false, ..rfc() };
        let server = Profile { mss_within_half_window: true, ..rfc() };
        let mut wire = Wire::between(&client, &server, 50 * MS);
        wire.client.connect(0);
        wire.run();
        assert_eq!(wire.server.mss_bytes(), mss_bytes, "a window of {window_bytes} bytes");
        assert_eq!(wire.client.mss_bytes(), 1460, "the client's rule is off");
    }
}
