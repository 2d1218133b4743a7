//! A packet as the segment that it carries: the inverse of writing one.

use std::{net::SocketAddr, ops::Range};

use crate::{Envelope, Ip, Malformed, PathOption, QuickStart, Segment, TCP, checksum, ipv4, tcp};

/// The fields of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What its segment lacks.
    pub envelope: Envelope,
    /// Its segment. `retransmission` is false: a packet alone does not show it.
    pub segment: Segment,
    /// Range of the payload in the packet; shorter than `segment.payload_bytes` if a capture has truncated it.
    pub payload: Range<usize>,
}

/// Reads an IPv4 or IPv6 packet with a TCP segment, its checksums verified. Bytes behind the packet, such as the padding of a
/// short Ethernet frame, are ignored.
///
/// # Errors
/// Bytes that are no such packet, or not a whole one.
pub fn read_packet(bytes: &[u8]) -> Result<Packet, Malformed> {
    read(bytes, true)
}

/// As [`read_packet`], for a packet of which a capture has kept the headers and maybe not all of the payload: the
/// checksum of a segment that is cut cannot be verified, and is verified if it is whole.
///
/// # Errors
/// Bytes that do not begin with the headers of such a packet.
pub fn read_headers(bytes: &[u8]) -> Result<Packet, Malformed> {
    read(bytes, false)
}

fn read(bytes: &[u8], whole: bool) -> Result<Packet, Malformed> {
    let ip = Ip::read(bytes, 0)?;
    let name = if ip.source.is_ipv4() { "IPv4" } else { "IPv6" };
    if ip.header_bytes > ip.total_bytes {
        return Err(Malformed::HeaderLength { header: name, bytes: ip.header_bytes });
    }
    let short = |needs| Malformed::Short { header: name, needs, has: bytes.len() };
    let header = bytes.get(..ip.header_bytes).ok_or(short(ip.header_bytes))?;
    let quick_start = if ip.source.is_ipv4() { ipv4::read_options(header, ip.time_to_live)? } else { QuickStart::None };
    if ip.is_fragment {
        return Err(Malformed::Fragment);
    }
    if ip.protocol != TCP {
        return Err(Malformed::Protocol(ip.protocol));
    }
    let there = &bytes[ip.header_bytes..ip.total_bytes.min(bytes.len())];
    let is_cut = bytes.len() < ip.total_bytes;
    if is_cut && whole {
        return Err(short(ip.total_bytes));
    }
    let mut segment = Segment { ecn: ip.ecn(), path_option: PathOption::new(quick_start, None), ..Segment::EMPTY };
    let tcp = tcp::read_header(there, ip.total_bytes - ip.header_bytes, &mut segment)?;
    if !is_cut && checksum::transport(TCP, ip.source, ip.destination, there) != 0 {
        return Err(Malformed::Checksum("TCP"));
    }
    Ok(Packet {
        envelope: Envelope {
            source: SocketAddr::new(ip.source, tcp.source_port()),
            destination: SocketAddr::new(ip.destination, tcp.destination_port()),
            identification: ip.identification,
            time_to_live: ip.time_to_live,
        },
        segment,
        payload: ip.header_bytes + tcp.header_bytes()..ip.header_bytes + there.len(),
    })
}
