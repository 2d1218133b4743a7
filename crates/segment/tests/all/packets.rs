//! Segments as packets: every byte of the headers, and both checksums.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;

use firstflight_segment::{Ecn, Flags, PathOption, QuickStart, SackBlocks, Segment, SentAt, Timestamps};
use firstflight_segment::{Envelope, Unrepresentable, write_packet};

fn envelope() -> Envelope {
    Envelope {
        source: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 49_152)),
        destination: SocketAddr::from((Ipv4Addr::new(10, 0, 1, 44), 5001)),
        identification: 0x1234,
        time_to_live: 64,
    }
}

fn bytes(segment: &Segment) -> Vec<u8> {
    let mut packet = Vec::new();
    write_packet(segment, &envelope(), 0, &mut packet).unwrap();
    packet
}

/// The TCP options of a segment.
fn options(segment: &Segment) -> Vec<u8> {
    let packet = bytes(segment);
    let tcp = usize::from(packet[0] & 15) * 4;
    packet[tcp + 20..tcp + usize::from(packet[tcp + 12] >> 4) * 4].to_vec()
}

/// The receiver's sum over all words, checksum included: 0xffff if nothing is wrong.
fn folded(words: impl Iterator<Item = u8>) -> u32 {
    let bytes: Vec<u8> = words.collect();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0));
        sum = sum % 65_536 + sum / 65_536;
    }
    sum
}

fn assert_checksums(packet: &[u8]) {
    let ip_header = usize::from(packet[0] & 15) * 4;
    assert_eq!(folded(packet[..ip_header].iter().copied()), 0xffff);
    let tcp_bytes = (packet.len() - ip_header) as u16;
    let pseudo = packet[12..20].iter().copied().chain([0, 6]).chain(tcp_bytes.to_be_bytes());
    assert_eq!(folded(pseudo.chain(packet[ip_header..].iter().copied())), 0xffff);
}

fn syn() -> Segment {
    Segment {
        seq: 1000,
        window: 65_535,
        mss: NonZeroU16::new(1460),
        window_scale: Some(7),
        flags: Flags::SYN,
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5, echo: 0 }),
        ..Segment::EMPTY
    }
}

#[test]
fn a_linux_syn_is_made_byte_by_byte() {
    #[rustfmt::skip]
    let expected = [
        // Version and header length, TOS, total length, identification, DF, TTL, TCP, checksum, addresses.
        0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 64, 6, 0x13, 0x5c, 10, 0, 0, 1, 10, 0, 1, 44,
        // Ports, sequence number, acknowledgment number, header length, SYN, window, checksum, urgent pointer.
        0xc0, 0, 0x13, 0x89, 0, 0, 3, 232, 0, 0, 0, 0, 0xa0, 2, 0xff, 0xff, 0, 0, 0, 0,
        // MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let mut packet = bytes(&syn());
    assert_checksums(&packet);
    packet[36..38].fill(0);
    assert_eq!(packet, expected);
}

#[test]
fn options_of_a_syn_keep_linuxs_order_whichever_are_absent() {
    let without_timestamps = Segment { timestamps: None, ..syn() };
    assert_eq!(options(&without_timestamps), [2, 4, 0x05, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
    let without_sack = Segment { sack_permitted: false, ..syn() };
    assert_eq!(options(&without_sack)[4..16], [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0]);
    let plain = Segment { timestamps: None, sack_permitted: false, window_scale: None, ..syn() };
    assert_eq!(options(&plain), [2, 4, 0x05, 0xb4]);
}

#[test]
fn acknowledgments_have_timestamps_then_sack_blocks_each_on_whole_words() {
    let mut sack = SackBlocks::NONE;
    sack.push(0x0102_0304, 0x0506_0708);
    sack.push(1, 2);
    let timestamps = Some(Timestamps { value: 9, echo: 8 });
    let segment = Segment { flags: Flags::ACK, sack, timestamps, ..Segment::EMPTY };
    #[rustfmt::skip]
    let expected = [
        1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8,
        1, 1, 5, 18, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 2,
    ];
    assert_eq!(options(&segment), expected);
    assert_checksums(&bytes(&segment));
}

#[test]
fn ecn_stands_in_both_headers() {
    let segment = Segment { flags: Flags::ACK | Flags::ECE | Flags::CWR, ecn: Ecn::Congestion, ..Segment::EMPTY };
    let packet = bytes(&segment);
    assert_eq!(packet[1], 3);
    assert_eq!(packet[33], 0b1101_0000);
    assert_eq!(bytes(&Segment { ecn: Ecn::Capable0, ..segment })[1], 2);
}

#[test]
fn a_quick_start_request_is_an_ip_option_whose_ttl_shows_whether_all_routers_took_part() {
    let request =
        |approved| Segment { path_option: PathOption::new(QuickStart::Request { rate: 7, approved }, None), ..syn() };
    let packet = bytes(&request(true));
    assert_eq!(packet[0], 0x47);
    assert_eq!(packet[20..28], [25, 8, 7, 64, 0, 0, 0, 0]);
    assert_checksums(&packet);
    assert_ne!(bytes(&request(false))[23], 64);
}

#[test]
fn a_quick_start_report_has_its_own_function() {
    let report = Segment {
        flags: Flags::ACK,
        path_option: PathOption::new(QuickStart::Report { rate: 7 }, None),
        ..Segment::EMPTY
    };
    let packet = bytes(&report);
    assert_eq!(packet[20..28], [25, 8, 0x87, 0, 0, 0, 0, 0]);
    assert_checksums(&packet);
}

#[test]
fn a_quick_start_response_is_a_tcp_option_after_all_others() {
    let segment = Segment { path_option: PathOption::new(QuickStart::None, Some(5)), ..syn() };
    assert_eq!(options(&segment)[20..], [27, 8, 5, 0, 0, 0, 0, 0]);
}

#[test]
fn a_retransmission_carries_the_bytes_of_the_first_transmission_however_it_is_cut() {
    let payload = |offset: u32, length: u32| {
        let segment = Segment { seq: 77 + offset, payload_bytes: length, flags: Flags::ACK, ..Segment::EMPTY };
        let mut packet = Vec::new();
        write_packet(&segment, &envelope(), u64::from(offset), &mut packet).unwrap();
        assert_checksums(&packet);
        packet[40..].to_vec()
    };
    let first = payload(1460, 1461);
    assert_eq!(payload(2000, 100), first[540..640]);
    assert_ne!(payload(0, 100), first[..100]);
}

#[test]
fn more_options_than_a_header_holds_are_refused_and_leave_nothing_behind() {
    let mut sack = SackBlocks::NONE;
    (0..4).for_each(|block| sack.push(block * 2, block * 2 + 1));
    let segment = Segment { sack, timestamps: Some(Timestamps { value: 1, echo: 1 }), ..Segment::EMPTY };
    let mut packet = vec![7];
    assert_eq!(write_packet(&segment, &envelope(), 0, &mut packet), Err(Unrepresentable::Options(48)));
    assert_eq!(packet, [7]);
    // Without timestamps there is room for four.
    assert_eq!(options(&Segment { timestamps: None, ..segment }).len(), 36);
}

#[test]
fn the_largest_packet_is_written_and_one_byte_more_is_refused() {
    let segment = |payload_bytes| Segment { payload_bytes, flags: Flags::ACK, ..Segment::EMPTY };
    assert_checksums(&bytes(&segment(65_495)));
    let refused = write_packet(&segment(65_496), &envelope(), 0, &mut Vec::new());
    assert_eq!(refused, Err(Unrepresentable::Length(65_536)));
    assert!(refused.unwrap_err().to_string().contains("65536 bytes does not fit"));
}

#[test]
fn of_a_segment_whose_options_are_cleared_the_common_fields_are_left() {
    let plain = Segment { seq: 1, ack: 2, payload_bytes: 3, window: 4, flags: Flags::SYN, ..Segment::EMPTY };
    let mut sack = SackBlocks::NONE;
    sack.push(5, 6);
    let mut segment = Segment {
        mss: NonZeroU16::new(7),
        window_scale: Some(8),
        sack_permitted: true,
        ecn: Ecn::Capable0,
        path_option: PathOption::new(QuickStart::None, Some(9)),
        timestamps: Some(Timestamps { value: 10, echo: 11 }),
        sack,
        sent_at: Some(SentAt::new(12)),
        ..plain
    };
    segment.clear_options();
    assert_eq!(segment, plain);
}
