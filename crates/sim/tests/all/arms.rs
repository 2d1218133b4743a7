//! Arms, and the applications that go by the clock: videos and arrivals.

use crate::world::{alike, column, constant, differing, files, pair, population, profile, run};
use firstflight_sim::{Plan, records::Transfer};
use serde_json::{Value, json};

fn with_arms(mut plan: Value, arms: &[(&str, f64, u32)], of: &str) -> Value {
    plan["arms"] = arms.iter().map(|(name, share, _)| json!({"name": name, "share": share})).collect();
    plan["arms_of"] = json!(of);
    for application in plan["applications"].as_array_mut().unwrap() {
        let ends = arms.iter().map(|(_, _, segments)| {
            let window = json!({"initial_window": {"policy": "fixed", "segments": segments}});
            json!({"client_tcp": application["client_tcp"], "server_tcp": profile("rfc", window)})
        });
        application["arms"] = ends.collect();
    }
    plan
}

fn star(clients: u32, count: u32) -> Value {
    let three = profile("rfc", json!({"initial_window": {"policy": "fixed", "segments": 3}}));
    let more = json!({"clients": clients, "count": count, "size": constant(30e3)});
    json!({
        "duration_ns": 40_000_000_000u64,
        "network": {
            "topology": "star", "hub": pair(None, 5_000_000, 1000),
            "spokes": vec![pair(Some(10_000_000), 5_000_000, 100); 10],
        },
        "applications": [
            files("file", "spokes", "hub", &more, &three), files("more", "spokes", "hub", &more, &three),
        ],
    })
}

/// (client, initial window) of the rows of an application in an arm.
fn rows(plan: &Value, name: &str) -> Vec<(u32, u32)> {
    let records = run(plan, 3);
    let index = records.application_names.iter().position(|known| known == name).unwrap() as u16;
    let transfers = &records.transfers;
    let of_it = transfers.iter().filter(|row| row.application == index);
    let mut rows: Vec<_> = of_it.map(|row| (row.client, row.initial_window_segments)).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_share_of_the_users_has_the_window_of_its_arm_in_all_applications() {
    let plan = with_arms(star(200, 2), &[("ten", 0.3, 10)], "users");
    let names = run(&plan, 3).application_names;
    assert_eq!(names, ["file", "file.ten", "more", "more.ten"]);
    let (ten, rest) = (rows(&plan, "file.ten"), rows(&plan, "file"));
    assert_eq!(ten.len() + rest.len(), 400);
    assert!((80..160).contains(&ten.len()), "{}", ten.len());
    assert!(ten.iter().all(|&(_, window)| window == 10) && rest.iter().all(|&(_, window)| window == 3));
    assert!(ten.iter().all(|(client, _)| rest.iter().all(|(other, _)| other != client)));
    assert_eq!(rows(&plan, "more.ten"), ten);
}

#[test]
fn adoption_grows_by_users_who_join_and_from_none_to_all() {
    let users = |share: f64| -> Vec<u32> {
        let plan = with_arms(star(100, 1), &[("ten", share, 10), ("twenty", 0.0, 20)], "users");
        rows(&plan, "file.ten").into_iter().map(|(client, _)| client).collect()
    };
    let shares = [0.0, 0.25, 0.5, 0.75, 1.0].map(users);
    assert_eq!((shares[0].len(), shares[4].len()), (0, 100));
    assert!(shares.windows(2).all(|pair| pair[0].iter().all(|user| pair[1].contains(user))));
    // Without a user in an arm all is as without arms, but for the numbers of the applications.
    let none = with_arms(star(20, 2), &[("ten", 0.0, 10)], "users");
    assert_eq!(differing(run(&none, 3), run(&star(20, 2), 3)), ["transfers.application"]);
}

#[test]
fn each_connection_is_drawn_where_connections_are_shared_out() {
    let plan = with_arms(star(20, 20), &[("ten", 0.5, 10)], "connections");
    let (ten, rest) = (rows(&plan, "file.ten"), rows(&plan, "file"));
    assert_eq!(ten.len() + rest.len(), 400);
    assert!((150..250).contains(&ten.len()), "{}", ten.len());
    assert!((0..20).all(|client| [&ten, &rest].iter().all(|rows| rows.iter().any(|(other, _)| *other == client))));
}

#[test]
fn users_of_a_population_are_in_arms_too_and_aggregates_count_them_apart() {
    let three = profile("rfc", json!({"initial_window": {"policy": "fixed", "segments": 3}}));
    let paths = alike(50e6, 10e6, 1e6, 100e6, 0.0);
    let mut plan = population(100, paths, &json!({"count": 1, "size": constant(20e3)}), &three);
    plan = with_arms(plan, &[("ten", 0.4, 10)], "users");
    let ten = rows(&plan, "file.ten").len();
    assert!((25..55).contains(&ten));
    plan["population"]["keep"] = json!("aggregates");
    let aggregates = run(&plan, 3).aggregates.unwrap();
    let counted = |application: u16| {
        let all = aggregates.iter().filter(|row| row.dimension == 0 && row.unit == 0);
        all.filter(|row| row.application == application).map(|row| row.count).sum::<u64>()
    };
    assert_eq!([counted(0), counted(1)], [100 - ten as u64, ten as u64]);
}

#[test]
fn arms_that_cannot_be_are_refused() {
    let mut missing = with_arms(star(2, 1), &[("ten", 0.5, 10)], "users");
    missing["applications"][1]["arms"] = json!([]);
    for (plan, named) in [
        (with_arms(star(2, 1), &[("ten", 0.6, 10), ("two", 0.6, 2)], "users"), "add up to 1.2"),
        (with_arms(star(2, 1), &[("ten", -0.1, 10)], "users"), "share is -0.1"),
        (missing, "the TCP of 0 arms"),
    ] {
        let error = Plan::from_json(&plan.to_string()).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

fn timed(kind: &str, more: &Value) -> Value {
    let mut plan = star(1, 1);
    let mut application = files("timed", "spokes[0]", "hub", more, &profile("rfc", json!({})));
    for key in ["direction", "gap", "size", "count"].iter().filter(|key| more.get(**key).is_none()) {
        application.as_object_mut().unwrap().remove(*key);
    }
    application["kind"] = json!(kind);
    plan["applications"] = json!([application]);
    plan
}

/// The second of two transfers begins when the first one is complete.
fn follows(pair: &[Transfer]) -> bool {
    (pair[0].start_s + pair[0].completion_time_s - pair[1].start_s).abs() < 1e-9
}

#[test]
fn a_video_fills_its_buffer_and_then_asks_as_it_is_played() {
    let more = json!({"chunk": constant(100e3), "interval_ns": 4_000_000_000u64, "buffer_chunks": 3, "count": 8});
    let transfers = run(&timed("video", &more), 1).transfers;
    assert_eq!(transfers.len(), 8);
    assert!(transfers[..3].windows(2).all(follows));
    let starts: Vec<f64> = transfers[3..].iter().map(|row| row.start_s.round()).collect();
    assert_eq!(starts, [4.0, 8.0, 12.0, 16.0, 20.0]);
    assert!(transfers.iter().all(|row| row.connection == 0));
}

#[test]
fn a_video_that_the_line_cannot_carry_asks_as_soon_as_a_chunk_is_there() {
    let more = json!({"chunk": constant(10e6), "interval_ns": 4_000_000_000u64, "buffer_chunks": 2});
    let transfers = run(&timed("video", &more), 1).transfers;
    assert!(transfers.windows(2).all(follows));
}

#[test]
fn files_arrive_whether_or_not_those_before_are_done() {
    let gap = json!({"distribution": "exponential", "mean": 0.05});
    let plan = |size: f64| timed("arrivals", &json!({"size": constant(size), "gap": gap, "count": 400}));
    let (small, large) = (run(&plan(1e3), 1).transfers, run(&plan(500e3), 1).transfers);
    let starts = |transfers: &[Transfer]| {
        let mut starts = column(transfers, |row| row.start_s);
        starts.sort_by(f64::total_cmp);
        starts
    };
    assert_eq!(small.len(), 400);
    assert_eq!(starts(&small), starts(&large));
    let last = starts(&small)[399];
    assert!((15.0..25.0).contains(&last), "{last}");
    assert!(starts(&small)[0] > 0.0, "the first file waits, too");
    let fails = |rows: &[Transfer]| rows.iter().any(|row| row.completed == 0);
    assert!(fails(&large) && !fails(&small), "a load of 8 is not carried");
}

#[test]
fn a_user_whose_arrivals_are_all_done_is_done() {
    let mut plan = population(3, alike(50e6, 10e6, 1e6, 100e6, 0.0), &json!({"count": 5}), &profile("rfc", json!({})));
    plan["applications"][0]["kind"] = json!("arrivals");
    plan["applications"][0]["gap"] = constant(0.01);
    plan["applications"][0].as_object_mut().unwrap().remove("direction");
    let transfers = run(&plan, 1).transfers;
    assert_eq!((transfers.len(), transfers.iter().map(|row| row.completed).sum::<u8>()), (15, 15));
}
