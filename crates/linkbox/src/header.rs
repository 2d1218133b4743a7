//! What a link must know of an IPv4 packet, and the mark that it may set.

use std::net::Ipv4Addr;

use firstflight_path::Offered;

const FIXED_BYTES: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const QUICK_START: u8 = 25;
const UDP_HEADER_BYTES: usize = 8;
const ECN: u8 = 0b11;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A look at a packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Its length by its header: what lies behind is padding.
    pub(crate) total_bytes: u16,
    pub(crate) destination: Ipv4Addr,
    pub(crate) offered: Offered,
    pub(crate) is_fragment: bool,
}

impl Glance {
    /// Looks at what should be a packet; none: it is no whole IPv4 packet.
    // RFC 791 §3.1.
    #[inline]
    pub(crate) fn at(packet: &[u8]) -> Option<Glance> {
        let header: &[u8; FIXED_BYTES] = packet.first_chunk()?;
        let header_bytes = usize::from(header[0] & 15) * 4;
        let total_bytes = u16::from_be_bytes([header[2], header[3]]);
        let total = usize::from(total_bytes);
        if header[0] >> 4 != 4 || header_bytes < FIXED_BYTES || total < header_bytes || total > packet.len() {
            return None;
        }
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let continues = fragment & FRAGMENT_OFFSET != 0;
        let body = &packet[header_bytes..total];
        // A later fragment is payload alone; what is neither TCP nor UDP has none that a stream would count.
        let headers = match header[9] {
            _ if continues => 0,
            TCP => body.get(12).map_or(body.len(), |offset| usize::from(offset >> 4) * 4),
            UDP => UDP_HEADER_BYTES,
            _ => body.len(),
        };
        Some(Glance {
            total_bytes,
            destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
            offered: Offered {
                bytes: u32::from(total_bytes),
                ecn_capable: header[1] & ECN != 0,
                carries_data: body.len() > headers,
                connection: 0,
            },
            is_fragment: continues || fragment & MORE_FRAGMENTS != 0,
        })
    }
}

/// Sets "congestion experienced" (RFC 3168 §5) in a packet that [`Glance::at`] found whole.
pub(crate) fn mark(packet: &mut [u8]) {
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= ECN;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = mended(u16::from_be_bytes([packet[10], packet[11]]), before, after);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Whether there are options in a packet that [`Glance::at`] found whole.
#[inline]
pub(crate) fn has_options(packet: &[u8]) -> bool {
    usize::from(packet[0] & 15) * 4 > FIXED_BYTES
}

/// Lets the router before a link answer the Quick-Start request that a packet may carry: `answer` gives the rate code
/// granted of the one asked for; none: the router does not know such requests.
// RFC 4782 §3.1: function 0000 is a request, with the rate code and the QS TTL behind it; §3.3: a router that takes part
// lowers QS TTL and TTL alike, one that does not lowers the TTL alone, by which the receiver knows. No TTL is lowered
// here, so the QS TTL is raised instead: once, for what matters is whether they differ.
pub(crate) fn answer_quick_start(packet: &mut [u8], answer: impl FnOnce(u8) -> Option<u8>) {
    let Some(at) = quick_start_request(packet) else { return };
    let time_to_live = packet[8];
    if packet[at + 3] != time_to_live {
        return;
    }
    match answer(packet[at + 2] & 15) {
        Some(granted) => packet[at + 2] = granted & 15,
        None => packet[at + 3] = time_to_live.wrapping_add(1),
    }
    let header_bytes = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let words = packet[..header_bytes].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Where the option stands, if it is there whole and is a request.
fn quick_start_request(packet: &[u8]) -> Option<usize> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    let end = usize::from(packet[0] & 15) * 4;
    let mut at = FIXED_BYTES;
    while at + 1 < end {
        match (packet[at], usize::from(packet[at + 1])) {
            (END, _) => return None,
            (NO_OPERATION, _) => at += 1,
            (QUICK_START, 8) if at + 8 <= end => return (packet[at + 2] >> 4 == 0).then_some(at),
            (_, length) => at += length.max(2),
        }
    }
    None
}

/// The checksum after a word has changed.
// RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m').
fn mended(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use firstflight_pcap::{Envelope, write_packet};
    use firstflight_tcp::{Ecn, Flags, QuickStart, Segment, Timestamps};

    use super::*;

    fn packet(segment: Segment) -> Vec<u8> {
        let envelope = Envelope {
            source: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 80),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 2), 40_000),
            identification: 7,
            time_to_live: 64,
            stream_offset: 0,
        };
        let mut bytes = Vec::new();
        write_packet(&segment, &envelope, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn payload_is_told_from_headers_with_and_without_options() {
        let options = Segment {
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            quick_start: QuickStart::Report { rate: 3 },
            ..Segment::EMPTY
        };
        for (segment, carries_data) in [
            (Segment { payload_bytes: 1, ..options }, true),
            (options, false),
            (Segment { payload_bytes: 1, ..Segment::EMPTY }, true),
            (Segment::EMPTY, false),
        ] {
            let bytes = packet(segment);
            let glance = Glance::at(&bytes).unwrap();
            assert_eq!(
                glance.offered,
                Offered { bytes: bytes.len() as u32, ecn_capable: false, carries_data, connection: 0 }
            );
            assert_eq!(glance.destination, Ipv4Addr::new(10, 77, 0, 2));
        }
    }

    #[test]
    fn padding_behind_a_packet_does_not_count() {
        let mut bytes = packet(Segment::EMPTY);
        bytes.resize(60, 0);
        assert_eq!(Glance::at(&bytes).unwrap().total_bytes, 40);
    }

    #[test]
    fn what_is_no_whole_ipv4_packet_is_seen_as_such() {
        let bytes = packet(Segment { payload_bytes: 100, ..Segment::EMPTY });
        assert_eq!(Glance::at(&bytes[..139]), None);
        assert_eq!(Glance::at(&bytes[..10]), None);
        let mut of_version_6 = bytes.clone();
        of_version_6[0] = 0x65;
        assert_eq!(Glance::at(&of_version_6), None);
    }

    #[test]
    fn a_later_fragment_is_payload_even_if_it_is_short() {
        let mut bytes = packet(Segment::EMPTY);
        bytes[6..8].copy_from_slice(&5u16.to_be_bytes());
        let glance = Glance::at(&bytes).unwrap();
        assert!(glance.is_fragment && glance.offered.carries_data);
    }

    #[test]
    fn a_mark_leaves_the_packet_as_its_sender_would_have_written_it() {
        let mut marked = packet(Segment { ecn: Ecn::Capable0, ..Segment::EMPTY });
        mark(&mut marked);
        assert_eq!(marked, packet(Segment { ecn: Ecn::Congestion, ..Segment::EMPTY }));
    }

    #[test]
    fn a_quick_start_request_leaves_a_link_as_a_router_would_have_written_it() {
        let asking = |rate, approved| {
            packet(Segment { flags: Flags::SYN, quick_start: QuickStart::Request { rate, approved }, ..Segment::EMPTY })
        };
        for (answer, expected) in [(Some(4), asking(4, true)), (None, asking(9, false))] {
            let mut passing = asking(9, true);
            answer_quick_start(&mut passing, |asked| {
                assert_eq!(asked, 9);
                answer
            });
            assert_eq!(passing, expected);
        }
        // Void already, a report, and no option at all: nobody is asked.
        let report = packet(Segment { quick_start: QuickStart::Report { rate: 9 }, ..Segment::EMPTY });
        for mut passing in [asking(9, false), report, packet(Segment::EMPTY)] {
            let before = passing.clone();
            answer_quick_start(&mut passing, |_| panic!("there is nothing to answer"));
            assert_eq!(passing, before);
        }
    }
}
