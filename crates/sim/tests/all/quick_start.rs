//! Quick-Start over routers that grant, lower, refuse or ignore (RFC 4782).

use crate::world::{pair, profile, single};
use firstflight_sim::{Plan, simulate};
use serde_json::{Value, json};

/// A file of 100 segments over three links in a row, 50 ms one way in all, the middle one of 20 Mbit/s; the answer of
/// each router to a request.
fn first_round(policies: [Value; 3]) -> (usize, u32) {
    // 10.24 Mbit/s.
    let tcp =
        profile("rfc", json!({"startup": {"scheme": "quick_start", "rate": 8}, "ack": {"policy": "every_segment"}}));
    let mut plan = single(pair(None, 5_000_000, 1000), 100.0 * 1460.0, &tcp);
    let mut links = vec![
        pair(Some(1_000_000_000), 5_000_000, 1000),
        pair(Some(20_000_000), 40_000_000, 1000),
        pair(Some(1_000_000_000), 5_000_000, 1000),
    ];
    for (link, policy) in links.iter_mut().zip(policies) {
        if !policy.is_null() {
            link["forward"]["quick_start"] = policy.clone();
            link["reverse"]["quick_start"] = policy;
        }
    }
    plan["network"]["links"] = json!(links);
    plan["applications"][0]["server_hosts"] = json!("node[3]");
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let records = simulate(&plan, 1, 0..1, true).unwrap();
    let events = records.segments.unwrap();
    let data = events.iter().filter(|row| row.event == 0 && row.from_server == 1 && row.length > 0);
    let data: Vec<i64> = data.map(|row| row.time_ns).collect();
    let at_once = data.iter().filter(|&&time| time == data[0]).count();
    (at_once, records.transfers[0].sender.first_flight_segments)
}

fn grant() -> Value {
    json!({"policy": "grant"})
}

// 10.24 Mbit/s for 100.5 ms (the handshake's segments take 0.5 ms on the wires) are 85 segments of 1500 bytes.
const GRANTED: u32 = 85;

#[test]
fn granted_by_all_the_first_flight_is_the_rate_times_the_round_trip() {
    assert_eq!(first_round([grant(), grant(), grant()]), (1, GRANTED));
}

#[test]
fn one_router_that_ignores_the_option_voids_the_request() {
    for ignorant in 0..3 {
        let mut policies = [grant(), grant(), grant()];
        policies[ignorant] = Value::Null;
        assert_eq!(first_round(policies), (10, 10));
    }
}

#[test]
fn one_router_that_refuses_is_enough() {
    assert_eq!(first_round([grant(), json!({"policy": "refuse"}), grant()]), (10, 10));
}

#[test]
fn the_lowest_rate_on_the_path_counts_rounded_down_to_a_code() {
    // 6 Mbit/s are rounded down to 5.12.
    let (at_once, flight) = first_round([grant(), json!({"policy": "lower", "rate_bps": 6_000_000}), grant()]);
    assert_eq!((at_once, flight), (1, GRANTED / 2));
}

#[test]
fn a_limit_leaves_what_is_below_it() {
    let (_, flight) = first_round([grant(), json!({"policy": "grant", "limit_bps": 3_000_000}), grant()]);
    // 2.56 Mbit/s.
    assert_eq!(flight, GRANTED / 4);
}

#[test]
fn a_policy_without_a_rate_is_refused() {
    let mut plan = single(pair(None, 5_000_000, 1000), 1460.0, &profile("rfc", json!({})));
    plan["network"]["links"][0]["forward"]["quick_start"] = json!({"policy": "lower", "rate_bps": 0});
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let error = simulate(&plan, 1, 0..1, false).unwrap_err().to_string();
    assert!(error.contains("refuse"), "{error}");
}
