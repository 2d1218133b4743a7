//! Whole connections, traced: a sender and a receiver over a bottleneck with losses, reordering, duplicates, idle
//! times and slow readers, one row per interval. The tables in `expected/` are compared to the nanosecond; if a rule changes
//! on purpose, `UPDATE_TRACES=1 cargo test -p firstflight-tcp --test traces` writes them again, and the diff shows the
//! changes.

mod cases;
#[path = "../endpoint/wire.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod wire;

use cases::{CASES, Case};
use firstflight_tcp::{Nanos, Profile};
use std::fmt::Write;
use std::path::Path;
use wire::{Client, MS, Sent, Server, Wire};

/// The profile `base` with the fields of a JSON object, by their paths, in place of its fields.
fn profile(base: &str, changes: &str) -> Profile {
    let profile = match base {
        "rfc" => Profile::rfc(),
        "linux" => Profile::linux(),
        _ => Profile::ns2_full_1998(),
    };
    let mut fields = serde_json::to_value(profile).unwrap();
    let changes: serde_json::Value = serde_json::from_str(changes).expect(changes);
    for (name, value) in changes.as_object().unwrap() {
        let field = fields.pointer_mut(&format!("/{}", name.replace('.', "/")));
        *field.unwrap_or_else(|| panic!("a profile has no field {name}")) = value.clone();
    }
    let profile: Profile = serde_json::from_value(fields).unwrap_or_else(|error| panic!("{changes}: {error}"));
    profile.validate().unwrap();
    profile
}

/// The fate of each segment: the server's wait in the queue of a link, the client's are only delayed.
fn fate(case: &Case, start: Nanos) -> impl FnMut(&Sent) -> Vec<Nanos> + use<> {
    let (network, mut free_at, mut data) = (case.network, 0, 0);
    move |sent| {
        if sent.from == Client {
            return vec![network.delay];
        }
        let waiting: Nanos = free_at.max(sent.at) - sent.at;
        let later = network.then.filter(|(from, _)| sent.at >= start + from);
        let ns_per_byte = later.map_or(network.ns_per_byte, |(_, ns_per_byte)| ns_per_byte);
        let service = u64::from(sent.segment.payload_bytes + 52) * ns_per_byte;
        if sent.segment.payload_bytes == 0 {
            return vec![network.delay + waiting];
        }
        data += 1;
        if network.lost.contains(&data)
            || network.ns_per_byte > 0 && waiting / (1500 * network.ns_per_byte) >= network.queue
        {
            return vec![];
        }
        free_at = free_at.max(sent.at) + service;
        let stalled = network.stalls.iter().find(|(from, to)| (start + from..start + to).contains(&sent.at));
        let extra = stalled.map_or(0, |(_, to)| start + to - sent.at);
        let late = if network.late.contains(&data) { 15 * MS } else { 0 };
        let arrival = network.delay + waiting + service + extra + late;
        if network.twice.contains(&data) { vec![arrival, arrival + MS] } else { vec![arrival] }
    }
}

fn row(wire: &Wire, start: Nanos) -> String {
    let (info, stats) = (wire.server.info(), wire.server.stats());
    let last = wire.log.iter().rfind(|sent| sent.from == Server).map_or(0, |sent| sent.at.saturating_sub(start));
    let threshold = wire.server.ssthresh_bytes();
    let threshold = threshold.map_or("-".to_owned(), |threshold| threshold.to_string());
    let ack = wire.log.iter().rfind(|sent| sent.from == Client).unwrap();
    format!(
        "{:>6} {:>5} {:>4} {:>9} {:>7} {:>7} {:>2} {:>10} {:>10} {:>10} {:>4} {:>12} {:>4} {:>5} {:>8}",
        (wire.now - start) / MS,
        stats.data_segments_sent,
        stats.retransmissions,
        wire.server.acknowledged_bytes(),
        wire.server.cwnd_bytes(),
        threshold,
        info.recovery_state,
        info.srtt_ns,
        info.rttvar_ns,
        info.rto_ns,
        info.reordering,
        last,
        stats.duplicate_acks,
        wire.acks(Client).len(),
        wire.client.advertised_window_bytes(&ack.segment),
    )
}

fn trace(case: &Case) -> String {
    let mut wire = Wire::between(&profile(case.client.0, case.client.1), &profile(case.server.0, case.server.1), 0);
    wire.set_fate(Box::new(fate(case, 0)));
    wire.client.connect(0);
    wire.run_until(2 * case.network.delay + MS);
    let start = wire.now;
    wire.set_fate(Box::new(fate(case, start)));
    wire.client_reads = case.reads.is_none();
    let mut text = format!("# {}\n", case.what);
    text += "#   ms  sent  rtx     acked    cwnd ssthresh st    srtt_ns  rttvar_ns     rto_ns reor      last_ns dups  acks   window\n";
    for ms in 0..=case.ms {
        wire.run_until(start + ms * MS);
        for &(_, bytes) in case.writes.iter().filter(|(at, _)| *at == ms) {
            wire.server.write(wire.now, bytes);
        }
        for &(_, bytes) in case.requests.iter().filter(|(at, _)| *at == ms) {
            wire.client.write(wire.now, bytes);
        }
        if let Some((every, bytes)) = case.reads {
            if ms % every == 0 {
                wire.client.read(bytes);
            }
        }
        wire.pump();
        if ms % case.every == 0 {
            writeln!(text, "{}", row(&wire, start)).unwrap();
        }
    }
    text
}

#[test]
fn each_connection_goes_as_it_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/expected");
    let mut differences = Vec::new();
    for case in CASES {
        let (found, file) = (trace(case), folder.join(format!("{}.txt", case.name)));
        if std::env::var_os("UPDATE_TRACES").is_some() {
            std::fs::write(&file, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if let Some((expected, found)) = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found)
        {
            differences.push(format!("{}\n-{expected}\n+{found}", case.name));
        } else if expected.len() != found.len() {
            differences.push(format!("{}: another number of rows", case.name));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
