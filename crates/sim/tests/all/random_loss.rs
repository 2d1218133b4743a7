//! Bernoulli loss: at the requested rate, independent per packet, and recovered by the endpoints.

use crate::world::{column, constant, files, pair, profile, run};
use firstflight_path::{Link, LinkOutcome, LinkSpec, Meter, OfferedPacket};
use firstflight_sim::{
    random::{Purpose, Sequence, Stream},
    records::Transfer,
};
use serde_json::json;

#[test]
fn packets_are_lost_as_often_as_asked_whether_or_not_the_one_before_was() {
    let spec: LinkSpec = serde_json::from_value(json!({
        "rate_bps": null, "delay_ns": 1, "loss": 0.05, "queue": {"kind": "drop_tail", "limit": {"packets": 1}},
    }))
    .unwrap();
    let mut link = Link::new(&spec, Meter::new(1 << 40, 1 << 40), 0).unwrap();
    let mut draws = Sequence::new(Stream::new(3, 0, Purpose::Loss, 0, 0));
    let packet = OfferedPacket {
        bytes: 1500,
        ecn_capable: false,
        carries_data: true,
        ends_train: false,
        connection: 0,
        class: 0,
    };
    let lost: Vec<bool> =
        (0..200_000).map(|now| link.offer(now, packet, || 0.0, || draws.uniform()) == LinkOutcome::Lost).collect();
    let count = lost.iter().filter(|&&lost| lost).count() as f64;
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    // Four standard errors: of 200,000 and of 10,000 draws.
    assert!((count / 200_000.0 - 0.05).abs() < 0.002, "{count}");
    assert!((pairs / count - 0.05).abs() < 0.009, "{pairs} after {count}");
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.lost_packets as f64, counts.sent_packets), (count, 200_000));
}

#[test]
fn files_arrive_whole_over_lossy_links_and_every_lost_data_segment_is_retransmitted() {
    let mut link = pair(Some(10_000_000), 20_000_000, 1000);
    link["forward"]["loss"] = json!(0.02);
    link["reverse"]["loss"] = json!(0.02);
    let network = json!({"topology": "chain", "links": [link]});
    let more = json!({"size": constant(200_000.0), "count": 20});
    let plan = json!({
        "duration_ns": 2_000_000_000_000u64, "network": network,
        "applications": [files("files", "node[0]", "node[1]", &more, &profile("rfc", json!({})))],
    });
    let records = run(&plan, 5);
    assert_eq!(column(&records.transfers, |row| row.completed), vec![1; 20]);
    assert_eq!(column(&records.transfers, |row| row.delivered_bytes), vec![200_000; 20]);
    let sum = |of: fn(&Transfer) -> u32| records.transfers.iter().map(|row| u64::from(of(row))).sum::<u64>();
    let retransmissions = sum(|row| row.sender.retransmissions);
    assert_eq!(sum(|row| row.sender.segments_sent), 20 * 137 + retransmissions);
    // About 2 % of 2740 segments; go-back-N repeats some that had arrived.
    assert!((30..200).contains(&retransmissions), "{retransmissions}");
    assert_eq!(column(&records.links, |row| row.dropped_packets), [0, 0]);
}

#[test]
fn the_listed_data_segment_of_a_transfer_is_lost_and_no_acknowledgement_is_counted() {
    let lose = |numbers: &[u32]| {
        let mut link = pair(Some(10_000_000), 20_000_000, 1000);
        link["reverse"]["lose"] = json!(numbers);
        let more = json!({"size": constant(14_600.0), "count": 1});
        let plan = json!({
            "duration_ns": 60_000_000_000u64, "network": {"topology": "chain", "links": [link]},
            "applications": [files("file", "node[0]", "node[1]", &more, &profile("rfc", json!({})))],
        });
        run(&plan, 1)
    };
    let whole = lose(&[]);
    assert_eq!(
        (whole.transfers[0].sender.retransmissions, whole.links.iter().map(|row| row.lost_packets).sum::<u64>()),
        (0, 0)
    );
    let broken = lose(&[3]);
    assert_eq!(
        (broken.transfers[0].sender.retransmissions, broken.transfers[0].sender.first_flight_lost_segments),
        (1, 1)
    );
    assert_eq!((broken.transfers[0].sender.fast_retransmits, broken.transfers[0].sender.early_retransmits), (1, 0));
    assert_eq!(column(&broken.links, |row| row.lost_packets), [0, 1]);
    // The eleventh data segment is the retransmission of the third: lost as well, only the timeout is left.
    let twice = lose(&[3, 11]);
    assert_eq!((twice.transfers[0].sender.retransmissions, twice.transfers[0].sender.timeouts), (2, 1));
}

/// Two clients share a link that loses 5 % each way, and whose queue is RED if `red`; the second one's server begins with
/// `other_window` segments. The first client's records.
fn beside_another(other_window: u32, red: bool) -> Vec<(u64, u32, u32)> {
    let mut link = pair(None, 20_000_000, 1000);
    for direction in ["forward", "reverse"] {
        link[direction]["loss"] = json!(0.05);
        if red {
            // Always above the upper threshold's half, never full: it draws for many packets and drops next to none.
            link[direction]["queue"] = json!({
                "kind": "red", "limit_packets": 1_000_000, "min_threshold_packets": 0.0,
                "max_threshold_packets": 1e9, "max_probability": 1e-9, "weight": 0.5, "mean_packet_bytes": 1000,
                "gentle": false,
            });
        }
    }
    let more = json!({"size": constant(50_000.0), "count": 20});
    let window = json!({"initial_window": {"policy": "fixed", "segments": other_window}});
    let plan = json!({
        "duration_ns": 2_000_000_000_000u64, "network": {"topology": "chain", "links": [link]},
        "applications": [
            files("first", "node[0]", "node[1]", &more, &profile("linux", json!({}))),
            files("other", "node[0]", "node[1]", &more, &profile("linux", window)),
        ],
    });
    let found = run(&plan, 5).transfers;
    let first = found.iter().filter(|row| row.application == 0);
    let seen = first.map(|row| (row.completion_time_s.to_bits(), row.sender.retransmissions, row.sender.segments_sent));
    seen.collect()
}

#[test]
fn another_connections_initial_window_does_not_decide_which_packets_are_lost_at_random() {
    for red in [false, true] {
        let few = beside_another(3, red);
        assert!(few.iter().any(|&(_, retransmissions, _)| retransmissions > 0) && few.len() == 20);
        assert_eq!(few, beside_another(10, red), "red: {red}");
    }
}
