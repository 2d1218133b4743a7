//! Explicit congestion notification (RFC 3168): negotiation, marks, echoes.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Ecn, EcnPolicy, Flags, Profile, Segment};
use std::num::NonZeroU16;

fn with(ecn: EcnPolicy) -> Profile {
    Profile { ecn, ack: AckPolicy::Delayed { segments: 2, timer_ns: 200 * MS }, ..rfc() }
}

const BITS: [EcnPolicy; 3] = [EcnPolicy::Off, EcnPolicy::Passive, EcnPolicy::On];

fn bits(segment: &Segment) -> (bool, bool) {
    (segment.flags.contains(Flags::ECE), segment.flags.contains(Flags::CWR))
}

#[test]
fn ecn_is_on_if_the_client_asks_and_the_server_does_not_refuse() {
    for client in BITS {
        for server in BITS {
            let mut wire = Wire::between(&with(client), &with(server), 10 * MS);
            wire.client.connect(0);
            wire.run_until(SECOND);
            let asks = client == EcnPolicy::On;
            let on = asks && server != EcnPolicy::Off;
            assert_eq!(bits(&wire.log[0].segment), (asks, asks));
            assert_eq!(bits(&wire.log[1].segment), (on, false));
            assert!(wire.log.iter().all(|sent| sent.segment.ecn == Ecn::NotCapable), "no ECT on a handshake");
            assert_eq!((wire.client.info().ecn, wire.server.info().ecn), (on, on));
        }
    }
}

#[test]
fn a_peer_that_reflects_reserved_bits_has_not_agreed() {
    let mut wire = Wire::new(&with(EcnPolicy::On), 10 * MS);
    wire.client.connect(0);
    wire.set_fate(Box::new(|_| vec![]));
    wire.pump();
    let flags = Flags::SYN | Flags::ACK | Flags::ECE | Flags::CWR;
    wire.inject(
        Client,
        Segment {
            seq: SERVER_ISN,
            ack: CLIENT_ISN + 1,
            flags,
            mss: NonZeroU16::new(1460),
            window: 65535,
            ..Segment::EMPTY
        },
    );
    assert!(!wire.client.info().ecn);
}

#[test]
fn a_retransmitted_syn_does_not_ask() {
    let mut wire = Wire::new(&with(EcnPolicy::On), 10 * MS);
    let mut count = 0;
    wire.lose(10 * MS, move |_| {
        count += 1;
        count == 1
    });
    wire.client.connect(0);
    wire.run_until(10 * SECOND);
    assert_eq!([bits(&wire.log[0].segment), bits(&wire.log[1].segment)], [(true, true), (false, false)]);
    assert!(!wire.client.info().ecn);
}

#[test]
fn both_ends_may_ask_at_once() {
    let profile = with(EcnPolicy::On);
    let mut wire = Wire::between(&profile, &profile, 10 * MS);
    wire.server = firstflight_tcp::Endpoint::client(std::sync::Arc::new(profile), SERVER_ISN);
    wire.client.connect(0);
    wire.server.connect(0);
    wire.run_until(10 * SECOND);
    assert!(wire.client.info().ecn && wire.server.info().ecn);
}

#[test]
fn only_new_data_is_capable() {
    let mut wire = Wire::connected(&with(EcnPolicy::On), 10 * MS);
    wire.lose_data_of_server(10 * MS, &[1]);
    wire.server.write(wire.now, 6 * 1460);
    wire.run();
    assert!(wire.log.iter().any(|sent| sent.segment.retransmission));
    for sent in &wire.log {
        let expected = sent.segment.payload_bytes > 0 && !sent.segment.retransmission;
        assert_eq!(sent.segment.ecn, if expected { Ecn::Capable0 } else { Ecn::NotCapable });
    }
}

/// A data segment of the server with 100 bytes from `from` on.
fn data(from: u32, ecn: Ecn, flags: Flags) -> Segment {
    Segment {
        seq: SERVER_ISN + 1 + from,
        ack: CLIENT_ISN + 1,
        payload_bytes: 100,
        window: 65535,
        flags: Flags::ACK | flags,
        ecn,
        ..Segment::EMPTY
    }
}

/// Acknowledgments of the client, whether they echo, when segments arrive.
fn echoes(segments: &[Segment]) -> Vec<Option<bool>> {
    let mut wire = Wire::connected(&with(EcnPolicy::On), 10 * MS);
    segments
        .iter()
        .map(|segment| {
            wire.log.clear();
            wire.inject(Client, *segment);
            wire.log.first().map(|sent| sent.segment.flags.contains(Flags::ECE))
        })
        .collect()
}

#[test]
fn a_mark_is_echoed_at_once_and_in_every_acknowledgement_until_cwr() {
    use Ecn::{Capable0, Congestion};
    let segments = [
        data(0, Capable0, Flags::NONE),
        data(100, Congestion, Flags::NONE),
        data(200, Capable0, Flags::NONE),
        data(300, Congestion, Flags::NONE),
        data(400, Capable0, Flags::CWR),
        data(500, Capable0, Flags::NONE),
        data(600, Capable0, Flags::NONE),
    ];
    assert_eq!(echoes(&segments), [None, Some(true), None, Some(true), Some(false), None, Some(false)]);
}

#[test]
fn a_mark_on_the_segment_that_carries_cwr_is_a_new_one() {
    let segments = [data(0, Ecn::Congestion, Flags::NONE), data(100, Ecn::Congestion, Flags::CWR)];
    assert_eq!(echoes(&segments), [Some(true), Some(true)]);
}

#[test]
fn a_mark_on_a_duplicate_is_ignored() {
    let segments = [
        data(0, Ecn::Capable0, Flags::NONE),
        data(100, Ecn::Capable0, Flags::NONE),
        data(0, Ecn::Congestion, Flags::NONE),
    ];
    assert_eq!(echoes(&segments), [None, Some(false), Some(false)]);
}

// RFC 9293 §3.10.7.4: nothing follows a FIN, so what comes behind it is not taken.
#[test]
fn a_mark_on_data_behind_the_peers_fin_is_ignored() {
    let segments = [data(100, Ecn::Capable0, Flags::FIN), data(300, Ecn::Congestion, Flags::NONE)];
    assert_eq!(echoes(&segments), [Some(false), Some(false)]);
}

#[test]
fn marks_are_nothing_to_a_connection_without_ecn() {
    let mut wire = Wire::connected(&with(EcnPolicy::Off), 10 * MS);
    wire.inject(Client, data(0, Ecn::Congestion, Flags::NONE));
    wire.inject(Client, data(100, Ecn::Congestion, Flags::NONE));
    assert!(wire.log.iter().all(|sent| bits(&sent.segment) == (false, false)));
}

/// The server's data segments from the first loss on, with CWR or without.
fn announcements(wire: &Wire) -> Vec<bool> {
    let data = wire.log.iter().filter(|sent| sent.from == Server && sent.segment.payload_bytes > 0);
    data.skip_while(|sent| !sent.segment.retransmission).map(|sent| sent.segment.flags.contains(Flags::CWR)).collect()
}

#[test]
fn a_window_reduced_for_a_loss_is_announced_with_the_next_new_data() {
    for lost in [&[1][..], &[7, 8, 9, 10]] {
        let mut wire = Wire::connected(&with(EcnPolicy::On), 10 * MS);
        wire.lose_data_of_server(10 * MS, lost);
        wire.server.write(wire.now, 10 * 1460);
        wire.run_until(wire.now + 100 * MS);
        wire.server.write(wire.now, 20 * 1460);
        wire.run();
        let announced = announcements(&wire);
        assert_eq!(announced.iter().filter(|cwr| **cwr).count(), 1, "{lost:?}: {announced:?}");
        assert!(!announced[0], "a retransmission announces nothing");
    }
}
