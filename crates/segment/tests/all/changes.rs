//! Changes that a link or router makes to a packet.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use firstflight_segment::{
    Ecn, Envelope, Flags, PathOption, QuickStart, Segment, answer_quick_start, mark, write_packet,
};

fn packet(segment: Segment) -> Vec<u8> {
    between(SocketAddr::from((Ipv4Addr::new(10, 77, 0, 1), 80)), segment)
}

fn between(end: SocketAddr, segment: Segment) -> Vec<u8> {
    let envelope = Envelope { identification: 7, ..Envelope::between(end, end) };
    let mut bytes = Vec::new();
    write_packet(&segment, &envelope, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_mark_leaves_the_packet_as_its_sender_would_have_written_it() {
    for end in [SocketAddr::from((Ipv4Addr::LOCALHOST, 80)), SocketAddr::from((Ipv6Addr::LOCALHOST, 80))] {
        let mut marked = between(end, Segment { ecn: Ecn::Capable0, ..Segment::EMPTY });
        mark(&mut marked);
        assert_eq!(marked, between(end, Segment { ecn: Ecn::Congestion, ..Segment::EMPTY }));
    }
}

#[test]
fn a_quick_start_request_leaves_a_link_as_a_router_would_have_written_it() {
    let asking = |rate, approved| {
        packet(Segment {
            flags: Flags::SYN,
            path_option: PathOption::new(QuickStart::Request { rate, approved }, None),
            ..Segment::EMPTY
        })
    };
    for (answer, expected) in [(Some(4), asking(4, true)), (None, asking(9, false))] {
        let mut passing = asking(9, true);
        answer_quick_start(&mut passing, |asked| {
            assert_eq!(asked, 9);
            answer
        });
        assert_eq!(passing, expected);
    }
    // Void already, a report, and no option at all: no router is asked.
    let report =
        packet(Segment { path_option: PathOption::new(QuickStart::Report { rate: 9 }, None), ..Segment::EMPTY });
    let of_version_6 = between(SocketAddr::from((Ipv6Addr::LOCALHOST, 80)), Segment::EMPTY);
    for mut passing in [asking(9, false), report, packet(Segment::EMPTY), of_version_6] {
        let before = passing.clone();
        answer_quick_start(&mut passing, |_| panic!("there is nothing to answer"));
        assert_eq!(passing, before);
    }
}
