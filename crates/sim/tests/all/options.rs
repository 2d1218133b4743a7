//! Options and ECN on the way: their size on the wire, and the effect of marks.

use crate::world::{column, pair, profile, run, single};
use firstflight_sim::Records;
use serde_json::{Value, json};

/// A transfer of 2 MB over 10 Mbit/s and 20 ms through RED, which marks ECN-capable packets and drops the rest.
fn plan(client: Value, server: Value) -> Value {
    let mut link = pair(Some(10_000_000), 20_000_000, 1000);
    let queue = json!({
        "kind": "red", "limit_packets": 200, "min_threshold_packets": 10.0, "max_threshold_packets": 80.0,
        "max_probability": 0.1, "weight": 0.02, "gentle": true, "mean_packet_bytes": 1500, "ecn": true,
    });
    link["forward"]["queue"] = queue.clone();
    link["reverse"]["queue"] = queue;
    let mut plan = single(link, 2e6, &profile("rfc", client));
    plan["applications"][0]["server_tcp"] = profile("rfc", server);
    plan
}

fn through_red(ends: Value) -> Records {
    run(&plan(ends.clone(), ends), 1)
}

#[test]
fn marks_save_the_retransmissions_that_drops_cost() {
    for recovery in [json!({"new_reno": {}}), json!({"scoreboard": {}})] {
        let dropped = through_red(json!({"recovery": recovery, "sack": true}));
        assert!(dropped.transfers[0].sender.retransmissions > 0);
        assert_eq!(dropped.links.iter().map(|row| row.marked_packets).sum::<u64>(), 0);
        let marked = through_red(json!({"recovery": recovery, "sack": true, "ecn": "on"}));
        assert_eq!((marked.transfers[0].completed, marked.transfers[0].sender.retransmissions), (1, 0));
        assert_eq!(marked.links.iter().map(|row| row.dropped_packets).sum::<u64>(), 0);
        let marks = marked.links.iter().map(|row| row.marked_packets).sum::<u64>();
        assert!(marks > 0 && marked.transfers[0].sender.ecn_cwnd_reductions > 0);
        assert!(u64::from(marked.transfers[0].sender.ecn_cwnd_reductions) <= marks);
    }
}

#[test]
fn an_end_that_does_not_grant_ecn_gets_drops() {
    let records = run(&plan(json!({"ecn": "on"}), json!({})), 1);
    assert_eq!(records.links.iter().map(|row| row.marked_packets).sum::<u64>(), 0);
    assert!(records.links.iter().map(|row| row.dropped_packets).sum::<u64>() > 0);
}

/// RFC 7323: 12 bytes of every segment but the SYNs, whose options are part of the header; the payload gives way.
#[test]
fn timestamps_take_twelve_bytes_of_each_segment() {
    let wire = |timestamps: bool| {
        let tcp = profile("rfc", json!({"timestamps": timestamps, "ack": {"policy": "every_segment"}}));
        // Ten full segments either way.
        let bytes = if timestamps { 14_480.0 } else { 14_600.0 };
        let links = run(&single(pair(Some(10_000_000), 20_000_000, 1000), bytes, &tcp), 1).links;
        (column(&links, |row| row.sent_packets), column(&links, |row| row.sent_bytes))
    };
    let (packets, bytes) = wire(false);
    let (packets_with, bytes_with) = wire(true);
    assert_eq!(packets, packets_with);
    // One SYN each way. Data flows in the second direction, whose full segments are as long as before.
    let extra = |direction: usize| bytes_with[direction] as i64 - bytes[direction] as i64;
    assert_eq!(extra(0), 12 * (packets[0] as i64 - 1));
    assert_eq!(extra(1), 12 * (packets[1] as i64 - 1 - 10));
}
