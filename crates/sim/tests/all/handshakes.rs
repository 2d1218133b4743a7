//! Handshakes behind TCP's, against arithmetic that can be done on paper.

use crate::world::{column, constant, pair, profile, run, single};
use firstflight_sim::Records;
use serde_json::{Value, json};

/// Delay of the path, one way: 50 ms. Nothing else takes time.
const ROUND_TRIP_S: f64 = 0.1;

fn flight(from: &str, bytes: u32) -> Value {
    json!({"from": from, "bytes": constant(f64::from(bytes))})
}

/// TLS 1.3: the server's flight has `bytes`.
fn tls(bytes: u32) -> Value {
    let flights = json!([flight("client", 300), flight("server", bytes), flight("client", 80)]);
    json!({"kinds": [{"fraction": 1.0, "flights": flights}], "record_bytes": 16384})
}

/// A download behind a handshake.
fn download(handshakes: &Value, size: f64, profile_name: &str) -> Records {
    // As programs set it for TLS.
    let tcp = profile(profile_name, json!({"nagle": "off"}));
    let mut plan = single(pair(None, 50_000_000, 1000), size, &tcp);
    plan["applications"][0]["handshakes"] = handshakes.clone();
    run(&plan, 1)
}

fn assert_round_trips(found_s: f64, round_trips: f64) {
    assert!((found_s / ROUND_TRIP_S - round_trips).abs() < 1e-6, "{found_s} s are not {round_trips} round trips");
}

#[test]
fn tls_takes_a_round_trip_between_tcp_and_the_request() {
    let records = download(&tls(2_235), 1000.0, "rfc");
    let transfer = records.transfers[0];
    assert_round_trips(transfer.handshake_time_s, 1.0);
    assert_round_trips(transfer.tls_handshake_time_s, 2.0);
    assert_round_trips(transfer.first_byte_time_s, 3.0);
    assert_round_trips(transfer.completion_time_s, 3.0);
    assert_eq!((transfer.bytes, transfer.delivered_bytes, transfer.completed), (1000, 1000, 1));
    let handshake = records.handshakes.unwrap()[0];
    assert_round_trips(handshake.handshake_time_s, 1.0);
    assert_round_trips(handshake.tls_handshake_time_s, 2.0);
    assert_eq!((handshake.client_bytes, handshake.server_bytes), (380, 2_235));
    assert_eq!((handshake.server_segments, handshake.resumption, handshake.completed), (2, 0, 1));
}

#[test]
fn a_flight_above_the_initial_window_takes_one_round_trip_more() {
    for (bytes, round_trips) in [(14_600, 2.0), (14_601, 3.0)] {
        assert_round_trips(download(&tls(bytes), 1000.0, "rfc").transfers[0].tls_handshake_time_s, round_trips);
    }
}

#[test]
fn each_write_of_a_flight_ends_with_a_segment_that_need_not_be_full() {
    // 4,096 bytes are two segments of 1,448 bytes and a short one, so ten segments' worth takes eleven.
    let mut handshakes = tls(14_480);
    assert_round_trips(download(&handshakes, 1000.0, "linux").transfers[0].tls_handshake_time_s, 2.0);
    handshakes["kinds"][0]["flights"][1]["write_bytes"] = json!(4096);
    let records = download(&handshakes, 1000.0, "linux");
    assert_round_trips(records.transfers[0].tls_handshake_time_s, 3.0);
    assert_eq!(records.handshakes.unwrap()[0].server_segments, 11);
}

#[test]
fn a_flight_that_fills_the_window_makes_the_response_faster() {
    // Linux lets the window grow by the ACKs of a flight that fills it. Two segments do not.
    let completion = |bytes| download(&tls(bytes), 20e3, "linux").transfers[0].completion_time_s;
    assert_round_trips(completion(2_235), 4.0);
    assert_round_trips(completion(11_774), 3.0);
}

#[test]
fn early_data_saves_the_round_trip_of_the_handshake() {
    let mut handshakes = tls(400);
    handshakes["kinds"][0]["resumption"] = json!("early_data");
    let records = download(&handshakes, 1000.0, "rfc");
    assert_round_trips(records.transfers[0].first_byte_time_s, 2.0);
    assert_round_trips(records.transfers[0].tls_handshake_time_s, 2.0);
    assert_eq!(records.handshakes.unwrap()[0].resumption, 2);
}

#[test]
fn early_data_is_answered_behind_the_flight_that_the_server_computes() {
    let mut handshakes = tls(400);
    handshakes["kinds"][0]["resumption"] = json!("early_data");
    handshakes["kinds"][0]["flights"][1]["compute_ns"] = json!(20_000_000);
    let transfer = download(&handshakes, 1000.0, "rfc").transfers[0];
    assert_round_trips(transfer.tls_handshake_time_s, 2.2);
    assert_round_trips(transfer.completion_time_s, 2.2);
    assert_eq!(transfer.completed, 1);
}

#[test]
fn early_data_need_a_first_flight_of_the_client_and_a_later_one() {
    for flights in [json!([flight("client", 300), flight("server", 80)]), json!([flight("server", 300)])] {
        let mut plan = single(pair(None, 50_000_000, 1000), 1000.0, &profile("rfc", json!({})));
        plan["applications"][0]["handshakes"] =
            json!({"kinds": [{"fraction": 1.0, "flights": flights, "resumption": "early_data"}]});
        let error = firstflight_sim::Plan::from_json(&plan.to_string()).unwrap_err().to_string();
        assert!(error.contains("early data follow the client's first flight"), "{error}");
    }
}

#[test]
fn a_server_may_speak_first_and_last() {
    // A greeting, then TLS 1.2 in two round trips, whose end is the server's.
    let flights = json!([
        flight("server", 50),
        flight("client", 250),
        flight("server", 4000),
        flight("client", 130),
        flight("server", 60),
    ]);
    let records = download(&json!({"kinds": [{"fraction": 1.0, "flights": flights}]}), 1000.0, "rfc");
    let transfer = records.transfers[0];
    // The greeting follows the client's ACK: half a round trip after its handshake, and half a one back.
    assert_round_trips(transfer.tls_handshake_time_s, 4.0);
    assert_round_trips(transfer.completion_time_s, 5.0);
    assert!(transfer.first_usable_byte_time_s.is_nan());
}

#[test]
fn an_end_computes_before_it_writes() {
    let mut handshakes = tls(2_235);
    handshakes["kinds"][0]["flights"][1]["compute_ns"] = json!(3_000_000);
    handshakes["kinds"][0]["flights"][2]["compute_ns"] = json!(2_000_000);
    let transfer = download(&handshakes, 1000.0, "rfc").transfers[0];
    assert!((transfer.tls_handshake_time_s - 0.205).abs() < 1e-9, "{}", transfer.tls_handshake_time_s);
    assert!((transfer.completion_time_s - 0.305).abs() < 1e-9);
}

#[test]
fn no_byte_can_be_used_before_its_whole_record_is_there() {
    // 20,000 bytes behind two segments of a handshake: the window of ten holds 14,600, less than a record.
    let transfer = download(&tls(2_235), 20e3, "linux").transfers[0];
    assert_round_trips(transfer.first_byte_time_s, 3.0);
    assert_round_trips(transfer.first_usable_byte_time_s, 4.0);
    let mut small = tls(2_235);
    small["record_bytes"] = json!(4096);
    assert_round_trips(download(&small, 20e3, "linux").transfers[0].first_usable_byte_time_s, 3.0);
}

#[test]
fn tickets_and_records_take_their_place_in_the_stream() {
    // A segment of the handshake, one of tickets, and of the response 1460 bytes with the 22 of a record, or one more.
    for (payload, segments) in [(1_438.0, 3), (1_439.0, 4)] {
        let mut handshakes = tls(1_000);
        handshakes["kinds"][0]["tickets_bytes"] = json!(510);
        let transfer = download(&handshakes, payload, "rfc").transfers[0];
        assert_eq!((transfer.sender.segments_sent, transfer.bytes), (segments, payload as u64));
    }
}

#[test]
fn each_kind_of_handshake_has_its_fraction_of_the_connections() {
    let mut handshakes = tls(2_235);
    let mut resumed = handshakes["kinds"][0].clone();
    (resumed["fraction"], resumed["resumption"]) = (json!(0.25), json!("resumed"));
    handshakes["kinds"][0]["fraction"] = json!(0.75);
    handshakes["kinds"].as_array_mut().unwrap().push(resumed);
    let mut plan = single(pair(None, 1_000_000, 1000), 1000.0, &profile("rfc", json!({})));
    plan["applications"][0]["handshakes"] = handshakes;
    plan["applications"][0]["count"] = json!(2_000);
    let rows = run(&plan, 1).handshakes.unwrap();
    let resumed = rows.iter().filter(|row| row.resumption == 1).count();
    assert_eq!(rows.len(), 2_000);
    // Four standard deviations of a binomial.
    assert!((resumed as f64 - 500.0).abs() < 4.0 * (2_000.0_f64 * 0.25 * 0.75).sqrt(), "{resumed}");
}

#[test]
fn pages_of_every_version_load_over_tls() {
    for (version, persistent) in
        [("1.0", "joined"), ("1.1", "joined"), ("1.1", "pipelined"), ("1.1", "keep_alive"), ("2", "joined")]
    {
        let mut plan = crate::world::web(3, 0, &profile("linux", json!({})));
        let web = &mut plan["applications"][0];
        (web["version"], web["persistent"], web["count"]) = (json!(version), json!(persistent), json!(4));
        let without = run(&plan, 1);
        for resumption in ["none", "early_data"] {
            plan["applications"][0]["handshakes"] = tls(15_721);
            plan["applications"][0]["handshakes"]["kinds"][0]["resumption"] = json!(resumption);
            let with = run(&plan, 1);
            let case = format!("{version} {persistent} {resumption}");
            assert_eq!(column(&with.pages, |row| row.completed), [1; 12], "{case}");
            let bytes = |records: &Records| records.pages.iter().map(|row| row.bytes).sum::<u64>();
            assert_eq!(bytes(&with), bytes(&without), "{case}");
            assert!(with.handshakes.unwrap().iter().all(|row| row.completed == 1), "{case}");
        }
    }
}

#[test]
fn a_handshake_that_never_ends_has_a_row() {
    let mut plan = single(pair(None, 50_000_000, 1000), 1000.0, &profile("rfc", json!({})));
    plan["applications"][0]["handshakes"] = tls(2_235);
    plan["duration_ns"] = json!(150_000_000);
    let row = run(&plan, 1).handshakes.unwrap()[0];
    assert_eq!((row.completed, row.tls_handshake_time_s.is_nan()), (0, true));
}
