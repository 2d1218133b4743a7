//! Recovery that counts duplicate ACKs, ACK by ACK.

use crate::peer::{MSS, Peer};
use crate::wire::*;
use firstflight_tcp::{InitialWindow, NewRenoRules, Profile, RecoveryAlgorithm};

fn new_reno() -> Profile {
    Profile { recovery: RecoveryAlgorithm::NEW_RENO, initial_window: InitialWindow::Fixed { segments: 8 }, ..rfc() }
}

/// A sender whose timeout has retransmitted the first of eight segments.
fn after_a_timeout(ack_heuristic: bool) -> Peer {
    let mut peer = Peer::new(&Profile {
        recovery: RecoveryAlgorithm::NewReno(NewRenoRules { ack_heuristic, ..NewRenoRules::default() }),
        ..new_reno()
    });
    assert_eq!(peer.write(12), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(peer.wait(1000), [(1000, 0)]);
    peer
}

/// Whether three duplicates begin a fast retransmit.
fn three_duplicates_retransmit(peer: &mut Peer, acknowledged_bytes: u32) -> bool {
    for _ in 0..3 {
        peer.ack_bytes(acknowledged_bytes, &[]);
    }
    peer.sender.stats().fast_retransmits == 1
}

// RFC 6582 §4.1.
#[test]
fn duplicates_after_a_timeout_mean_a_loss_to_the_ack_heuristic_if_the_latest_ack_covered_four_segments_at_most() {
    for (bytes, lost) in [(MSS, true), (4 * MSS, true), (4 * MSS + 1, false), (5 * MSS, false)] {
        let mut peer = after_a_timeout(true);
        peer.ack_bytes(bytes, &[]);
        assert_eq!(three_duplicates_retransmit(&mut peer, bytes), lost, "{bytes} bytes acknowledged");
    }
    let mut peer = after_a_timeout(false);
    peer.ack(1, &[]);
    assert!(!three_duplicates_retransmit(&mut peer, MSS));
}

// RFC 6582 §4.1.
#[test]
fn duplicates_after_a_timeout_mean_no_loss_to_the_ack_heuristic_while_cwnd_is_one_segment() {
    let mut peer = after_a_timeout(true);
    assert_eq!(peer.sender.cwnd_bytes(), MSS);
    assert!(!three_duplicates_retransmit(&mut peer, 0));
}

// RFC 3042 §2, RFC 5681 §3.2 step 2.
#[test]
fn what_limited_transmit_sent_is_no_part_of_the_flight_size_that_ssthresh_is_half_of() {
    let mut peer = Peer::new(&Profile { limited_transmit: true, ..new_reno() });
    peer.write(20);
    assert_eq!(peer.ack(0, &[]), [8]);
    assert_eq!(peer.ack(0, &[]), [9]);
    assert_eq!(peer.ack(0, &[]), [0]);
    assert_eq!(peer.sender.ssthresh_bytes(), Some(4 * MSS));
    assert_eq!(peer.sender.cwnd_bytes(), 7 * MSS);
}

// RFC 3042 §2.
#[test]
fn limited_transmit_sends_no_more_than_two_segments_beyond_cwnd() {
    let profile = Profile { limited_transmit: true, duplicate_ack_threshold: 6, ..new_reno() };
    let mut peer = Peer::new(&profile);
    peer.write(20);
    let sent: Vec<Vec<u32>> = (0..6).map(|_| peer.ack(0, &[])).collect();
    assert_eq!(sent, [vec![8], vec![9], vec![], vec![], vec![], vec![0]]);
}

// RFC 3042 §2: a run of duplicates begins again after an ACK of new data.
#[test]
fn the_room_that_limited_transmit_made_ends_with_an_ack_of_new_data() {
    let mut peer = Peer::new(&Profile { limited_transmit: true, initial_ssthresh_segments: Some(2), ..new_reno() });
    peer.write(20);
    assert_eq!(peer.ack(0, &[]), [8]);
    assert_eq!(peer.sender.cwnd_bytes(), 9 * MSS);
    assert!(peer.ack(1, &[]).is_empty(), "8 segments are in flight");
    assert_eq!(peer.sender.cwnd_bytes() / MSS, 8);
    assert_eq!(peer.ack(1, &[]), [9]);
}
