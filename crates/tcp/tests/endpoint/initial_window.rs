//! Number of segments sent before the first acknowledgment.

use crate::wire::*;
use firstflight_tcp::{Flags, InitialWindow, Profile, RestartWindow, SynLossResponse, WindowValidation};

#[test]
fn each_policy_gives_its_rfc_number_at_every_segment_size() {
    use InitialWindow::*;
    // (MSS, RFC 2581, RFC 3390, RFC 6928, Linux), bytes.
    for (mss, rfc2581, rfc3390, rfc6928, linux) in [
        (100, 200, 400, 1000, 1000),
        (536, 1072, 2144, 5360, 5360),
        (1000, 2000, 4000, 10000, 10000),
        (1095, 2190, 4380, 10950, 10950),
        (1096, 2192, 4380, 10960, 10960),
        (1460, 2920, 4380, 14600, 14600),
        (2190, 4380, 4380, 14600, 21900),
        (2191, 4382, 4382, 14600, 21910),
        (7300, 14600, 14600, 14600, 73000),
        (8960, 17920, 17920, 17920, 89600),
        (65535, 131_070, 131_070, 131_070, 655_350),
    ] {
        assert_eq!(Rfc2581.window_bytes(mss), rfc2581, "RFC 2581 at {mss}");
        assert_eq!(Rfc3390.window_bytes(mss), rfc3390, "RFC 3390 at {mss}");
        assert_eq!(Rfc6928.window_bytes(mss), rfc6928, "RFC 6928 at {mss}");
        assert_eq!(Linux.window_bytes(mss), linux, "Linux at {mss}");
        assert_eq!(Fixed { segments: 3 }.window_bytes(mss), 3 * mss);
    }
}

fn first_flight(profile: &Profile) -> Vec<u32> {
    let mut wire = Wire::connected(profile, 50 * MS);
    let start = wire.now / MS;
    wire.server.write(wire.now, 1_000_000);
    wire.run();
    assert_eq!(wire.client.received_bytes(), 1_000_000);
    let flight = sent_at(&wire.data(Server), start);
    assert_eq!(wire.server.stats().first_flight_segments as usize, flight.len());
    flight
}

#[test]
fn the_first_flight_on_the_wire_is_the_initial_window_in_whole_segments() {
    for (initial_window, mss_bytes, segments) in [
        (InitialWindow::Fixed { segments: 1 }, 1460, 1),
        (InitialWindow::Fixed { segments: 16 }, 1460, 16),
        (InitialWindow::Rfc2581, 1460, 2),
        (InitialWindow::Rfc3390, 1460, 3),
        (InitialWindow::Rfc3390, 536, 4),
        (InitialWindow::Rfc3390, 1400, 3),
        (InitialWindow::Rfc6928, 1460, 10),
        (InitialWindow::Rfc6928, 8960, 2),
        (InitialWindow::Linux, 8960, 10),
    ] {
        let flight = first_flight(&Profile { initial_window, mss_bytes, ..rfc() });
        assert_eq!(flight, (0..segments).collect::<Vec<_>>(), "{initial_window:?} at {mss_bytes}");
    }
}

#[test]
fn the_segment_size_is_the_smaller_of_both_ends() {
    let small = Profile { mss_bytes: 536, ..rfc() };
    for (client, server) in [(&small, &rfc()), (&rfc(), &small)] {
        let mut wire = Wire::between(client, server, 50 * MS);
        wire.connect();
        assert_eq!((wire.client.mss_bytes(), wire.server.mss_bytes()), (536, 536));
        assert_eq!(wire.server.cwnd_bytes(), 5360);
        wire.server.write(wire.now, 100_000);
        wire.run();
        assert!(wire.log.iter().all(|sent| sent.segment.payload_bytes <= 536));
    }
}

#[test]
fn the_first_flight_is_known_by_its_sequence_numbers() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.server.write(wire.now, 100_000);
    wire.run();
    let first = SERVER_ISN + 1;
    assert!(wire.server.in_first_flight(first));
    assert!(wire.server.in_first_flight(first + 14_599));
    assert!(!wire.server.in_first_flight(first + 14_600));
    assert!(!wire.server.in_first_flight(first - 1));
    assert!(!wire.client.in_first_flight(CLIENT_ISN + 1));
}

/// Server's window in segments once established, after this number of losses of the client's SYN and its own SYN-ACK.
fn window_after_losses(syn_loss_response: SynLossResponse, lost_syns: usize, lost_syn_acks: usize) -> (u32, u32) {
    let mut wire = Wire::new(&Profile { syn_loss_response, ..rfc() }, 50 * MS);
    let (mut syns, mut syn_acks) = (lost_syns, lost_syn_acks);
    wire.lose(50 * MS, move |sent| {
        let left = if sent.from == Client { &mut syns } else { &mut syn_acks };
        let lost = sent.segment.flags.contains(Flags::SYN) && *left > 0;
        *left -= usize::from(lost);
        lost
    });
    wire.client.connect(0);
    wire.run();
    let began = |end: &firstflight_tcp::Endpoint| {
        assert_eq!(
            end.cwnd_bytes() / 1460,
            end.initial_window_segments(),
            "what is told is what the connection began with"
        );
        end.initial_window_segments()
    };
    (began(&wire.client), began(&wire.server))
}

#[test]
fn lost_syn_resets_initial_window_to_one_segment() {
    assert_eq!(window_after_losses(SynLossResponse::Rfc3390, 0, 0), (10, 10));
    assert_eq!(window_after_losses(SynLossResponse::Rfc3390, 1, 0), (1, 10));
}

#[test]
fn lost_syn_ack_resets_initial_window_of_both_ends_to_one_segment() {
    assert_eq!(window_after_losses(SynLossResponse::Rfc3390, 0, 1), (1, 1));
}

#[test]
fn rfc_6928_forgives_one_lost_syn_and_no_more() {
    assert_eq!(window_after_losses(SynLossResponse::Rfc6928, 1, 0), (10, 10));
    assert_eq!(window_after_losses(SynLossResponse::Rfc6928, 2, 0), (1, 10));
}

#[test]
fn keep_keeps_the_initial_window_whatever_is_lost() {
    assert_eq!(window_after_losses(SynLossResponse::Keep, 3, 2), (10, 10));
}

#[test]
fn neither_the_syn_ack_nor_its_ack_increases_the_initial_window() {
    let wire = Wire::connected(&rfc(), 50 * MS);
    assert_eq!((wire.client.cwnd_bytes(), wire.server.cwnd_bytes()), (14_600, 14_600));
}

// RFC 9040 §C.3: a retransmission within the initial window means that it failed.
#[test]
fn a_retransmission_within_the_initial_window_counts_against_it_and_a_later_one_does_not() {
    let lost: [(&'static [u32], bool); 5] = [(&[], false), (&[1], true), (&[10], true), (&[11], false), (&[16], false)];
    for (lost, failed) in lost {
        let mut wire = Wire::connected(&rfc(), 50 * MS);
        wire.lose_data_of_server(50 * MS, lost);
        wire.server.write(wire.now, 100 * 1460);
        wire.run();
        assert_eq!(wire.server.stats().retransmissions as usize, lost.len());
        assert_eq!(wire.server.outcome().initial_window_failed, failed, "{lost:?}");
    }
}

#[test]
fn a_later_retransmission_does_not_make_a_failed_initial_window_good() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    wire.lose_data_of_server(50 * MS, &[3, 30]);
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    assert!(wire.server.outcome().initial_window_failed);
}

// RFC 9040 §C.3; the largest of a connection, whatever lowered it later.
#[test]
fn the_largest_cwnd_does_not_fall_with_an_idle_restart_or_with_window_validation() {
    let idle = Profile { window_validation: WindowValidation::Off, ..rfc() };
    let unused = Profile { restart_window: RestartWindow::Off, ..Profile::linux() };
    for profile in [idle, unused] {
        let mut wire = Wire::connected(&profile, 50 * MS);
        let mut largest = 0;
        for bytes in [300_000, 10_000, 100, 100] {
            wire.server.write(wire.now, bytes);
            wire.run();
            wire.run_until(wire.now + 3 * SECOND);
            let outcome = wire.server.outcome();
            assert!(outcome.largest_window_segments >= largest, "{} after {largest}", outcome.largest_window_segments);
            largest = outcome.largest_window_segments;
        }
        let now = wire.server.outcome().window_segments;
        assert!(now < largest, "something lowered cwnd: {now}, {largest} before");
    }
}
