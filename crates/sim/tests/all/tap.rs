//! Packets at one place: complete, in order, the same as in the log of segments, and without influence.

use crate::world::{pair, profile, single, web};
use firstflight_sim::{
    Plan,
    records::LinkInterval,
    simulate,
    tap::{Load, Place, Tapped, Watched},
};
use firstflight_tcp::{Ecn, Segment};
use serde_json::{Value, json};

fn watch(plan: &Value, place: &Place) -> Watched {
    firstflight_sim::watch(&Plan::from_json(&plan.to_string()).unwrap(), 6, 0, place).unwrap()
}

fn segment(packet: &Tapped) -> Segment {
    match packet.load {
        Load::Segment(segment) => segment,
        Load::Datagram(_) => panic!("{packet:?}"),
    }
}

fn lossy() -> Value {
    let mut plan = web(8, 2, &profile("rfc", json!({})));
    plan["duration_ns"] = json!(20_000_000_000u64);
    for direction in ["forward", "reverse"] {
        plan["network"]["bottleneck"][direction]["loss"] = json!(0.01);
    }
    plan
}

fn link(name: &str) -> Place {
    Place::Link(name.into())
}

#[test]
fn packets_at_a_host_are_those_that_its_ends_sent_and_received() {
    let plan = lossy();
    let watched = watch(&plan, &Place::Client);
    assert!(watched.packets.is_sorted_by_key(|packet| packet.time));
    let host = watched.packets[0].connection.hosts[0];
    let connections: std::collections::HashSet<u32> =
        watched.packets.iter().map(|packet| packet.connection.number).collect();
    let records = simulate(&Plan::from_json(&plan.to_string()).unwrap(), 6, 0..1, true).unwrap();
    let segments = records.segments.unwrap();
    let ours: Vec<(i64, u32, u8, u32)> = segments
        .iter()
        .filter(|row| connections.contains(&row.connection))
        .filter(|row| (row.event, row.from_server) == (0, 0) || row.event == 1)
        .filter(|row| row.event == 0 || row.from_server == 1)
        .map(|row| (row.time_ns, row.connection, row.from_server, row.length))
        .collect();
    let seen: Vec<(i64, u32, u8, u32)> = watched
        .packets
        .iter()
        .map(|packet| {
            assert_eq!(packet.connection.hosts[0], host);
            assert_eq!(packet.inbound, packet.from_server);
            let number = packet.connection.number;
            (packet.time as i64, number, u8::from(packet.from_server), segment(packet).payload_bytes)
        })
        .collect();
    // A host also sees packets for a connection that both endpoints have closed; the log does not.
    assert!(seen.len() - ours.len() < 10);
    let mut seen = seen.iter();
    assert!(ours.iter().all(|row| seen.any(|other| other == row)), "the log's rows come in the same order");
}

#[test]
fn a_link_shows_what_its_meter_counts() {
    let plan = lossy();
    let records = simulate(&Plan::from_json(&plan.to_string()).unwrap(), 6, 0..1, false).unwrap();
    let sum = |name: &str, count: fn(&LinkInterval) -> u64| -> u64 {
        let index = records.link_names.iter().position(|link| link == name).unwrap() as u16;
        records.links.iter().filter(|row| row.link == index).map(count).sum()
    };
    let watched = watch(&plan, &link("bottleneck"));
    assert_eq!(watched.interfaces, ["bottleneck", "bottleneck.reverse"]);
    let count = |interface| watched.packets.iter().filter(|packet| packet.interface == interface).count() as u64;
    // A departing packet is seen when its transmission ends, lost on the way or not, as the meter counts it.
    assert_eq!(count(1), sum("bottleneck.reverse", |row| row.sent_packets));
    // An arriving packet is seen later by the delay, and not if it was lost: at the end some packets are in flight.
    let arriving = sum("bottleneck", |row| row.sent_packets) - sum("bottleneck", |row| row.lost_packets);
    assert!((0..=10).contains(&(arriving - count(0))), "{arriving} and {}", count(0));
    assert!(watched.packets.iter().all(|packet| packet.inbound == (packet.interface == 0)));
}

#[test]
fn a_mark_shows_on_the_packet_that_got_it() {
    let mut link_with_red = pair(Some(1_000_000), 20_000_000, 100);
    link_with_red["forward"]["queue"] = json!({
        "kind": "red", "limit_packets": 100, "min_threshold_packets": 1.0, "max_threshold_packets": 30.0,
        "max_probability": 1.0, "weight": 0.5, "gentle": true, "mean_packet_bytes": 500, "ecn": true,
    });
    link_with_red["reverse"]["queue"] = link_with_red["forward"]["queue"].clone();
    let plan = single(link_with_red, 200_000.0, &profile("rfc", json!({"ecn": "on"})));
    let marked = watch(&plan, &link("links[0].reverse"));
    let marked =
        marked.packets.iter().filter(|packet| packet.inbound && segment(packet).ecn == Ecn::Congestion).count();
    assert!(marked > 5, "{marked}");
}

#[test]
fn a_place_that_is_not_there_is_refused_with_those_that_are() {
    let plan = Plan::from_json(&lossy().to_string()).unwrap();
    let refused = firstflight_sim::watch(&plan, 6, 0, &link("hub")).unwrap_err().to_string();
    assert!(refused.starts_with("there is no link \"hub\" in this network; it has \"bottleneck\""), "{refused}");
    let mut late = lossy();
    late["applications"][0]["start"] = crate::world::constant(1e6);
    let refused = firstflight_sim::watch(&Plan::from_json(&late.to_string()).unwrap(), 6, 0, &Place::Server)
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "application \"web\" sends nothing before the end of the run");
}
