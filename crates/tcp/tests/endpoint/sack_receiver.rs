//! A receiver's report on data that arrived out of order or twice.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, Flags, MOST_SACK_BLOCKS, Profile, Segment};

const MSS: u32 = 1000;

fn selective() -> Profile {
    Profile { mss_bytes: MSS, sack: true, dsack: true, ..rfc() }
}

/// Offsets in the server's stream, in segments, of the blocks of a segment.
fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let offset = |seq: u32| seq.wrapping_sub(SERVER_ISN + 1) / MSS;
    segment.sack.as_slice().iter().map(|&[left, right]| (offset(left), offset(right))).collect()
}

/// Segment number `number` of the server's stream.
fn numbered(number: u32) -> Segment {
    stretch(number * MSS, MSS)
}

fn stretch(from: u32, bytes: u32) -> Segment {
    Segment {
        seq: SERVER_ISN + 1 + from,
        ack: CLIENT_ISN + 1,
        payload_bytes: bytes,
        window: 65535,
        flags: Flags::ACK,
        ..Segment::EMPTY
    }
}

/// The client's answer to a segment.
fn answer(wire: &mut Wire, segment: Segment) -> Segment {
    wire.log.clear();
    wire.inject(Client, segment);
    assert_eq!(wire.log.len(), 1, "one acknowledgement");
    wire.log[0].segment
}

fn answers(wire: &mut Wire, numbers: &[u32]) -> Vec<Vec<(u32, u32)>> {
    numbers.iter().map(|&number| blocks(&answer(wire, numbered(number)))).collect()
}

#[test]
fn sack_is_on_only_if_both_syns_offer_it() {
    let plain = Profile { sack: false, dsack: false, ..selective() };
    for (client, server, on) in
        [(selective(), selective(), true), (plain.clone(), selective(), false), (selective(), plain, false)]
    {
        let mut wire = Wire::between(&client, &server, 10 * MS);
        wire.client.connect(0);
        wire.run_until(SECOND);
        let offers: Vec<_> = wire.log.iter().take(2).map(|sent| sent.segment.sack_permitted).collect();
        assert_eq!(offers, [client.sack, client.sack && server.sack]);
        assert_eq!((wire.client.info().sack, wire.server.info().sack), (on, on));
        let answer = answer(&mut wire, stretch(2 * MSS, MSS));
        assert_eq!(!answer.sack.is_empty(), on);
    }
}

#[test]
fn each_hole_is_reported_with_the_latest_arrival_first() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    // RFC 2018 §4, case 1 and 3: blocks are repeated behind the one that holds the segment just received.
    assert_eq!(
        answers(&mut wire, &[2, 4, 6, 3, 8, 10]),
        [
            vec![(2, 3)],
            vec![(4, 5), (2, 3)],
            vec![(6, 7), (4, 5), (2, 3)],
            vec![(2, 5), (6, 7)],
            vec![(8, 9), (2, 5), (6, 7)],
            vec![(10, 11), (8, 9), (2, 5), (6, 7)],
        ]
    );
}

#[test]
fn three_blocks_fit_beside_timestamps() {
    let mut wire = Wire::connected(&Profile { timestamps: true, ..selective() }, 10 * MS);
    assert_eq!(answers(&mut wire, &[2, 4, 6, 8])[3], [(8, 9), (6, 7), (4, 5)]);
}

#[test]
fn every_acknowledgement_carries_sack_while_a_hole_is_open_and_none_after() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    assert_eq!(answers(&mut wire, &[1, 3, 0, 2]), [vec![(1, 2)], vec![(3, 4), (1, 2)], vec![(3, 4)], vec![]]);
    assert_eq!(wire.client.received_bytes(), u64::from(4 * MSS));
}

#[test]
fn a_segment_received_again_is_reported_once() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    answers(&mut wire, &[2]);
    // RFC 2883 §4: the duplicate first, then the block of which it is part.
    assert_eq!(blocks(&answer(&mut wire, numbered(2))), [(2, 3), (2, 3)]);
    assert_eq!(answers(&mut wire, &[4]), [vec![(4, 5), (2, 3)]]);
}

#[test]
fn a_duplicate_below_the_acknowledgement_is_reported_once() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    wire.inject(Client, numbered(0));
    wire.inject(Client, numbered(1));
    assert_eq!(answers(&mut wire, &[0, 3]), [vec![(0, 1)], vec![(3, 4)]]);
}

#[test]
fn only_the_part_that_came_twice_is_reported() {
    let mut wire = Wire::connected(&Profile { ack: AckPolicy::EverySegment, ..selective() }, 10 * MS);
    answers(&mut wire, &[0, 1]);
    assert_eq!(blocks(&answer(&mut wire, stretch(MSS, 3 * MSS))), [(1, 2)]);
    // RFC 2883 §4 (1): of two duplicate ranges only the first is reported.
    answers(&mut wire, &[6, 8]);
    assert_eq!(blocks(&answer(&mut wire, stretch(5 * MSS, 5 * MSS))), [(6, 7), (5, 10)]);
    assert_eq!(blocks(&answer(&mut wire, stretch(4 * MSS, 3 * MSS))), [(5, 7)]);
}

#[test]
fn duplicates_are_not_reported_without_dsack() {
    let mut wire = Wire::connected(&Profile { dsack: false, ..selective() }, 10 * MS);
    assert_eq!(answers(&mut wire, &[2, 2]), [vec![(2, 3)], vec![(2, 3)]]);
    wire.inject(Client, numbered(0));
    wire.inject(Client, numbered(1));
    assert_eq!(answers(&mut wire, &[0]), [vec![]]);
}

#[test]
fn a_fin_ahead_of_a_hole_is_part_of_its_block() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    let report = answer(&mut wire, Segment { flags: Flags::ACK | Flags::FIN, ..numbered(1) });
    assert_eq!(report.sack.as_slice(), [[SERVER_ISN + 1 + MSS, SERVER_ISN + 1 + 2 * MSS + 1]]);
    assert_eq!(answer(&mut wire, numbered(0)).ack, SERVER_ISN + 1 + 2 * MSS + 1);
}

#[test]
fn data_makes_room_for_the_report_that_it_carries() {
    let mut wire = Wire::connected(&selective(), 10 * MS);
    wire.client.write(wire.now, u64::from(MSS));
    wire.log.clear();
    wire.inject(Client, numbered(2));
    let sizes: Vec<_> = wire.log.iter().map(|sent| (sent.segment.payload_bytes, blocks(&sent.segment))).collect();
    assert_eq!(sizes, [(MSS - 12, vec![(2, 3)]), (12, vec![(2, 3)])]);
}

#[test]
fn reports_cross_the_wrap_of_sequence_numbers() {
    let profile = selective();
    let mut wire = Wire::with_sequences(&profile, &profile, 10 * MS, CLIENT_ISN, u32::MAX - 1500);
    wire.connect();
    wire.lose_data_of_server(10 * MS, &[1]);
    wire.server.write(wire.now, u64::from(3 * MSS));
    wire.run();
    let reports: Vec<_> = wire.log.iter().filter(|sent| !sent.segment.sack.is_empty()).collect();
    let start = (u32::MAX - 1500).wrapping_add(1 + MSS);
    assert_eq!(reports[0].segment.sack.as_slice(), [[start, start.wrapping_add(MSS)]]);
    assert_eq!(reports[1].segment.sack.as_slice(), [[start, start.wrapping_add(2 * MSS)]]);
    assert!(reports.iter().all(|sent| sent.segment.sack.as_slice().len() <= MOST_SACK_BLOCKS));
    assert_eq!(wire.client.received_bytes(), u64::from(3 * MSS));
}
