//! Reads a packet: link layer, tunnels, IPv4 or IPv6, TCP. Checksums are not verified: offloads leave them to the network card.

use std::{fmt, net::IpAddr};

use firstflight_segment::{Flags, Ip, Malformed, Options, TCP, TCP_BYTES, Tcp, UDP, UDP_BYTES, kind};

use crate::capture::Record;

/// An end: address, IPv4 as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2), and port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
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
    Tcp(Other),
    LinkLayer,
    Fragment,
    Short,
    Malformed,
}

/// Where a packet that is no TCP's ends for the reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Other {
    /// An EtherType, or a protocol of PPP.
    Type(u16),
    /// A protocol over IP.
    Protocol(u8),
    /// UDP with one of these ports, the destination first.
    Udp(u16),
}

/// Headers around a segment that are looked through; more have no use.
const MOST_LAYERS: usize = 16;

/// What begins at a byte of a packet.
#[derive(Clone, Copy)]
enum Layer {
    /// A frame of Ethernet, from its addresses on.
    Ethernet,
    /// What this EtherType names.
    Type(u16),
    /// The number of a protocol of PPP (RFC 1661 section 2), of one byte or two, and its packet.
    Ppp,
    Ip,
}

/// The result of a look at an IP packet.
enum Carries<'a> {
    Segment(Seen<'a>),
    /// A tunnel: what it carries, and from which byte of the IP packet on.
    Inside(Layer, usize),
}

/// Reads a packet of which `bytes` were kept; a tunnel that is not encrypted is looked into.
pub(crate) fn read<'a>(record: &Record, bytes: &'a [u8]) -> Result<Seen<'a>, Not> {
    let (mut layer, mut at) = outermost(record, bytes)?;
    for _ in 0..MOST_LAYERS {
        let rest = bytes.get(at..).ok_or(Not::Short)?;
        let (next, length) = match layer {
            Layer::Ethernet => (Layer::Type(half(rest, 12)?), 14),
            Layer::Ppp => ppp(rest)?,
            Layer::Type(0x0800 | 0x86dd) | Layer::Ip => {
                // Behind what came before; a card that divides packets leaves the IP header's own length at 0.
                let length = (record.length as usize).saturating_sub(at);
                match carried(rest, length)? {
                    Carries::Segment(seen) => return Ok(seen),
                    Carries::Inside(layer, at) => (layer, at),
                }
            }
            Layer::Type(kind) => inside(kind, rest)?,
        };
        layer = next;
        at += length;
    }
    Err(Not::Malformed)
}

/// The first layer of a packet and where it begins.
fn outermost(record: &Record, bytes: &[u8]) -> Result<(Layer, usize), Not> {
    Ok(match record.link_type {
        0 | 108 => {
            family(bytes)?;
            (Layer::Ip, 4)
        }
        1 => (Layer::Ethernet, 0),
        // PPP, with the address and control of HDLC or without; PPPoE.
        9 | 50 => (Layer::Ppp, if bytes.starts_with(&[0xff, 3]) { 2 } else { 0 }),
        51 => (Layer::Type(0x8864), 0),
        // Raw IP, by its three numbers; IPv4, IPv6.
        12 | 14 | 101 | 228 | 229 => (Layer::Ip, 0),
        // Linux's cooked captures, version 1 and 2.
        113 => (Layer::Type(half(bytes, 14)?), 16),
        276 => (Layer::Type(half(bytes, 0)?), 20),
        _ => return Err(Not::LinkLayer),
    })
}

fn half(bytes: &[u8], at: usize) -> Result<u16, Not> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]])).ok_or(Not::Short)
}

/// What follows an EtherType other than IP's, and after how many bytes.
fn inside(kind: u16, rest: &[u8]) -> Result<(Layer, usize), Not> {
    Ok(match kind {
        // IEEE 802.1Q and its stacks: a tag, then the type of the next header. 802.1ah: a service, then a frame.
        0x8100 | 0x88a8 | 0x9100 => (Layer::Type(half(rest, 2)?), 4),
        0x88e7 => (Layer::Ethernet, 4),
        // Tags of a port: Cisco's VN-Tag; then the E-TAG of 802.1BR, and Cisco's tag of a security group (CMD).
        0x8926 => (Layer::Type(half(rest, 4)?), 6),
        0x893f | 0x8909 => (Layer::Type(half(rest, 6)?), 8),
        // LLC with SNAP (RFC 1042), whose frames have their length in the place of the type.
        ..=1500 if rest.starts_with(&[0xaa, 0xaa, 3, 0, 0, 0]) => (Layer::Type(half(rest, 6)?), 8),
        // A session of PPPoE (RFC 2516); PPP in GRE (RFC 2637).
        0x8864 => (Layer::Ppp, 6),
        0x880b => (Layer::Ppp, if rest.starts_with(&[0xff, 3]) { 2 } else { 0 }),
        // MPLS (RFC 3032): labels, of which the last is marked. Behind it IP, or a frame, maybe after a control word
        // that begins with 0 (RFC 4385).
        0x8847 | 0x8848 => match (rest.get(2), rest.get(4)) {
            (Some(label), _) if label & 1 == 0 => (Layer::Type(kind), 4),
            (_, Some(first)) => match first >> 4 {
                4 | 6 => (Layer::Ip, 4),
                0 => (Layer::Ethernet, 8),
                _ => (Layer::Ethernet, 4),
            },
            _ => return Err(Not::Short),
        },
        // A frame in GRE or GENEVE; mirrored ones (draft-foschiano-erspan), of version 3 with eight bytes more if it says so.
        0x6558 => (Layer::Ethernet, 0),
        0x88be => (Layer::Ethernet, 8),
        0x22eb => (Layer::Ethernet, 12 + usize::from(*rest.get(11).ok_or(Not::Short)? & 1) * 8),
        // A service header (RFC 8300): its length in words, and what it carries.
        0x894f => match (rest.get(1), rest.get(3)) {
            (Some(length), Some(1 | 2)) => (Layer::Ip, usize::from(length & 0x3f) * 4),
            (Some(length), Some(3)) => (Layer::Ethernet, usize::from(length & 0x3f) * 4),
            _ => return Err(Not::Tcp(Other::Type(kind))),
        },
        _ => return Err(Not::Tcp(Other::Type(kind))),
    })
}

/// What a packet of PPP carries: RFC 1661 section 6.5 lets the number be one byte, which is odd.
fn ppp(rest: &[u8]) -> Result<(Layer, usize), Not> {
    let first = *rest.first().ok_or(Not::Short)?;
    let (protocol, length) = if first & 1 == 1 { (first.into(), 1) } else { (half(rest, 0)?, 2) };
    match protocol {
        0x21 | 0x57 => Ok((Layer::Ip, length)),
        0x0281 => Ok((Layer::Type(0x8847), length)),
        _ => Err(Not::Tcp(Other::Type(protocol))),
    }
}

/// A protocol over IP other than TCP, at a byte of the packet: a tunnel, or no segment.
fn tunnel(protocol: u8, packet: &[u8], at: usize) -> Result<(Layer, usize), Not> {
    let rest = packet.get(at..).ok_or(Not::Short)?;
    let (layer, length) = match protocol {
        // IP in IP (RFC 2003), 6in4 (RFC 4213); an Ethernet frame after two bytes (RFC 3378); MPLS (RFC 4023).
        4 | 41 => (Layer::Ip, 0),
        47 => gre(rest)?,
        97 => (Layer::Ethernet, 2),
        // A frame over IPv6 segment routing (RFC 8986 section 10.1).
        143 => (Layer::Ethernet, 0),
        137 => (Layer::Type(0x8847), 0),
        UDP => datagram(rest)?,
        _ => return Err(Not::Tcp(Other::Protocol(protocol))),
    };
    Ok((layer, at + length))
}

/// GRE (RFC 2784, 2890; version 1: RFC 2637).
fn gre(rest: &[u8]) -> Result<(Layer, usize), Not> {
    let (flags, kind) = (half(rest, 0)?, half(rest, 2)?);
    let has = |bits: u16| usize::from(flags & bits != 0) * 4;
    let length = 4 + has(0xc000) + has(0x2000) + has(0x1000) + if flags & 7 == 1 { has(0x80) } else { 0 };
    // Mirrored frames without a number are of the first version, which has no header of its own.
    let plain_mirror = kind == 0x88be && flags & 0x1000 == 0;
    Ok((if plain_mirror { Layer::Ethernet } else { Layer::Type(kind) }, length))
}

/// UDP, by its destination's port.
fn datagram(rest: &[u8]) -> Result<(Layer, usize), Not> {
    let (from, to) = (half(rest, 0)?, half(rest, 2)?);
    let other = Not::Tcp(Other::Udp(if tunnel_name(to).is_some() { to } else { from }));
    let Some(inner) = rest.get(UDP_BYTES..).filter(|inner| inner.len() >= 8) else { return Err(other) };
    let (layer, length) = match to {
        // VXLAN (RFC 7348; 8472: Linux's before that), and with another protocol inside (draft-ietf-nvo3-vxlan-gpe).
        4789 | 8472 if inner[0] & 8 != 0 => (Layer::Ethernet, 8),
        4790 if inner[0] & 12 == 12 => match inner[3] {
            1 | 2 => (Layer::Ip, 8),
            3 => (Layer::Ethernet, 8),
            4 => (Layer::Type(0x894f), 8),
            _ => return Err(other),
        },
        // GENEVE (RFC 8926): options in words.
        6081 if inner[0] >> 6 == 0 => (Layer::Type(half(inner, 2)?), 8 + usize::from(inner[0] & 0x3f) * 4),
        // GTP-U (3GPP TS 29.281): data, maybe with four bytes more and extension headers.
        2152 if inner[0] >> 4 == 3 && inner[1] == 255 => (Layer::Ip, mobile(inner)?),
        // L2TP (RFC 2661): data, with the fields that its flags name.
        1701 if inner[0] & 0x80 == 0 && inner[1] & 15 == 2 => {
            let has = |bit: u8, bytes: usize| if inner[0] & bit != 0 { bytes } else { 0 };
            let fixed = 6 + has(0x40, 2) + has(0x08, 4);
            let offset = if inner[0] & 2 != 0 { 2 + usize::from(half(inner, fixed)?) } else { 0 };
            let begin = fixed + offset;
            let framed = inner.get(begin..).is_some_and(|rest| rest.starts_with(&[0xff, 3]));
            (Layer::Ppp, begin + if framed { 2 } else { 0 })
        }
        6635 => (Layer::Type(0x8847), 0),
        // LISP (RFC 9300 section 5).
        4341 => (Layer::Ip, 8),
        _ => return Err(other),
    };
    Ok((layer, UDP_BYTES + length))
}

/// Bytes of the header of GTP-U.
fn mobile(inner: &[u8]) -> Result<usize, Not> {
    if inner[0] & 7 == 0 {
        return Ok(8);
    }
    let (mut at, mut next) = (12, *inner.get(11).ok_or(Not::Short)?);
    while next != 0 {
        let words = usize::from(*inner.get(at).ok_or(Not::Short)?);
        if words == 0 {
            return Err(Not::Malformed);
        }
        at += words * 4;
        next = *inner.get(at - 1).ok_or(Not::Short)?;
    }
    Ok(at)
}

/// Tunnels over UDP, by port.
fn tunnel_name(port: u16) -> Option<&'static str> {
    Some(match port {
        500 | 4500 => "IPsec over UDP (encrypted)",
        1194 => "OpenVPN (encrypted)",
        1701 => "L2TP",
        2152 => "GTP-U",
        3544 => "Teredo",
        4341 => "LISP",
        4789 | 8472 | 4790 => "VXLAN",
        6081 => "GENEVE",
        51820 => "WireGuard (encrypted)",
        443 => "QUIC",
        53 => "DNS",
        _ => return None,
    })
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match *self {
            Self::Type(0x0806) => Some("ARP"),
            Self::Type(0x8863) => Some("PPPoE discovery"),
            Self::Type(0x88cc) => Some("LLDP"),
            Self::Type(0x88e5) => Some("MACsec (encrypted)"),
            Self::Type(0xfd) => Some("PPP, compressed or encrypted"),
            Self::Type(0xc021 | 0xc023 | 0xc223 | 0x8021 | 0x8057) => Some("PPP control"),
            Self::Protocol(1 | 58) => Some("ICMP"),
            Self::Protocol(50) => Some("ESP (encrypted)"),
            Self::Protocol(115) => Some("L2TP, version 3"),
            Self::Protocol(132) => Some("SCTP"),
            Self::Udp(port) => Some(tunnel_name(port).unwrap_or("UDP")),
            _ => None,
        };
        match (known, *self) {
            (Some(known), _) => f.write_str(known),
            (None, Self::Protocol(protocol)) => write!(f, "IP protocol {protocol}"),
            (None, Self::Type(kind) | Self::Udp(kind)) => write!(f, "type 0x{kind:04x}"),
        }
    }
}

/// Whether the address family of a loopback packet is IPv4's or one of IPv6's.
/// Type 0 has it in the order of the capturing machine's bytes, 108 in the network's: the small number is meant.
fn family(bytes: &[u8]) -> Result<(), Not> {
    let word: [u8; 4] = bytes.first_chunk().copied().ok_or(Not::Short)?;
    let family = u32::from_le_bytes(word).min(u32::from_be_bytes(word));
    // AF_INET; AF_INET6 of NetBSD, FreeBSD, macOS, and Linux.
    if matches!(family, 2 | 24 | 28 | 30 | 10) { Ok(()) } else { Err(Not::Tcp(Other::Type(family as u16))) }
}

/// What an IP packet carries; of `length` bytes, if its header does not say.
fn carried(packet: &[u8], length: usize) -> Result<Carries<'_>, Not> {
    let ip = Ip::read(packet, length).map_err(|error| match error {
        Malformed::Short { .. } => Not::Short,
        _ => Not::Malformed,
    })?;
    let is_ipv4 = ip.source.is_ipv4();
    if ip.is_later_fragment {
        return Err(if is_ipv4 && ip.protocol != TCP { Not::Tcp(Other::Protocol(ip.protocol)) } else { Not::Fragment });
    }
    let (protocol, at) = match ip.protocol {
        // An authentication header (RFC 4302) has the next protocol and its own length in it. Those of IPv6 are passed.
        51 => {
            let [next, length] = half(packet, ip.header_bytes)?.to_be_bytes();
            (next, ip.header_bytes + 8 + usize::from(length) * 4)
        }
        protocol => (protocol, ip.header_bytes),
    };
    if protocol != TCP {
        return tunnel(protocol, packet, at).map(|(layer, at)| Carries::Inside(layer, at));
    }
    if ip.total_bytes < at {
        return Err(Not::Malformed);
    }
    let ends = [ip.source, ip.destination].map(|address| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    });
    tcp(packet.get(at..).ok_or(Not::Short)?, ip.total_bytes - at, at, ends).map(Carries::Segment)
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
