//! The header of the Internet Protocol, of either version.

use std::net::{IpAddr, Ipv6Addr};

use crate::{Ecn, Envelope, IPV4_BYTES, Ipv4, Ipv6, Unrepresentable, ipv4, ipv6};

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
    /// True if it is not all of a packet.
    pub is_fragment: bool,
    /// True if it begins behind the beginning of a packet.
    pub is_later_fragment: bool,
}

impl Ip {
    /// The packet that begins with these bytes, which may end behind its header. None: its header is not whole, or gives
    /// lengths that cannot be.
    pub fn at(packet: &[u8]) -> Option<Self> {
        let found = match packet.first()? >> 4 {
            4 => Self::of_version_4(packet)?,
            6 => Self::of_version_6(packet)?,
            _ => return None,
        };
        (found.header_bytes <= found.total_bytes).then_some(found)
    }

    fn of_version_4(packet: &[u8]) -> Option<Self> {
        let ip = Ipv4::at(packet).filter(|ip| ip.header_bytes() >= IPV4_BYTES)?;
        Some(Self {
            source: ip.source().into(),
            destination: ip.destination().into(),
            protocol: ip.protocol(),
            header_bytes: ip.header_bytes(),
            total_bytes: ip.total_bytes().into(),
            traffic_class: packet[1],
            is_fragment: ip.is_fragment(),
            is_later_fragment: ip.is_later_fragment(),
        })
    }

    fn of_version_6(packet: &[u8]) -> Option<Self> {
        let ip = Ipv6::at(packet)?;
        let upper = ip.upper()?;
        Some(Self {
            source: Ipv6Addr::from_bits(ip.source()).into(),
            destination: Ipv6Addr::from_bits(ip.destination()).into(),
            protocol: upper.protocol,
            header_bytes: upper.at,
            total_bytes: ip.total_bytes()?,
            traffic_class: packet[0] << 4 | packet[1] >> 4,
            is_fragment: upper.is_fragment,
            is_later_fragment: upper.is_later_fragment,
        })
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
