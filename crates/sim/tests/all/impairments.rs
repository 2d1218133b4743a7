//! Links on which packets overtake each other or come twice.

use crate::world::{column, constant, files, pair, profile, run};
use firstflight_sim::records::{LinkInterval, Records};
use serde_json::{Value, json};

/// Downloads of 200 kB over two links, the first of which is impaired towards the client.
fn downloads(impairments: &Value, queue: &Value) -> Records {
    let mut impaired = pair(Some(10_000_000), 20_000_000, 1000);
    impaired["reverse"]["impairments"] = impairments.clone();
    impaired["reverse"]["queue"] = queue.clone();
    let more = json!({"size": constant(200_000.0), "count": 20});
    let plan = json!({
        "duration_ns": 2_000_000_000_000u64,
        "network": {"topology": "chain", "links": [pair(Some(20_000_000), 1_000_000, 1000), impaired]},
        "applications": [files("files", "node[0]", "node[2]", &more, &profile("linux", json!({})))],
    });
    run(&plan, 5)
}

fn drop_tail() -> Value {
    json!({"kind": "drop_tail", "limit": {"packets": 1000}})
}

fn sum(links: &[LinkInterval], count: fn(&LinkInterval) -> u64) -> u64 {
    links.iter().map(count).sum()
}

#[test]
fn files_arrive_whole_whatever_overtakes_or_comes_twice() {
    let codel = json!({
        "kind": "codel", "limit": {"packets": 1000}, "target_ns": 50_000_000, "interval_ns": 100_000_000,
    });
    for queue in [drop_tail(), codel] {
        for (impairments, reorders, duplicates) in [
            (
                json!([{"kind": "jitter", "distribution": "exponential", "mean_ns": 2_000_000, "keep_order": true}]),
                0,
                0,
            ),
            (json!([{"kind": "jitter", "distribution": "uniform", "mean_ns": 2_000_000, "keep_order": false}]), 1, 0),
            (json!([{"kind": "reordering", "share": 0.1, "delay_ns": 5_000_000}]), 1, 0),
            (json!([{"kind": "duplication", "share": 0.1, "delay_ns": 3_000_000}]), 0, 1),
            (json!([{"kind": "duplication", "share": 0.1, "delay_ns": 0}]), 0, 1),
        ] {
            let records = downloads(&impairments, &queue);
            assert_eq!(column(&records.transfers, |row| row.completed), vec![1; 20], "{impairments}");
            assert_eq!(column(&records.transfers, |row| row.delivered_bytes), vec![200_000; 20], "{impairments}");
            let overtook = sum(&records.links, |row| row.reordered_packets);
            let twice = sum(&records.links, |row| row.duplicated_packets);
            assert_eq!(
                (overtook > 100, twice > 100),
                (reorders > 0, duplicates > 0),
                "{impairments}: {overtook} {twice}"
            );
            assert_eq!(sum(&records.links, |row| row.lost_packets), 0);
        }
    }
}

#[test]
fn a_link_that_could_impair_and_does_not_changes_nothing() {
    let plain = downloads(&json!([]), &drop_tail());
    let idle = json!([
        {"kind": "reordering", "share": 0.0, "delay_ns": 5_000_000},
        {"kind": "duplication", "share": 0.0, "delay_ns": 0},
        {"kind": "jitter", "distribution": "uniform", "mean_ns": 0, "keep_order": false},
    ]);
    let found = downloads(&idle, &drop_tail());
    assert_eq!(
        column(&found.transfers, |row| row.completion_time_s),
        column(&plain.transfers, |row| row.completion_time_s)
    );
    assert_eq!(
        column(&found.transfers, |row| row.sender.segments_sent),
        column(&plain.transfers, |row| row.sender.segments_sent)
    );
}

#[test]
fn a_segment_that_comes_twice_is_reported_and_costs_no_retransmission() {
    let twice = json!([{"kind": "duplication", "share": 1.0, "delay_ns": 0}]);
    let (once, twice) = (downloads(&json!([]), &drop_tail()), downloads(&twice, &drop_tail()));
    assert_eq!(
        column(&twice.transfers, |row| row.sender.retransmissions),
        column(&once.transfers, |row| row.sender.retransmissions)
    );
    let [once, twice] = [once, twice].map(|records| sum(&records.links, |row| row.offered_packets));
    // The link behind carries both, and the receiver acknowledges both.
    assert!(twice > once * 5 / 4, "{twice} and {once}");
}
