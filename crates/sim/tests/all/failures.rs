//! Connections that fail: each application records the loss and continues.

use crate::world::{column, constant, files, pair, profile, run, web};
use firstflight_sim::Records;
use serde_json::{Value, json};

/// Gives a connection up after two retransmissions.
fn impatient() -> Value {
    profile("rfc", json!({"max_retries": 2, "max_syn_retries": 1}))
}

/// A path of 50 ms each way that loses this share in both directions.
fn lossy(loss: f64) -> Value {
    let mut link = pair(Some(10_000_000), 50_000_000, 100);
    link["forward"]["loss"] = json!(loss);
    link["reverse"]["loss"] = json!(loss);
    json!({"topology": "chain", "links": [link]})
}

fn plan(network: Value, application: Value) -> Value {
    json!({"duration_ns": 600_000_000_000u64, "network": network, "applications": [application]})
}

/// Only one packet in a million comes through.
const BLACK_HOLE: f64 = 0.999_999;

#[test]
fn a_file_whose_syns_are_lost_is_booked_as_failed_and_the_next_begins() {
    for direction in ["download", "upload"] {
        let more = json!({"count": 3, "gap": constant(1.0), "direction": direction});
        let records = run(&plan(lossy(BLACK_HOLE), files("f", "node[0]", "node[1]", &more, &impatient())), 1);
        // The SYN leaves at 0 s and 1 s and is aborted at 3 s; the next file follows a second later.
        assert_eq!(column(&records.transfers, |row| row.start_s), [0.0, 4.0, 8.0], "{direction}");
        assert_eq!(column(&records.transfers, |row| row.completed), [0, 0, 0]);
        assert_eq!(column(&records.transfers, |row| row.delivered_bytes), [0, 0, 0]);
        assert!(records.transfers.iter().all(|row| row.completion_time_s.is_nan() && row.handshake_time_s.is_nan()));
    }
}

#[test]
fn a_page_whose_primary_object_fails_asks_for_no_other() {
    for (version, persistent) in [("1.0", "joined"), ("1.1", "joined"), ("1.1", "pipelined")] {
        let mut page = web(1, 0, &impatient())["applications"][0].clone();
        page["client_hosts"] = json!("node[0]");
        page["server_hosts"] = json!("node[1]");
        page["version"] = json!(version);
        page["persistent"] = json!(persistent);
        page["start"] = constant(0.0);
        page["think"] = constant(1.0);
        page["count"] = json!(2);
        let records = run(&plan(lossy(BLACK_HOLE), page), 1);
        assert_eq!(column(&records.transfers, |row| row.object), [0, 0], "{version} {persistent}");
        assert_eq!(column(&records.pages, |row| row.start_s), [0.0, 4.0]);
        assert_eq!(column(&records.pages, |row| row.completed), [0, 0]);
        assert_eq!(column(&records.pages, |row| row.objects), [4, 4]);
    }
}

#[test]
fn a_request_that_fails_is_followed_by_one_on_a_new_connection() {
    let requests = json!({
        "kind": "request_response", "request": constant(100.0), "response": constant(1000.0), "think": constant(1.0),
        "count": 3,
    });
    let mut application = files("r", "node[0]", "node[1]", &requests, &impatient());
    for field in ["size", "request_bytes", "gap", "direction"] {
        application.as_object_mut().unwrap().remove(field);
    }
    let records = run(&plan(lossy(BLACK_HOLE), application), 1);
    assert_eq!(column(&records.transfers, |row| row.start_s), [0.0, 4.0, 8.0]);
    assert_eq!(column(&records.transfers, |row| row.connection), [0, 1, 2]);
    assert_eq!(column(&records.transfers, |row| row.completed), [0, 0, 0]);
}

#[test]
fn a_request_after_its_connection_failed_while_idle_opens_another_one() {
    // The server gives up if its response is not acknowledged, while the client has all of it and thinks.
    let requests = json!({
        "kind": "request_response", "request": constant(100.0), "response": constant(1000.0), "think": constant(5.0),
        "count": 30, "clients": 2,
    });
    let mut application = files("r", "node[0]", "node[1]", &requests, &impatient());
    for field in ["size", "request_bytes", "gap", "direction"] {
        application.as_object_mut().unwrap().remove(field);
    }
    for seed in 1..6 {
        let transfers = run(&plan(lossy(0.3), application.clone()), seed).transfers;
        for client in 0..2 {
            let objects: Vec<u32> = transfers.iter().filter(|row| row.client == client).map(|row| row.object).collect();
            assert_eq!(objects, (0..30).collect::<Vec<_>>(), "seed {seed}, client {client}");
        }
    }
}

fn assert_pages_add_up(records: &Records, case: &str) {
    let (pages, transfers) = (&records.pages, &records.transfers);
    let (mut whole, mut failed, mut broken) = (0, 0, 0);
    let last = pages.iter().map(|row| row.page).max().unwrap();
    for row in pages {
        let objects: Vec<_> = transfers.iter().filter(|object| object.page == row.page).collect();
        let arrived = objects.iter().filter(|object| object.completed == 1).count();
        let mut numbers: Vec<u32> = objects.iter().map(|object| object.object).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), objects.len(), "{case}: an object is booked once");
        if row.completed == 1 {
            whole += 1;
            assert_eq!(arrived, objects.len(), "{case}");
            let bytes: u64 = objects.iter().map(|object| object.bytes).sum();
            assert_eq!(bytes, row.bytes);
        } else if row.page != last {
            failed += 1;
            assert!(arrived < objects.len(), "{case}: page {} failed with all its objects", row.page);
            broken += u32::from(arrived > 0);
        }
    }
    assert_eq!(column(pages, |row| row.page), (0..=last).collect::<Vec<_>>(), "{case}: pages follow one another");
    assert!(whole > 3 && failed > 3, "{case}: {whole} whole, {failed} failed");
    assert!(broken > 0 || case.contains("joined"), "{case}: none failed half-way");
}

#[test]
fn pages_on_a_path_that_fails_now_and_then_go_on_and_add_up() {
    for (version, persistent) in [("1.0", "pipelined"), ("1.1", "joined"), ("1.1", "pipelined")] {
        let mut page = web(1, 0, &impatient())["applications"][0].clone();
        page["client_hosts"] = json!("node[0]");
        page["server_hosts"] = json!("node[1]");
        page["version"] = json!(version);
        page["persistent"] = json!(persistent);
        assert_pages_add_up(&run(&plan(lossy(0.25), page), 3), &format!("{version} {persistent}"));
    }
}

#[test]
fn a_run_that_ends_early_books_what_is_under_way() {
    let mut plan = plan(lossy(0.0), files("f", "node[0]", "node[1]", &json!({"size": constant(1e9)}), &impatient()));
    plan["duration_ns"] = json!(10_000_000_000u64);
    let transfers = run(&plan, 1).transfers;
    assert_eq!(column(&transfers, |row| row.completed), [0]);
    assert!(transfers[0].completion_time_s.is_nan());
    // 10 Mbit/s for 10 s at the most, and about half of the first seconds is lost to the overshoot of slow start.
    assert!((5_000_000..12_500_000).contains(&transfers[0].delivered_bytes), "{}", transfers[0].delivered_bytes);
    assert!((transfers[0].first_byte_time_s - 0.2).abs() < 0.01);
}

#[test]
fn a_connection_that_never_ends_books_each_request_once_and_in_turn() {
    let requests = json!({
        "kind": "request_response", "request": constant(100.0), "response": constant(3000.0), "think": constant(0.0),
    });
    let mut application = files("r", "node[0]", "node[1]", &requests, &impatient());
    for field in ["size", "request_bytes", "gap", "direction"] {
        application.as_object_mut().unwrap().remove(field);
    }
    let transfers = run(&plan(lossy(0.0), application), 1).transfers;
    let done = transfers.iter().filter(|row| row.completed == 1).count();
    assert!(done > 5000, "{done}");
    assert!(transfers[..done].iter().all(|row| row.delivered_bytes == 3000));
    assert_eq!(column(&transfers, |row| row.object), (0..transfers.len() as u32).collect::<Vec<_>>());
    assert!(transfers.iter().all(|row| row.connection == 0));
}
