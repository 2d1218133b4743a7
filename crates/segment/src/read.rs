//! A packet as the segment that it carries: the inverse of writing one.

use std::{net::SocketAddr, ops::Range};

use crate::{
    Envelope, IPV4_BYTES, IPV6_BYTES, Ip, Ipv4, Ipv6, Malformed, PathOption, QuickStart, Segment, TCP, checksum, ipv4,
    tcp,
};

/// The fields of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Source and destination. Its `stream_offset` is 0: a packet alone does not show it.
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
    let Header { ip, identification, time_to_live, quick_start } = Header::of(bytes)?;
    if ip.is_fragment {
        return Err(Malformed::Fragment);
    }
    if ip.protocol != TCP {
        return Err(Malformed::Protocol(ip.protocol));
    }
    let there = &bytes[ip.header_bytes..ip.total_bytes.min(bytes.len())];
    let is_cut = bytes.len() < ip.total_bytes;
    if is_cut && whole {
        let header = if ip.source.is_ipv4() { "IPv4" } else { "IPv6" };
        return Err(Malformed::Short { header, needs: ip.total_bytes, has: bytes.len() });
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
            identification,
            time_to_live,
            stream_offset: 0,
        },
        segment,
        payload: ip.header_bytes + tcp.header_bytes()..ip.header_bytes + there.len(),
    })
}

/// The header at the beginning of a packet, checked; the rest may be truncated.
struct Header {
    ip: Ip,
    identification: u16,
    time_to_live: u8,
    quick_start: QuickStart,
}

impl Header {
    fn of(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes.first().map_or(4, |first| first >> 4) {
            4 => Self::of_version_4(bytes),
            6 => Self::of_version_6(bytes),
            version => Err(Malformed::Version(version)),
        }
    }

    fn of_version_4(bytes: &[u8]) -> Result<Self, Malformed> {
        let short = |needs| Malformed::Short { header: "IPv4", needs, has: bytes.len() };
        let look = Ipv4::at(bytes).ok_or(short(IPV4_BYTES))?;
        let header_bytes = look.header_bytes();
        let ip = Ip::at(bytes).ok_or(Malformed::HeaderLength { header: "IPv4", bytes: header_bytes })?;
        let header = bytes.get(..header_bytes).ok_or(short(header_bytes))?;
        let (identification, time_to_live) = (look.identification(), look.time_to_live());
        Ok(Self { ip, identification, time_to_live, quick_start: ipv4::read_options(header, time_to_live)? })
    }

    fn of_version_6(bytes: &[u8]) -> Result<Self, Malformed> {
        let short = |needs| Malformed::Short { header: "IPv6", needs, has: bytes.len() };
        let look = Ipv6::at(bytes).ok_or(short(IPV6_BYTES))?;
        let upper = look.upper().ok_or(short(look.total_bytes().unwrap_or(IPV6_BYTES)))?;
        let ip = Ip::at(bytes).ok_or(Malformed::HeaderLength { header: "IPv6", bytes: upper.at })?;
        if bytes.len() < ip.header_bytes {
            return Err(short(ip.header_bytes));
        }
        Ok(Self { ip, identification: 0, time_to_live: look.hop_limit(), quick_start: QuickStart::None })
    }
}
