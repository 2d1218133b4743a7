//! Reads a packet: link layer, IPv4 or IPv6, TCP. Checksums are not verified: offloads leave them to the network card.

use std::net::Ipv4Addr;

use firstflight_segment::{Flags, IPV4_BYTES, Ipv4, Ipv6, Options, TCP, TCP_BYTES, Tcp, Upper, kind};

use crate::capture::Record;

/// An end: address, IPv4 as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2), and port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct End {
    pub(crate) address: u128,
    pub(crate) port: u16,
}

/// A TCP segment as it was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: Flags,
    /// Bytes of data, kept or not; of many segments if the sender's card was to divide them.
    pub(crate) payload: u32,
    /// Bytes of the IP and TCP headers.
    pub(crate) header: u32,
    pub(crate) options: Found,
    /// The beginning of the data, as far as it was kept.
    pub(crate) kept: &'a [u8],
}

/// Of the TCP options, as far as they were kept.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Found {
    pub(crate) bytes: u32,
    pub(crate) mss: Option<u16>,
    /// TSval and TSecr.
    pub(crate) timestamps: Option<(u32, u32)>,
}

/// Why a packet is no segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Not {
    /// Of another protocol, which is no problem.
    Tcp,
    LinkLayer,
    Fragment,
    Short,
    Malformed,
}

/// Reads a packet of which `bytes` were kept.
pub(crate) fn read<'a>(record: &Record, bytes: &'a [u8]) -> Result<Seen<'a>, Not> {
    let at = network_layer(record, bytes)?;
    let packet = bytes.get(at..).ok_or(Not::Short)?;
    // Behind the link layer's header; a card that divides packets leaves the IP header's own length at 0.
    let length = (record.length as usize).saturating_sub(at);
    match packet.first().ok_or(Not::Short)? >> 4 {
        4 => ipv4(packet, length),
        6 => ipv6(packet, length),
        _ => Err(Not::Malformed),
    }
}

/// Offset of the IP header.
fn network_layer(record: &Record, bytes: &[u8]) -> Result<usize, Not> {
    let kind = |at: usize| bytes.get(at..at + 2).map(|kind| u16::from_be_bytes([kind[0], kind[1]])).ok_or(Not::Short);
    let (mut kind_at, mut next) = match record.link_type {
        // BSD's loopback begins with the address family, in the machine's or the network's order.
        0 | 108 => return family(bytes, record.link_type == 0 && record.little_endian).map(|()| 4),
        1 => (12, 14),
        // Raw IP, by its three numbers; IPv4, IPv6.
        12 | 14 | 101 | 228 | 229 => return Ok(0),
        // Linux's cooked captures, version 1 and 2.
        113 => (14, 16),
        276 => (0, 20),
        _ => return Err(Not::LinkLayer),
    };
    loop {
        match kind(kind_at)? {
            0x0800 | 0x86dd => return Ok(next),
            // IEEE 802.1Q and its stacks: a tag, then the type of the next header.
            0x8100 | 0x88a8 | 0x9100 => (kind_at, next) = (next + 2, next + 4),
            _ => return Err(Not::Tcp),
        }
    }
}

/// Whether the address family of a loopback packet is IPv4's or one of IPv6's.
fn family(bytes: &[u8], little_endian: bool) -> Result<(), Not> {
    let word: [u8; 4] = bytes.first_chunk().copied().ok_or(Not::Short)?;
    let family = if little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) };
    // AF_INET; AF_INET6 of NetBSD, FreeBSD, macOS, and Linux.
    if matches!(family, 2 | 24 | 28 | 30 | 10) { Ok(()) } else { Err(Not::Tcp) }
}

fn ipv4(packet: &[u8], length: usize) -> Result<Seen<'_>, Not> {
    let ip = Ipv4::at(packet).ok_or(Not::Short)?;
    if ip.protocol() != TCP {
        return Err(Not::Tcp);
    }
    if ip.is_later_fragment() {
        return Err(Not::Fragment);
    }
    let header = ip.header_bytes();
    let total = match usize::from(ip.total_bytes()) {
        0 => length,
        total => total,
    };
    if header < IPV4_BYTES || total < header {
        return Err(Not::Malformed);
    }
    let address = |four: Ipv4Addr| 0xffff_0000_0000 | u128::from(four.to_bits());
    let ends = [address(ip.source()), address(ip.destination())];
    tcp(packet.get(header..).ok_or(Not::Short)?, total - header, header, ends)
}

fn ipv6(packet: &[u8], length: usize) -> Result<Seen<'_>, Not> {
    let ip = Ipv6::at(packet).ok_or(Not::Short)?;
    let total = ip.total_bytes().unwrap_or(length);
    let at = match ip.tcp() {
        Upper::Tcp(at) => at,
        Upper::Other => return Err(Not::Tcp),
        Upper::Fragment => return Err(Not::Fragment),
        Upper::Short => return Err(Not::Short),
    };
    if total < at {
        return Err(Not::Malformed);
    }
    tcp(packet.get(at..).ok_or(Not::Short)?, total - at, at, [ip.source(), ip.destination()])
}

fn tcp(segment: &[u8], length: usize, ip_header: usize, [from, to]: [u128; 2]) -> Result<Seen<'_>, Not> {
    let tcp = Tcp::at(segment).ok_or(Not::Short)?;
    let header = tcp.header_bytes();
    if header < TCP_BYTES || header > length {
        return Err(Not::Malformed);
    }
    let payload = length - header;
    let kept = segment.get(header..).unwrap_or_default();
    Ok(Seen {
        from: End { address: from, port: tcp.source_port() },
        to: End { address: to, port: tcp.destination_port() },
        seq: tcp.seq(),
        ack: tcp.ack(),
        flags: tcp.flags(),
        payload: payload as u32,
        header: (ip_header + header) as u32,
        options: options(&segment[TCP_BYTES..header.min(segment.len())], header - TCP_BYTES),
        // Ethernet fills short packets up.
        kept: &kept[..payload.min(kept.len())],
    })
}

fn options(kept: &[u8], bytes: usize) -> Found {
    let mut found = Found { bytes: bytes as u32, ..Found::default() };
    // Nothing is known of the bytes behind an option with an impossible length.
    for (kind, value) in Options(kept).map_while(Result::ok) {
        match (kind, value) {
            (kind::MSS, &[high, low]) => found.mss = Some(u16::from_be_bytes([high, low])),
            (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                found.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            _ => {}
        }
    }
    found
}
