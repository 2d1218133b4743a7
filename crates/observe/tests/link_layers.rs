//! Every link layer and file format that is read, each with the same connection in it.

mod made;

use made::{Frame, MS, Segment, download, pcap, read};

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
    use made::{ACK, SYN, segment};
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
    for (little, magic, unit) in
        [(true, 0xa1b2_c3d4_u32, 1000), (false, 0xa1b2_c3d4, 1000), (true, 0xa1b2_3c4d, 1), (false, 0xa1b2_3c4d, 1)]
    {
        let mut file = Vec::new();
        for value in [magic, 0, 0, 0, 65_535, 101] {
            file.extend(word(value, little));
        }
        for (time, kept, length) in dressed(<[u8]>::to_vec) {
            let (second, part) = (time / 1_000_000_000, time % 1_000_000_000 / unit);
            for value in [second as u32, part as u32, kept.len() as u32, length] {
                file.extend(word(value, little));
            }
            file.extend(kept);
        }
        expect_the_connection(&file, &format!("little endian: {little}, {unit} ns"));
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
    assert_eq!(told.problems[0].trouble, firstflight_observe::Trouble::LinkLayer);
    assert_eq!(told.problems[0].first[0], 24);
}
