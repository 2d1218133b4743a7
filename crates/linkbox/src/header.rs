//! The header fields of an IP packet that a link needs.

use std::net::IpAddr;

use firstflight_path::OfferedPacket;
use firstflight_segment::{Ecn, IPV4_BYTES, Ip, TCP, Tcp, UDP, UDP_BYTES};

/// The fields that the link box reads from a packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    /// Its length by its header: bytes after it are padding.
    pub(crate) total_bytes: u16,
    pub(crate) destination: IpAddr,
    pub(crate) offered: OfferedPacket,
}

impl PacketHeader {
    /// Reads the header of a packet. None: it is no whole IP packet.
    pub(crate) fn at(packet: &[u8]) -> Option<PacketHeader> {
        let ip = Ip::at(packet)?;
        let body = packet.get(ip.header_bytes..ip.total_bytes)?;
        let total_bytes = u16::try_from(ip.total_bytes).ok()?;
        // A later fragment is payload alone; a packet that is neither TCP nor UDP has none that a stream would count.
        let headers = match ip.protocol {
            _ if ip.is_later_fragment => 0,
            TCP => Tcp::at(body).map_or(body.len(), Tcp::header_bytes),
            UDP => UDP_BYTES,
            _ => body.len(),
        };
        Some(PacketHeader {
            total_bytes,
            destination: ip.destination,
            offered: OfferedPacket {
                bytes: u32::from(total_bytes),
                ecn_capable: ip.ecn() != Ecn::NotCapable,
                carries_data: body.len() > headers,
                ends_train: false,
                connection: flow(packet, &ip, if ip.is_later_fragment { &[] } else { body }),
                class: ip.traffic_class >> 5,
            },
        })
    }
}

/// A number for the flow of a packet: a hash (FNV-1a) of its addresses, protocol and ports.
fn flow(packet: &[u8], ip: &Ip, body: &[u8]) -> u32 {
    let addresses = if ip.destination.is_ipv4() { 12..20 } else { 8..40 };
    let ports = &body[..body.len().min(4)];
    let bytes = packet[addresses].iter().chain([&ip.protocol]).chain(ports);
    bytes.fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// True if there are IPv4 options in a packet that [`PacketHeader::at`] found whole.
pub(crate) fn has_options(packet: &[u8]) -> bool {
    Ip::at(packet).is_some_and(|ip| ip.source.is_ipv4() && ip.header_bytes > IPV4_BYTES)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    use firstflight_segment::{Envelope, Flags, PathOption, QuickStart, Segment, Timestamps, write_packet};

    use super::*;

    const ADDRESSES: [[IpAddr; 2]; 2] = [
        [IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2))],
        [
            IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)),
            IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2)),
        ],
    ];

    fn packet(segment: Segment) -> Vec<u8> {
        between(ADDRESSES[0], segment)
    }

    fn between([source, destination]: [IpAddr; 2], segment: Segment) -> Vec<u8> {
        let envelope = Envelope::between(SocketAddr::new(source, 80), SocketAddr::new(destination, 40_000));
        let mut bytes = Vec::new();
        write_packet(&segment, &envelope, 0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn payload_is_told_from_headers_with_and_without_options() {
        let options = Segment {
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            path_option: PathOption::new(QuickStart::Report { rate: 3 }, None),
            ..Segment::EMPTY
        };
        for (segment, carries_data) in [
            (Segment { payload_bytes: 1, ..options }, true),
            (options, false),
            (Segment { payload_bytes: 1, ..Segment::EMPTY }, true),
            (Segment::EMPTY, false),
        ] {
            let bytes = packet(segment);
            let header = PacketHeader::at(&bytes).unwrap();
            assert_eq!(
                header.offered,
                OfferedPacket { bytes: bytes.len() as u32, carries_data, ecn_capable: false, ..header.offered }
            );
            assert_eq!(header.destination, ADDRESSES[0][1]);
        }
    }

    #[test]
    fn an_ipv6_packet_has_its_longer_header_its_marks_and_its_class() {
        let segment = Segment { payload_bytes: 1, ecn: Ecn::Capable0, flags: Flags::ACK, ..Segment::EMPTY };
        let mut bytes = between(ADDRESSES[1], segment);
        bytes[0] |= 5 << 1;
        let header = PacketHeader::at(&bytes).unwrap();
        assert_eq!((header.total_bytes, header.destination), (61, ADDRESSES[1][1]));
        let OfferedPacket { ecn_capable, carries_data, class, .. } = header.offered;
        assert_eq!((ecn_capable, carries_data, class), (true, true, 5));
        let other = PacketHeader::at(&between([ADDRESSES[1][0]; 2], segment)).unwrap();
        assert_ne!(header.offered.connection, other.offered.connection);
        assert!(!has_options(&bytes));
    }

    #[test]
    fn padding_behind_a_packet_does_not_count() {
        let mut bytes = packet(Segment::EMPTY);
        bytes.resize(60, 0);
        assert_eq!(PacketHeader::at(&bytes).unwrap().total_bytes, 40);
    }

    #[test]
    fn what_is_no_whole_ip_packet_is_seen_as_such() {
        let bytes = packet(Segment { payload_bytes: 100, ..Segment::EMPTY });
        assert_eq!(PacketHeader::at(&bytes[..139]), None);
        assert_eq!(PacketHeader::at(&bytes[..10]), None);
        let mut of_version_5 = bytes.clone();
        of_version_5[0] = 0x55;
        assert_eq!(PacketHeader::at(&of_version_5), None);
    }

    #[test]
    fn a_later_fragment_is_payload_even_if_it_is_short() {
        let mut bytes = packet(Segment::EMPTY);
        bytes[6..8].copy_from_slice(&5u16.to_be_bytes());
        let header = PacketHeader::at(&bytes).unwrap();
        assert!(header.offered.carries_data);
    }
}
