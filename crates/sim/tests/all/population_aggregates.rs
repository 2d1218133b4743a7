//! Aggregates equal the values computed from the rows of the same plan, to the last unit.

use std::collections::BTreeMap;

use crate::world::{constant, exact, population, profile, spread};
use firstflight_sim::{Plan, Records, records::User, simulate};
use firstflight_tcp::Profile;
use serde_json::{Value, json};

const USERS: u32 = 300;

/// Application, unit, dimension, bucket.
type Place = (u16, u8, u8, u16);

/// Pages of many objects, responses of a search, and a download without end behind them, on paths of every kind.
fn plan() -> Value {
    let tcp = profile("linux", json!({}));
    let page = json!({
        "name": "page", "kind": "web_page", "version": "1.0", "persistent": "joined", "count": 2, "parallel": 3,
        "primary": constant(9000.0), "inline": {"distribution": "lognormal", "median": 12e3, "sigma": 1.0},
        "inline_count": {"distribution": "uniform", "low": 0.0, "high": 9.0}, "think": constant(1.0), "request_bytes": 300,
    });
    let search = json!({
        "name": "search", "size": {"distribution": "lognormal", "median": 9000.0, "sigma": 0.56}, "count": 3,
        "gap": constant(0.5), "response_header_bytes": 400,
    });
    let bulk = json!({"name": "bulk", "size": constant(2e5), "share": 0.5});
    let mut plan = population(USERS, spread(), &page, &tcp);
    for more in [search, bulk] {
        let other = population(USERS, spread(), &more, &tcp)["applications"][0].clone();
        plan["applications"].as_array_mut().unwrap().push(other);
    }
    // Some run out of time.
    plan["duration_ns"] = json!(12_000_000_000u64);
    plan
}

fn run(plan: &Value, keep: &str, replicates: std::ops::Range<u32>) -> Records {
    let mut plan = plan.clone();
    plan["population"]["keep"] = json!(keep);
    simulate(&Plan::from_json(&plan.to_string()).unwrap(), 11, replicates, false).unwrap()
}

fn bucket(plan: &Value, dimension: &str, value: f64) -> u16 {
    let borders = plan["population"]["buckets"][dimension].as_array().unwrap();
    borders.iter().filter(|border| border.as_f64().unwrap() < value).count() as u16
}

/// The buckets of something that a user asked for.
fn buckets(plan: &Value, users: &[User], user: u32, bytes: u64) -> [(u8, u16); 5] {
    let user = &users[user as usize];
    let linux = Profile::named("linux").unwrap();
    let segments = bytes.div_ceil(u64::from(linux.full_payload_bytes(&linux)));
    let bdp_bytes = user.down_bps * (user.rtt_s * 1e9).round() / 8e9;
    [
        (0, 0),
        (1, bucket(plan, "rtt_s", user.rtt_s)),
        (2, bucket(plan, "down_bps", user.down_bps)),
        (3, bucket(plan, "bdp_bytes", bdp_bytes)),
        (4, bucket(plan, "segments", segments as f64)),
    ]
}

/// The last bin whose times are all below `time`, and one more; both powers of 1.01.
fn bin(time_ns: f64) -> i32 {
    (time_ns.ln() / 1.01f64.ln()).ceil() as i32
}

/// Counts of a place, without the sums of pages, of which the rows hold less; the bins with their counts.
#[derive(Default, Debug, PartialEq)]
struct Expected {
    sums: [u64; 11],
    bins: BTreeMap<i32, u64>,
}

fn add(place: &mut Expected, sums: [u64; 11], completion_ns: Option<f64>) {
    place.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
    if let Some(time) = completion_ns {
        *place.bins.entry(bin(time)).or_default() += 1;
    }
}

fn sums(completion_ns: Option<f64>, bytes: u64, counts: [u32; 5]) -> [u64; 11] {
    let [sent, again, timeouts, first, lost] = counts.map(u64::from);
    let completed = u64::from(completion_ns.is_some());
    let time = completion_ns.unwrap_or_default() as u64;
    [1, completed, time, bytes, sent, again, timeouts, u64::from(again > 0), first, lost, u64::from(lost > 0)]
}

fn expected(plan: &Value) -> BTreeMap<Place, Expected> {
    let rows = run(plan, "rows", 0..1);
    let users = rows.users.unwrap();
    let mut places: BTreeMap<Place, Expected> = BTreeMap::new();
    let nanos = |seconds: f64| (!seconds.is_nan()).then(|| (seconds * 1e9).round());
    let mut pages: BTreeMap<(u32, u32), [u32; 5]> = BTreeMap::new();
    for row in &rows.transfers {
        let sent = row.sender;
        let counts = [
            sent.segments_sent,
            sent.retransmissions,
            sent.timeouts,
            sent.first_flight_segments,
            sent.first_flight_lost_segments,
        ];
        let time = nanos(row.completion_time_s);
        for (dimension, bucket) in buckets(plan, &users, row.client, row.bytes) {
            let place = places.entry((row.application, 0, dimension, bucket)).or_default();
            add(place, sums(time, row.bytes, counts), time);
        }
        if row.application == 0 {
            let page = pages.entry((row.client, row.page)).or_default();
            page.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
    }
    for row in &rows.pages {
        let time = nanos(row.completion_time_s);
        for (dimension, bucket) in buckets(plan, &users, row.client, row.bytes) {
            let place = places.entry((row.application, 1, dimension, bucket)).or_default();
            add(place, sums(time, row.bytes, pages[&(row.client, row.page)]), time);
        }
    }
    places
}

fn found(records: &Records) -> BTreeMap<Place, Expected> {
    let mut places: BTreeMap<Place, Expected> = BTreeMap::new();
    let aggregates = records.aggregates.as_ref().unwrap();
    for row in aggregates {
        if row.count > 0 {
            let sums = [
                row.count,
                row.completed,
                row.completion_ns_sum as u64,
                row.sums.bytes,
                row.sums.segments_sent,
                row.sums.retransmissions,
                row.sums.timeouts,
                row.sums.with_retransmission,
                row.sums.first_flight_segments,
                row.sums.first_flight_lost_segments,
                row.sums.with_first_flight_loss,
            ];
            let place = places.entry((row.application, row.unit, row.dimension, row.bucket)).or_default();
            assert_eq!(place.sums, [0; 11], "a place has one row");
            place.sums = sums;
        }
    }
    let histograms = records.histograms.as_ref().unwrap();
    for row in histograms {
        let place = places.get_mut(&(row.application, row.unit, row.dimension, row.bucket)).unwrap();
        assert_eq!(place.bins.insert(row.bin, row.count), None, "a bin has one row");
    }
    places
}

#[test]
fn aggregates_are_the_sums_of_the_rows() {
    let plan = plan();
    let aggregates = run(&plan, "aggregates", 0..1);
    assert!(aggregates.transfers.is_empty() && aggregates.pages.is_empty());
    assert!(aggregates.users.is_none() && aggregates.links.is_empty());
    let [expected, found] = [expected(&plan), found(&aggregates)];
    assert!(expected.len() > 50, "only {} places are in use", expected.len());
    let all = &expected[&(0, 0, 0, 0)].sums;
    assert!(all[0] > all[1] && all.iter().all(|&sum| sum > 0), "not everything occurs: {all:?}");
    assert_eq!(found, expected);
}

#[test]
fn every_bucket_has_a_row_if_only_to_say_that_it_is_empty() {
    let mut plan = plan();
    plan["population"]["buckets"]["rtt_s"] = json!([1e-9, 1e3]);
    let aggregates = run(&plan, "aggregates", 0..1).aggregates.unwrap();
    let of = |application: u16, unit: u8, dimension: u8| {
        let rows = aggregates
            .iter()
            .filter(|row| (row.application, row.unit, row.dimension) == (application, unit, dimension));
        rows.map(|row| (row.bucket, row.count)).collect::<Vec<_>>()
    };
    let everyone = of(0, 1, 0)[0].1;
    assert_eq!(of(0, 1, 1), [(0, 0), (1, everyone), (2, 0)]);
    assert_eq!(of(1, 0, 2).len(), 8);
    // Only pages are counted as pages.
    assert!(of(1, 1, 0).is_empty() && of(2, 1, 0).is_empty());
}

#[test]
fn replicates_are_kept_apart_and_do_not_depend_on_each_other() {
    let plan = plan();
    let together = exact(run(&plan, "aggregates", 0..3));
    let mut alone = run(&plan, "aggregates", 0..1);
    alone.append(run(&plan, "aggregates", 1..3));
    assert_eq!(exact(alone), together);
}

#[test]
fn a_sum_of_times_that_its_column_cannot_hold_is_refused_in_a_sentence() {
    // The server works for 28 years at each answer; eleven of them are more than 292 years.
    let more = json!({"size": constant(1000.0), "count": 1, "service_time_ns": 900_000_000_000_000_000u64});
    let mut plan = population(11, spread(), &more, &profile("linux", json!({})));
    plan["duration_ns"] = json!(1_000_000_000_000_000_000u64);
    plan["population"]["keep"] = json!("aggregates");
    let simulated = |plan: &Value| simulate(&Plan::from_json(&plan.to_string()).unwrap(), 1, 0..1, false);
    let error = simulated(&plan).unwrap_err().to_string();
    assert!(error.contains("add up to more than 2^63 ns"), "{error}");
    plan["population"]["users"] = json!(10);
    let aggregates = simulated(&plan).unwrap().aggregates.unwrap();
    assert!(aggregates[0].completion_ns_sum > 9_000_000_000_000_000_000);
}
