//! Links whose queue decides on departure.

use crate::world::{differing, pair, profile, run, single, web};
use firstflight_sim::{Plan, Records, simulate};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn codel(limit_packets: u32, target_ms: u64, ecn: bool) -> Value {
    let times = (target_ms * MS, target_ms.max(100) * MS);
    json!({
        "kind": "codel", "limit": {"packets": limit_packets}, "target_ns": times.0, "interval_ns": times.1, "ecn": ecn,
    })
}

/// Three links in a row, the middle one slow, each with these queues.
fn chain(queues: [Value; 3]) -> Value {
    let mut plan = single(Value::Null, 300_000.0, &profile("linux", json!({})));
    let rates = [None, Some(2_000_000), Some(10_000_000)];
    let links: Vec<Value> = std::iter::zip(rates, queues)
        .map(|(rate, queue)| {
            let mut link = pair(rate, 7_000_000, 1);
            link["forward"]["queue"] = queue.clone();
            link["reverse"]["queue"] = queue;
            link
        })
        .collect();
    plan["network"]["links"] = json!(links);
    plan["applications"][0]["client_hosts"] = json!("node[3]");
    plan["applications"][0]["server_hosts"] = json!("node[0]");
    plan
}

fn drop_tail(limit_packets: u32) -> Value {
    json!({"kind": "drop_tail", "limit": {"packets": limit_packets}})
}

#[test]
fn a_queue_that_could_drop_on_departure_and_never_does_is_drop_tail() {
    let plain = || drop_tail(15);
    let patient = || codel(15, 1_000_000, false);
    let expected = chain([plain(), plain(), plain()]);
    assert!(run(&expected, 1).links.iter().any(|row| row.dropped_packets > 0), "the limit is met");
    for queues in [
        [patient(), plain(), plain()],
        [plain(), patient(), plain()],
        [plain(), plain(), patient()],
        [patient(), patient(), patient()],
    ] {
        let found = differing(run(&expected, 1), run(&chain(queues), 1));
        let found: Vec<_> = found.into_iter().filter(|name| !name.ends_with("events")).collect();
        assert_eq!(found, Vec::<String>::new());
    }
}

fn bottleneck(queue: Value, tcp: &Value) -> Records {
    let mut plan = web(16, 4, tcp);
    plan["network"]["bottleneck"]["forward"]["queue"] = queue.clone();
    plan["network"]["bottleneck"]["reverse"]["queue"] = queue;
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let watched = simulate(&plan, 3, 0..1, true).unwrap();
    let records = simulate(&plan, 3, 0..1, false).unwrap();
    let tables = |records: Records| Records { segments: None, sender_events: None, crossings: None, ..records };
    let different = differing(tables(watched), tables(simulate(&plan, 3, 0..1, false).unwrap()));
    assert_eq!(different, Vec::<String>::new(), "watching changes nothing");
    records
}

/// Of the bottleneck towards the clients: mean packets that wait, drops and marks.
fn summary(records: &Records) -> (f64, u64, u64) {
    let links = &records.links;
    let rows = || links.iter().filter(|row| row.link == 1);
    let mean = rows().map(|row| row.queue_mean_packets * row.interval_s).sum::<f64>() / 60.0;
    (mean, rows().map(|row| row.dropped_packets).sum(), rows().map(|row| row.marked_packets).sum())
}

#[test]
fn codel_keeps_the_queue_short_and_with_ecn_marks_instead_of_dropping() {
    let tcp = profile("linux", json!({}));
    let (long, ..) = summary(&bottleneck(drop_tail(100), &tcp));
    let (short, dropped, marked) = summary(&bottleneck(codel(100, 5, false), &tcp));
    assert!(short < long / 3.0, "{short} of {long} packets");
    assert!(dropped > 50 && marked == 0, "{dropped} dropped, {marked} marked");
    let tcp = profile("linux", json!({"ecn": "on"}));
    let (_, dropped, marked) = summary(&bottleneck(codel(1000, 5, true), &tcp));
    // SYNs and retransmissions cannot be marked.
    assert!(marked > 50 && dropped < marked / 3, "{dropped} dropped, {marked} marked");
}
