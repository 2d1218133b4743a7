//! Initial windows that hosts learn from their connections.

use crate::world::{constant, differing, files, pair, profile, run};
use serde_json::{Value, json};

/// A server that sends files one after the other to two hosts, one near 1 Mbit/s and one at 50 Mbit/s, 50 ms away.
fn two_homes(tcp: &Value, files_each: u32, bytes: f64) -> Value {
    let home = |name, host: &str| {
        let more = json!({"size": constant(bytes), "gap": constant(0.5), "count": files_each});
        files(name, host, "hub", &more, tcp)
    };
    json!({
        "duration_ns": 600_000_000_000u64,
        "network": {
            "topology": "star", "hub": pair(Some(1_000_000_000), 1_000, 1000),
            "spokes": [pair(Some(1_000_000), 25_000_000, 12), pair(Some(50_000_000), 25_000_000, 400)],
        },
        "applications": [home("slow", "spokes[0]"), home("fast", "spokes[1]")],
    })
}

/// Initial windows of an application's connections, in order.
fn windows(plan: &Value, application: u16) -> Vec<u32> {
    let transfers = run(plan, 1).transfers;
    let mine = transfers.iter().filter(|row| row.application == application);
    mine.map(|row| row.initial_window_segments).collect()
}

fn remembering(more: Value) -> Value {
    let mut policy = json!({"policy": "remembered", "of": "closed"});
    for (key, value) in more.as_object().unwrap() {
        policy[key] = value.clone();
    }
    // A queue that the first file fills may drop the next one's SYNs; the stored window counts all the same.
    profile("rfc", json!({"initial_window": policy, "syn_loss_response": "keep"}))
}

#[test]
fn a_server_remembers_each_destination_apart() {
    let plan = two_homes(&remembering(json!({"max_segments": 60})), 8, 200_000.0);
    let (slow, fast) = (windows(&plan, 0), windows(&plan, 1));
    assert_eq!((slow[0], fast[0]), (10, 10), "nothing is known at first");
    // 137 segments without a loss leave a window of 10 + 137 segments, more than the cap.
    assert_eq!(fast[1..], [60; 7]);
    assert!(slow[1..].iter().all(|&window| (2..=20).contains(&window)), "{slow:?}");
}

#[test]
fn a_memory_that_is_too_old_is_forgotten() {
    let plan = two_homes(&remembering(json!({"lifetime_ns": 100_000_000})), 4, 200_000.0);
    assert_eq!(windows(&plan, 1), [10; 4]);
}

#[test]
fn neighbors_may_share_a_memory() {
    // Two clients of one application, on hosts 1 and 2; the hub is host 0.
    let both = |hosts: u32| {
        let mut plan = two_homes(&remembering(json!({"lesson": "largest", "hosts": hosts})), 8, 200_000.0);
        plan["applications"] = json!([plan["applications"][0]]);
        plan["applications"][0]["client_hosts"] = json!("spokes");
        plan["applications"][0]["clients"] = json!(2);
        windows(&plan, 0)
    };
    assert_eq!(both(4), both(3), "one memory holds both");
    assert_ne!(both(4), both(1));
    assert_eq!(both(2), both(1), "1 and 2 are not in one pair");
}

#[test]
fn a_retransmission_halves_the_window_of_a_loss_aware_memory() {
    let largest = two_homes(&remembering(json!({"lesson": "largest"})), 8, 200_000.0);
    let aware = two_homes(&remembering(json!({"lesson": "loss_aware"})), 8, 200_000.0);
    let last = |plan| windows(plan, 0)[7];
    assert!(last(&aware) < last(&largest), "{} {}", last(&aware), last(&largest));
    assert_eq!(windows(&aware, 1), windows(&largest, 1), "without losses the two are the same");
}

#[test]
fn live_connections_tell_those_that_are_opened_beside_them() {
    let tcp = remembering(json!({"of": "live", "max_segments": 500, "weight_percent": 100}));
    let mut plan = two_homes(&tcp, 1, 5_000_000.0);
    // Two clients on the fast host; the first file takes about a second.
    plan["applications"][1]["clients"] = json!(2);
    plan["applications"][1]["start"] = json!({"distribution": "uniform", "low": 0.0, "high": 1.0});
    let transfers = run(&plan, 1).transfers;
    let mine = transfers.iter().filter(|row| row.application == 1);
    let mut opened: Vec<(f64, u32)> = mine.map(|row| (row.start_s, row.initial_window_segments)).collect();
    opened.sort_by(|left, right| left.0.total_cmp(&right.0));
    assert_eq!(opened[0].1, 10);
    assert!(opened[1].0 > opened[0].0 + 0.2, "far enough apart with this seed: {opened:?}");
    assert!(opened[1].1 > 50, "{opened:?}");
}

#[test]
fn a_remembered_threshold_ends_slow_start_early() {
    let plain = two_homes(&remembering(json!({})), 6, 400_000.0);
    let shared = two_homes(&remembering(json!({"ssthresh": true})), 6, 400_000.0);
    let retransmissions = |plan: &Value| {
        let transfers = run(plan, 1).transfers;
        let rows = transfers.iter().filter(|row| row.application == 0);
        rows.skip(1).map(|row| row.sender.retransmissions).sum::<u32>()
    };
    assert!(retransmissions(&shared) < retransmissions(&plain));
}

#[test]
fn a_client_that_uploads_remembers_its_server() {
    let mut plan = two_homes(&remembering(json!({"max_segments": 60})), 4, 200_000.0);
    plan["applications"][1]["direction"] = json!("upload");
    assert_eq!(windows(&plan, 1), [10, 60, 60, 60]);
}

fn adapting(connections: u32) -> Value {
    profile("rfc", json!({"initial_window": {"policy": "adaptive", "connections": connections}}))
}

#[test]
fn a_population_with_losses_comes_down_and_one_without_stays_up() {
    let tcp = adapting(20);
    let plan = two_homes(&tcp, 100, 60_000.0);
    assert_eq!(windows(&plan, 1), [10; 100]);
    // The files to the slow host lose segments of later rounds, which do not count: the first flight of 10 fits the
    // queue of 12.
    assert_eq!(windows(&plan, 0), [10; 100]);
    let mut plan = two_homes(&tcp, 100, 60_000.0);
    plan["network"]["spokes"][0] = pair(Some(1_000_000), 25_000_000, 5);
    let slow = windows(&plan, 0);
    // A queue of 5 behind the one on the line holds 6 of 10: every interval finds losses until the window is 4.
    assert_eq!((slow[0], slow[20], slow[40], slow[60], slow[80]), (10, 4, 6, 8, 4));
}

#[test]
fn without_a_policy_that_learns_every_connection_begins_alike() {
    let plan = two_homes(&profile("rfc", json!({})), 20, 60_000.0);
    assert_eq!(windows(&plan, 0), [10; 20]);
}

#[test]
fn what_is_learned_repeats_with_the_seed() {
    for tcp in [remembering(json!({"of": "live"})), adapting(5)] {
        let plan = two_homes(&tcp, 20, 60_000.0);
        assert_eq!(differing(run(&plan, 1), run(&plan, 1)), Vec::<String>::new());
    }
}
