//! Trees: groups of links behind one another, drawn for each link, with users at the ends.

use crate::world::{column, constant, differing, files, pair, profile, run};
use firstflight_sim::{Plan, Records, simulate, topology::Topology};
use serde_json::{Value, json};

fn group(name: &str, behind: Option<&str>, count: u32, link: Value) -> Value {
    json!({"name": name, "behind": behind, "count": count, "link": link, "draw": [{}, {}]})
}

fn tree(groups: Vec<Value>) -> Value {
    json!({"topology": "tree", "server": [pair(Some(100_000_000), 5_000_000, 100)], "group": groups})
}

fn plan(network: &Value, applications: &[Value]) -> Value {
    json!({"duration_ns": 40_000_000_000u64, "network": network, "applications": applications})
}

/// Two streets of three homes with two devices each.
fn streets() -> Vec<Value> {
    vec![
        group("street", None, 2, pair(Some(20_000_000), 1_000_000, 100)),
        group("home", Some("street"), 3, pair(Some(10_000_000), 2_000_000, 50)),
        group("device", Some("home"), 2, pair(None, 3_000_000, 50)),
    ]
}

fn rates(plan: &Value, seed: u64, replicate: u32) -> Vec<(String, Option<u64>)> {
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let topology = Topology::new(plan.network.as_ref().unwrap(), seed, replicate).unwrap();
    topology.links().iter().map(|(name, spec)| (name.clone(), spec.rate_bps)).collect()
}

fn everyone(more: Value) -> Value {
    let mut fields = json!({"clients": 12, "count": 1});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    files("file", "users", "server", &fields, &profile("rfc", json!({})))
}

#[test]
fn a_packet_to_a_user_crosses_one_link_of_each_level() {
    let records = run(
        &plan(&tree(streets()), &[everyone(json!({"start": {"distribution": "uniform", "low": 0, "high": 9}}))]),
        1,
    );
    let one_way = |bytes: f64| 0.011 + bytes * 8.0 * (1e-8 + 5e-8 + 1e-7);
    for row in &records.transfers[..12] {
        assert!((row.handshake_time_s - 2.0 * one_way(40.0)).abs() < 1e-9);
    }
    let names: Vec<&str> = records.link_names.iter().map(String::as_str).collect();
    assert_eq!(names[..5], ["server[0]", "server[0].reverse", "street[0]", "street[0].reverse", "street[1]"]);
    assert_eq!(names.len(), 2 * (1 + 2 + 6 + 12));
    // The fifth home is the second of the second street.
    let links = &records.links;
    let sent = |name: &str| {
        let index = names.iter().position(|known| *known == name).unwrap() as u16;
        let rows = links.iter().filter(|row| row.link == index);
        rows.map(|row| row.sent_packets).sum::<u64>()
    };
    let homes: u64 = (3..6).map(|home| sent(&format!("home[{home}]"))).sum();
    let devices: u64 = (6..12).map(|device| sent(&format!("device[{device}]"))).sum();
    assert_eq!((homes, devices), (sent("street[1]"), sent("street[1]")));
}

#[test]
fn a_tree_of_one_group_is_a_star() {
    let spoke = pair(Some(3_000_000), 4_000_000, 20);
    let hub = pair(Some(100_000_000), 5_000_000, 100);
    let star = json!({"topology": "star", "hub": hub, "spokes": vec![spoke.clone(); 12]});
    let application = |clients: &str, servers: &str| {
        let more = json!({"clients": 24, "size": {"distribution": "lognormal", "median": 30e3, "sigma": 1.5}});
        files("file", clients, servers, &more, &profile("linux", json!({})))
    };
    let as_star = run(&plan(&star, &[application("spokes", "hub")]), 3);
    let as_tree = run(&plan(&tree(vec![group("home", None, 12, spoke)]), &[application("home", "server")]), 3);
    assert!(as_star.transfers.len() > 100);
    assert_eq!(differing(as_star, as_tree), [""; 0]);
}

#[test]
fn each_link_draws_its_own_and_what_it_draws_depends_on_no_other_group() {
    let law = |median: f64| json!({"distribution": "lognormal", "median": median, "sigma": 1.0});
    let mut groups = streets();
    groups[1]["draw"] = json!([{"rate_bps": law(10e6), "delay_ns": law(2e6)}, {"rate_bps": law(1e6)}]);
    let whole = plan(&tree(groups.clone()), &[everyone(json!({}))]);
    let of = |plan: &Value, replicate| {
        let all = rates(plan, 7, replicate);
        all.into_iter().filter(|(name, _)| name.starts_with("home")).collect::<Vec<_>>()
    };
    let drawn = of(&whole, 0);
    let mut different: Vec<_> = drawn.iter().map(|(_, rate)| rate.unwrap()).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 12);
    for pair in drawn.chunks(2) {
        // The same quantile of laws whose medians are ten to one.
        assert!((pair[0].1.unwrap() as f64 / pair[1].1.unwrap() as f64 - 10.0).abs() < 1e-3);
    }
    assert_ne!(of(&whole, 1), drawn, "a replicate is another sample");
    groups[2]["count"] = json!(5);
    groups[0]["draw"] = json!([{"rate_bps": law(20e6)}, {}]);
    assert_eq!(of(&plan(&tree(groups), &[everyone(json!({}))]), 0), drawn);
}

#[test]
fn a_share_of_the_users_runs_an_application_and_a_larger_share_holds_them_all() {
    let clients = |share: f64| {
        let records = run(&plan(&tree(streets()), &[everyone(json!({"clients": 120, "share": share}))]), 5);
        let mut clients = column(&records.transfers, |row| row.client);
        clients.sort_unstable();
        clients
    };
    let (few, many) = (clients(0.3), clients(0.7));
    assert!((20..52).contains(&few.len()) && (68..100).contains(&many.len()), "{} and {}", few.len(), many.len());
    assert!(few.iter().all(|client| many.contains(client)));
}

#[test]
fn replicates_of_drawn_trees_are_the_same_one_by_one_and_together() {
    let mut groups = streets();
    groups[1]["draw"] = json!([{"rate_bps": {"distribution": "uniform", "low": 1e6, "high": 50e6}}, {}]);
    groups[2]["draw"] = json!([{"loss": {"distribution": "uniform", "low": 0.0, "high": 0.05}}, {}]);
    let plan = plan(&tree(groups), &[everyone(json!({"count": 3, "size": constant(50e3)}))]);
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let together = simulate(&plan, 4, 0..3, false).unwrap();
    let mut one_by_one: Option<Records> = None;
    for replicate in 0..3 {
        let records = simulate(&plan, 4, replicate..replicate + 1, false).unwrap();
        match &mut one_by_one {
            None => one_by_one = Some(records),
            Some(all) => all.append(records),
        }
    }
    assert_eq!(differing(together, one_by_one.unwrap()), [""; 0]);
}

#[test]
fn trees_that_cannot_be_are_refused_by_name() {
    type Change = Box<dyn Fn(&mut Value)>;
    let cases: Vec<(&str, Change)> = vec![
        ("1 to 256 groups", Box::new(|tree| tree["group"] = json!([]))),
        ("server", Box::new(|tree| tree["server"] = json!([]))),
        ("behind \"stret\"", Box::new(|tree| tree["group"][1]["behind"] = json!("stret"))),
        ("behind \"home\"", Box::new(|tree| tree["group"][1]["behind"] = json!("home"))),
        ("\"home\" of a group is taken", Box::new(|tree| tree["group"][2]["name"] = json!("home"))),
        ("\"users\" of a group is taken", Box::new(|tree| tree["group"][2]["name"] = json!("users"))),
        ("count 0", Box::new(|tree| tree["group"][0]["count"] = json!(0))),
        ("at most 32767", Box::new(|tree| tree["group"][0]["count"] = json!(u32::MAX))),
        ("delay_ns", Box::new(|tree| tree["group"][0]["draw"][1] = json!({"delay_ns": constant(-1.0)}))),
        (
            "link \"home[0]\": rate_bps",
            Box::new(|tree| tree["group"][1]["draw"][0] = json!({"rate_bps": constant(0.0)})),
        ),
        ("link \"home[0]\": loss", Box::new(|tree| tree["group"][1]["draw"][0] = json!({"loss": constant(1.0)}))),
    ];
    for (named, alter) in cases {
        let mut network = tree(streets());
        alter(&mut network);
        let plan = Plan::from_json(&plan(&network, &[everyone(json!({}))]).to_string());
        let error = plan.and_then(|plan| simulate(&plan, 1, 0..1, false).map(drop)).unwrap_err().to_string();
        assert!(error.contains(named) && !error.contains('\n'), "{error}");
    }
}
