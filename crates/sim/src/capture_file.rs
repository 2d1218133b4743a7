//! Writes the packets of a tap to a capture file.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use firstflight_pcap::{CaptureFile, Direction, FileError, Record};
use firstflight_segment::{Envelope, IPV4_BYTES, IPV6_BYTES, UDP_BYTES, write_packet, write_payload, write_udp};
use firstflight_tcp::{Flags, Segment};

use crate::{
    connection::{CLIENT, SERVER},
    tap::{Identity, Load, Sight, Tapped, Watched},
};

/// The port of every server: that of iperf, where Wireshark looks for no protocol.
const SERVER_PORT: u16 = 5001;
/// The port of servers that send RTP (RFC 3551 section 8).
const RTP_PORT: u16 = 5004;
const RTP_BYTES: usize = 12;
/// The ports of clients, used in turn: the dynamic ones of RFC 6335 §6.
const FIRST_CLIENT_PORT: u16 = 49_152;
const CLIENT_PORTS: u32 = 16_384;

/// Writes the packets to `path`, pcap if it ends in `.pcap`, else pcapng. `comment` is for the reader of the file.
///
/// Host i of the network has the i-th address of 10.0.0.0/8, from 10.0.0.1 on, or of fd00::/64 where the packets are of
/// `ipv6`. Times count from the start of the run,
/// which the file's readers take for 1970. The IP identification counts a connection's packets of one side as they
/// pass the tap. A datagram whose headers are said to be shorter than those of IP and UDP is written with these.
///
/// # Errors
/// The file system's error, and an error for a packet too large for the Internet Protocol; there is then no file.
pub fn write(watched: &Watched, path: &Path, comment: &str, ipv6: bool) -> Result<(), FileError> {
    let interfaces: Vec<&str> = watched.interfaces.iter().map(String::as_str).collect();
    let mut file = CaptureFile::create(path, comment, &interfaces)?;
    let mut identifications: HashMap<(Identity, bool), u16> = HashMap::new();
    let mut bytes = Vec::new();
    for packet in &watched.packets {
        let identification = identifications.entry((packet.connection, packet.from_server)).or_default();
        *identification = identification.wrapping_add(1);
        bytes.clear();
        match &packet.load {
            Load::Segment(segment) => {
                let envelope = envelope(packet, *identification, SERVER_PORT, ipv6);
                let offset = stream_offset(&packet.connection, packet.from_server, segment);
                write_packet(segment, &envelope, offset, &mut bytes)?;
            }
            Load::Datagram(datagram) => {
                let port = if datagram.rtp.is_some() { RTP_PORT } else { SERVER_PORT };
                let envelope = envelope(packet, *identification, port, ipv6);
                write_udp(&envelope, &payload(datagram, packet.connection.number, ipv6), &mut bytes)?;
            }
        }
        let direction = if packet.inbound { Direction::Inbound } else { Direction::Outbound };
        file.write(
            &Record { time_ns: packet.time, interface: packet.interface, direction },
            &bytes,
            bytes.len() as u32,
        )?;
    }
    file.finish()
}

fn envelope(packet: &Tapped, identification: u16, port: u16, ipv6: bool) -> Envelope {
    let connection = &packet.connection;
    let client_port = FIRST_CLIENT_PORT + (connection.number % CLIENT_PORTS) as u16;
    let client = SocketAddr::new(address(connection.hosts[CLIENT], ipv6), client_port);
    let server = SocketAddr::new(address(connection.hosts[SERVER], ipv6), port);
    let (source, destination) = if packet.from_server { (server, client) } else { (client, server) };
    // The simulator's routers do not count the hops down.
    Envelope { identification, ..Envelope::between(source, destination) }
}

/// Offset of a segment's payload in its stream.
fn stream_offset(connection: &Identity, from_server: bool, segment: &Segment) -> u64 {
    let initial = connection.initial_sequences[usize::from(from_server)];
    // The stream begins after the SYN, which takes a sequence number.
    let syn = u32::from(segment.flags.contains(Flags::SYN));
    u64::from(segment.seq.wrapping_add(syn).wrapping_sub(initial).wrapping_sub(1))
}

/// The UDP payload: a header of RTP where there is one, and bytes that say where in the datagram they are.
fn payload(datagram: &Sight, source: u32, ipv6: bool) -> Vec<u8> {
    let headers = UDP_BYTES + if ipv6 { IPV6_BYTES } else { IPV4_BYTES };
    let length = (datagram.bytes as usize).saturating_sub(headers);
    let mut bytes = Vec::with_capacity(length);
    if let Some(rtp) = datagram.rtp.filter(|_| length >= RTP_BYTES) {
        // RFC 3550 section 5.1: version 2, payload type, sequence number, timestamp, source.
        bytes.extend_from_slice(&[2 << 6, rtp.payload_type]);
        bytes.extend_from_slice(&(datagram.number as u16).to_be_bytes());
        bytes.extend_from_slice(&datagram.number.wrapping_mul(rtp.timestamp_step).to_be_bytes());
        bytes.extend_from_slice(&source.to_be_bytes());
    }
    write_payload(0, (length - bytes.len()) as u32, &mut bytes);
    bytes
}

fn address(host: u32, ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::from_bits(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).to_bits() + u128::from(host)).into()
    } else {
        Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + host).into()
    }
}
