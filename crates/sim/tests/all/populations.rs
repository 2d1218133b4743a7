//! Users with a path each, against the same users in a network.

use crate::world::{alike, column, constant, differing, exact, files, population, profile, run, spread};
use firstflight_sim::{
    Plan, Records,
    population::draw,
    records::{Row, User},
    simulate,
};
use firstflight_tcp::Choices;
use serde_json::{Value, json};

/// A lognormal response, as a web search has.
fn response() -> Value {
    json!({"size": {"distribution": "lognormal", "median": 9000.0, "sigma": 0.56}, "count": 3, "gap": constant(0.5)})
}

/// A user of `alike(80 ms, 1 Mbit/s, 300 kbit/s, 60 ms)` as a network.
fn chain(loss: f64, more: &Value, tcp: &Value) -> Value {
    let link = |rate: u64, loss: f64, bytes: u64| {
        json!({
            "rate_bps": rate, "delay_ns": 40_000_000, "loss": loss,
            "queue": {"kind": "drop_tail", "limit": {"bytes": bytes}},
        })
    };
    json!({
        "duration_ns": 1_000_000_000_000u64,
        "network": {
            "topology": "chain",
            "links": [{"forward": link(1_000_000, loss, 15_000), "reverse": link(300_000, 0.0, 15_000)}],
        },
        "applications": [files("file", "node[1]", "node[0]", more, tcp)],
    })
}

fn paths(loss: f64) -> Value {
    alike(80e6, 1e6, 300e3, 60e6, loss)
}

/// Columns of the transfers of one user, without those that number users and connections.
fn transfers_of(records: &Records, user: u32) -> Vec<(String, Vec<u8>)> {
    let mut table = Vec::new();
    let only: Vec<_> = records.transfers.iter().filter(|row| row.client == user).copied().collect();
    for (name, column) in Row::columns(&only).1 {
        if name != "client" && name != "connection" {
            table.push((name.to_owned(), column.bytes));
        }
    }
    table
}

#[test]
fn users_who_are_all_alike_do_what_one_client_does_in_a_network() {
    for name in ["rfc", "linux"] {
        let tcp = profile(name, json!({}));
        let more = json!({"size": constant(90_000.0), "count": 3, "gap": constant(0.5)});
        let expected = run(&chain(0.0, &more, &tcp), 7);
        let found = run(&population(50, paths(0.0), &more, &tcp), 7);
        assert_eq!(found.transfers.len(), 150);
        assert!(expected.transfers.iter().any(|row| row.sender.retransmissions > 0), "the queue is never full");
        for user in 0..50 {
            assert_eq!(transfers_of(&found, user), transfers_of(&expected, 0), "{name}, user {user}");
        }
    }
}

#[test]
fn the_first_user_draws_the_sizes_and_losses_of_the_first_client_of_a_network() {
    for name in ["rfc", "linux"] {
        let tcp = profile(name, json!({}));
        for seed in 0..20 {
            let expected = run(&chain(0.05, &response(), &tcp), seed);
            let found = run(&population(1, paths(0.05), &response(), &tcp), seed);
            let differing: Vec<_> =
                differing(found, expected).into_iter().filter(|name| !name.starts_with("links.")).collect();
            assert_eq!(differing, Vec::<String>::new(), "{name}, seed {seed}");
        }
    }
}

#[test]
fn web_pages_and_requests_end_with_their_counts() {
    let tcp = profile("linux", json!({}));
    let page = json!({
        "name": "page", "kind": "web_page", "version": "1.1", "persistent": "pipelined", "count": 2,
        "primary": constant(9000.0), "inline": constant(30_000.0), "inline_count": constant(4.0),
        "think": constant(1.0), "request_bytes": 300,
    });
    let requests = json!({
        "name": "requests", "kind": "request_response", "request": constant(100.0), "response": constant(5000.0),
        "think": constant(0.1), "count": 5,
    });
    let bulk = json!({"name": "bulk", "size": constant(1e5)});
    let mut plan = population(3, paths(0.01), &page, &tcp);
    for more in [requests, bulk] {
        let other = population(3, paths(0.01), &more, &tcp)["applications"][0].clone();
        plan["applications"].as_array_mut().unwrap().push(other);
    }
    let records = run(&plan, 1);
    assert_eq!(column(&records.pages, |row| row.completed), [1; 6]);
    for user in 0..3 {
        let rows = |application: u16, completed: u8| {
            let transfers = &records.transfers;
            transfers
                .iter()
                .filter(|row| row.client == user && row.application == application)
                .filter(|row| row.completed == completed)
                .count()
        };
        assert_eq!((rows(0, 1), rows(1, 1)), (10, 5));
        // The bulk transfers are in the background: as many as there was time for, and one in progress.
        assert!(rows(2, 1) > 0 && rows(2, 0) == 1, "{} and {}", rows(2, 1), rows(2, 0));
    }
}

#[test]
fn without_a_count_users_stay_to_the_end() {
    let mut plan = population(2, paths(0.0), &json!({"size": constant(1e4)}), &profile("rfc", json!({})));
    plan["duration_ns"] = json!(10_000_000_000u64);
    let records = run(&plan, 1);
    let last = records.transfers.last().unwrap().start_s;
    assert!((9.0..10.0).contains(&last), "{last}");
}

#[test]
fn a_user_who_is_not_done_leaves_nothing_to_the_next() {
    // 100 kB in a second at 1 Mbit/s: all are cut off in the middle, with pending packets and timers.
    for name in ["rfc", "linux"] {
        let tcp = profile(name, json!({}));
        let mut plan = population(20, paths(0.0), &json!({"size": constant(1e5), "count": 2}), &tcp);
        plan["duration_ns"] = json!(900_000_000u64);
        let records = run(&plan, 1);
        assert_eq!(column(&records.transfers, |row| row.completed), [0; 20]);
        for user in 1..20 {
            assert_eq!(transfers_of(&records, user), transfers_of(&records, 0), "{name}");
        }
        plan["population"]["users"] = json!(1);
        assert_eq!(transfers_of(&run(&plan, 1), 0), transfers_of(&records, 0));
    }
}

#[test]
fn a_user_is_the_same_however_many_there_are_and_whatever_the_initial_window() {
    let plan = |users: u32, segments: u32| {
        let tcp = profile("linux", json!({"initial_window": {"policy": "fixed", "segments": segments}}));
        population(users, spread(), &response(), &tcp)
    };
    let all = run(&plan(200, 10), 3);
    let few = run(&plan(70, 10), 3);
    for user in 0..70 {
        assert_eq!(transfers_of(&all, user), transfers_of(&few, user));
    }
    let [paths, fewer] = [all.users.as_ref().unwrap(), few.users.as_ref().unwrap()];
    assert_eq!(column(&paths[..70], |row| row.rtt_s), column(fewer, |row| row.rtt_s));
    let drawn = draw(&Plan::from_json(&plan(200, 10).to_string()).unwrap(), 3, 0, 0..200).unwrap().users;
    let figures =
        |row: &User| (row.client, row.subnet, row.rtt_s, row.down_bps, row.up_bps, row.buffer_bytes, row.loss);
    assert_eq!(column(paths, figures), column(&drawn, figures));
    let other = run(&plan(200, 3), 3);
    let columns = |records: &Records| Row::columns(records.users.as_ref().unwrap()).1;
    let bits = |records| columns(records).into_iter().map(|(_, column)| column.bytes).collect::<Vec<_>>();
    assert_eq!(bits(&all), bits(&other));
    assert_eq!(column(&all.transfers, |row| row.bytes), column(&other.transfers, |row| row.bytes));
    assert_ne!(
        column(&all.transfers, |row| row.completion_time_s),
        column(&other.transfers, |row| row.completion_time_s)
    );
}

#[test]
fn replicates_are_the_same_alone_and_together() {
    let tcp = profile("linux", json!({}));
    let plan = Plan::from_json(&population(40, spread(), &response(), &tcp).to_string()).unwrap();
    let together = exact(simulate(&plan, 5, 2..5, false).unwrap());
    let mut alone = simulate(&plan, 5, 2..3, false).unwrap();
    alone.append(simulate(&plan, 5, 3..5, false).unwrap());
    assert_eq!(exact(alone), together);
    let threads = std::thread::scope(|scope| {
        let handles: Vec<_> = (2..5)
            .map(|number| {
                scope.spawn({
                    let plan = &plan;
                    move || simulate(plan, 5, number..number + 1, false)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    let mut joined = threads.into_iter();
    let mut first = joined.next().unwrap();
    joined.for_each(|more| first.append(more));
    assert_eq!(exact(first), together);
}

#[test]
fn what_is_not_done_is_the_same_alone_and_together_whatever_the_tcp() {
    // Pages of many connections at once, cut off in the middle: data in flight is recorded per connection.
    let page = json!({
        "kind": "web_page", "version": "1.0", "persistent": "joined", "count": 2, "primary": constant(2000.0),
        "inline": constant(60_000.0), "inline_count": {"distribution": "uniform", "low": 2.0, "high": 9.0},
        "think": constant(0.0), "request_bytes": 300,
    });
    let remembered = json!({
        "policy": "remembered", "of": "live", "start_segments": 10, "max_segments": 100, "weight_percent": 50,
        "lifetime_ns": 90_000_000_000u64, "ssthresh": true,
    });
    let adaptive = json!({
        "policy": "adaptive", "min_segments": 3, "max_segments": 10, "decrease_to_percent": 50,
        "increase_segments": 2, "threshold_percent": 5, "connections": 3,
    });
    let mut variants = vec![
        json!({}),
        json!({"initial_window": remembered}),
        json!({"initial_window": adaptive}),
        json!({"ecn": "on", "recovery.scoreboard.rack": false, "recovery.scoreboard.tail_loss_probe": null}),
    ];
    let choices = serde_json::to_value(Choices::all()).unwrap();
    for field in ["startup", "congestion_control"] {
        for choice in choices[field].as_array().unwrap() {
            variants.push(json!({ field: choice }));
            // The one parameter without a default.
            if choice.get("rate").is_some() {
                variants.last_mut().unwrap()[field]["rate"] = json!(10);
            }
        }
    }
    for recovery in [json!("tahoe"), json!({"reno": {}}), json!({"new_reno": {}})] {
        variants.push(json!({"recovery": recovery, "sack": false, "dsack": false}));
    }
    for variant in variants {
        let mut plan = population(6, paths(0.02), &page, &profile("linux", variant.clone()));
        plan["duration_ns"] = json!(2_000_000_000u64);
        let plan = Plan::from_json(&plan.to_string()).unwrap();
        let together = simulate(&plan, 5, 0..4, false).unwrap();
        assert!(together.transfers.iter().any(|row| row.completed == 0));
        let mut alone = simulate(&plan, 5, 0..1, false).unwrap();
        (1..4).for_each(|number| alone.append(simulate(&plan, 5, number..number + 1, false).unwrap()));
        assert_eq!(differing(alone, together), Vec::<String>::new(), "{variant}");
    }
}

#[test]
fn an_application_runs_for_its_share_of_the_users() {
    let tcp = profile("rfc", json!({}));
    let mut plan = population(5000, paths(0.0), &json!({"size": constant(1000.0), "count": 1}), &tcp);
    let mut other = plan["applications"][0].clone();
    other["name"] = json!("other");
    other["share"] = json!(0.2);
    plan["applications"].as_array_mut().unwrap().push(other);
    let records = run(&plan, 1);
    let by = |application| records.transfers.iter().filter(|row| row.application == application).count();
    assert_eq!(by(0), 5000);
    // Five standard deviations of a share of 5000 draws.
    assert!((by(1) as f64 / 5000.0 - 0.2).abs() < 0.028, "{}", by(1));
}
