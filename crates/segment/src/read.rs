//! A packet as the segment that it carries: the inverse of writing one.

use std::{net::SocketAddrV4, ops::Range};

use crate::{Envelope, Malformed, PathOption, Segment, TCP, checksum, ipv4, tcp};

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

/// Reads an IPv4 packet with a TCP segment, both checksums verified. Bytes behind the packet, such as the padding of a
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
    let (ip, quick_start) = ipv4::read_header(bytes)?;
    let (header_bytes, end) = (ip.header_bytes(), usize::from(ip.total_bytes()));
    let there = &bytes[header_bytes..end.min(bytes.len())];
    let is_cut = bytes.len() < end;
    if is_cut && whole {
        return Err(Malformed::Short { header: "IPv4", needs: end, has: bytes.len() });
    }
    let mut segment = Segment { ecn: ip.ecn(), path_option: PathOption::new(quick_start, None), ..Segment::EMPTY };
    let tcp = tcp::read_header(there, end - header_bytes, &mut segment)?;
    if !is_cut && checksum::transport(TCP, ip.source(), ip.destination(), there) != 0 {
        return Err(Malformed::Checksum("TCP"));
    }
    Ok(Packet {
        envelope: Envelope {
            source: SocketAddrV4::new(ip.source(), tcp.source_port()),
            destination: SocketAddrV4::new(ip.destination(), tcp.destination_port()),
            identification: ip.identification(),
            time_to_live: ip.time_to_live(),
            stream_offset: 0,
        },
        segment,
        payload: header_bytes + tcp.header_bytes()..header_bytes + there.len(),
    })
}
