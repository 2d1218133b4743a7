//! Plans at and beyond the edge: refused in a sentence, or run to their end.

use crate::world::{constant, files, pair, profile, run, web};
use firstflight_sim::{Plan, simulate};
use serde_json::{Value, json};

fn refusal(plan: &Value) -> String {
    match Plan::from_json(&plan.to_string()) {
        Err(error) => error.to_string(),
        Ok(plan) => simulate(&plan, 1, 0..1, false).unwrap_err().to_string(),
    }
}

/// A plan that works, altered.
fn altered(alter: impl Fn(&mut Value)) -> Value {
    let mut plan = web(2, 1, &profile("rfc", json!({})));
    plan["duration_ns"] = json!(2_000_000_000u64);
    alter(&mut plan);
    plan
}

#[test]
fn what_cannot_be_simulated_is_refused_by_name() {
    let red = |field: &str, value: f64| {
        let mut red = json!({
            "kind": "red", "limit_packets": 40, "min_threshold_packets": 3.0, "max_threshold_packets": 9.0,
            "max_probability": 0.1, "weight": 0.02, "gentle": true, "mean_packet_bytes": 1000,
        });
        red[field] = if field.ends_with("bytes") { json!(value as u64) } else { json!(value) };
        red
    };
    type Alteration = Box<dyn Fn(&mut Value)>;
    let cases: Vec<(&str, Alteration)> = vec![
        ("duration_ns", Box::new(|plan| plan["duration_ns"] = json!(u64::MAX))),
        ("not a plan", Box::new(|plan| plan["duration_ns"] = json!(-1))),
        ("meter_interval_ns", Box::new(|plan| plan["meter_interval_ns"] = json!(1))),
        ("header_bytes", Box::new(|plan| plan["header_bytes"] = json!(u32::MAX))),
        ("10000000", Box::new(|plan| plan["applications"][0]["clients"] = json!(u32::MAX))),
        ("request_bytes", Box::new(|plan| plan["applications"][0]["request_bytes"] = json!(0))),
        ("request_bytes", Box::new(|plan| plan["applications"][1]["request_bytes"] = json!(0))),
        ("size reaches", Box::new(|plan| plan["applications"][1]["size"] = constant(1e300))),
        ("inline_count reaches", Box::new(|plan| plan["applications"][0]["inline_count"] = constant(70_000.0))),
        ("gap", Box::new(|plan| plan["applications"][1]["gap"] = constant(-1.0))),
        ("parallel", Box::new(|plan| plan["applications"][0]["parallel"] = json!(0))),
        ("count", Box::new(|plan| plan["applications"][0]["count"] = json!(0))),
        ("client_tcp", Box::new(|plan| plan["applications"][0]["client_tcp"]["mss_bytes"] = json!(0))),
        ("left[4]", Box::new(|plan| plan["applications"][0]["client_hosts"] = json!("left[4]"))),
        ("left[", Box::new(|plan| plan["applications"][0]["client_hosts"] = json!("left[-1"))),
        ("one host", Box::new(|plan| plan["applications"][0]["server_hosts"] = json!("left"))),
        ("loss", Box::new(|plan| plan["network"]["bottleneck"]["forward"]["loss"] = json!(1.0))),
        ("loss", Box::new(|plan| plan["network"]["bottleneck"]["forward"]["loss"] = json!(-0.1))),
        ("rate", Box::new(|plan| plan["network"]["bottleneck"]["forward"]["rate_bps"] = json!(1))),
        ("zero", Box::new(|plan| plan["network"]["left"][1]["reverse"]["queue"]["limit"]["packets"] = json!(0))),
        ("left", Box::new(|plan| plan["network"]["left"] = json!([]))),
        (
            "mean_packet",
            Box::new(move |plan| plan["network"]["left"][0]["forward"]["queue"] = red("mean_packet_bytes", 0.0)),
        ),
        ("weight", Box::new(move |plan| plan["network"]["left"][0]["forward"]["queue"] = red("weight", 1.5))),
    ];
    for (named, alter) in cases {
        let error = refusal(&altered(alter));
        assert!(error.contains(named), "{named}: {error}");
        assert!(!error.contains('\n'));
    }
    let plan = altered(|_| {}).to_string();
    for (good, bad) in [("\"loss\":0.0", "\"loss\":NaN"), ("\"loss\":0.0", "\"loss\":1e999"), ("{", "[")] {
        assert!(Plan::from_json(&plan.replacen(good, bad, 1)).unwrap_err().to_string().contains("not a plan"));
    }
    assert!(
        simulate(&Plan::from_json(&plan).unwrap(), 1, 3..3, false).unwrap_err().to_string().contains("no replicates")
    );
}

#[test]
fn more_links_than_the_records_can_number_are_refused() {
    let plan = altered(|plan| plan["network"]["left"] = vec![pair(Some(1_000_000), 1000, 10); 33_000].into());
    assert!(refusal(&plan).contains("links"));
}

/// An application that never waits would do all that it ever does at one moment, and the run would never end.
#[test]
fn a_path_that_takes_no_time_is_refused_by_its_ends() {
    let chain = |links: &[Value]| {
        json!({
            "duration_ns": 1_000_000u64, "network": {"topology": "chain", "links": links},
            "applications": [files("f", "node[0]", "node[2]", &json!({}), &profile("rfc", json!({})))],
        })
    };
    let nothing = || pair(None, 0, 10);
    let error = refusal(&chain(&[nothing(), nothing()]));
    assert!(error.contains("node[0]") && error.contains("node[2]") && error.contains("no time"), "{error}");
    // Some time anywhere will do.
    let mut one_way = nothing();
    one_way["reverse"]["delay_ns"] = json!(1000);
    assert!(run(&chain(&[nothing(), one_way]), 1).transfers.len() > 300);
    assert!(run(&chain(&[nothing(), pair(Some(1_000_000_000), 0, 10)]), 1).transfers.len() > 30);
    let fastest = pair(Some(8_000_000_000_000), 0, 10);
    assert!(refusal(&chain(&[nothing(), fastest])).contains("no time"), "40 bytes round to nothing");
}

#[test]
fn extremes_run_to_their_end() {
    let cases: Vec<(&str, Value)> = vec![
        ("the largest delay", altered(|plan| plan["network"]["bottleneck"] = pair(Some(1_500_000), u64::MAX, 25))),
        ("the slowest link", altered(|plan| plan["network"]["bottleneck"] = pair(Some(2), 0, u32::MAX))),
        (
            "the largest headers",
            altered(|plan| {
                plan["header_bytes"] = json!(65_535);
                plan["network"]["bottleneck"] = pair(Some(1_000_000_000), 0, 25);
                plan["duration_ns"] = json!(60_000_000_000u64);
            }),
        ),
        ("no headers", altered(|plan| plan["header_bytes"] = json!(0))),
        (
            "sizes without bound",
            altered(|plan| {
                let law = json!({"distribution": "pareto", "shape": 0.001, "minimum": 1.0});
                for field in ["primary", "inline"] {
                    plan["applications"][0][field] = law.clone();
                }
                plan["applications"][1]["size"] = law;
            }),
        ),
        (
            "joined sizes without bound",
            altered(|plan| {
                plan["applications"][0]["version"] = json!("1.1");
                plan["applications"][0]["inline_count"] = constant(65_535.0);
                plan["applications"][0]["inline"] = json!({"distribution": "pareto", "shape": 0.001, "minimum": 1e12});
            }),
        ),
        (
            "objects without number",
            altered(|plan| {
                plan["applications"][0]["version"] = json!("1.1");
                plan["applications"][0]["inline_count"] = json!({"distribution": "exponential", "mean": 1e300});
            }),
        ),
        ("a gap beyond all time", altered(|plan| plan["applications"][1]["gap"] = constant(1e300))),
        ("a start beyond all time", altered(|plan| plan["applications"][1]["start"] = constant(1e300))),
        (
            "one-byte segments",
            altered(|plan| {
                plan["applications"][1]["server_tcp"]["mss_bytes"] = json!(1);
                plan["applications"][1]["server_tcp"]["initial_window"] =
                    json!({"policy": "fixed", "segments": 100_000});
            }),
        ),
        ("a queue of one", altered(|plan| plan["network"]["bottleneck"] = pair(Some(1_500_000), 0, 1))),
        (
            "a queue of one byte",
            altered(|plan| {
                plan["network"]["bottleneck"]["forward"]["queue"] = json!({"kind": "drop_tail", "limit": {"bytes": 1}});
            }),
        ),
    ];
    for (case, plan) in cases {
        let records = run(&plan, 1);
        let delivered: u64 = records.transfers.iter().map(|row| row.delivered_bytes).sum();
        assert!(
            delivered > 0 || case.contains("beyond") || case.contains("largest delay") || case.contains("slowest"),
            "{case}"
        );
        assert!(records.transfers.iter().all(|row| row.start_s <= 60.0), "{case}");
    }
}
