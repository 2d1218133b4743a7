//! Trains of new data, and the PSH at their ends.
// Linux, __tcp_transmit_skb: PSH on an sk_buff of several segments, so on its last segment.

use crate::wire::*;
use firstflight_tcp::{Flags, Nanos, Profile};

/// Whether each data segment of the server that has left since entry `from` of the log ends with PSH.
fn pushed(wire: &Wire, from: usize) -> Vec<bool> {
    let data = wire.log[from..].iter().filter(|sent| sent.from == Server && sent.segment.payload_bytes > 0);
    data.map(|sent| sent.segment.flags.contains(Flags::PSH)).collect()
}

fn connected(client: &Profile, delay: Nanos) -> Wire {
    let mut wire = Wire::between(client, &Profile::linux(), delay);
    wire.connect();
    wire.log.clear();
    wire
}

#[test]
fn each_train_of_the_first_flight_ends_with_psh() {
    let mut wire = connected(&Profile::linux(), 35 * MS);
    wire.server.write(wire.now, 100_000);
    wire.pump();
    assert_eq!(pushed(&wire, 0), [false, true, false, true, false, true, false, true, false, true]);
}

fn with_a_window_of_three_segments() -> Profile {
    Profile { receive_window_growth: None, receive_window_bytes: 4_380, ..Profile::linux() }
}

// The kernel's first and second flight to a receiver of 4380 bytes, sent by nginx under a cork: 1, 1449 with PSH, 2897;
// 4345, 5793 with PSH.
#[test]
fn a_train_that_the_peers_window_cuts_short_leaves_nothing_to_the_next_one() {
    let mut wire = connected(&with_a_window_of_three_segments(), 35 * MS);
    wire.server.write(wire.now, 100_000);
    wire.pump();
    assert_eq!(pushed(&wire, 0), [false, true, false]);
    // The first ACK frees one segment, which is no train of several.
    let first = wire.log.len();
    while pushed(&wire, first).is_empty() {
        wire.step();
    }
    assert!(!pushed(&wire, first)[0]);
}

#[test]
fn a_train_ends_with_psh_at_the_edge_of_the_peers_window() {
    // Half a window at most: five segments at this RTT, of which three have room.
    let mut wire = connected(&with_a_window_of_three_segments(), MS);
    wire.server.write(wire.now, 100_000);
    wire.pump();
    assert_eq!(pushed(&wire, 0), [false, false, true]);
}

#[test]
fn a_train_ends_with_psh_before_the_part_of_a_segment_that_nagle_holds_back() {
    let mut wire = connected(&Profile::linux(), MS);
    for halves in [3, 5, 20] {
        wire.server.write(wire.now, halves * 724);
        wire.pump();
    }
    let first = [false, true];
    let second = [false, true];
    let third = [false, false, false, false, true, false];
    assert_eq!(pushed(&wire, 0), [&first[..], &second, &third].concat());
}

#[test]
fn a_write_does_not_continue_the_train_of_the_write_before() {
    // Half a window at most: five segments at this RTT.
    let mut wire = connected(&Profile::linux(), MS);
    wire.server.write(wire.now, 3 * 1_448);
    wire.pump();
    wire.server.write(wire.now, 7 * 1_448);
    wire.pump();
    assert_eq!(pushed(&wire, 0), [false, false, true, false, false, false, false, true, false, true]);
}

#[test]
fn a_train_of_new_data_in_recovery_ends_with_psh() {
    let mut wire = connected(&Profile::linux(), 35 * MS);
    // With two of three ACKs lost one frees several segments.
    let (mut data, mut acks) = (0, 0);
    wire.lose(35 * MS, move |sent| {
        let number = if sent.from == Server { &mut data } else { &mut acks };
        *number += 1;
        if sent.from == Server { *number == 13 } else { *number > 10 && *number % 3 != 0 }
    });
    wire.server.write(wire.now, 400_000);
    wire.pump();
    let in_recovery = loop {
        let from = wire.log.len();
        wire.step();
        let sent = pushed(&wire, from);
        if wire.server.info().recovery_state == 3 && sent.len() > 1 {
            break sent;
        }
    };
    assert!(in_recovery.ends_with(&[true]), "{in_recovery:?}");
}
