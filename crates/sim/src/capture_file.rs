//! What a tap saw, as a capture file.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
};

use firstflight_pcap::{CaptureFile, Direction, FileError, Record};
use firstflight_segment::{Envelope, write_packet};
use firstflight_tcp::{Flags, Segment};

use crate::{
    connection::{CLIENT, SERVER},
    tap::{Identity, Watched},
};

/// The port of every server: that of iperf, where Wireshark looks for no protocol.
const SERVER_PORT: u16 = 5001;
/// The ports of clients, taken in turn: the dynamic ones of RFC 6335 §6.
const FIRST_CLIENT_PORT: u16 = 49_152;
const CLIENT_PORTS: u32 = 16_384;
/// Linux's default; the simulator's routers do not count it down.
const TIME_TO_LIVE: u8 = 64;

/// Writes the packets to `path`, pcap if it ends in `.pcap`, else pcapng. `comment` is for the reader of the file.
///
/// Host i of the network has the i-th address of 10.0.0.0/8, from 10.0.0.1 on. Times count from the start of the run,
/// which the file's readers take for 1970. The IP identification counts a connection's packets of one side as they
/// pass the tap.
///
/// # Errors
/// What the file system refuses, and a segment too large for IPv4; there is then no file.
pub fn write(watched: &Watched, path: &Path, comment: &str) -> Result<(), FileError> {
    let program = concat!("firstflight ", env!("CARGO_PKG_VERSION"));
    let interfaces: Vec<&str> = watched.interfaces.iter().map(String::as_str).collect();
    let mut file = CaptureFile::create(path, program, comment, &interfaces)?;
    let mut identifications: HashMap<(u32, bool), u16> = HashMap::new();
    let mut bytes = Vec::new();
    for packet in &watched.packets {
        let identification = identifications.entry((packet.connection.number, packet.from_server)).or_default();
        *identification = identification.wrapping_add(1);
        let envelope = envelope(&packet.connection, packet.from_server, &packet.segment, *identification);
        bytes.clear();
        write_packet(&packet.segment, &envelope, &mut bytes)?;
        let direction = if packet.inbound { Direction::Inbound } else { Direction::Outbound };
        file.write(&Record { time_ns: packet.time, interface: packet.interface, direction }, &bytes)?;
    }
    file.finish()
}

fn envelope(connection: &Identity, from_server: bool, segment: &Segment, identification: u16) -> Envelope {
    let client_port = FIRST_CLIENT_PORT + (connection.number % CLIENT_PORTS) as u16;
    let client = SocketAddrV4::new(address(connection.hosts[CLIENT]), client_port);
    let server = SocketAddrV4::new(address(connection.hosts[SERVER]), SERVER_PORT);
    let (source, destination) = if from_server { (server, client) } else { (client, server) };
    let initial = connection.initial_sequences[usize::from(from_server)];
    // The stream begins after the SYN, which takes a sequence number.
    let syn = u32::from(segment.flags.contains(Flags::SYN));
    let stream_offset = u64::from(segment.seq.wrapping_add(syn).wrapping_sub(initial).wrapping_sub(1));
    Envelope { source, destination, identification, time_to_live: TIME_TO_LIVE, stream_offset }
}

fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + host)
}
