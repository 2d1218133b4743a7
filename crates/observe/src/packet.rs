//! What a packet says of its connection: link layer, IPv4 or IPv6, TCP. Checksums are not looked at: offloads leave them
//! to the network card.

use crate::capture::Record;

const TCP: u8 = 6;
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

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
    pub(crate) flags: u8,
    /// Bytes of data, kept or not; of many segments if the sender's card was to divide them.
    pub(crate) payload: u32,
    /// Bytes of the IP and TCP headers.
    pub(crate) header: u32,
    pub(crate) options: Options,
    /// The beginning of the data, as far as it was kept.
    pub(crate) kept: &'a [u8],
}

/// Of the TCP options, as far as they were kept.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Options {
    pub(crate) bytes: u32,
    pub(crate) mss: Option<u16>,
    /// TSval and TSecr.
    pub(crate) timestamps: Option<(u32, u32)>,
}

/// Why a packet is no segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Not {
    /// Of another protocol, which is nobody's trouble.
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

/// Where the IP header begins.
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
            // IEEE 802.1Q and its stacks: a tag, then the kind of what follows.
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
    let fixed: &[u8; 20] = packet.first_chunk().ok_or(Not::Short)?;
    if fixed[9] != TCP {
        return Err(Not::Tcp);
    }
    if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff != 0 {
        return Err(Not::Fragment);
    }
    let header = usize::from(fixed[0] & 15) * 4;
    let total = match usize::from(u16::from_be_bytes([fixed[2], fixed[3]])) {
        0 => length,
        total => total,
    };
    if header < 20 || total < header {
        return Err(Not::Malformed);
    }
    let address = |at: usize| {
        let four: [u8; 4] = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
        0xffff_0000_0000 | u128::from(u32::from_be_bytes(four))
    };
    tcp(packet.get(header..).ok_or(Not::Short)?, total - header, header, [address(12), address(16)])
}

fn ipv6(packet: &[u8], length: usize) -> Result<Seen<'_>, Not> {
    let fixed: &[u8; 40] = packet.first_chunk().ok_or(Not::Short)?;
    let total = match usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) {
        0 => length,
        payload => 40 + payload,
    };
    let (mut kind, mut at) = (fixed[6], 40);
    // RFC 8200 §4: extension headers, each with the kind of the next one.
    while kind != TCP {
        let extension: &[u8; 4] = packet.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Not::Short)?;
        at += match kind {
            // Hop-by-hop options, routing, destination options: in units of eight bytes beside the first.
            0 | 43 | 60 => 8 + usize::from(extension[1]) * 8,
            44 if u16::from_be_bytes([extension[2], extension[3]]) & 0xfff8 != 0 => return Err(Not::Fragment),
            44 => 8,
            // Authentication (RFC 4302): in units of four bytes, less two.
            51 => 8 + usize::from(extension[1]) * 4,
            _ => return Err(Not::Tcp),
        };
        kind = extension[0];
    }
    if total < at {
        return Err(Not::Malformed);
    }
    let address = |from: usize| fixed[from..from + 16].iter().fold(0, |sum: u128, &byte| sum << 8 | u128::from(byte));
    tcp(packet.get(at..).ok_or(Not::Short)?, total - at, at, [address(8), address(24)])
}

fn tcp(segment: &[u8], length: usize, ip_header: usize, [from, to]: [u128; 2]) -> Result<Seen<'_>, Not> {
    let fixed: &[u8; 20] = segment.first_chunk().ok_or(Not::Short)?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < 20 || header > length {
        return Err(Not::Malformed);
    }
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let payload = length - header;
    let kept = segment.get(header..).unwrap_or_default();
    Ok(Seen {
        from: End { address: from, port: port(0) },
        to: End { address: to, port: port(2) },
        seq: number(4),
        ack: number(8),
        flags: fixed[13],
        payload: payload as u32,
        header: (ip_header + header) as u32,
        options: options(&segment[20..header.min(segment.len())], header - 20),
        // Ethernet fills short packets up.
        kept: &kept[..payload.min(kept.len())],
    })
}

fn options(mut kept: &[u8], bytes: usize) -> Options {
    let mut found = Options { bytes: bytes as u32, ..Options::default() };
    // RFC 9293 §3.1: end of the list, no operation, or a kind with its length.
    while let [kind, rest @ ..] = kept {
        match (kind, rest) {
            (0, _) => break,
            (1, _) => kept = rest,
            (_, [length, ..]) if (2..=kept.len()).contains(&usize::from(*length)) => {
                match (kind, &kept[2..usize::from(*length)]) {
                    (2, &[high, low]) => found.mss = Some(u16::from_be_bytes([high, low])),
                    (8, &[a, b, c, d, e, f, g, h]) => {
                        found.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                    }
                    _ => {}
                }
                kept = &kept[usize::from(*length)..];
            }
            _ => break,
        }
    }
    found
}
