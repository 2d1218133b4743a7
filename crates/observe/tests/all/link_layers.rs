//! Every link layer and file format that is read, each with the same connection in it.

use crate::made::{Frame, MS, Segment, download, pcap, read};

const ETHERNET: u32 = 1;

/// The connection in other clothes: each packet of `download` rewritten by `dress`.
fn dressed(dress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Frame> {
    download(1_700_000_000_000_000_000, 40_000, 80 * MS, 0, 10)
        .into_iter()
        .map(|(time, kept, length)| {
            let dressed = dress(&kept);
            let length = length + dressed.len() as u32 - kept.len() as u32;
            (time, dressed, length)
        })
        .collect()
}

fn expect_the_connection(file: &[u8], what: &str) {
    let told = read(file);
    assert_eq!(told.connections.len(), 1, "{what}: {:?}", told.problems);
    assert!((told.connections[0].rtt_s - 0.08).abs() < 2e-6, "{what}: {}", told.connections[0].rtt_s);
    assert_eq!(told.responses[0].first_flight_segments, 10, "{what}");
    assert_eq!(told.responses[0].bytes, 10_000, "{what}");
    assert!(told.problems.is_empty(), "{what}: {:?}", told.problems);
}

fn behind(head: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> + '_ {
    move |packet| [head, packet].concat()
}

#[test]
fn ethernet_with_and_without_tags_cooked_raw_and_loopback_are_read() {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let ethernet = [&addresses[..], &[8, 0]].concat();
    let tagged = [&addresses[..], &[0x81, 0, 0, 7, 8, 0]].concat();
    let twice = [&addresses[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0]].concat();
    let cooked = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let cooked_2 = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    for (name, link_type, head) in [
        ("Ethernet", ETHERNET, &ethernet[..]),
        ("a VLAN", ETHERNET, &tagged[..]),
        ("a VLAN in another", ETHERNET, &twice[..]),
        ("cooked", 113, &cooked[..]),
        ("cooked, version 2", 276, &cooked_2[..]),
        ("raw", 101, &[][..]),
        ("raw by an older number", 12, &[][..]),
        ("IPv4", 228, &[][..]),
        ("BSD's loopback, little endian", 0, &[2, 0, 0, 0][..]),
        ("BSD's loopback, of a big-endian machine", 0, &[0, 0, 0, 2][..]),
        ("OpenBSD's loopback", 108, &[0, 0, 0, 2][..]),
    ] {
        expect_the_connection(&pcap(link_type, &dressed(behind(head))), name);
    }
}

#[test]
fn captures_cut_to_96_bytes_are_read() {
    let head = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &[8, 0]].concat();
    let mut frames = dressed(behind(&head));
    for (_, kept, length) in &mut frames {
        kept.resize(*length as usize, 0);
        kept.truncate(96);
    }
    expect_the_connection(&pcap(ETHERNET, &frames), "96 bytes");
}

#[test]
fn frames_padded_to_the_least_of_ethernet_carry_no_more_data() {
    let head = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &[8, 0]].concat();
    let mut frames = dressed(behind(&head));
    for (_, kept, length) in &mut frames {
        if *length < 80 {
            kept.resize(80, 0);
            *length = 80;
        }
    }
    expect_the_connection(&pcap(ETHERNET, &frames), "padding");
}

#[test]
fn ipv6_is_read_with_extension_headers() {
    let hop_by_hop = [6, 0, 1, 4, 0, 0, 0, 0];
    for (extensions, first) in [(&[][..], 6), (&hop_by_hop[..], 0)] {
        let frames: Vec<Frame> = segments()
            .into_iter()
            .map(|(time, segment)| {
                let kept = segment.ipv6(extensions, first);
                let length = kept.len() as u32 + segment.payload;
                (time, kept, length)
            })
            .collect();
        let told = read(&pcap(229, &frames));
        assert_eq!((told.responses[0].bytes, told.connections[0].mss), (2000, 1000));
    }
}

/// A short connection, to be written as anything.
fn segments() -> Vec<(i64, Segment)> {
    use crate::made::{ACK, SYN, segment};
    vec![
        (0, segment(false, 99, 0, SYN, 0).mss(1000)),
        (MS, segment(true, 499, 100, SYN | ACK, 0).mss(1440)),
        (50 * MS, segment(false, 100, 500, ACK, 100)),
        (51 * MS, segment(true, 500, 200, ACK, 1000)),
        (51 * MS, segment(true, 1500, 200, ACK, 1000)),
        (100 * MS, segment(false, 200, 2500, ACK, 0)),
    ]
}

/// A big-endian word of a file in the order that is asked for.
fn word(value: u32, little: bool) -> [u8; 4] {
    if little { value.to_le_bytes() } else { value.to_be_bytes() }
}

#[test]
fn pcap_is_read_in_both_orders_of_bytes_and_both_resolutions() {
    // Kuznetzov's has eight bytes more before each packet.
    for (little, (magic, unit, more)) in [true, false].into_iter().flat_map(|little| {
        [(0xa1b2_c3d4, 1000, 0), (0xa1b2_3c4d, 1, 0), (0xa1b2_cd34, 1000, 8)].map(|kind| (little, kind))
    }) {
        let mut file = Vec::new();
        for value in [magic, 0, 0, 0, 65_535, 101] {
            file.extend(word(value, little));
        }
        for (time, kept, length) in dressed(<[u8]>::to_vec) {
            let (second, part) = (time / 1_000_000_000, time % 1_000_000_000 / unit);
            for value in [second as u32, part as u32, kept.len() as u32, length] {
                file.extend(word(value, little));
            }
            file.extend(&[0; 8][..more]);
            file.extend(kept);
        }
        expect_the_connection(&file, &format!("little endian: {little}, {unit} ns, {more} bytes more"));
    }
}

fn block(kind: u32, body: &[u8], little: bool) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let mut block = word(kind, little).to_vec();
    block.extend(word(padded as u32 + 12, little));
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(word(padded as u32 + 12, little));
    block
}

fn half(value: u16, little: bool) -> [u8; 2] {
    if little { value.to_le_bytes() } else { value.to_be_bytes() }
}

#[test]
fn pcapng_is_read_with_interfaces_of_their_own_link_layers_and_resolutions_in_both_orders_of_bytes() {
    for little in [true, false] {
        let mut head = word(0x1a2b_3c4d, little).to_vec();
        head.extend([half(1, little), half(0, little)].concat());
        head.extend([0xff; 8]);
        let mut file = block(0x0a0d_0d0a, &head, little);
        // Raw in nanoseconds, Ethernet in microseconds as by default, raw in 2^-20 seconds.
        for (link_type, resolution) in [(101, Some(9)), (1, None), (101, Some(0x80 | 20))] {
            let mut body = [half(link_type, little), [0, 0]].concat();
            body.extend(word(0, little));
            if let Some(resolution) = resolution {
                body.extend([half(9, little), half(1, little)].concat());
                body.extend([resolution, 0, 0, 0, 0, 0, 0, 0]);
            }
            file.extend(block(1, &body, little));
        }
        // An unknown block is skipped.
        file.extend(block(0x0bad, &[1, 2, 3, 4, 5], little));
        for (number, (time, kept, length)) in dressed(<[u8]>::to_vec).into_iter().enumerate() {
            let interface = number % 3;
            let (kept, length) = match interface {
                1 => ([&[0; 12][..], &[8, 0], &kept].concat(), length + 14),
                _ => (kept, length),
            };
            let units = match interface {
                0 => time as u64,
                1 => time as u64 / 1000,
                _ => ((time as u128 * (1 << 20) + 500_000_000) / 1_000_000_000) as u64,
            };
            let mut body = Vec::new();
            for value in [interface as u32, (units >> 32) as u32, units as u32, kept.len() as u32, length] {
                body.extend(word(value, little));
            }
            body.extend(kept);
            file.extend(block(6, &body, little));
        }
        expect_the_connection(&file, &format!("little endian: {little}"));
    }
}

#[test]
fn an_unknown_link_layer_is_told_by_the_place_of_its_packets() {
    let told = read(&pcap(147, &dressed(<[u8]>::to_vec)));
    assert!(told.connections.is_empty());
    assert_eq!(told.problems[0].trouble, firstflight_observe::Trouble::LinkLayer(147));
    assert!(told.problems[0].trouble.to_string().contains("link type 147"));
    assert_eq!(told.problems[0].first[0], 24);
}

const MAC: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn frame(packet: &[u8]) -> Vec<u8> {
    [&MAC[..], &[8, 0], packet].concat()
}

fn over_ipv4(protocol: u8, carried: &[u8]) -> Vec<u8> {
    let total = (20 + carried.len() as u16).to_be_bytes();
    [&[0x45, 0][..], &total, &[0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 9, 1, 10, 9, 9, 2], carried].concat()
}

fn over_ipv6(protocol: u8, carried: &[u8]) -> Vec<u8> {
    let length = (carried.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0][..], &length, &[protocol, 64], &[7; 32], carried].concat()
}

fn over_udp(port: u16, carried: &[u8]) -> Vec<u8> {
    over_ipv4(17, &[&[0x9c, 0x40][..], &port.to_be_bytes(), &[0; 4], carried].concat())
}

#[test]
fn a_connection_is_read_through_every_tunnel_that_is_not_encrypted() {
    type Wrap = fn(&[u8]) -> Vec<u8>;
    let ethernet: &[(&str, Wrap)] = &[
        ("PPPoE", |p| [&MAC[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0, 0x21], p].concat()),
        ("PPPoE in a VLAN", |p| [&MAC[..], &[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0, 0x21], p].concat()),
        ("MPLS", |p| [&MAC[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], p].concat()),
        ("MPLS with a frame", |p| [&MAC[..], &[0x88, 0x47, 0, 2, 1, 64, 0, 0, 0, 0], &frame(p)].concat()),
        ("three tags", |p| [&MAC[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 0x81, 0, 0, 9, 8, 0], p].concat()),
        ("provider backbone", |p| [&MAC[..], &[0x88, 0xe7, 0, 0, 0, 1], &frame(p)].concat()),
        ("a tag of a port", |p| [&MAC[..], &[0x89, 0x26, 0, 1, 0, 2, 8, 0], p].concat()),
        ("a tag of an extended port", |p| [&MAC[..], &[0x89, 0x3f, 0, 1, 0, 2, 0, 0, 8, 0], p].concat()),
        ("a tag of a security group", |p| [&MAC[..], &[0x89, 0x09, 1, 1, 0, 1, 0, 5, 8, 0], p].concat()),
        ("SNAP", |p| [&MAC[..], &[0, 60, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], p].concat()),
    ];
    for (name, wrap) in ethernet {
        expect_the_connection(&pcap(ETHERNET, &dressed(wrap)), name);
    }
    let over_ip: &[(&str, Wrap)] = &[
        ("IP in IP", |p| over_ipv4(4, p)),
        ("IPv4 in IPv6", |p| over_ipv6(4, p)),
        ("GRE", |p| over_ipv4(47, &[&[0, 0, 8, 0], p].concat())),
        ("GRE with a checksum, a key and a number", |p| {
            over_ipv4(47, &[&[0xb0, 0, 8, 0, 1, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], p].concat())
        }),
        ("GRE with a frame, over IPv6", |p| over_ipv6(47, &[&[0, 0, 0x65, 0x58][..], &frame(p)].concat())),
        ("PPTP", |p| over_ipv4(47, &[&[0x30, 1, 0x88, 0x0b, 0, 60, 0, 7, 0, 0, 0, 1, 0xff, 3, 0, 0x21], p].concat())),
        ("ERSPAN I", |p| over_ipv4(47, &[&[0, 0, 0x88, 0xbe][..], &frame(p)].concat())),
        ("ERSPAN II", |p| {
            over_ipv4(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0][..], &frame(p)].concat())
        }),
        ("ERSPAN III", |p| {
            let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9];
            over_ipv4(47, &[&head[..], &frame(p)].concat())
        }),
        ("VXLAN", |p| over_udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &frame(p)].concat())),
        ("VXLAN on Linux's old port", |p| over_udp(8472, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &frame(p)].concat())),
        ("VXLAN-GPE", |p| over_udp(4790, &[&[12, 0, 0, 1, 0, 0, 1, 0], p].concat())),
        ("GENEVE with an option", |p| {
            over_udp(6081, &[&[2, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 0, 1, 0, 0, 0, 0][..], &frame(p)].concat())
        }),
        ("GENEVE with IP", |p| over_udp(6081, &[&[0, 0, 8, 0, 0, 0, 1, 0], p].concat())),
        ("GTP-U", |p| over_udp(2152, &[&[0x30, 255, 0, 60, 0, 0, 0, 1], p].concat())),
        ("GTP-U with an extension", |p| {
            over_udp(2152, &[&[0x34, 255, 0, 60, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], p].concat())
        }),
        ("L2TP", |p| over_udp(1701, &[&[0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21], p].concat())),
        ("MPLS over UDP", |p| over_udp(6635, &[&[0, 1, 1, 64], p].concat())),
        ("a frame over IPv6", |p| over_ipv6(143, &frame(p))),
        ("LISP", |p| over_udp(4341, &[&[0x80, 0, 0, 1, 0, 0, 0, 1], p].concat())),
        ("an authentication header", |p| over_ipv4(51, &[&[4, 4, 0, 0], &[0; 20][..], p].concat())),
        ("a tunnel in a tunnel", |p| over_ipv4(4, &over_ipv4(47, &[&[0, 0, 8, 0], p].concat()))),
    ];
    for (name, wrap) in over_ip {
        expect_the_connection(&pcap(101, &dressed(wrap)), name);
    }
    for (name, link_type, head) in [
        ("PPP", 9, &[0xff, 3, 0, 0x21][..]),
        ("PPP with a short number", 9, &[0x21]),
        ("PPPoE as a link layer", 51, &[0x11, 0, 0, 1, 0, 60, 0, 0x21]),
    ] {
        expect_the_connection(&pcap(link_type, &dressed(behind(head))), name);
    }
}

#[test]
fn six_in_four_is_read() {
    let frames: Vec<Frame> = segments()
        .into_iter()
        .map(|(time, segment)| {
            let kept = over_ipv4(41, &segment.ipv6(&[], 6));
            let length = kept.len() as u32 + segment.payload;
            (time, kept, length)
        })
        .collect();
    assert_eq!(read(&pcap(101, &frames)).responses[0].bytes, 2000);
}

#[test]
fn what_is_no_tcp_is_counted_by_what_it_is() {
    let packets = [
        over_ipv4(50, &[0; 40]),
        over_ipv4(50, &[0; 40]),
        over_udp(51820, &[4; 40]),
        over_udp(9999, &[4; 40]),
        over_udp(4789, &[0; 40]),
        over_ipv4(1, &[0; 8]),
    ];
    let frames: Vec<Frame> = packets.iter().map(|packet| (0, packet.clone(), packet.len() as u32)).collect();
    let file = pcap(101, &frames);
    let mut reader =
        firstflight_observe::Reader::new(std::path::Path::new("made"), file.as_slice()).expect("a capture");
    while reader.read(1000).expect("memory can be read").is_some() {}
    let others: Vec<_> = reader.others();
    let named = |name: &str, count: u64| others.contains(&(name.to_owned(), count));
    assert_eq!(others[0], ("ESP (encrypted)".to_owned(), 2));
    assert!(
        named("WireGuard (encrypted)", 1) && named("UDP", 1) && named("VXLAN", 1) && named("ICMP", 1),
        "{others:?}"
    );
}
