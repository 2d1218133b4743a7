//! A download whose reader takes its time, captured at the sender: tshark sees the closed windows that we announced.
//! Without tshark the test says so and passes; `apt-get install tshark` brings it.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    sync::Arc,
};

use firstflight_pcap::{CaptureFile, Direction, Record};
use firstflight_segment::{Envelope, write_packet};
use firstflight_tcp::{Endpoint, Flags, Nanos, Profile, Segment};

const MS: Nanos = 1_000_000;
const DELAY: Nanos = 20 * MS;
const BYTES: u64 = 200_000;
/// Of client and server; the server's numbers wrap on the way.
const ISNS: [u32; 2] = [7, 4_294_900_000];

/// A packet at the sender's host: its time, whether the server sent it, and the segment.
type Passing = (Nanos, bool, Segment);

fn due(queue: &mut VecDeque<(Nanos, Segment)>, now: Nanos) -> Option<Segment> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, segment)| segment)
}

/// The server sends [`BYTES`]; the client empties its buffer every two and a half seconds.
fn download() -> (Vec<Passing>, u32) {
    let profile = Arc::new(Profile { receive_window_bytes: 8 * 1460, ..Profile::rfc() });
    let mut client = Endpoint::client(Arc::clone(&profile), ISNS[0]);
    let mut server = Endpoint::server(profile, ISNS[1]);
    let mut seen = Vec::new();
    let (mut to_server, mut to_client) = (VecDeque::new(), VecDeque::new());
    client.connect(0);
    server.write(0, BYTES);
    let mut now = 0;
    while client.received_bytes() < BYTES || client.readable_bytes() > 0 {
        while let Some(segment) = due(&mut to_server, now) {
            seen.push((now, false, segment));
            server.handle_segment(now, &segment);
        }
        while let Some(segment) = due(&mut to_client, now) {
            client.handle_segment(now, &segment);
        }
        for end in [&mut client, &mut server] {
            if end.poll_timeout().is_due(now) {
                end.handle_timeout(now);
            }
        }
        if now % (2500 * MS) == 0 {
            client.read(u64::MAX);
        }
        while let Some(segment) = server.poll_transmit(now) {
            seen.push((now, true, segment));
            to_client.push_back((now + DELAY, segment));
        }
        while let Some(segment) = client.poll_transmit(now) {
            to_server.push_back((now + DELAY, segment));
        }
        now += MS;
    }
    (seen, server.stats().window_probes)
}

fn write(passing: &[Passing], path: &std::path::Path) {
    let ends = [49_152, 5001].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut file = CaptureFile::create(path, "", &["server"]).unwrap();
    for (number, &(time_ns, from_server, segment)) in passing.iter().enumerate() {
        let from = usize::from(from_server);
        let mut packet = Vec::new();
        let offset = u64::from(segment.seq.wrapping_sub(ISNS[from]).wrapping_sub(1));
        let envelope = Envelope {
            source: ends[from],
            destination: ends[1 - from],
            identification: number as u16,
            time_to_live: 64,
        };
        write_packet(&segment, &envelope, offset, &mut packet).unwrap();
        let direction = if from_server { Direction::Outbound } else { Direction::Inbound };
        file.write(&Record { time_ns, interface: 0, direction }, &packet, packet.len() as u32).unwrap();
    }
    file.finish().unwrap();
}

/// The numbers of the frames that have each of the fields.
fn named<'f>(path: &std::path::Path, fields: &[&'f str]) -> Option<BTreeMap<&'f str, Vec<usize>>> {
    let mut command = Command::new("tshark");
    command.args(["-o", "tcp.check_checksum:TRUE", "-T", "fields", "-E", "occurrence=f", "-r"]).arg(path);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut named: BTreeMap<_, _> = fields.iter().map(|&field| (field, Vec::new())).collect();
    for (frame, line) in text.lines().enumerate() {
        for (field, value) in fields.iter().zip(line.split('\t')) {
            if !value.is_empty() {
                named.get_mut(field).unwrap().push(frame);
            }
        }
    }
    Some(named)
}

#[test]
fn tshark_sees_each_closed_window_each_probe_and_no_mistake() {
    let (passing, probes) = download();
    let path = std::env::temp_dir().join(format!("firstflight-slow-reader-{}.pcapng", std::process::id()));
    write(&passing, &path);
    let fields = [
        "frame.number",
        "_ws.malformed",
        "tcp.checksum_bad.expert",
        "tcp.analysis.zero_window",
        "tcp.analysis.keep_alive",
        "tcp.analysis.retransmission",
    ];
    let found = named(&path, &fields);
    std::fs::remove_file(&path).unwrap();
    let Some(found) = found else {
        eprintln!("skipped: tshark is not here; apt-get install tshark");
        return;
    };
    let ours = |wanted: &dyn Fn(bool, &Segment) -> bool| -> Vec<usize> {
        let frames = passing.iter().enumerate();
        frames.filter(|(_, (_, from_server, segment))| wanted(*from_server, segment)).map(|(frame, _)| frame).collect()
    };
    let closed = ours(&|from_server, segment| !from_server && segment.window == 0 && segment.flags == Flags::ACK);
    assert!(closed.len() > 10);
    assert_eq!(found["tcp.analysis.zero_window"], closed);
    assert_eq!(found["frame.number"].len(), passing.len());
    assert!(found["_ws.malformed"].is_empty());
    assert!(found["tcp.checksum_bad.expert"].is_empty());
    assert_eq!(found["tcp.analysis.retransmission"], ours(&|_, segment| segment.retransmission));
    assert_eq!(found["tcp.analysis.keep_alive"].len(), probes as usize);
}
