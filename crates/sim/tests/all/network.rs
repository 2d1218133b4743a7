//! Networks: packets that go in come out, the same every time, with any way of computing.

use crate::world::{differing, profile, run, web};
use firstflight_sim::{Plan, Records, simulate};
use proptest::prelude::*;
use serde_json::{Value, json};

fn reno() -> Value {
    profile("ns2-full-1998", json!({}))
}

fn assert_packets_are_conserved(records: &Records) {
    let links = &records.links;
    for link in 0..records.link_names.len() as u16 {
        let rows: Vec<_> = links.iter().filter(|row| row.link == link).collect();
        let offered = rows.iter().map(|row| row.offered_packets).sum::<u64>();
        let gone = rows.iter().map(|row| row.sent_packets + row.dropped_packets).sum::<u64>();
        // The rest was queued or on the line at the end; no test here gives the bottleneck, which comes first, a queue
        // of more than 40 packets.
        let held = if link < 2 { 41 } else { 1001 };
        assert!(offered >= gone && offered - gone <= held, "link {link}: {offered} offered, {gone} gone");
        let busy: f64 = rows.iter().map(|row| row.busy_s).sum();
        let length: f64 = rows.iter().map(|row| row.interval_s).sum();
        assert!(busy <= length + 1e-9);
    }
}

#[test]
fn packets_in_are_packets_out_dropped_or_queued() {
    let records = run(&web(32, 2, &reno()), 7);
    assert!(records.links.iter().map(|row| row.dropped_packets).sum::<u64>() > 0);
    assert_packets_are_conserved(&records);
    let delivered: u64 = records.transfers.iter().map(|row| row.delivered_bytes).sum();
    assert!(delivered > 1_000_000);
}

#[test]
fn one_seed_gives_one_result_and_another_seed_another() {
    let plan = web(8, 1, &reno());
    assert_eq!(differing(run(&plan, 3), run(&plan, 3)), Vec::<String>::new());
    assert!(!differing(run(&plan, 3), run(&plan, 4)).is_empty());
}

#[test]
fn replicates_do_not_depend_on_which_were_run_before() {
    let plan = Plan::from_json(&web(8, 1, &reno()).to_string()).unwrap();
    let mut apart = simulate(&plan, 1, 0..1, false).unwrap();
    apart.append(simulate(&plan, 1, 1..3, false).unwrap());
    assert_eq!(differing(apart, simulate(&plan, 1, 0..3, false).unwrap()), Vec::<String>::new());
}

#[test]
fn scenarios_that_differ_in_the_initial_window_share_sizes_and_servers() {
    let pages = |initial_window: u32| {
        let tcp = profile("ns2-full-1998", json!({"initial_window": {"policy": "fixed", "segments": initial_window}}));
        let pages = run(&web(8, 0, &tcp), 1).pages;
        let mut rows: Vec<_> = pages.iter().filter(|row| row.completed == 1 && row.page < 5).collect();
        rows.sort_by_key(|row| (row.client, row.page));
        rows.into_iter().map(|row| row.bytes).collect::<Vec<_>>()
    };
    assert_eq!(pages(1), pages(4));
}

/// A link fed by one other link alone is computed ahead of time. An application that never starts, but whose route
/// makes a second feeder, forces the event in between; nothing else may change.
#[test]
fn links_computed_ahead_give_what_links_with_events_give() {
    let computed = run(&web(16, 1, &reno()), 5);
    let mut plan = web(16, 1, &reno());
    for (client, server) in [("left", "left"), ("right", "right")] {
        let mut idle = plan["applications"][0].clone();
        idle["name"] = json!(format!("idle {client}"));
        idle["clients"] = json!(4);
        idle["client_hosts"] = json!(format!("{client}[0]"));
        idle["start"] = json!({"distribution": "constant", "value": 1e6});
        for host in 1..4 {
            idle["server_hosts"] = json!(format!("{server}[{host}]"));
            plan["applications"].as_array_mut().unwrap().push(idle.clone());
            // And the other way, so that each access link has a second feeder.
            let mut back = idle.clone();
            back["client_hosts"] = idle["server_hosts"].clone();
            back["server_hosts"] = json!(format!("{client}[0]"));
            plan["applications"].as_array_mut().unwrap().push(back);
        }
    }
    let events = run(&plan, 5);
    assert!(events.counts.events > computed.counts.events * 5 / 4, "the detour made no difference");
    assert_eq!(differing(computed, events), Vec::<String>::new());
}

#[test]
fn both_http_versions_and_pipelining_complete_their_pages() {
    for (version, persistent) in [("1.0", "joined"), ("1.1", "joined"), ("1.1", "pipelined")] {
        let mut plan = web(4, 0, &profile("rfc", json!({})));
        plan["applications"][0]["version"] = json!(version);
        plan["applications"][0]["persistent"] = json!(persistent);
        let records = run(&plan, 2);
        let completed = records.pages.iter().filter(|row| row.completed == 1).count();
        assert!(completed > 30, "{version} {persistent}: {completed}");
        let objects = if (version, persistent) == ("1.1", "joined") { 1 } else { 4 };
        let of_first_page = records.transfers.iter().filter(|row| row.client == 0 && row.page == 0).count();
        assert_eq!(of_first_page, objects, "{version} {persistent}");
    }
}

#[test]
fn in_line_objects_share_the_connections_that_the_browser_allows() {
    let mut plan = web(1, 0, &profile("rfc", json!({})));
    plan["applications"][0]["inline_count"] = json!({"distribution": "constant", "value": 12.0});
    plan["applications"][0]["parallel"] = json!(2);
    let transfers = run(&plan, 2).transfers;
    let page: Vec<_> = transfers.iter().filter(|row| row.page == 0 && row.object > 0).collect();
    assert_eq!(page.len(), 12);
    let at_once = |moment: f64| {
        let is_on_its_way = |from: f64, time: f64| from <= moment && from + time > moment + 1e-9;
        page.iter().filter(|row| is_on_its_way(row.start_s, row.completion_time_s)).count()
    };
    // An object begins at the moment at which another is complete, so there are always two until the last has begun.
    assert!(page.iter().all(|row| (1..=2).contains(&at_once(row.start_s))));
    assert!(page.iter().filter(|row| at_once(row.start_s) == 2).count() >= 11);
}

#[test]
fn plans_that_cannot_be_are_refused_in_one_sentence() {
    let refused = |alter: &dyn Fn(&mut Value)| {
        let mut plan = web(2, 0, &reno());
        alter(&mut plan);
        match Plan::from_json(&plan.to_string()) {
            Err(error) => error.to_string(),
            Ok(plan) => simulate(&plan, 1, 0..1, false).unwrap_err().to_string(),
        }
    };
    assert!(refused(&|plan| plan["duration_ns"] = json!(0)).contains("duration_ns"));
    assert!(refused(&|plan| plan["applications"][0]["clients"] = json!(0)).contains("no clients"));
    assert!(refused(&|plan| plan["applications"][0]["client_hosts"] = json!("left[9]")).contains("left[9]"));
    assert!(refused(&|plan| plan["applications"][0]["server_hosts"] = json!("middle")).contains("\"right\""));
    assert!(refused(&|plan| plan["network"]["bottleneck"]["forward"]["rate_bps"] = json!(0)).contains("bottleneck"));
    assert!(
        refused(&|plan| {
            plan["applications"][0]["primary"] =
                json!({"distribution": "empirical", "interpolation": "log", "points": [[0.0, 5.0], [1.0, 4.0]]});
        })
        .contains("primary")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_the_loss_and_the_buffers_files_arrive_whole(
        seed in 0u64..1000, loss in 0.0f64..0.2, limit in 1u32..40, initial_window in 1u32..40,
        version in prop::sample::select(vec!["rfc", "ns2-full-1998"]),
    ) {
        let tcp = profile(version, json!({"initial_window": {"policy": "fixed", "segments": initial_window}}));
        let mut plan = web(4, 1, &tcp);
        plan["duration_ns"] = json!(120_000_000_000u64);
        for direction in ["forward", "reverse"] {
            plan["network"]["bottleneck"][direction]["loss"] = json!(loss);
            plan["network"]["bottleneck"][direction]["queue"]["limit"]["packets"] = json!(limit);
        }
        let records = run(&plan, seed);
        assert_packets_are_conserved(&records);
        let transfers = &records.transfers;
        for row in transfers {
            if row.completed == 1 {
                prop_assert_eq!(row.delivered_bytes, row.bytes);
            }
            prop_assert!(row.sender.first_flight_lost_segments <= row.sender.first_flight_segments);
            prop_assert!(row.sender.retransmissions <= row.sender.segments_sent);
        }
    }
}
