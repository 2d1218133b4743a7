//! The header of the Internet Protocol, of either version.

use std::net::IpAddr;

use crate::{Ecn, Envelope, Malformed, Unrepresentable, ipv4, ipv6};

/// The fields of a packet that do not depend on the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address.
    pub destination: IpAddr,
    /// Protocol that it carries.
    pub protocol: u8,
    /// Offset of what it carries: bytes of the header, with options or extension headers.
    pub header_bytes: usize,
    /// Bytes of the packet as its header says.
    pub total_bytes: usize,
    /// The byte that holds precedence and ECN: type of service, or traffic class.
    pub traffic_class: u8,
    /// IPv4's identification; 0 in IPv6.
    pub identification: u16,
    /// Hops that it may still take.
    pub time_to_live: u8,
    /// True if it is not all of a packet.
    pub is_fragment: bool,
    /// True if it begins behind the beginning of a packet.
    pub is_later_fragment: bool,
}

impl Ip {
    /// The packet that begins with these bytes, which may end behind its header. None: its header is not whole, or gives
    /// lengths that cannot be.
    pub fn at(packet: &[u8]) -> Option<Self> {
        Self::read(packet, 0).ok().filter(|found| found.header_bytes <= found.total_bytes)
    }

    /// As [`at`](Self::at), also for packets that segmentation offload (TSO) has yet to divide. Their headers give no
    /// length: `total_bytes` is then `undivided`, which may be too small for the header.
    ///
    /// # Errors
    /// Bytes that do not begin with a header.
    pub fn read(packet: &[u8], undivided: usize) -> Result<Self, Malformed> {
        match packet.first().map_or(4, |first| first >> 4) {
            4 => ipv4::read_header(packet, undivided),
            6 => ipv6::read_header(packet, undivided),
            version => Err(Malformed::Version(version)),
        }
    }

    /// The ECN bits.
    pub fn ecn(&self) -> Ecn {
        Ecn::of(self.traffic_class)
    }
}

/// Sets "congestion experienced" (RFC 3168 section 5) in a packet whose header is whole.
pub fn mark(packet: &mut [u8]) {
    match packet[0] >> 4 {
        6 => ipv6::mark(packet),
        _ => ipv4::mark(packet),
    }
}

/// Appends the header of a packet that carries `body_bytes` of a protocol; `options` are IPv4's.
pub(crate) fn write_header(
    protocol: u8,
    ecn: Ecn,
    envelope: &Envelope,
    options: &[u8],
    body_bytes: usize,
    into: &mut Vec<u8>,
) -> Result<(), Unrepresentable> {
    match (envelope.source.ip(), envelope.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = ipv4::FIXED_BYTES + options.len() + body_bytes;
            let length = u16::try_from(total).map_err(|_| Unrepresentable::Length(total))?;
            ipv4::write_header(protocol, ecn, envelope, [source, destination], options, length, into);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) if options.is_empty() => {
            let length =
                u16::try_from(body_bytes).map_err(|_| Unrepresentable::Length(ipv6::FIXED_BYTES + body_bytes))?;
            ipv6::write_header(protocol, ecn, envelope.time_to_live, [source, destination], length, into);
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => return Err(Unrepresentable::QuickStart),
        _ => return Err(Unrepresentable::Versions),
    }
    Ok(())
}
