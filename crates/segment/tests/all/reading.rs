//! A written packet reads back unchanged; anything else is an error.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;

use firstflight_segment::{Ecn, Flags, PathOption, QuickStart, SackBlocks, Segment, Timestamps};
use firstflight_segment::{Envelope, Malformed, Packet, Unrepresentable, read_headers, read_packet, write_packet_with};
use proptest::{collection::vec, option, prelude::*};

fn an_envelope() -> impl Strategy<Value = Envelope> {
    let numbers = (any::<u16>(), any::<u8>());
    (any::<bool>(), any::<[u128; 2]>(), any::<[u16; 2]>(), numbers).prop_map(|(ipv6, addresses, ports, numbers)| {
        let address = |bits: u128| match ipv6 {
            true => Ipv6Addr::from_bits(bits).into(),
            false => Ipv4Addr::from_bits(bits as u32).into(),
        };
        Envelope {
            source: SocketAddr::new(address(addresses[0]), ports[0]),
            destination: SocketAddr::new(address(addresses[1]), ports[1]),
            identification: if ipv6 { 0 } else { numbers.0 },
            time_to_live: numbers.1,
        }
    })
}

fn a_quick_start() -> impl Strategy<Value = QuickStart> {
    prop_oneof![
        Just(QuickStart::None),
        (0..16u8, any::<bool>()).prop_map(|(rate, approved)| QuickStart::Request { rate, approved }),
        (0..16u8).prop_map(|rate| QuickStart::Report { rate }),
    ]
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    option::of((any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo }))
}

fn sack() -> impl Strategy<Value = SackBlocks> {
    vec((any::<u32>(), any::<u32>()), 0..=4).prop_map(|ranges| {
        let mut blocks = SackBlocks::NONE;
        ranges.into_iter().for_each(|(left, right)| blocks.push(left, right));
        blocks
    })
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable1), Just(Ecn::Capable0), Just(Ecn::Congestion)]
}

/// Segments with any combination of options; some have more options than a header holds.
fn a_segment() -> impl Strategy<Value = Segment> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), ecn());
    let options = (timestamps(), sack(), a_quick_start(), option::of(0..16u8));
    let of_a_syn = (any::<u16>().prop_map(NonZeroU16::new), option::of(0..15u8), any::<bool>());
    (numbers, options, of_a_syn).prop_map(|(numbers, options, of_a_syn)| {
        let (seq, ack, window, flags, ecn) = numbers;
        let (timestamps, sack, quick_start, quick_start_response) = options;
        let flags = Flags::from_bits_truncate(flags);
        let plain = Segment {
            seq,
            ack,
            window,
            flags,
            ecn,
            timestamps,
            sack,
            path_option: PathOption::new(quick_start, quick_start_response),
            ..Segment::EMPTY
        };
        let (mss, window_scale, sack_permitted) = of_a_syn;
        if flags.contains(Flags::SYN) { Segment { mss, window_scale, sack_permitted, ..plain } } else { plain }
    })
}

fn a_packet() -> (Segment, Vec<u8>) {
    let payload = b"GET / HTTP/1.1";
    let segment = Segment {
        seq: 7,
        ack: 9,
        flags: Flags::ACK | Flags::PSH,
        payload_bytes: payload.len() as u32,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        ..Segment::EMPTY
    };
    let envelope = Envelope {
        source: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 40_000)),
        destination: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), 80)),
        identification: 1,
        time_to_live: 64,
    };
    let mut packet = Vec::new();
    write_packet_with(&segment, &envelope, payload, &mut packet).unwrap();
    (segment, packet)
}

/// A packet with one byte of its IPv4 header (of its fixed part) replaced and the header's checksum fixed.
fn with_ip_byte(at: usize, value: u8) -> Vec<u8> {
    let (_, mut packet) = a_packet();
    packet[at] = value;
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = sum % 65_536 + sum / 65_536;
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet
}

proptest! {
    #[test]
    fn what_was_written_is_read(segment in a_segment(), envelope in an_envelope(), payload in vec(any::<u8>(), 0..1500)) {
        let segment = Segment { payload_bytes: payload.len() as u32, ..segment };
        let mut bytes = Vec::new();
        match write_packet_with(&segment, &envelope, &payload, &mut bytes) {
            Err(Unrepresentable::Options(_)) => {}
            Err(Unrepresentable::QuickStart) => prop_assert!(envelope.source.is_ipv6()),
            Err(other) => panic!("{other}"),
            Ok(()) => {
                let packet = read_packet(&bytes).unwrap();
                prop_assert_eq!(packet.envelope, envelope);
                prop_assert_eq!(packet.segment, segment);
                prop_assert_eq!(&bytes[packet.payload], &payload[..]);
                prop_assert_eq!(read_headers(&bytes).unwrap().segment, segment);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in vec(any::<u8>(), 0..100)) {
        let _ = read_packet(&bytes);
        let _ = read_headers(&bytes);
    }

    /// Random bytes seldom get past the first checksum: these do, and are wrong farther on.
    #[test]
    fn any_options_are_read_or_an_error(options in vec(any::<u8>(), 40)) {
        let (_, mut packet) = a_packet();
        packet.truncate(40);
        packet.extend_from_slice(&options);
        packet[32] = 15 << 4;
        // More payload than there is: the TCP checksum of a packet that is cut is not looked at.
        let mut cut = packet;
        cut[3] = 200;
        cut[10..12].fill(0);
        let sum: u32 = cut[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = sum % 65_536 + sum / 65_536;
        cut[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        match read_headers(&cut) {
            Ok(packet) => prop_assert_eq!(packet.segment.payload_bytes, 200 - 80),
            Err(error) => prop_assert!(matches!(error, Malformed::Option { header: "TCP", .. }), "{}", error),
        }
    }

    #[test]
    fn a_changed_byte_is_noticed(at in 0..66usize, change in 1..=255u8) {
        let (_, mut packet) = a_packet();
        packet[at] ^= change;
        prop_assert!(read_packet(&packet).is_err());
    }
}

#[test]
fn padding_behind_a_packet_is_ignored() {
    let (segment, mut packet) = a_packet();
    let end = packet.len();
    packet.extend_from_slice(&[0; 9]);
    let Packet { segment: read, payload, .. } = read_packet(&packet).unwrap();
    assert_eq!((read, payload), (segment, end - 14..end));
}

#[test]
fn a_cut_packet_has_its_headers_and_the_length_it_had() {
    let (segment, packet) = a_packet();
    let cut = &packet[..packet.len() - 10];
    assert!(matches!(read_packet(cut), Err(Malformed::Short { header: "IPv4", .. })));
    let Packet { segment: read, payload, .. } = read_headers(cut).unwrap();
    assert_eq!((read, payload.len()), (segment, 4));
    for length in 0..52 {
        assert!(matches!(read_headers(&packet[..length]), Err(Malformed::Short { .. })), "{length} bytes");
    }
}

#[test]
fn a_wrong_checksum_of_tcp_is_noticed_unless_the_packet_is_cut() {
    let (_, mut packet) = a_packet();
    packet[36] ^= 1;
    assert_eq!(read_packet(&packet), Err(Malformed::Checksum("TCP")));
    assert_eq!(read_headers(&packet), Err(Malformed::Checksum("TCP")));
    assert!(read_headers(&packet[..packet.len() - 1]).is_ok());
}

#[test]
fn other_packets_are_named() {
    assert_eq!(read_packet(&with_ip_byte(0, 5 << 4 | 5)), Err(Malformed::Version(5)));
    assert_eq!(read_packet(&with_ip_byte(9, 17)), Err(Malformed::Protocol(17)));
    assert_eq!(read_packet(&with_ip_byte(6, 0x20)), Err(Malformed::Fragment));
    assert_eq!(read_packet(&with_ip_byte(0, 4 << 4 | 4)), Err(Malformed::HeaderLength { header: "IPv4", bytes: 16 }));
    let sentence = read_packet(&with_ip_byte(9, 1)).unwrap_err().to_string();
    assert_eq!(sentence, "the packet carries protocol 1, not TCP (6)");
}

/// An IPv6 packet whose header is followed by this extension header.
fn extended(kind: u8, extension: &[u8]) -> Vec<u8> {
    let (segment, packet) = a_packet();
    let end = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
    let envelope = Envelope { source: end, destination: end, ..read_packet(&packet).unwrap().envelope };
    let mut packet = Vec::new();
    write_packet_with(&segment, &envelope, b"GET / HTTP/1.1", &mut packet).unwrap();
    packet[6] = kind;
    packet[5] += extension.len() as u8;
    packet.splice(40..40, extension.iter().copied());
    packet
}

#[test]
fn a_segment_of_ipv6_is_found_behind_extension_headers() {
    let packet = extended(60, &[6, 0, 1, 4, 0, 0, 0, 0]);
    let read = read_packet(&packet).unwrap();
    assert_eq!((read.segment, read.payload), (a_packet().0, packet.len() - 14..packet.len()));
    assert_eq!(read_packet(&extended(44, &[6, 0, 0, 8, 0, 0, 0, 1])), Err(Malformed::Fragment));
    assert_eq!(read_packet(&extended(44, &[6, 0, 0, 1, 0, 0, 0, 1])), Err(Malformed::Fragment));
    assert_eq!(read_packet(&extended(60, &[58, 0, 1, 4, 0, 0, 0, 0])), Err(Malformed::Protocol(58)));
    assert!(matches!(read_packet(&packet[..41]), Err(Malformed::Short { header: "IPv6", .. })));
    assert!(matches!(read_packet(&packet[..90]), Err(Malformed::Short { header: "IPv6", needs: 94, has: 90 })));
}

#[test]
fn addresses_of_two_versions_are_refused() {
    let (segment, packet) = a_packet();
    let envelope = read_packet(&packet).unwrap().envelope;
    let mixed = Envelope { source: SocketAddr::from((Ipv6Addr::LOCALHOST, 80)), ..envelope };
    let refused = write_packet_with(&segment, &mixed, b"GET / HTTP/1.1", &mut Vec::new());
    assert_eq!(refused, Err(Unrepresentable::Versions));
}

#[test]
fn a_shift_above_14_counts_as_14() {
    let (_, packet) = a_packet();
    let envelope = read_packet(&packet).unwrap().envelope;
    let syn = Segment { flags: Flags::SYN, window_scale: Some(200), ..Segment::EMPTY };
    let mut packet = Vec::new();
    write_packet_with(&syn, &envelope, &[], &mut packet).unwrap();
    assert_eq!(read_packet(&packet).unwrap().segment.window_scale, Some(14));
}

#[test]
fn a_payload_of_another_length_than_the_segments_is_refused() {
    let (segment, packet) = a_packet();
    let envelope = read_packet(&packet).unwrap().envelope;
    let refused = write_packet_with(&segment, &envelope, b"short", &mut Vec::new());
    assert_eq!(refused, Err(Unrepresentable::Payload { counted: 14, given: 5 }));
}
