//! Pages whose hosts' names are looked up first, and pages that begin at their own times.

use crate::world::{column, constant, pair, profile, run};
use firstflight_sim::Records;
use serde_json::{Value, json};

const KINDS: [(&str, &str); 5] =
    [("1.0", "joined"), ("1.1", "joined"), ("1.1", "pipelined"), ("1.1", "keep_alive"), ("2", "joined")];

/// Three pages over a chain of 20 ms each way and 8 Mbit/s; `more` replaces and adds fields.
fn pages((version, persistent): (&str, &str), more: Value) -> Value {
    let tcp = profile("rfc", json!({}));
    let mut application = json!({
        "name": "web", "clients": 1, "client_hosts": "node[1]", "server_hosts": "node[0]", "server_choice": "by_client",
        "client_tcp": tcp, "server_tcp": tcp, "start": constant(0.0), "kind": "web_page", "version": version,
        "persistent": persistent, "primary": constant(10e3), "inline": constant(5e3), "inline_count": constant(6.0),
        "request_bytes": 300, "think": constant(1.0), "count": 3,
    });
    for (key, value) in more.as_object().unwrap() {
        application[key] = value.clone();
    }
    json!({
        "duration_ns": 60_000_000_000u64,
        "network": {"topology": "chain", "links": [pair(Some(8_000_000), 20_000_000, 200)]},
        "applications": [application],
    })
}

/// Look-ups with datagrams of 100 bytes, which take 0.1 ms each; `more` replaces and adds fields.
fn dns(more: Value) -> Value {
    let mut names = json!({
        "query_bytes": 72, "answer": constant(72.0), "resolve": constant(0.0), "timeout_ns": 1_000_000_000u64,
        "backoff": 2.0, "attempts": 2, "datagram_header_bytes": 28, "ttl_ns": null,
    });
    for (key, value) in more.as_object().unwrap() {
        names[key] = value.clone();
    }
    names
}

fn queries(records: &Records) -> u32 {
    let streams = &records.streams;
    streams.iter().filter(|row| row.from_server == 0).map(|row| row.packets_sent).sum()
}

#[test]
fn the_first_page_waits_for_its_look_up_and_the_others_know_the_name() {
    for kind in KINDS {
        let known = run(&pages(kind, json!({})), 1);
        let asked = run(&pages(kind, json!({"dns": dns(json!({}))})), 1);
        let waits: Vec<f64> =
            (0..3).map(|page| asked.pages[page].completion_time_s - known.pages[page].completion_time_s).collect();
        assert!(
            (waits[0] - 0.0402).abs() < 1e-9 && waits[1].abs() < 1e-9 && waits[2].abs() < 1e-9,
            "{kind:?}: {waits:?}"
        );
        assert!((asked.pages[0].connect_time_s - known.pages[0].connect_time_s - 0.0402).abs() < 1e-9);
        assert_eq!((queries(&asked), column(&asked.streams, |row| row.packets_received)), (1, vec![1, 1]), "{kind:?}");
        assert_eq!(asked.transfers.len(), known.transfers.len());
    }
}

#[test]
fn an_answer_holds_for_its_time_and_an_open_connection_needs_none() {
    for (ttl_ns, kind, asked) in [
        (500_000_000u64, ("1.0", "joined"), 3),
        (60_000_000_000, ("1.0", "joined"), 1),
        (500_000_000, ("1.1", "keep_alive"), 1),
    ] {
        let records = run(&pages(kind, json!({"dns": dns(json!({"ttl_ns": ttl_ns}))})), 1);
        assert_eq!(
            (queries(&records), column(&records.pages, |row| row.completed)),
            (asked, vec![1, 1, 1]),
            "{kind:?}, {ttl_ns}"
        );
    }
}

#[test]
fn each_name_is_looked_up_once() {
    let more = json!({"hosts": 3, "connections": 2, "dns": dns(json!({}))});
    for kind in [("1.1", "keep_alive"), ("2", "joined")] {
        let records = run(&pages(kind, more.clone()), 1);
        assert_eq!((queries(&records), column(&records.pages, |row| row.completed)), (3, vec![1, 1, 1]));
    }
}

#[test]
fn a_query_that_is_lost_costs_its_timeout() {
    for kind in KINDS {
        let known = run(&pages(kind, json!({})), 1);
        let mut plan = pages(kind, json!({"dns": dns(json!({}))}));
        plan["network"]["links"][0]["reverse"]["lose"] = json!([1]);
        let asked = run(&plan, 1);
        let wait = asked.pages[0].completion_time_s - known.pages[0].completion_time_s;
        assert!((wait - 1.0402).abs() < 1e-9, "{kind:?}: {wait}");
        assert_eq!(queries(&asked), 2);
    }
}

#[test]
fn without_an_answer_a_page_fails_and_the_next_one_asks_again() {
    for kind in KINDS {
        let mut plan = pages(kind, json!({"dns": dns(json!({}))}));
        // Both queries of the first page.
        plan["network"]["links"][0]["reverse"]["lose"] = json!([1, 2]);
        let records = run(&plan, 1);
        assert_eq!((queries(&records), column(&records.pages, |row| row.completed)), (3, vec![0, 1, 1]), "{kind:?}");
        // It gave up 1 s and then 2 s after its queries, and thought for a second.
        assert!((records.pages[1].start_s - 4.0).abs() < 1e-9);
        assert!(records.transfers.iter().all(|row| row.page > 0));
    }
}

#[test]
fn a_name_that_is_not_found_costs_the_objects_behind_it_alone() {
    let mut plan = pages(("2", "joined"), json!({"hosts": 2, "count": 1, "dns": dns(json!({"attempts": 1}))}));
    // Packets 1 to 3 are the look-up of the first name and the requests for the primary and the first in-line object.
    plan["network"]["links"][0]["reverse"]["lose"] = json!([4]);
    let records = run(&plan, 1);
    assert_eq!(column(&records.pages, |row| (row.completed, row.bytes)), [(0, 40_000)]);
    assert_eq!(records.transfers.len(), 4);
}

#[test]
fn pages_that_begin_at_times_of_their_own_wait_for_nothing_but_the_page_before() {
    let starts = |think: f64| {
        let more = json!({"think": constant(think), "think_from_start": true});
        run(&pages(("1.1", "joined"), more), 1).pages
    };
    assert_eq!(column(&starts(1.0), |row| row.start_s), [1.0, 2.0, 3.0]);
    let pages = starts(0.001);
    assert!((pages[1].start_s - 0.001 - pages[0].completion_time_s).abs() < 1e-9);
}
