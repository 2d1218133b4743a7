//! One transfer alone, against arithmetic that can be done on paper.

use crate::world::{column, pair, profile, run, single};
use serde_json::json;

/// 20 segments over 10 Mbit/s and 50 ms each way, an ACK per segment, no loss.
fn completion_time_s(initial_window: u32) -> f64 {
    let tcp = profile(
        "rfc",
        json!({"initial_window": {"policy": "fixed", "segments": initial_window}, "ack": {"policy": "every_segment"}}),
    );
    let records = run(&single(pair(Some(10_000_000), 50_000_000, 1000), 20.0 * 1460.0, &tcp), 1);
    assert_eq!(column(&records.transfers, |row| row.completed), [1]);
    assert_eq!(column(&records.transfers, |row| row.sender.retransmissions), [0]);
    assert_eq!(column(&records.transfers, |row| row.sender.segments_sent), [20]);
    assert_eq!(column(&records.transfers, |row| row.sender.first_flight_segments), [initial_window]);
    records.transfers[0].completion_time_s
}

#[test]
fn twenty_segments_take_the_round_trips_and_serializations_that_slow_start_needs() {
    let (delay, small, full) = (0.050, 40.0 * 8.0 / 10e6, 1500.0 * 8.0 / 10e6);
    let request = 120.0 * 8.0 / 10e6;
    // SYN, SYN-ACK, then the handshake's ACK and the request right behind it.
    let asked = 3.0 * delay + 3.0 * small + request;
    // Each ACK releases two segments, faster than the line sends them: a round's segments leave back to back, the
    // first with the first ACK of the round before. IW 10 sends 10 and 10 segments, IW 3 sends 3, 6 and 11.
    let round = 2.0 * delay + full + small;
    for (initial_window, rounds, last) in [(10, 1.0, 10.0), (3, 2.0, 11.0)] {
        let expected = asked + rounds * round + last * full + delay;
        let found = completion_time_s(initial_window);
        assert!((found - expected).abs() < 1e-8, "IW {initial_window}: {found} against {expected}");
    }
}

#[test]
fn the_handshake_takes_a_round_trip_and_the_first_byte_one_more() {
    let tcp = profile("rfc", json!({}));
    let records = run(&single(pair(None, 50_000_000, 1000), 100.0, &tcp), 1);
    assert!((records.transfers[0].handshake_time_s - 0.1).abs() < 1e-9);
    assert!((records.transfers[0].first_byte_time_s - 0.2).abs() < 1e-9);
    assert!((records.transfers[0].completion_time_s - 0.2).abs() < 1e-9);
}

#[test]
fn a_server_that_works_at_its_answer_sends_it_so_much_later() {
    let tcp = profile("rfc", json!({}));
    let mut plan = single(pair(None, 50_000_000, 1000), 100.0, &tcp);
    plan["applications"][0]["service_time_ns"] = json!(3_000_000);
    let records = run(&plan, 1);
    assert!((records.transfers[0].first_byte_time_s - 0.203).abs() < 1e-9);
    assert_eq!(column(&records.transfers, |row| row.completed), [1]);
}

#[test]
fn the_acknowledgement_of_a_request_takes_no_place_of_a_first_flight_that_comes_later() {
    // Linux acknowledges a request at once. Of eleven segments at 10 Mbit/s a queue of ten holds all but the one on the
    // line, unless the acknowledgment, which takes 42 us, is still there.
    let tcp = profile("linux", json!({"initial_window": {"policy": "fixed", "segments": 11}}));
    for (service_time_ns, lost) in [(0, 1), (40_000, 1), (45_000, 0)] {
        let mut plan = single(pair(Some(10_000_000), 50_000_000, 10), 1448.0 * 11.0, &tcp);
        plan["applications"][0]["service_time_ns"] = json!(service_time_ns);
        let transfers = run(&plan, 1).transfers;
        assert_eq!(column(&transfers, |row| row.sender.first_flight_lost_segments), [lost], "{service_time_ns} ns");
    }
}

#[test]
fn an_upload_is_complete_when_the_server_has_it() {
    let mut plan = single(pair(None, 50_000_000, 1000), 1460.0 * 4.0, &profile("rfc", json!({})));
    plan["applications"][0]["direction"] = json!("upload");
    let records = run(&plan, 1);
    assert_eq!((records.transfers[0].completed, records.transfers[0].delivered_bytes), (1, 5840));
    assert!((records.transfers[0].completion_time_s - 0.15).abs() < 1e-9);
}

#[test]
fn the_first_flight_counts_the_segments_that_the_path_lost() {
    // Ten segments into a queue of three behind one on the line: six are lost.
    let tcp = profile("rfc", json!({}));
    let records = run(&single(pair(Some(1_000_000), 50_000_000, 3), 1460.0 * 10.0, &tcp), 1);
    assert_eq!(column(&records.transfers, |row| row.sender.first_flight_segments), [10]);
    assert_eq!(column(&records.transfers, |row| row.sender.first_flight_lost_segments), [6]);
    assert_eq!(column(&records.transfers, |row| row.completed), [1]);
}

#[test]
fn requests_on_one_connection_restart_after_idle_with_the_restart_window() {
    let tcp = profile(
        "rfc",
        json!({"initial_window": {"policy": "fixed", "segments": 4}, "ack": {"policy": "every_segment"}}),
    );
    let mut plan = single(pair(None, 50_000_000, 1000), 1.0, &tcp);
    let constant = |value: f64| json!({"distribution": "constant", "value": value});
    plan["applications"][0] = json!({
        "name": "requests", "clients": 1, "client_hosts": "node[0]", "server_hosts": "node[1]",
        "server_choice": "by_client", "client_tcp": tcp, "server_tcp": tcp, "start": constant(0.0),
        "kind": "request_response", "request": constant(100.0), "response": constant(1460.0 * 12.0),
        "think": constant(2.0), "count": 2,
    });
    let restarted = run(&plan, 1).transfers;
    assert_eq!(column(&restarted, |row| row.completed), [1, 1]);
    assert_eq!(column(&restarted, |row| row.connection), [0, 0]);
    plan["applications"][0]["server_tcp"]["restart_window"] = json!({"policy": "off"});
    let kept = run(&plan, 1).transfers;
    assert!(kept[1].completion_time_s < restarted[1].completion_time_s);
    assert!((kept[1].completion_time_s - 0.1).abs() < 1e-9, "the whole window in one round: {kept:?}");
}
