//! Streams of datagrams: the receiver's counts.

use crate::world::{column, constant, differing, files, pair, profile, run};
use firstflight_sim::{Plan, records::StreamReport, simulate};
use serde_json::{Value, json};

/// A client at node 0 with its server at node 1; `more` gives the datagrams.
fn datagrams(more: &Value) -> Value {
    let mut application = json!({
        "name": "stream", "clients": 1, "client_hosts": "node[0]", "server_hosts": "node[1]",
        "client_tcp": profile("rfc", json!({})), "server_tcp": profile("rfc", json!({})), "start": constant(0.0),
    });
    for (key, value) in more.as_object().unwrap() {
        application[key] = value.clone();
    }
    application
}

/// Datagrams of 972 bytes with a header of 28 each millisecond, for this number of seconds.
fn constant_rate(direction: &str, seconds: f64) -> Value {
    json!({
        "kind": "constant_rate", "rate_bps": 8_000_000, "payload_bytes": 972, "datagram_header_bytes": 28,
        "direction": direction, "length_ns": (seconds * 1e9) as u64,
    })
}

fn plan(link: Value, applications: Vec<Value>) -> Value {
    json!({
        "duration_ns": 10_000_000_000u64, "network": {"topology": "chain", "links": [link]},
        "applications": applications,
    })
}

fn rows(plan: &Value) -> Vec<StreamReport> {
    run(plan, 1).streams
}

#[test]
fn on_an_idle_link_every_delay_is_serialization_and_propagation() {
    // 1000 bytes at 10 Mbit/s take 0.8 ms.
    let link = pair(Some(10_000_000), 20_000_000, 10);
    let found = rows(&plan(link, vec![datagrams(&constant_rate("both", 1.0))]));
    assert_eq!(found.iter().map(|row| row.from_server).collect::<Vec<_>>(), [0, 1]);
    for row in found {
        assert_eq!((row.packets_sent, row.packets_received, row.packets_lost), (1000, 1000, 0));
        assert_eq!(row.bytes_sent, 1_000_000);
        let delays = [row.delay_min_s, row.delay_p50_s, row.delay_p99_s, row.delay_max_s, row.delay_mean_s];
        assert_eq!(delays, [0.0208; 5]);
        assert_eq!((row.jitter_mean_s, row.jitter_max_s), (0.0, 0.0));
    }
}

#[test]
fn what_a_full_queue_drops_is_lost_and_what_waits_comes_later() {
    // Twice the rate of the link: it sends 500 of 1000 in the second, and after it the 10 that wait. Who comes last into
    // the queue finds 9 there and one on the line.
    let link = pair(Some(4_000_000), 5_000_000, 10);
    let [row] = rows(&plan(link, vec![datagrams(&constant_rate("upload", 1.0))]))[..] else { panic!() };
    assert_eq!(row.packets_received + row.packets_lost, row.packets_sent);
    assert!((509..=511).contains(&row.packets_received), "{row:?}");
    assert_eq!((row.delay_min_s, row.delay_max_s), (0.007, 0.027));
}

#[test]
fn what_is_on_its_way_at_the_end_is_neither_received_nor_lost() {
    let link = pair(None, 500_000_000, 10);
    let [row] = rows(&plan(link, vec![datagrams(&constant_rate("upload", 100.0))]))[..] else { panic!() };
    assert_eq!((row.packets_sent, row.packets_received, row.packets_lost), (10_000, 9_500, 0));
}

#[test]
fn a_listed_loss_takes_the_datagram_that_it_names() {
    let mut link = pair(Some(10_000_000), 20_000_000, 10);
    link["forward"]["lose"] = json!([1, 3, 1000]);
    let [row] = rows(&plan(link, vec![datagrams(&constant_rate("upload", 1.0))]))[..] else { panic!() };
    assert_eq!((row.packets_received, row.packets_lost), (997, 3));
}

#[test]
fn a_stream_waits_behind_the_packets_of_a_connection() {
    let link = pair(Some(10_000_000), 20_000_000, 1000);
    let file =
        files("f", "node[1]", "node[0]", &json!({"size": constant(1e6), "count": 1}), &profile("rfc", json!({})));
    let quiet = json!({
        "kind": "constant_rate", "rate_bps": 80_000, "payload_bytes": 972, "datagram_header_bytes": 28,
        "direction": "upload",
    });
    let [row] = rows(&plan(link, vec![datagrams(&quiet), file]))[..] else { panic!() };
    assert_eq!((row.packets_sent, row.packets_lost), (100, 0));
    assert_eq!(row.delay_min_s, 0.0208);
    assert!(row.delay_max_s > 0.03 && row.jitter_max_s > 0.0, "{row:?}");
}

#[test]
fn a_datagram_that_takes_longer_than_its_deadline_is_late() {
    for (deadline_ns, late) in [(20_800_000u64, 0), (20_799_999, 1000)] {
        let mut stream = constant_rate("upload", 1.0);
        stream["deadline_ns"] = json!(deadline_ns);
        let [row] = rows(&plan(pair(Some(10_000_000), 20_000_000, 10), vec![datagrams(&stream)]))[..] else { panic!() };
        assert_eq!((row.packets_received, row.packets_late), (1000, late));
    }
}

/// G.711 in frames of 20 ms, with concealment of losses.
fn voice(direction: &str) -> Value {
    json!({
        "kind": "voice", "codec": "g711", "bit_rate_bps": 64_000, "frame_ns": 20_000_000, "playout_ns": 60_000_000,
        "impairment": {"ie": 0.0, "bpl": 25.1}, "datagram_header_bytes": 40, "direction": direction,
        "length_ns": 8_000_000_000u64,
    })
}

#[test]
fn a_call_on_an_idle_path_has_the_default_rating() {
    // 200 bytes at 1.6 Mbit/s take 1 ms; from mouth to ear 20 ms of frame, 10 + 1 of path, 60 of play-out.
    for row in rows(&plan(pair(Some(1_600_000), 10_000_000, 10), vec![datagrams(&voice("both"))])) {
        assert_eq!((row.packets_sent, row.packets_received, row.bytes_sent), (400, 400, 80_000));
        assert_eq!((row.delay_max_s, row.mouth_to_ear_s), (0.011, 0.091));
        assert_eq!(row.rating, 93.2);
        assert!((row.mos - 4.41).abs() < 0.005);
    }
}

#[test]
fn losses_and_delay_lower_the_rating_of_a_call_as_the_e_model_says() {
    let mut link = pair(Some(1_600_000), 119_000_000, 10);
    // Four of 400, never two in a row.
    link["forward"]["lose"] = json!([10, 110, 210, 310]);
    let [row] = rows(&plan(link.clone(), vec![datagrams(&voice("upload"))]))[..] else { panic!() };
    assert_eq!((row.mouth_to_ear_s, row.packets_lost, row.burst_ratio), (0.2, 4, 1.0));
    // Idd at 200 ms is 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
    let idd = 25.0 * (2f64.powf(1.0 / 6.0) - 3.0 * (1.0 + 3f64.powi(-6)).powf(1.0 / 6.0) + 2.0);
    assert!((row.rating - (93.2 - idd - 95.0 / 26.1)).abs() < 1e-9, "{row:?}");

    // The same number in one burst: 4 in a row over 1 / (1 - 0.01).
    link["forward"]["lose"] = json!([10, 11, 12, 13]);
    let [burst] = rows(&plan(link, vec![datagrams(&voice("upload"))]))[..] else { panic!() };
    assert!((burst.burst_ratio - 4.0 * 0.99).abs() < 1e-12);
    assert!(burst.rating < row.rating);
}

#[test]
fn opus_without_a_published_impairment_has_no_rating() {
    let mut call = voice("upload");
    call["codec"] = json!("opus");
    call["bit_rate_bps"] = json!(32_000);
    call["impairment"] = json!(null);
    let [row] = rows(&plan(pair(Some(1_600_000), 10_000_000, 10), vec![datagrams(&call)]))[..] else { panic!() };
    assert_eq!(row.bytes_sent, 400 * (80 + 40));
    // 120 bytes take 0.6 ms; a frame of 20 ms with a look-ahead of 6.5.
    assert_eq!(row.mouth_to_ear_s, 0.0971);
    assert!(row.rating.is_nan() && row.mos.is_nan());
}

/// The estimator of RFC 3550 section 6.4.1 as it stands there, in seconds.
fn jitter_of_rfc_3550(sent: &[f64], arrived: &[f64]) -> Vec<f64> {
    let mut jitter = 0.0;
    let mut estimates = vec![jitter];
    for i in 1..sent.len() {
        let d = (arrived[i] - arrived[i - 1]) - (sent[i] - sent[i - 1]);
        jitter += (d.abs() - jitter) / 16.0;
        estimates.push(jitter);
    }
    estimates
}

#[test]
fn jitter_is_that_of_rfc_3550() {
    // At twice the rate of the link each datagram waits 1 ms longer than the one before, until the queue is full.
    let [row] = rows(&plan(pair(Some(4_000_000), 5_000_000, 1000), vec![datagrams(&constant_rate("upload", 0.1))]))[..]
    else {
        panic!()
    };
    let sent: Vec<f64> = (0..100).map(|number| f64::from(number) * 0.001).collect();
    let arrived: Vec<f64> = (0..100).map(|number| 0.007 + f64::from(number) * 0.002).collect();
    let estimates = jitter_of_rfc_3550(&sent, &arrived);
    assert!((row.jitter_mean_s - estimates.iter().sum::<f64>() / 100.0).abs() < 1e-12);
    assert!((row.jitter_max_s - estimates[99]).abs() < 1e-12);
}

#[test]
fn what_comes_after_its_time_of_play_out_is_late() {
    // Each waits 1 ms longer than the one before: those after the 61st miss the 60 ms.
    let mut call = voice("upload");
    call["frame_ns"] = json!(1_000_000);
    call["bit_rate_bps"] = json!(7_680_000);
    call["length_ns"] = json!(100_000_000);
    let [row] = rows(&plan(pair(Some(4_000_000), 5_000_000, 1000), vec![datagrams(&call)]))[..] else { panic!() };
    assert_eq!((row.packets_received, row.packets_late), (100, 39));
    // They are one burst of 39.
    assert!((row.burst_ratio - 39.0 * 0.61).abs() < 1e-9);
}

#[test]
fn a_game_server_sends_at_its_ticks_whoever_joined_when() {
    let mut game = json!({
        "kind": "game", "client_interval_ns": 40_000_000, "tick_ns": 50_000_000, "client_payload": constant(72.0),
        "server_payload": {"distribution": "uniform", "low": 100.0, "high": 200.0}, "datagram_header_bytes": 28,
        "length_ns": 1_000_000_000,
    });
    game["clients"] = json!(2);
    game["start"] = json!({"distribution": "uniform", "low": 0.0, "high": 1.0});
    let found = rows(&plan(pair(Some(10_000_000), 10_000_000, 100), vec![datagrams(&game)]));
    assert_eq!(found.len(), 4);
    for row in found.iter().filter(|row| row.from_server == 1) {
        assert_eq!((row.start_s * 1e9).round() as u64 % 50_000_000, 0, "{row:?}");
        assert_eq!(row.packets_sent, 20);
        assert!((20 * 128..20 * 228).contains(&row.bytes_sent), "{row:?}");
    }
    for row in found.iter().filter(|row| row.from_server == 0) {
        assert_eq!((row.packets_sent, row.bytes_sent), (25, 2500));
    }
}

fn dns(more: Value) -> Value {
    let mut application = json!({
        "kind": "dns", "query_bytes": 40, "answer": constant(120.0), "resolve": constant(0.005),
        "timeout_ns": 1_000_000_000, "backoff": 2.0, "attempts": 3, "think": constant(0.1), "count": 2,
        "datagram_header_bytes": 28,
    });
    for (key, value) in more.as_object().unwrap() {
        application[key] = value.clone();
    }
    datagrams(&application)
}

#[test]
fn a_look_up_takes_a_round_trip_and_the_servers_work() {
    let records = run(&plan(pair(None, 10_000_000, 10), vec![dns(json!({}))]), 1);
    assert_eq!(column(&records.transfers, |row| row.completion_time_s), [0.025, 0.025]);
    assert_eq!(column(&records.transfers, |row| row.start_s), [0.0, 0.125]);
    assert_eq!(column(&records.transfers, |row| (row.bytes, row.sender.segments_sent)), [(120, 1), (120, 1)]);
    assert_eq!(column(&records.streams, |row| row.packets_received), [2, 2]);
    assert_eq!(column(&records.streams, |row| row.from_server), [0, 1]);
}

#[test]
fn a_lost_query_is_retransmitted_after_the_timeout_and_then_after_twice_as_long() {
    let mut link = pair(None, 10_000_000, 10);
    link["forward"]["lose"] = json!([1, 2]);
    let records = run(&plan(link, vec![dns(json!({}))]), 1);
    assert_eq!(column(&records.transfers, |row| row.completion_time_s), [3.025, 0.025]);
    let sent = column(&records.transfers, |row| (row.sender.segments_sent, row.sender.retransmissions));
    assert_eq!(sent, [(3, 2), (1, 0)]);
    assert_eq!(column(&records.streams, |row| (row.packets_sent, row.packets_lost)), [(4, 2), (2, 0)]);
}

#[test]
fn a_look_up_fails_when_no_answer_comes_to_its_last_query() {
    let mut link = pair(None, 10_000_000, 10);
    link["reverse"]["lose"] = json!([1, 2, 3]);
    let records = run(&plan(link, vec![dns(json!({}))]), 1);
    assert_eq!(column(&records.transfers, |row| row.completed), [0, 1]);
    // 1 + 2 + 4 s in vain, and 0.1 s to think.
    assert_eq!(column(&records.transfers, |row| row.start_s), [0.0, 7.1]);
    assert!(records.transfers[0].completion_time_s.is_nan());
}

#[test]
fn an_answer_to_an_earlier_query_of_the_look_up_will_do() {
    let slow = json!({"resolve": constant(1.5), "count": 1});
    let records = run(&plan(pair(None, 10_000_000, 10), vec![dns(slow)]), 1);
    assert_eq!((records.transfers[0].completion_time_s, records.transfers[0].sender.segments_sent), (1.52, 2));
    // The second answer comes after it and means nothing.
    assert_eq!(column(&records.streams, |row| row.packets_received), [2, 2]);
}

#[test]
fn a_replicate_is_the_same_alone_and_among_others() {
    let mut link = pair(Some(2_000_000), 10_000_000, 20);
    link["forward"]["loss"] = json!(0.02);
    link["reverse"]["loss"] = json!(0.02);
    let file = files("f", "node[0]", "node[1]", &json!({}), &profile("linux", json!({})));
    let mut looks = dns(json!({"count": null}));
    looks["name"] = json!("dns");
    let plan = Plan::from_json(&plan(link, vec![datagrams(&voice("both")), looks, file]).to_string()).unwrap();
    let together = simulate(&plan, 1, 0..2, false).unwrap();
    let mut one_by_one = simulate(&plan, 1, 0..1, false).unwrap();
    one_by_one.append(simulate(&plan, 1, 1..2, false).unwrap());
    assert!(together.streams.iter().all(|row| row.packets_lost > 0));
    assert_eq!(differing(together, one_by_one), [] as [String; 0]);
}

#[test]
fn a_capture_counts_datagrams_at_the_links_and_changes_nothing() {
    let link = pair(Some(10_000_000), 20_000_000, 10);
    let plan = Plan::from_json(&plan(link, vec![datagrams(&constant_rate("both", 1.0))]).to_string()).unwrap();
    let (plain, watched) = (simulate(&plan, 1, 0..1, false).unwrap(), simulate(&plan, 1, 0..1, true).unwrap());
    assert_eq!(column(watched.crossings.as_ref().unwrap(), |row| row.bytes), [1000; 2000]);
    assert_eq!(column(&watched.streams, |row| row.delay_mean_s), column(&plain.streams, |row| row.delay_mean_s));
}

#[test]
fn what_means_nothing_is_refused() {
    let cases: [(Value, &str); 6] = [
        (constant_rate("both", 1.0), "payload_bytes"),
        (constant_rate("both", 1.0), "rate_bps"),
        (voice("both"), "frame_ns"),
        (dns(json!({})), "attempts"),
        (dns(json!({})), "backoff"),
        (dns(json!({})), "count"),
    ];
    for (mut application, key) in cases {
        application[key] = json!(0);
        let error = Plan::from_json(&plan(pair(None, 1, 1), vec![datagrams(&application)]).to_string())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("application \"stream\": ") && error.contains('0'), "{error}");
    }
}

#[test]
fn a_call_of_a_higher_class_waits_for_the_packet_on_the_line_alone() {
    let mut link = pair(Some(2_000_000), 10_000_000, 100);
    link["reverse"]["queue"] = json!({"kind": "priority", "limit": {"packets": 100}});
    let large = json!({"size": constant(100_000.0)});
    let file = files("f", "node[0]", "node[1]", &large, &profile("linux", json!({})));
    let worst = |class: u32| {
        let mut call = datagrams(&voice("download"));
        call["class"] = json!(class);
        rows(&plan(link.clone(), vec![call, file.clone()]))[0].delay_max_s
    };
    let [high, low] = [1, 0].map(worst);
    // 200 bytes take 0.8 ms, and a packet of 1500 bytes before them 6 ms.
    assert!(high <= 0.0168, "{high}");
    assert!(low > high, "{low}");
}
