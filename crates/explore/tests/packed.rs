//! The page's input: the layout of the block, and a sentence for an invalid plan.

use firstflight_explore::{read, run, segments_of};
use firstflight_tcp::Profile;
use serde_json::{Value, json};

/// 29,200 bytes over 10 Mbit/s with 50 ms each way.
fn plan() -> String {
    let link = json!({ "rate_bps": 10_000_000, "delay_ns": 50_000_000,
        "queue": { "kind": "drop_tail", "limit": {"packets": 100}, "counts_packet_in_service": false } });
    let tcp = Profile::named("rfc").expect("a profile");
    let constant = |value: u32| json!({ "distribution": "constant", "value": value });
    json!({
        "duration_ns": 10_000_000_000_u64,
        "network": { "topology": "chain", "links": [{ "forward": link, "reverse": link }] },
        "applications": [{
            "name": "download", "kind": "file_transfer", "client_hosts": "node[1]", "server_hosts": "node[0]",
            "start": constant(0), "size": constant(29_200), "gap": constant(0), "request_bytes": 80,
            "direction": "download", "count": 1, "client_tcp": tcp, "server_tcp": tcp,
        }],
    })
    .to_string()
}

fn u32_at(block: &[u8], at: usize) -> usize {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes")) as usize
}

#[test]
fn columns_are_where_the_block_says_and_aligned_for_typed_arrays() {
    let block = run(&plan(), 1, true).expect("a plan");
    let length = u32_at(&block, 0);
    let described: Value = serde_json::from_slice(&block[4..4 + length]).expect("JSON");
    let values = &block[(4 + length).next_multiple_of(8)..];
    let segments = &described["tables"]["segments"];
    let (start, bytes) = (segments["time_ns"][1].as_u64().unwrap() as usize, segments["time_ns"][2].as_u64().unwrap());
    assert_eq!((segments["time_ns"][0].as_str(), start % 8), (Some("<i8"), 0));
    // 20 segments of data are sent and received, and more.
    assert!(bytes > 8 * 40);
    assert_eq!(i64::from_le_bytes(values[start..start + 8].try_into().unwrap()), 0);
    assert_eq!(described["links"][0], json!("links[0]"));
    assert_eq!(described["senderEvents"][0][1][1], json!("slow start ends (ack train)"));
}

#[test]
fn segments_are_kept_on_request_only() {
    assert!(run(&plan(), 1, false).unwrap().len() < run(&plan(), 1, true).unwrap().len() / 4);
}

#[test]
fn a_capture_becomes_connections_and_responses() {
    let capture = include_bytes!("../../../examples/flows/server.pcapng");
    let block = read(capture).expect("a capture");
    let described: Value = serde_json::from_slice(&block[4..4 + u32_at(&block, 0)]).expect("JSON");
    assert!(described["segments"].as_u64() > Some(1000));
    assert_eq!(described["tables"]["responses"]["bytes"][0], "<u8");
    let refused = read(b"GET / HTTP/1.1").expect_err("no capture").to_string();
    assert!(refused.starts_with("the file is no capture"), "{refused}");
}

#[test]
fn the_segments_of_one_of_its_connections_can_be_had() {
    let capture = include_bytes!("../../../examples/flows/server.pcapng");
    let block = segments_of(capture, 3).expect("a capture");
    let described: Value = serde_json::from_slice(&block[4..4 + u32_at(&block, 0)]).expect("JSON");
    let segments = &described["tables"]["segments"];
    assert_eq!((&segments["seq"][0], &segments["time_ns"][0]), (&json!("<u4"), &json!("<i8")));
    let rows = segments["from_server"][2].as_u64().unwrap();
    assert!((20..400).contains(&rows), "{rows} segments");
}

#[test]
fn what_is_no_plan_is_refused_in_one_sentence() {
    let refused = run("{}", 1, true).expect_err("no plan").to_string();
    assert!(refused.starts_with("this is not a plan: missing field"), "{refused}");
}
