//! Pages over connections that are kept: HTTP/1.1 with keep-alive, HTTP/2, several hosts, levels of objects.

use std::collections::BTreeSet;

use crate::world::{column, constant, differing, pair, profile, run};
use firstflight_sim::{Records, records::Transfer};
use serde_json::{Value, json};

/// Pages over a chain of 20 ms each way and 8 Mbit/s; `more` replaces and adds fields.
fn pages(version: &str, persistent: &str, more: Value) -> Value {
    let tcp = profile("rfc", json!({}));
    let mut application = json!({
        "name": "web", "clients": 1, "client_hosts": "node[1]", "server_hosts": "node[0]", "server_choice": "by_client",
        "client_tcp": tcp, "server_tcp": tcp, "start": constant(0.0), "kind": "web_page", "version": version,
        "persistent": persistent, "primary": constant(10e3), "inline": constant(5e3), "inline_count": constant(6.0),
        "request_bytes": 300, "think": constant(1.0), "count": 1,
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

fn connections(records: &Records) -> usize {
    records.transfers.iter().map(|row| row.connection).collect::<BTreeSet<_>>().len()
}

/// When the objects of the first page with these numbers were asked for, and when they were there.
fn span(transfers: &[Transfer], numbers: std::ops::RangeInclusive<u32>) -> [f64; 2] {
    let rows = transfers.iter().filter(|row| row.page == 0 && numbers.contains(&row.object));
    rows.fold([f64::INFINITY, 0.0], |[first, last], row| {
        let start = row.start_s;
        [first.min(start), last.max(start + row.completion_time_s)]
    })
}

#[test]
fn keep_alive_has_no_more_connections_than_it_may_and_keeps_them_for_the_next_page() {
    for (most, used) in [(1, 1), (2, 2), (6, 6), (20, 6)] {
        let records = run(&pages("1.1", "keep_alive", json!({"connections": most, "count": 3})), 1);
        assert_eq!(connections(&records), used, "{most} connections");
        assert_eq!(column(&records.pages, |row| row.completed), [1, 1, 1]);
        assert_eq!(records.transfers.len(), 3 * 7);
        // Only the first use of a connection has a handshake.
        assert_eq!(records.transfers.iter().filter(|row| !row.handshake_time_s.is_nan()).count(), used);
    }
}

#[test]
fn a_connection_that_was_idle_for_too_long_is_not_used_again() {
    let keep = |keep_alive_ns: u64| {
        let more = json!({"connections": 2, "count": 3, "keep_alive_ns": keep_alive_ns});
        connections(&run(&pages("1.1", "keep_alive", more), 1))
    };
    assert_eq!(keep(5_000_000_000), 2);
    assert_eq!(keep(500_000_000), 6);
}

#[test]
fn each_host_has_connections_of_its_own() {
    for (version, persistent, each) in [("1.1", "keep_alive", 2), ("2", "joined", 1)] {
        let more = json!({"connections": 2, "hosts": 3, "inline_count": constant(12.0)});
        let records = run(&pages(version, persistent, more), 1);
        assert_eq!(connections(&records), 3 * each);
        let transfers = &records.transfers;
        // Objects 1, 4, 7 ... are those of the first host, as the primary is.
        let of = |remainder: u32| {
            let rows = transfers.iter().filter(|row| (row.object + 2) % 3 == remainder);
            rows.filter(|row| row.object > 0).map(|row| row.connection).collect::<BTreeSet<_>>()
        };
        assert!(of(0).is_disjoint(&of(1)) && of(1).is_disjoint(&of(2)) && of(0).is_disjoint(&of(2)));
    }
}

#[test]
fn hosts_are_spread_over_the_servers() {
    let mut plan = pages("2", "joined", json!({"hosts": 2, "client_hosts": "left", "server_hosts": "right"}));
    let access: Vec<Value> = vec![pair(None, 1_000_000, 100); 3];
    plan["network"] = json!({
        "topology": "dumbbell", "bottleneck": pair(Some(8_000_000), 20_000_000, 200), "left": access, "right": access,
    });
    let records = run(&plan, 1);
    let sent = |name: &str| {
        let index = records.link_names.iter().position(|known| known == name).unwrap() as u16;
        let links = &records.links;
        links.iter().filter(|row| row.link == index).map(|row| row.sent_packets).sum::<u64>()
    };
    assert_eq!(column(&records.pages, |row| row.completed), [1]);
    assert!(sent("right[0].reverse") > 0 && sent("right[1].reverse") > 0);
    assert_eq!(sent("right[2].reverse"), 0);
}

#[test]
fn a_level_is_asked_for_once_the_one_before_is_there() {
    let then = json!([
        {"inline": constant(3e3), "inline_count": constant(0.0)},
        {"inline": constant(3e3), "inline_count": constant(4.0)},
    ]);
    for (version, persistent) in [("1.0", "joined"), ("1.1", "pipelined"), ("1.1", "keep_alive"), ("2", "joined")] {
        let records = run(&pages(version, persistent, json!({"then": then, "connections": 3})), 1);
        let [scripts, images] = [span(&records.transfers, 1..=6), span(&records.transfers, 7..=10)];
        assert!(span(&records.transfers, 0..=0)[1] <= scripts[0] && scripts[1] <= images[0], "{version} {persistent}");
        assert_eq!((records.pages[0].completed, records.pages[0].objects), (1, 11));
        assert_eq!(records.pages[0].bytes, 10_000 + 6 * 5_000 + 4 * 3_000);
    }
    let joined = run(&pages("1.1", "joined", json!({"then": then})), 1);
    assert_eq!(column(&joined.transfers, |row| row.bytes), [10_000 + 6 * 5_000 + 4 * 3_000]);
}

#[test]
fn responses_of_http2_take_turns_and_those_of_a_pipeline_do_not() {
    let more = json!({"inline": constant(100e3), "inline_count": constant(3.0)});
    let times = |version: &str, persistent: &str| {
        let transfers = run(&pages(version, persistent, more.clone()), 1).transfers;
        let mut rows: Vec<_> = transfers.iter().filter(|row| row.object > 0).collect();
        rows.sort_by_key(|row| row.object);
        rows.iter().map(|row| [row.first_byte_time_s, row.completion_time_s]).collect::<Vec<_>>()
    };
    // 100 kB take 0.1 s at 8 Mbit/s.
    let pipelined = times("1.1", "pipelined");
    assert!(pipelined[1][0] > pipelined[0][1] - 0.002 && pipelined[2][0] > pipelined[1][1] - 0.002);
    let turns = times("2", "joined");
    for [first, last] in &turns {
        // A frame of 16 KiB takes 17 ms, and the first request came a little earlier than the others.
        assert!(*first < turns[0][0] + 0.12 && *last > turns[2][1] - 0.09, "{turns:?}");
    }
    // The headers of 21 frames are less than a packet.
    assert!((turns[2][1] - pipelined[2][1]).abs() < 0.01, "{turns:?} against {pipelined:?}");
}

#[test]
fn http2_gets_through_losses_and_books_every_object_once() {
    let more = json!({
        "inline": {"distribution": "lognormal", "median": 30e3, "sigma": 1.0}, "inline_count": {"distribution": "uniform", "low": 0, "high": 40},
        "then": [{"inline": constant(20e3), "inline_count": constant(5.0)}], "count": 5, "service_time_ns": 30_000_000,
        "response_header_bytes": 200,
    });
    for (version, persistent) in [("2", "joined"), ("1.1", "keep_alive")] {
        let mut plan = pages(version, persistent, more.clone());
        plan["duration_ns"] = json!(400_000_000_000u64);
        plan["network"]["links"][0]["forward"]["loss"] = json!(0.03);
        let records = run(&plan, 7);
        assert_eq!(column(&records.pages, |row| row.completed), [1; 5], "{version}");
        let objects: BTreeSet<(u32, u32)> = records.transfers.iter().map(|row| (row.page, row.object)).collect();
        assert_eq!(objects.len(), records.transfers.len());
        assert_eq!(objects.len() as u32, records.pages.iter().map(|row| row.objects).sum::<u32>());
        assert!(records.transfers.iter().map(|row| row.sender.retransmissions).sum::<u32>() > 0);
        assert!(records.transfers.iter().all(|row| row.first_byte_time_s <= row.completion_time_s));
        assert_eq!(differing(records, run(&plan, 7)), [""; 0]);
    }
}

#[test]
fn a_run_that_ends_meanwhile_books_what_is_on_its_way() {
    for (version, persistent) in [("2", "joined"), ("1.1", "keep_alive")] {
        let mut plan = pages(version, persistent, json!({"inline": constant(1e6)}));
        plan["duration_ns"] = json!(1_500_000_000u64);
        let records = run(&plan, 1);
        assert_eq!(column(&records.pages, |row| row.completed), [0]);
        for completed in [0, 1] {
            assert!(records.transfers.iter().any(|row| row.completed == completed));
        }
        assert!(records.transfers.iter().all(|row| row.delivered_bytes <= row.bytes));
    }
}
