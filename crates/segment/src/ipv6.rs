//! The IPv6 header (RFC 8200).

use std::net::Ipv6Addr;

use crate::Ecn;

/// A header without extension headers.
pub const FIXED_BYTES: usize = 40;

/// A look at an IPv6 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    fixed: &'a [u8; FIXED_BYTES],
    packet: &'a [u8],
}

/// What a packet carries behind its extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upper {
    /// Its protocol.
    pub protocol: u8,
    /// Offset of its header or, in a later fragment, of the bytes that are left of it.
    pub at: usize,
    /// True if it is not all of a packet.
    pub is_fragment: bool,
    /// True if it begins behind the beginning of a packet.
    pub is_later_fragment: bool,
}

impl<'a> Ipv6<'a> {
    /// The header at the beginning of these bytes, if it is complete there.
    pub fn at(packet: &'a [u8]) -> Option<Self> {
        Some(Self { fixed: packet.first_chunk()?, packet })
    }

    /// Bytes of the packet as its header says, which is none where a card was to divide it.
    pub fn total_bytes(self) -> Option<usize> {
        match u16::from_be_bytes([self.fixed[4], self.fixed[5]]) {
            0 => None,
            payload => Some(FIXED_BYTES + usize::from(payload)),
        }
    }

    /// Its source address.
    pub fn source(self) -> u128 {
        self.address(8)
    }

    /// Its destination address.
    pub fn destination(self) -> u128 {
        self.address(24)
    }

    /// Hops that it may still take.
    pub fn hop_limit(self) -> u8 {
        self.fixed[7]
    }

    /// What stands behind any extension headers. None: the bytes end before.
    pub fn upper(self) -> Option<Upper> {
        let mut upper =
            Upper { protocol: self.fixed[6], at: FIXED_BYTES, is_fragment: false, is_later_fragment: false };
        // RFC 8200 section 4: extension headers, each with the kind of the next one.
        while matches!(upper.protocol, 0 | 43 | 44 | 51 | 60) && !upper.is_later_fragment {
            let extension: &[u8; 4] = self.packet.get(upper.at..)?.first_chunk()?;
            upper.at += match upper.protocol {
                44 => {
                    let place = u16::from_be_bytes([extension[2], extension[3]]);
                    upper.is_fragment = place & 0xfff9 != 0;
                    upper.is_later_fragment = place & 0xfff8 != 0;
                    8
                }
                // Authentication (RFC 4302): in units of four bytes, less two.
                51 => 8 + usize::from(extension[1]) * 4,
                // Hop-by-hop options, routing, destination options: in units of eight bytes after the first.
                _ => 8 + usize::from(extension[1]) * 8,
            };
            upper.protocol = extension[0];
        }
        Some(upper)
    }

    fn address(self, from: usize) -> u128 {
        self.fixed[from..from + 16].iter().fold(0, |sum: u128, &byte| sum << 8 | u128::from(byte))
    }
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
