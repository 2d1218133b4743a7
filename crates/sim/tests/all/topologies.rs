//! Star and chain, with cross traffic: the times that packets need, and links computed ahead against links with events.

use crate::world::{constant, differing, files, pair, profile, run};
use firstflight_sim::records::LinkInterval;
use serde_json::{Value, json};

fn rfc() -> Value {
    profile("rfc", json!({}))
}

fn plan(network: &Value, applications: &[Value]) -> Value {
    json!({
        "duration_ns": 40_000_000_000u64, "meter_interval_ns": 1_000_000_000u64,
        "network": network, "applications": applications,
    })
}

fn column_sum(plan_names: &[String], links: &[LinkInterval], name: &str) -> [u64; 3] {
    let index = plan_names.iter().position(|known| known == name).unwrap() as u16;
    let rows = links.iter().filter(|row| row.link == index);
    rows.fold([0; 3], |[offered, sent, dropped], row| {
        [offered + row.offered_packets, sent + row.sent_packets, dropped + row.dropped_packets]
    })
}

#[test]
fn a_packet_crosses_a_chain_in_the_sum_of_its_links() {
    let network = json!({"topology": "chain", "links": [
        pair(Some(1_000_000), 1_000_000, 100), pair(Some(2_000_000), 2_000_000, 100), pair(None, 4_000_000, 100),
    ]});
    let file = files("file", "node[0]", "node[3]", &json!({"size": constant(1000.0), "count": 1}), &rfc());
    let records = run(&plan(&network, &[file]), 1);
    let one_way = |bytes: f64| 0.007 + bytes * 8.0 / 1e6 + bytes * 8.0 / 2e6;
    let handshake = 2.0 * one_way(40.0);
    assert!((records.transfers[0].handshake_time_s - handshake).abs() < 1e-9);
    // The handshake's ACK goes before the request on the first link, and the second is faster.
    let expected = handshake + 40.0 * 8.0 / 1e6 + one_way(120.0) + one_way(1040.0);
    assert!((records.transfers[0].completion_time_s - expected).abs() < 1e-9);
    assert_eq!(records.link_names[..3], ["links[0]", "links[0].reverse", "links[1]"]);
}

#[test]
fn each_user_of_a_star_has_its_own_round_trip_to_the_hub() {
    let spokes: Vec<Value> = (1..=5).map(|spoke| pair(None, spoke * 10_000_000, 100)).collect();
    let network = json!({"topology": "star", "hub": pair(None, 5_000_000, 100), "spokes": spokes});
    let users = files("users", "spokes", "hub", &json!({"size": constant(1000.0), "count": 1, "clients": 5}), &rfc());
    let transfers = run(&plan(&network, &[users]), 1).transfers;
    for row in &transfers {
        let round_trip = 2.0 * (0.005 + 0.010 * f64::from(row.client + 1));
        assert!((row.handshake_time_s - round_trip).abs() < 1e-9);
        assert!((row.completion_time_s - 2.0 * round_trip).abs() < 1e-9);
    }
    assert_eq!(transfers.len(), 5);
}

#[test]
fn the_hub_of_a_star_carries_the_traffic_of_all_spokes() {
    let spokes: Vec<Value> = (1..=5).map(|spoke| pair(Some(10_000_000), spoke * 3_000_000, 100)).collect();
    let network = json!({"topology": "star", "hub": pair(Some(4_000_000), 5_000_000, 20), "spokes": spokes});
    let users = files("users", "spokes", "hub", &json!({"size": constant(300_000.0), "clients": 5}), &rfc());
    let records = run(&plan(&network, &[users]), 1);
    let [_, hub, dropped] = column_sum(&records.link_names, &records.links, "hub");
    let spokes: u64 =
        (0..5).map(|spoke| column_sum(&records.link_names, &records.links, &format!("spokes[{spoke}]"))[0]).sum();
    // A packet from the hub takes 5 ms to a spoke.
    assert!(hub >= spokes && hub - spokes <= 3, "{hub} and {spokes}");
    assert!(dropped > 0, "five users share 4 Mbit/s");
}

#[test]
fn cross_traffic_on_the_middle_link_of_a_chain_takes_its_share_there_and_nowhere_else() {
    let links: Vec<Value> = (0..3).map(|_| pair(Some(5_000_000), 5_000_000, 30)).collect();
    let network = json!({"topology": "chain", "links": links});
    let through = files("through", "node[3]", "node[0]", &json!({"size": constant(400_000.0)}), &rfc());
    let cross = files("cross", "node[2]", "node[1]", &json!({"size": constant(400_000.0), "clients": 3}), &rfc());
    let alone = run(&plan(&network, std::slice::from_ref(&through)), 1);
    let shared = run(&plan(&network, &[through, cross]), 1);
    let of = |records: &firstflight_sim::Records, application: u16| {
        records
            .transfers
            .iter()
            .filter(|row| row.application == application)
            .map(|row| row.delivered_bytes)
            .sum::<u64>()
    };
    assert!(of(&shared, 0) * 2 < of(&alone, 0), "three flows against one take more than half");
    assert!(of(&shared, 1) > of(&shared, 0));
    let sent = |name: &str| column_sum(&shared.link_names, &shared.links, name);
    let ([_, first, _], [offered, middle, _], [last, _, _]) = (sent("links[0]"), sent("links[1]"), sent("links[2]"));
    // Servers send forward here: the middle link carries packets from the first link and those that enter at its node.
    assert!(offered > first && middle > last);
    let [_, _, dropped_elsewhere] = sent("links[2]");
    assert_eq!(dropped_elsewhere, 0, "a link behind one of its own rate never queues");
}

/// Links computed ahead against the same links with events, where the shortcut could go wrong: random loss, RED, byte
/// limits and cross traffic. An application that never starts adds a feeder, which forces the events.
#[test]
fn links_of_a_chain_computed_ahead_give_what_links_with_events_give() {
    let red = json!({
        "kind": "red", "limit_packets": 40, "min_threshold_packets": 3.0, "max_threshold_packets": 9.0,
        "max_probability": 0.1, "weight": 0.02, "gentle": true, "mean_packet_bytes": 1000,
    });
    let bytes = json!({"kind": "drop_tail", "limit": {"bytes": 9000}, "counts_packet_in_service": true});
    let packets = json!({"kind": "drop_tail", "limit": {"packets": 7}});
    // Prime rates, so that ties, which may break either way, do not occur.
    let link = |rate: u64, delay: u64, queue: &Value, loss: f64| {
        let link = json!({"rate_bps": rate, "delay_ns": delay, "loss": loss, "queue": queue});
        json!({"forward": link, "reverse": link})
    };
    let network = json!({"topology": "chain", "links": [
        link(7_000_003, 3_000_017, &packets, 0.004),
        link(5_000_011, 7_000_003, &red, 0.003),
        link(3_000_017, 11_000_027, &bytes, 0.005),
    ]});
    let uneven = json!({"distribution": "exponential", "mean": 60_000.0});
    let through = |first: &str, last: &str| files("f", first, last, &json!({"size": uneven, "clients": 4}), &rfc());
    let idle = |first: &str, last: &str| {
        let mut idle = through(first, last);
        idle["start"] = constant(1e6);
        idle
    };
    for (case, active) in [
        ("through traffic alone: all links computed", vec![through("node[3]", "node[0]")]),
        ("cross traffic on the middle link", vec![through("node[3]", "node[0]"), through("node[2]", "node[1]")]),
        ("cross traffic the other way", vec![through("node[3]", "node[0]"), through("node[0]", "node[2]")]),
    ] {
        let computed = run(&plan(&network, &active), 9);
        let mut forced = active.clone();
        for (first, last) in
            [("node[1]", "node[0]"), ("node[1]", "node[3]"), ("node[2]", "node[0]"), ("node[2]", "node[3]")]
        {
            forced.push(idle(first, last));
        }
        let events = run(&plan(&network, &forced), 9);
        assert!(events.counts.events > computed.counts.events * 11 / 10, "{case}: the detour made no difference");
        assert!(computed.links.iter().map(|row| row.dropped_packets).sum::<u64>() > 30, "{case}: nothing was dropped");
        assert!(computed.links.iter().map(|row| row.lost_packets).sum::<u64>() > 30, "{case}: nothing was lost");
        assert_eq!(differing(computed, events), Vec::<String>::new(), "{case}");
    }
}
