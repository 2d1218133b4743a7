//! The log of segments: in order, complete, and without influence.

use std::collections::HashMap;

use crate::world::{differing, profile, web};
use firstflight_sim::{
    Plan, Records,
    records::{SegmentEvent, SenderEventRow, Transfer, Trigger},
    simulate,
};
use serde_json::{Value, json};

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

fn captured() -> (Records, Vec<SegmentEvent>) {
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
    assert!(segments.is_sorted_by_key(|row| row.time_ns));
    assert!(segments.iter().all(|row| (0..20_000_000_000).contains(&row.time_ns)));
    assert!([SENT, RECEIVED, DROPPED, LOST].iter().all(|&kind| segments.iter().any(|row| row.event == kind)));
}

#[test]
fn every_loss_event_and_timeout_of_a_sender_is_among_its_events() {
    let (records, _) = captured();
    let events = records.sender_events.unwrap();
    assert!(events.is_sorted_by_key(|row| row.time_ns));
    // Transfers count up to the arrival of their last byte, which may be before a lost FIN or ACK is missed.
    let end = |row: &Transfer| if row.completed == 1 { row.start_s + row.completion_time_s } else { f64::INFINITY };
    let mut ends = HashMap::new();
    for row in &records.transfers {
        let latest = ends.entry(row.connection).or_insert(0.0f64);
        *latest = latest.max(end(row));
    }
    let counted = |row: &&SenderEventRow| row.from_server == 1 && row.time_ns as f64 / 1e9 <= ends[&row.connection];
    let count = |trigger: Trigger| events.iter().filter(counted).filter(|row| row.trigger == trigger as u8).count();
    let sum = |of: fn(&Transfer) -> u32| records.transfers.iter().map(|row| of(row) as usize).sum::<usize>();
    assert!(sum(|row| row.sender.timeouts) > 0 && sum(|row| row.sender.fast_retransmits) > 0);
    assert_eq!(count(Trigger::Timeout), sum(|row| row.sender.timeouts));
    assert_eq!(count(Trigger::Loss), sum(|row| row.sender.fast_retransmits));
}

#[test]
fn no_segment_is_received_or_lost_more_often_than_it_was_sent_or_before_it_could_be() {
    let (_, segments) = captured();
    // For each segment, how often it was sent, how often that came to an end, and when it was first sent.
    let mut known: HashMap<_, (u32, u32, i64)> = HashMap::new();
    for row in &segments {
        let segment = ((row.connection, row.from_server, row.seq), (row.length, row.ack, row.flags));
        let (sent, ended, first) = known.entry(segment).or_insert((0, 0, row.time_ns));
        if row.event == SENT {
            *sent += 1;
            continue;
        }
        *ended += 1;
        assert!(*ended <= *sent, "{segment:?} ended {ended} times and was sent {sent} times");
        assert_eq!(row.link == u16::MAX, row.event == RECEIVED, "only a link can lose");
        if row.event == RECEIVED {
            assert!(row.time_ns - *first >= 52_000_000, "faster than light");
        }
    }
    let missing: u32 = known.values().map(|(sent, ended, _)| sent - ended).sum();
    // Under way at the end, or sent to a connection that was over.
    assert!((0..200).contains(&missing), "{missing} without an end");
}

#[test]
fn the_log_and_the_tables_count_alike() {
    let (records, segments) = captured();
    let count = |wanted: &dyn Fn(&SegmentEvent) -> bool| segments.iter().filter(|row| wanted(row)).count() as u64;
    let data = |row: &SegmentEvent| row.event == SENT && row.length > 0 && row.from_server == 1;
    let sum = |of: fn(&Transfer) -> u32| records.transfers.iter().map(|row| u64::from(of(row))).sum::<u64>();
    // A transfer's figures end with its last byte; if the ACK of that is lost, the sender sends some more.
    let retransmissions = count(&|row| data(row) && row.retransmission == 1);
    let [more_sent, more_again] =
        [count(&data) - sum(|row| row.sender.segments_sent), retransmissions - sum(|row| row.sender.retransmissions)];
    assert!(more_sent == more_again && more_sent < 10, "{more_sent} and {more_again}");
    let dropped = count(&|row| row.event == DROPPED);
    let metered: u64 = records.links.iter().map(|row| row.dropped_packets).sum();
    // The meters also see packets without a connection.
    assert!(dropped > 0 && dropped <= metered && metered - dropped < 20, "{dropped} and {metered}");
}

#[test]
fn a_syn_shows_its_options_and_other_segments_have_none_of_them() {
    let (_, segments) = captured();
    for row in &segments {
        let syn = row.flags & 2 != 0;
        assert_eq!(row.mss, if syn { 1460 } else { 0 });
        assert_eq!(row.window_scale == 255, !syn);
    }
}
