//! The IPv6 header (RFC 8200).

use std::net::Ipv6Addr;

use crate::{Ecn, Ip, Malformed};

/// A header without extension headers.
pub const FIXED_BYTES: usize = 40;

/// The header at the beginning of these bytes, as [`Ip::read`], with its extension headers.
pub(crate) fn read_header(packet: &[u8], undivided: usize) -> Result<Ip, Malformed> {
    let short = |needs| Malformed::Short { header: "IPv6", needs, has: packet.len() };
    let fixed: &[u8; FIXED_BYTES] = packet.first_chunk().ok_or(short(FIXED_BYTES))?;
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let address = |at: usize| {
        let bytes = &fixed[at..at + 16];
        Ipv6Addr::from_bits(bytes.iter().fold(0, |sum: u128, &byte| sum << 8 | u128::from(byte))).into()
    };
    let mut ip = Ip {
        source: address(8),
        destination: address(24),
        protocol: fixed[6],
        header_bytes: FIXED_BYTES,
        total_bytes: match half(4) {
            0 => undivided,
            payload => FIXED_BYTES + usize::from(payload),
        },
        traffic_class: fixed[0] << 4 | fixed[1] >> 4,
        identification: 0,
        time_to_live: fixed[7],
        is_fragment: false,
        is_later_fragment: false,
    };
    // RFC 8200 section 4: extension headers, each with the kind of the next one.
    while matches!(ip.protocol, 0 | 43 | 44 | 51 | 60) && !ip.is_later_fragment {
        let extension = packet.get(ip.header_bytes..).and_then(<[u8]>::first_chunk::<4>);
        let &[next, length, high, low] = extension.ok_or(short(ip.total_bytes.max(FIXED_BYTES)))?;
        ip.header_bytes += match ip.protocol {
            44 => {
                let place = u16::from_be_bytes([high, low]);
                ip.is_fragment = place & 0xfff9 != 0;
                ip.is_later_fragment = place & 0xfff8 != 0;
                8
            }
            // Authentication (RFC 4302): in units of four bytes, less two.
            51 => 8 + usize::from(length) * 4,
            // Hop-by-hop options, routing, destination options: in units of eight bytes after the first.
            _ => 8 + usize::from(length) * 8,
        };
        ip.protocol = next;
    }
    Ok(ip)
}

/// Sets "congestion experienced" (RFC 3168 section 5), which no checksum covers.
// RFC 8200 section 3: the low two bits of the traffic class, which begins in the middle of the first byte.
pub(crate) fn mark(packet: &mut [u8]) {
    packet[1] |= (Ecn::Congestion as u8) << 4;
}

/// Appends the header, with flow label 0.
pub(crate) fn write_header(
    protocol: u8,
    ecn: Ecn,
    hop_limit: u8,
    [source, destination]: [Ipv6Addr; 2],
    payload_bytes: u16,
    into: &mut Vec<u8>,
) {
    into.extend_from_slice(&[6 << 4, (ecn as u8) << 4, 0, 0]);
    into.extend_from_slice(&payload_bytes.to_be_bytes());
    into.extend_from_slice(&[protocol, hop_limit]);
    into.extend_from_slice(&source.octets());
    into.extend_from_slice(&destination.octets());
}
