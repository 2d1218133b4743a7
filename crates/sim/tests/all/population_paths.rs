//! The paths of a population have the laws that the plan states, and the dependence.

use crate::world::{alike, column, constant, population, profile, spread};
use firstflight_sim::{Plan, distribution::Distribution, population::Paths, records::User, simulate};
use serde_json::{Value, json};

/// The users' paths, without their simulation.
fn drawn(plan: &Value, seed: u64, users: u32) -> Vec<firstflight_sim::population::Path> {
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let paths = Paths::new(plan.population.as_ref().unwrap(), 1500).unwrap();
    paths.of(seed, 0, 0..users).unwrap()
}

fn plan(users: u32, paths: Value) -> Value {
    population(users, paths, &json!({"count": 1}), &profile("rfc", json!({})))
}

/// The five figures of each path, with the buffer as time at the rate down.
fn figures(paths: &[firstflight_sim::population::Path]) -> [Vec<f64>; 5] {
    let list = |figure: fn(&firstflight_sim::population::Path) -> f64| paths.iter().map(figure).collect();
    [
        list(|path| path.rtt as f64),
        list(|path| path.down_bps as f64),
        list(|path| path.up_bps as f64),
        list(|path| path.down_buffer_bytes as f64 * 8e9 / path.down_bps as f64),
        list(|path| path.loss),
    ]
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index] = rank as f64;
    }
    ranks
}

fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mx, my) = (mean(x), mean(y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// With subnets of one user, draws are independent, and the usual errors of samples hold.
fn independent_users() -> Value {
    let mut paths = spread();
    paths["subnet_users"] = json!(1);
    paths
}

#[test]
fn each_figure_has_its_law() {
    const USERS: u32 = 40_000;
    let mut plan = plan(USERS, independent_users());
    plan["population"]["least_buffer_packets"] = json!(1);
    let figures = figures(&drawn(&plan, 1, USERS));
    let names = ["rtt_ns", "down_bps", "up_bps", "buffer_ns", "loss"];
    for (name, mut values) in names.into_iter().zip(figures) {
        let law: Distribution = serde_json::from_value(plan["population"]["paths"][name].clone()).unwrap();
        values.sort_by(f64::total_cmp);
        for percent in 1..100 {
            let p = f64::from(percent) / 100.0;
            let expected = law.quantile(p);
            // Of the buffers, those at the least rates are longer: they hold a packet at least.
            let below = values.partition_point(|&value| value <= expected) as f64 / f64::from(USERS);
            // Five standard errors of a share.
            let error = 5.0 * (p * (1.0 - p) / f64::from(USERS)).sqrt() + if name == "buffer_ns" { 0.003 } else { 0.0 };
            assert!((below - p).abs() < error, "{name} at {p}: {below}");
        }
    }
}

#[test]
fn ranks_correlate_as_the_copula_says() {
    const USERS: u32 = 40_000;
    for (paths, what) in [(independent_users(), "independent"), (spread(), "in subnets of 5")] {
        let plan = plan(USERS, paths);
        let ranks = figures(&drawn(&plan, 2, USERS)).map(|values| ranks(&values));
        let stated = plan["population"]["paths"]["correlation"].as_array().unwrap();
        // The buffer in whole bytes and of at least ten packets depends on the rate: it is left out.
        for (i, j) in [(0, 1), (0, 2), (0, 4), (1, 2), (1, 4), (2, 4)] {
            let rho = stated[5 * i + j].as_f64().unwrap();
            // Spearman's rank correlation of a Gaussian copula.
            let expected = 6.0 / std::f64::consts::PI * (rho / 2.0).asin();
            let found = correlation(&ranks[i], &ranks[j]);
            // Five standard errors; subnets of 5 with a share of 0.5 are worth a third of the users at least.
            let error = 5.0 * (3.0 / f64::from(USERS)).sqrt();
            assert!((found - expected).abs() < error, "{what}, {i} and {j}: {found} for {expected}");
        }
    }
}

#[test]
fn the_subnet_explains_its_share_of_a_score() {
    const USERS: u32 = 40_000;
    let law: Distribution = serde_json::from_value(spread()["rtt_ns"].clone()).unwrap();
    let Distribution::Lognormal { median, sigma, .. } = law else { panic!("not lognormal") };
    let mut spread = spread();
    spread["subnet_share"] = json!(0.2);
    let paths = drawn(&plan(USERS, spread), 3, USERS);
    let scores: Vec<f64> = paths.iter().map(|path| (path.rtt as f64 / median).ln() / sigma).collect();
    let pair = |apart: usize| {
        let (first, second): (Vec<f64>, Vec<f64>) = scores.chunks(5).map(|subnet| (subnet[0], subnet[apart])).unzip();
        correlation(&first, &second)
    };
    // 8,000 pairs: five standard errors are 0.056 at most.
    assert!((pair(1) - 0.2).abs() < 0.056 && (pair(4) - 0.2).abs() < 0.056, "{} and {}", pair(1), pair(4));
    let neighbors: (Vec<f64>, Vec<f64>) = scores.windows(6).step_by(5).map(|users| (users[4], users[5])).unzip();
    assert!(correlation(&neighbors.0, &neighbors.1).abs() < 0.056, "subnets depend on each other");
    assert_eq!(paths[4].subnet, Some(0));
    assert_eq!(paths[5].subnet, Some(1));
}

#[test]
fn a_path_does_not_depend_on_which_were_drawn_before() {
    let plan = Plan::from_json(&plan(40, spread()).to_string()).unwrap();
    let paths = Paths::new(plan.population.as_ref().unwrap(), 1500).unwrap();
    let together = paths.of(1, 2, 0..40).unwrap();
    for user in (0..40).rev() {
        let alone = |seed, replicate| paths.of(seed, replicate, user..user + 1).unwrap()[0];
        // Users of the same subnet's number elsewhere are strangers.
        assert_ne!(alone(1, 3).rtt, together[user as usize].rtt);
        assert_ne!(alone(2, 2).rtt, together[user as usize].rtt);
        assert_eq!(alone(1, 2), together[user as usize]);
    }
    // Subnets have five users: this range begins and ends inside one.
    assert_eq!(paths.of(1, 2, 3..23).unwrap(), together[3..23]);
}

#[test]
fn a_buffer_is_time_at_the_rate_and_holds_its_least_number_of_packets() {
    let [path] = drawn(&plan(1, alike(80e6, 4e6, 1e6, 130e6, 0.01)), 1, 1)[..] else { panic!("not one path") };
    assert_eq!((path.rtt, path.down_bps, path.up_bps), (80_000_000, 4_000_000, 1_000_000));
    assert_eq!((path.down_buffer_bytes, path.up_buffer_bytes), (65_000, 16_250));
    assert_eq!((path.loss, path.weight, path.bdp_bytes()), (0.01, 1.0, 40_000.0));
    let mut farther = plan(1, alike(80e6, 4e6, 1e6, 10e6, 0.0));
    farther["population"]["farther_ns"] = json!(30_000_000);
    let [path] = drawn(&farther, 1, 1)[..] else { panic!("not one path") };
    assert_eq!((path.rtt, path.down_buffer_bytes, path.up_buffer_bytes), (110_000_000, 15_000, 15_000));
}

fn table(draw: &str) -> Value {
    json!({
        "kind": "table", "draw": draw, "rtt_ns": [20e6, 40e6, 80e6, 160e6], "down_bps": [4e6, 3e6, 2e6, 1e6],
        "up_bps": [4e5, 3e5, 2e5, 1e5], "buffer_ns": [130e6, 130e6, 130e6, 130e6], "loss": [0.0, 0.01, 0.0, 0.02],
        "weight": [1.0, 0.0, 3.0, 6.0], "bytes": [1000.0, 2000.0, 3000.0, 40_000.0],
    })
}

#[test]
fn each_user_gets_their_row_of_a_table() {
    let mut plan = plan(4, table("each"));
    plan["applications"][0]["size_from_row"] = json!(true);
    let users: Vec<User> = {
        let records = crate::world::run(&plan, 1);
        assert_eq!(column(&records.transfers, |row| row.bytes), [1000, 2000, 3000, 40_000]);
        records.users.unwrap()
    };
    assert_eq!(column(&users, |row| row.row), [0, 1, 2, 3]);
    assert_eq!(column(&users, |row| row.rtt_s), [0.02, 0.04, 0.08, 0.16]);
    assert_eq!(column(&users, |row| row.weight), [1.0, 0.0, 3.0, 6.0]);
    assert_eq!(column(&users, |row| row.loss), [0.0, 0.01, 0.0, 0.02]);
    assert_eq!(column(&users, |row| row.buffer_bytes), [65_000, 48_750, 32_500, 16_250]);
}

#[test]
fn each_user_has_the_handshake_of_their_row() {
    let law = |value: f64| vec![value; 4];
    let table = json!({
        "kind": "table", "draw": "each", "rtt_ns": law(100e6), "down_bps": law(1e11), "up_bps": law(1e11),
        "buffer_ns": law(1e9), "loss": law(0.0), "tls_bytes": [0.0, 2_000.0, 20_000.0, 2_000.0],
        "tls_exchanges": [1.0, 1.0, 1.0, 2.0],
    });
    let flight = |from: &str| json!({"from": from, "bytes": constant(100.0)});
    let once = json!({"fraction": 0.5, "flights": [flight("client"), flight("server"), flight("client")]});
    let twice =
        json!({"fraction": 0.5, "flights": [flight("client"), flight("server"), flight("client"), flight("server")]});
    let mut plan = plan(4, table);
    plan["applications"][0]["handshakes"] = json!({"kinds": [once, twice], "from_row": true});
    let records = crate::world::run(&plan, 1);
    let round_trips = column(&records.transfers, |row| (row.tls_handshake_time_s * 10.0).round());
    // None; one behind that of TCP; one more for what does not fit into 10 segments; two exchanges.
    assert!(round_trips[0].is_nan());
    assert_eq!(round_trips[1..], [2.0, 3.0, 3.0]);
    let handshakes = records.handshakes.unwrap();
    assert_eq!(column(&handshakes, |row| (row.client, row.server_bytes)), [(1, 2_000), (2, 20_000), (3, 2_100)]);
}

#[test]
fn rows_are_drawn_by_their_weight() {
    const USERS: u32 = 20_000;
    let paths = drawn(&plan(USERS, table("weighted")), 1, USERS);
    let share = |row: u32| paths.iter().filter(|path| path.row == Some(row)).count() as f64 / f64::from(USERS);
    assert_eq!(share(1), 0.0);
    for (row, expected) in [(0, 0.1), (2, 0.3), (3, 0.6)] {
        // Five standard errors at most.
        assert!((share(row) - expected).abs() < 0.0177, "row {row}: {}", share(row));
    }
    assert!(paths.iter().all(|path| path.weight == 1.0), "what is drawn by weight counts once");
}

#[test]
fn a_law_fills_in_for_a_column() {
    const USERS: u32 = 10_000;
    let mut table = table("weighted");
    table["loss"] = json!({"distribution": "uniform", "low": 0.0, "high": 0.1});
    table["buffer_ns"] = constant(100e6);
    let paths = drawn(&plan(USERS, table), 1, USERS);
    let mean = paths.iter().map(|path| path.loss).sum::<f64>() / f64::from(USERS);
    assert!((mean - 0.05).abs() < 0.0015, "{mean}");
    assert!(paths.iter().filter(|path| path.row == Some(0)).all(|path| path.down_buffer_bytes == 50_000));
}

#[test]
fn what_no_law_of_a_population_can_be_is_refused_in_a_sentence() {
    let flights = json!([{"from": "client", "bytes": constant(1.0)}]);
    let from_row = json!({"kinds": [{"fraction": 1.0, "flights": flights}], "from_row": true});
    let refused = |alter: &dyn Fn(&mut Value), paths: Value| {
        let mut plan = plan(4, paths);
        alter(&mut plan);
        let plan = Plan::from_json(&plan.to_string());
        plan.and_then(|plan| simulate(&plan, 1, 0..1, false)).expect_err("it was accepted").to_string()
    };
    let paths =
        |key: &'static str, value: Value| move |plan: &mut Value| plan["population"]["paths"][key] = value.clone();
    let whole = |key: &'static str, value: Value| move |plan: &mut Value| plan["population"][key] = value.clone();
    let application =
        |key: &'static str, value: Value| move |plan: &mut Value| plan["applications"][0][key] = value.clone();
    let with = |pairs: &[(usize, usize, f64)]| {
        let mut matrix: Vec<f64> = (0..25).map(|index| if index % 6 == 0 { 1.0 } else { 0.0 }).collect();
        for &(i, j, value) in pairs {
            (matrix[5 * i + j], matrix[5 * j + i]) = (value, value);
        }
        json!(matrix)
    };
    let contradiction = with(&[(0, 1, 0.9), (0, 2, 0.9), (1, 2, -0.9)]);
    let cases: Vec<(&str, String)> = vec![
        (
            "not positive definite: rtt_down = 0.9, rtt_up = 0.9, down_up = -0.9",
            refused(&paths("correlation", contradiction), spread()),
        ),
        ("rtt and down is 1.5", refused(&paths("correlation", with(&[(0, 1, 1.5)])), spread())),
        ("has 3 numbers", refused(&paths("correlation", json!([1, 0, 0])), spread())),
        ("subnet_share is 1", refused(&paths("subnet_share", json!(1.0)), spread())),
        ("subnet_users is 0", refused(&paths("subnet_users", json!(0)), spread())),
        ("loss reaches 1", refused(&paths("loss", constant(1.0)), spread())),
        ("maximum below 1", refused(&paths("loss", json!({"distribution": "exponential", "mean": 0.01})), spread())),
        ("user 0 of replicate 0: down_bps is 1", refused(&paths("down_bps", constant(1.0)), spread())),
        ("user 0 of replicate 0: up_bps is 1", refused(&paths("up_bps", constant(1.0)), spread())),
        ("user 0 of replicate 0: rtt_ns is 2", refused(&paths("rtt_ns", constant(2e18)), spread())),
        ("user 0 of replicate 0: buffer_ns is 2", refused(&paths("buffer_ns", constant(2e18)), spread())),
        (
            "rtt_ns is Empirical",
            refused(
                &paths(
                    "rtt_ns",
                    json!({"distribution": "empirical", "points": [[0.0, 2.0], [1.0, 1.0]], "interpolation": "log"}),
                ),
                spread(),
            ),
        ),
        ("users is 0", refused(&whole("users", json!(0)), spread())),
        ("least_buffer_packets is 0", refused(&whole("least_buffer_packets", json!(0)), spread())),
        ("unknown field `color`", refused(&whole("color", json!("blue")), spread())),
        ("borders must ascend", refused(&|plan| plan["population"]["buckets"]["rtt_s"] = json!([2, 1]), spread())),
        ("takes no time", refused(&|plan| plan["header_bytes"] = json!(0), alike(0.0, 8e12, 8e12, 1e6, 0.0))),
        ("the table of paths has 4 rows, but 2 values of loss", refused(&paths("loss", json!([0, 0])), table("each"))),
        ("row 2 of the table of paths: loss is 1", refused(&paths("loss", json!([0, 0, 1, 0])), table("each"))),
        ("row 1 of the table of paths: up_bps is 0", refused(&paths("up_bps", json!([9, 0, 9, 9])), table("each"))),
        ("has no rows", refused(&paths("rtt_ns", json!([])), table("each"))),
        ("weights of 0 only", refused(&paths("weight", json!([0, 0, 0, 0])), table("weighted"))),
        ("add up to more", refused(&paths("weight", json!([1e308, 0, 1e308, 0])), table("weighted"))),
        ("a population has none", refused(&|plan| plan["meter_interval_ns"] = json!(1), spread())),
        ("users is 5", refused(&whole("users", json!(5)), table("each"))),
        ("draw rows by weight", refused(&whole("keep", json!("aggregates")), table("each"))),
        ("share is 0", refused(&application("share", json!(0.0)), spread())),
        ("it has 2 clients", refused(&application("clients", json!(2)), spread())),
        ("it names hosts", refused(&application("client_hosts", json!("node[1]")), spread())),
        ("no table with bytes", refused(&application("size_from_row", json!(true)), spread())),
        ("no table with tls_bytes", refused(&application("handshakes", from_row), spread())),
        (
            "either a network or a population",
            refused(&|plan| plan["network"] = crate::world::web(1, 0, &json!(0))["network"].clone(), spread()),
        ),
        ("either a network or a population", refused(&|plan| plan["population"] = Value::Null, spread())),
    ];
    for (expected, found) in cases {
        assert!(found.contains(expected), "{expected:?} is not in {found:?}");
        assert!(!found.contains('\n'), "{found:?} is more than a sentence");
    }
}
