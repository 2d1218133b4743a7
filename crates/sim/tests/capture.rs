//! The log of segments: in order, complete, and without influence.

mod world;

use std::collections::HashMap;

use firstflight_sim::{Plan, Records, records::SegmentEvents, simulate};
use serde_json::{Value, json};
use world::{differing, profile, web};

const SENT: u8 = 0;
const RECEIVED: u8 = 1;
const DROPPED: u8 = 2;
const LOST: u8 = 3;

fn plan() -> Value {
    let mut plan = web(8, 2, &profile("rfc", json!({})));
    plan["duration_ns"] = json!(20_000_000_000u64);
    for direction in ["forward", "reverse"] {
        plan["network"]["bottleneck"][direction]["loss"] = json!(0.01);
    }
    // Losses on the last link of all, which is computed ahead of time.
    for side in ["left", "right"] {
        for host in 0..4 {
            plan["network"][side][host]["reverse"]["loss"] = json!(0.01);
            plan["network"][side][host]["forward"]["loss"] = json!(0.01);
        }
    }
    plan
}

fn captured() -> (Records, SegmentEvents) {
    let plan = Plan::from_json(&plan().to_string()).unwrap();
    let mut records = simulate(&plan, 6, 0..1, true).unwrap();
    let segments = records.segments.take().unwrap();
    (records, segments)
}

#[test]
fn watching_changes_nothing() {
    let unwatched = simulate(&Plan::from_json(&plan().to_string()).unwrap(), 6, 0..1, false).unwrap();
    assert_eq!(differing(captured().0, unwatched), Vec::<String>::new());
}

#[test]
fn events_come_in_the_order_of_time_and_end_with_the_run() {
    let (_, segments) = captured();
    assert!(segments.time_ns.is_sorted());
    assert!(segments.time_ns.iter().all(|time| (0..20_000_000_000).contains(time)));
    assert!([SENT, RECEIVED, DROPPED, LOST].iter().all(|kind| segments.event.contains(kind)));
}

#[test]
fn no_segment_is_received_or_lost_more_often_than_it_was_sent_or_before_it_could_be() {
    let (_, segments) = captured();
    // For each segment, how often it was sent, how often that came to an end, and when it was first sent.
    let mut known: HashMap<_, (u32, u32, i64)> = HashMap::new();
    for row in 0..segments.time_ns.len() {
        let segment = (
            (segments.connection[row], segments.from_server[row], segments.seq[row]),
            (segments.length[row], segments.ack[row], segments.flags[row]),
        );
        let (sent, ended, first) = known.entry(segment).or_insert((0, 0, segments.time_ns[row]));
        if segments.event[row] == SENT {
            *sent += 1;
            continue;
        }
        *ended += 1;
        assert!(*ended <= *sent, "{segment:?} ended {ended} times and was sent {sent} times");
        assert_eq!(segments.link[row] == u16::MAX, segments.event[row] == RECEIVED, "only a link can lose");
        if segments.event[row] == RECEIVED {
            assert!(segments.time_ns[row] - *first >= 52_000_000, "faster than light");
        }
    }
    let missing: u32 = known.values().map(|(sent, ended, _)| sent - ended).sum();
    // Under way at the end, or sent to a connection that was over.
    assert!((0..200).contains(&missing), "{missing} without an end");
}

#[test]
fn the_log_and_the_tables_count_alike() {
    let (records, segments) = captured();
    let count = |wanted: &dyn Fn(usize) -> bool| (0..segments.event.len()).filter(|&row| wanted(row)).count() as u64;
    let data = |row: usize| segments.event[row] == SENT && segments.length[row] > 0 && segments.from_server[row] == 1;
    let sum = |column: &[u32]| column.iter().map(|&value| u64::from(value)).sum::<u64>();
    // A transfer's figures end with its last byte; if the ACK of that is lost, the sender sends some more.
    let retransmissions = count(&|row| data(row) && segments.retransmission[row] == 1);
    let [more_sent, more_again] = [
        count(&data) - sum(&records.transfers.segments_sent),
        retransmissions - sum(&records.transfers.retransmissions),
    ];
    assert!(more_sent == more_again && more_sent < 10, "{more_sent} and {more_again}");
    let dropped = count(&|row| segments.event[row] == DROPPED);
    let metered: u64 = records.links.dropped_packets.iter().sum();
    // The meters also see packets without a connection.
    assert!(dropped > 0 && dropped <= metered && metered - dropped < 20, "{dropped} and {metered}");
}

#[test]
fn a_syn_shows_its_options_and_other_segments_have_none_of_them() {
    let (_, segments) = captured();
    for row in 0..segments.time_ns.len() {
        let syn = segments.flags[row] & 2 != 0;
        assert_eq!(segments.mss[row], if syn { 1460 } else { 0 });
        assert_eq!(segments.window_scale[row] == 255, !syn);
    }
}
