//! The rows of a connection's packets, captured at different places.

use std::path::Path;

use crate::made::{ACK, FIN, Frame, MS, RST, SYN, Told, download, pcap, raw, read, segment};
use firstflight_observe::{Reader, Trouble, UNKNOWN};

const RAW: u32 = 101;

fn told(frames: &[Frame]) -> Told {
    read(&pcap(RAW, frames))
}

#[test]
fn round_trip_sizes_and_first_flight_are_the_same_at_the_server_in_the_middle_and_at_the_client() {
    for away in [0, 10 * MS, 30 * MS, 40 * MS] {
        let told = told(&download(0, 40_000, 80 * MS, away, 10));
        assert_eq!((told.connections.len(), told.responses.len()), (1, 1), "captured {away} ns from the server");
        let (connection, response) = (told.connections[0], told.responses[0]);
        assert!((connection.rtt_s - 0.08).abs() < 1e-6, "{}", connection.rtt_s);
        assert_eq!((connection.mss, connection.server_port, connection.from_start), (1000, 80, 1));
        assert_eq!(response.first_flight_segments, 10, "captured {away} ns from the server");
        assert_eq!((response.bytes, response.delivered_bytes, response.completed), (10_000, 10_000, 1));
        assert_eq!((response.segments_sent, response.retransmissions), (10, 0));
        assert!((response.handshake_time_s - 0.08).abs() < 1e-6);
        assert!(told.problems.is_empty(), "{:?}", told.problems);
    }
}

#[test]
fn packets_that_a_network_card_was_to_divide_count_as_the_segments_that_they_became() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 10);
    // The ten segments as one of 10 000 bytes.
    frames.retain(|(_, kept, length)| *length as usize == kept.len() || *length as usize == kept.len() + 100);
    let large = segment(true, 500, 200, ACK, 10_000).stamped(1051, 51);
    frames.insert(4, raw(80 * MS + 1, &large));
    let told = told(&frames);
    assert_eq!((told.responses[0].segments_sent, told.responses[0].first_flight_segments), (10, 10));
    assert_eq!(told.responses[0].bytes, 10_000);
}

#[test]
fn what_is_sent_after_the_first_acknowledgment_is_not_of_the_first_flight() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 4);
    frames.truncate(frames.len() - 3);
    let late = segment(true, 4500, 200, ACK, 1000).stamped(1135, 101);
    frames.push(raw(170 * MS, &late));
    let told = told(&frames);
    assert_eq!((told.responses[0].first_flight_segments, told.responses[0].segments_sent), (4, 5));
}

#[test]
fn a_retransmission_counts_as_one_and_is_not_of_the_first_flight() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 3);
    let again = segment(true, 500, 200, ACK, 1000).stamped(1351, 51);
    let acks = frames.len() - 6;
    for frame in &mut frames[acks..] {
        frame.0 += 300 * MS;
    }
    frames.insert(acks, raw(300 * MS, &again));
    let told = told(&frames);
    let response = told.responses[0];
    assert_eq!((response.segments_sent, response.retransmissions), (4, 1));
    assert_eq!((response.first_flight_segments, response.first_flight_lost_segments), (3, 1));
    // Which of the two the acknowledgment was for is not known, so the handshake alone gives the RTT.
    assert!((told.connections[0].rtt_s - 0.08).abs() < 1e-6);
}

#[test]
fn what_was_lost_before_the_capture_is_a_retransmission_and_what_was_overtaken_is_none() {
    for (late, retransmissions) in [(100 * MS, 1), (MS, 0)] {
        let mut frames = download(0, 40_000, 80 * MS, 40 * MS, 4);
        let first = frames.iter().position(|(_, kept, length)| *length as usize == kept.len() + 1000).unwrap();
        let moved = frames.remove(first + 1);
        let last = frames[first + 2].0;
        let place = frames.iter().position(|frame| frame.0 > last + late).unwrap_or(frames.len());
        frames.insert(place, (last + late, moved.1, moved.2));
        let told = told(&frames);
        assert_eq!(told.responses[0].retransmissions, retransmissions, "{late} ns late");
        assert_eq!(told.responses[0].first_flight_lost_segments, retransmissions, "{late} ns late");
        assert_eq!(told.responses[0].first_flight_segments, 4, "{late} ns late");
        assert_eq!(told.responses[0].bytes, 4000);
    }
}

#[test]
fn the_first_segment_of_a_response_belongs_to_it_if_it_was_lost_before_the_capture() {
    let mut frames = download(0, 40_000, 80 * MS, 40 * MS, 4);
    let first = frames.iter().position(|(_, kept, length)| *length as usize == kept.len() + 1000).unwrap();
    let moved = frames.remove(first);
    let late = frames[first + 2].0 + 100 * MS;
    let place = frames.iter().position(|frame| frame.0 > late).unwrap_or(frames.len());
    frames.insert(place, (late, moved.1, moved.2));
    let told = told(&frames);
    assert_eq!((told.responses[0].bytes, told.responses[0].segments_sent), (4000, 4));
}

#[test]
fn each_request_on_a_connection_has_its_response() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 2);
    frames.truncate(frames.len() - 3);
    let at = 500 * MS;
    frames.push(raw(at, &segment(false, 200, 2500, ACK, 100).stamped(600, 1051)));
    frames.push(raw(at + MS, &segment(true, 2500, 300, ACK, 700).stamped(1501, 600)));
    frames.push(raw(at + 81 * MS, &segment(false, 300, 3200, ACK, 0).stamped(681, 1501)));
    let told = told(&frames);
    assert_eq!(told.connections.len(), 1);
    let sizes: Vec<_> = told.responses.iter().map(|row| (row.object, row.bytes, row.first_flight_segments)).collect();
    assert_eq!(sizes, [(0, 2000, 2), (1, 700, 0)]);
    assert_eq!(told.responses[1].start_ns, at);
    assert!((told.responses[1].completion_time_s - 0.081).abs() < 1e-9);
    assert!(told.responses[1].handshake_time_s.is_nan());
}

#[test]
fn a_request_that_is_retransmitted_was_made_when_it_was_sent_first() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 2);
    frames.drain(..3);
    for (time, _, _) in &mut frames[1..] {
        *time += 300 * MS;
    }
    let again = (frames[0].0 + 250 * MS, frames[0].1.clone(), frames[0].2);
    frames.insert(1, again);
    assert_eq!(told(&frames).responses[0].start_ns, frames[0].0);
}

#[test]
fn what_comes_sooner_than_a_round_trip_from_the_server_is_no_answer() {
    // At the client, 80 ms from the server.
    let mut frames = download(0, 40_000, 80 * MS, 40 * MS, 2);
    frames.truncate(frames.len() - 3);
    let at = 500 * MS;
    frames.push(raw(at, &segment(false, 200, 2500, ACK, 100).stamped(600, 1051)));
    for (took, seq, ack) in [(MS, 2500, 200), (81 * MS, 3200, 300)] {
        frames.push(raw(at + took, &segment(true, seq, ack, ACK, 700).stamped(1501, 600)));
    }
    let told = told(&frames);
    assert_eq!(told.responses.iter().map(|row| row.bytes).collect::<Vec<_>>(), [3400]);
}

#[test]
fn ends_that_meet_again_make_another_connection() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 2);
    let mut again = download(10_000 * MS, 40_000, 80 * MS, 0, 3);
    frames.append(&mut again);
    let told = told(&frames);
    let sizes: Vec<_> = told.responses.iter().map(|row| (row.connection, row.bytes)).collect();
    assert_eq!(sizes, [(0, 2000), (1, 3000)]);
}

#[test]
fn a_connection_that_began_before_the_capture_has_no_first_flight() {
    let frames = download(0, 40_000, 80 * MS, 0, 5);
    let told = told(&frames[3..]);
    assert_eq!(told.connections[0].from_start, 0);
    assert_eq!(told.connections[0].server_port, 80);
    assert_eq!(told.responses[0].first_flight_segments, UNKNOWN);
    assert_eq!(told.responses[0].bytes, 5000);
}

#[test]
fn a_packet_that_crossed_two_interfaces_counts_once() {
    let mut frames = Vec::new();
    for frame in download(0, 40_000, 80 * MS, 0, 5) {
        frames.push(frame.clone());
        frames.push((frame.0 + 20_000, frame.1, frame.2));
    }
    let told = told(&frames);
    assert_eq!((told.responses[0].segments_sent, told.responses[0].retransmissions), (5, 0));
    assert_eq!(told.problems.len(), 1);
    assert!(told.problems[0].trouble.to_string().contains("twice"));
    assert_eq!(told.problems[0].count, 5);
}

#[test]
fn bytes_that_the_capture_lacks_are_told() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 5);
    frames.remove(6);
    let told = told(&frames);
    assert_eq!((told.responses[0].bytes, told.responses[0].segments_sent), (5000, 4));
    assert!(told.problems[0].trouble.to_string().contains("lacks"), "{:?}", told.problems);
}

#[test]
fn a_capture_of_the_server_s_direction_alone_says_so() {
    let frames = download(0, 40_000, 80 * MS, 0, 10);
    let from_server = |frame: &&Frame| frame.1[12..16] != frames[0].1[12..16];
    let told = told(&frames.iter().filter(from_server).cloned().collect::<Vec<_>>());
    assert_eq!(left_out(&told), [(Trouble::OneWay, 1)]);
    assert_eq!(told.responses[0].bytes, 10_000);
}

#[test]
fn a_capture_of_the_client_s_direction_alone_says_so() {
    let frames = download(0, 40_000, 80 * MS, 0, 10);
    let from_client = |frame: &&Frame| frame.1[12..16] == frames[0].1[12..16];
    let told = told(&frames.iter().filter(from_client).cloned().collect::<Vec<_>>());
    assert_eq!(left_out(&told), [(Trouble::OneWay, 1)]);
    assert!(told.connections.is_empty());
}

#[test]
fn a_server_that_answers_no_syn_is_no_capture_of_one_direction() {
    let frames = [raw(0, &segment(false, 99, 0, SYN, 0)), raw(1000 * MS, &segment(false, 99, 0, SYN, 0))];
    assert_eq!(left_out(&told(&frames)), [(Trouble::Silent, 1)]);
}

#[test]
fn a_syn_that_nobody_answers_and_a_reset_are_no_connections() {
    let syn = raw(0, &segment(false, 1, 0, SYN, 0));
    let reset = raw(MS, &segment(true, 0, 2, RST | ACK, 0));
    assert!(told(&[syn, reset]).connections.is_empty());
}

#[test]
fn a_probe_of_a_silent_client_is_no_data() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 2);
    frames.truncate(frames.len() - 3);
    frames.push(raw(5000 * MS, &segment(true, 2499, 200, ACK, 1).stamped(6000, 101)));
    let told = told(&frames);
    assert_eq!((told.responses[0].segments_sent, told.responses[0].retransmissions), (2, 0));
}

#[test]
fn sequence_numbers_may_wrap_within_a_response() {
    let shift = u32::MAX - 2500;
    let mut frames = Vec::new();
    let mut at = |time: i64, seq: u32, from_server: bool, flags: u8, payload: u32| {
        let (own, other) = if from_server { (seq.wrapping_add(shift), 200) } else { (200, seq.wrapping_add(shift)) };
        frames.push(raw(time * MS, &segment(from_server, own, other, flags, payload)));
    };
    at(0, 0, true, ACK, 1000);
    at(1, 1000, true, ACK, 1000);
    at(2, 2000, true, ACK, 1000);
    at(50, 3000, false, ACK, 0);
    at(51, 3000, true, FIN | ACK, 0);
    let told = told(&frames);
    assert_eq!((told.responses[0].bytes, told.responses[0].completed), (3000, 1));
}

#[test]
fn the_same_packets_give_the_same_rows_however_many_are_asked_for_at_once() {
    let mut frames: Vec<Frame> = Vec::new();
    for connection in 0..50 {
        frames.extend(download(i64::from(connection) * 7 * MS, 40_000 + connection, 50 * MS, 5 * MS, 20));
    }
    frames.sort_by_key(|frame| frame.0);
    let file = pcap(RAW, &frames);
    let whole = read(&file);
    let mut reader = firstflight_observe::Reader::new(std::path::Path::new("made"), file.as_slice()).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = reader.read(1).unwrap() {
        rows.extend(batch.responses);
    }
    assert_eq!(rows, whole.responses);
    assert_eq!(rows.len(), 50);
}

#[test]
fn a_syn_ack_with_another_number_begins_a_connection_whose_syn_the_capture_lacks() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 4);
    for (time, syn) in [(5000, false), (5080, true)] {
        let handshake =
            if syn { segment(false, 7100, 900_500, ACK, 100) } else { segment(true, 900_499, 7100, SYN | ACK, 0) };
        frames.push(raw(time * MS, &handshake.mss(1012)));
    }
    frames.push(raw(5080 * MS + 1, &segment(true, 900_500, 7200, ACK, 1000)));
    frames.push(raw(5160 * MS, &segment(false, 7200, 901_500, ACK, 0)));
    let told = told(&frames);
    assert_eq!(told.connections.iter().map(|row| row.from_start).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(told.responses.iter().map(|row| (row.object, row.bytes)).collect::<Vec<_>>(), [(0, 4000), (0, 1000)]);
    assert!(told.problems.is_empty(), "{:?}", told.problems);
}

#[test]
fn what_was_overtaken_where_the_capture_begins_is_no_retransmission() {
    let order = [3, 0, 1, 2, 4, 5];
    let mut frames: Vec<Frame> = (0_i64..)
        .zip(order)
        .map(|(place, index)| raw(place * MS / 100, &segment(true, 500 + index * 1000, 200, ACK, 1000)))
        .collect();
    frames.push(raw(80 * MS, &segment(false, 200, 6500, ACK, 0)));
    let told = told(&frames);
    assert_eq!((told.responses[0].bytes, told.responses[0].retransmissions), (3000, 0));
}

/// The sentences on omitted packets, with counts.
fn left_out(told: &Told) -> Vec<(Trouble, u64)> {
    told.problems.iter().map(|problem| (problem.trouble, problem.count)).collect()
}

#[test]
fn a_second_syn_ack_with_another_number_leaves_the_connection_that_the_client_goes_on_with() {
    // As seen of a host behind which two servers answer: before the client goes on, and after.
    for place in [1, 2, 4] {
        let mut frames = download(0, 40_000, 80 * MS, 40 * MS, 4);
        let stray = segment(true, 900_499, 100, SYN | ACK, 0).mss(500);
        frames.insert(place, raw(frames[place - 1].0 + MS / 2, &stray));
        let told = told(&frames);
        assert_eq!(told.connections.len(), 1, "after packet {place}");
        assert_eq!((told.connections[0].mss, told.connections[0].from_start), (1000, 1), "after packet {place}");
        assert_eq!(
            (told.responses[0].bytes, told.responses[0].first_flight_segments),
            (4000, 4),
            "after packet {place}"
        );
        assert_eq!(left_out(&told), [(Trouble::OtherAnswer, 1)]);
    }
}

#[test]
fn what_a_server_that_speaks_first_sends_counts_whole_if_its_first_segment_was_overtaken() {
    let mut frames = download(0, 40_000, 80 * MS, 40 * MS, 4);
    let request = frames.iter().position(|(_, kept, length)| *length as usize == kept.len() + 100).unwrap();
    frames.remove(request);
    let (early, late) = (frames[request].0, frames[request + 1].0);
    frames.swap(request, request + 1);
    (frames[request].0, frames[request + 1].0) = (early, late);
    let told = told(&frames);
    assert_eq!((told.responses[0].bytes, told.responses[0].segments_sent), (4000, 4));
    assert_eq!((told.responses[0].first_flight_segments, told.responses[0].retransmissions), (4, 0));
}

#[test]
fn numbers_far_outside_of_a_connection_claim_no_bytes_and_are_counted() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 4);
    let middle = frames[frames.len() - 5].0;
    let damaged = [
        segment(false, 200, 1_500_000_000, ACK, 0),
        segment(true, 500 + (1 << 29), 200, ACK, 1000),
        segment(false, 1 << 30, 500, ACK, 100),
        segment(true, 4500, (1 << 31) - 5, ACK, 0),
    ];
    let at = frames.len() - 4;
    frames.splice(at..at, damaged.iter().map(|segment| raw(middle, segment)));
    let told = told(&frames);
    assert_eq!((told.responses.len(), told.responses[0].bytes, told.responses[0].completed), (1, 4000, 1));
    assert_eq!(left_out(&told), [(Trouble::Outside, 4)]);
}

#[test]
fn a_gap_in_the_capture_counts_with_its_bytes() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 4);
    frames.truncate(frames.len() - 3);
    for index in 0..3 {
        let at = 300 * MS + i64::from(index) * MS;
        frames.push(raw(at, &segment(true, 5_000_500 + index * 1000, 200, ACK, 1000)));
        frames.push(raw(at + MS / 2, &segment(false, 200, 5_001_500 + index * 1000, ACK, 0)));
    }
    let told = told(&frames);
    assert_eq!(told.responses.iter().map(|row| row.bytes).collect::<Vec<_>>(), [5_003_000]);
    assert!(left_out(&told).contains(&(Trouble::Missed, 1)), "{:?}", told.problems);
}

#[test]
fn an_acknowledgment_that_comes_after_minutes_measures_no_round_trip() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 1);
    frames.truncate(frames.len() - 3);
    frames.retain(|(_, kept, length)| *length as usize > kept.len());
    frames.push(raw(200_000 * MS, &segment(false, 200, 1500, ACK, 0)));
    let told = told(&frames);
    assert_eq!(told.responses[0].bytes, 1000);
    assert!(told.connections[0].rtt_s < 60.0, "{}", told.connections[0].rtt_s);
    assert!(told.connections[0].max_rtt_s.is_nan(), "{}", told.connections[0].max_rtt_s);
}

#[test]
fn a_connection_without_data_from_the_server_is_counted() {
    let frames = [raw(0, &segment(false, 99, 0, SYN, 0)), raw(MS, &segment(true, 499, 100, SYN | ACK, 0))];
    assert_eq!(left_out(&told(&frames)), [(Trouble::Silent, 1)]);
}

const ECE: u8 = 64;
const CWR: u8 = 128;

/// A download whose data goes on after the first flight: bytes 0 to 999 at 80 ms, then a thousand with each of `flags`,
/// 20 ms apart, and the client's ACK of each with its own flags, 10 ms after it.
fn with_echoes(syn: u16, syn_ack: u16, flags: &[(u8, u8)]) -> Told {
    let mut frames = download(0, 40_000, 80 * MS, 0, 1);
    frames.truncate(5);
    for (frame, bits) in frames.iter_mut().zip([syn, syn_ack]) {
        // Behind 20 bytes of IPv4: the low bit of TCP's byte 12 is AE.
        frame.1[32] |= (bits >> 8) as u8;
        frame.1[33] |= bits as u8;
    }
    for (index, (data, ack)) in flags.iter().enumerate() {
        let (index, time) = (index as u32, 80 * MS + 20 * MS * index as i64);
        if index > 0 {
            frames.push(raw(time, &segment(true, 500 + index * 1000, 200, ACK | data, 1000).stamped(1051, 51)));
        }
        frames.push(raw(time + 10 * MS, &segment(false, 200, 1500 + index * 1000, ACK | ack, 0).stamped(101, 1051)));
    }
    told(&frames)
}

#[test]
fn a_mark_counts_once_until_the_server_has_answered_its_echo() {
    let ecn = (192, 64);
    let marks = |flags: &[(u8, u8)]| with_echoes(ecn.0, ecn.1, flags).responses[0].ecn_cwnd_reductions;
    assert_eq!(marks(&[(0, 0), (0, 0)]), 0);
    // The last ACKs of the first flight, with no data after them.
    assert_eq!(marks(&[(0, ECE)]), 1);
    assert_eq!(marks(&[(0, ECE), (0, ECE), (CWR, 0), (0, 0)]), 1);
    // The data with CWR was marked, too.
    assert_eq!(marks(&[(0, ECE), (CWR, ECE), (0, ECE), (CWR, 0), (0, ECE)]), 3);
    // CWR after a loss answers no echo.
    assert_eq!(marks(&[(0, 0), (CWR, 0), (0, ECE)]), 1);
}

#[test]
fn an_ack_that_was_under_way_when_the_server_answered_is_no_other_mark() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 1);
    frames.truncate(5);
    for (flags, seq, time) in [(0, 1500, 80), (CWR, 2500, 100)] {
        frames.push(raw(time * MS, &segment(true, seq, 200, ACK | flags, 1000).stamped(1051, 51)));
    }
    for (ack, time) in [(1500, 90), (2500, 105), (3500, 120)] {
        let echo = if ack < 3500 { ECE } else { 0 };
        frames.push(raw(time * MS, &segment(false, 200, ack, ACK | echo, 0).stamped(101, 1051)));
    }
    frames.sort_by_key(|frame| frame.0);
    assert_eq!(told(&frames).responses[0].ecn_cwnd_reductions, 1);
}

#[test]
fn marks_are_unknown_where_the_ends_count_them_with_accurate_ecn() {
    let marks = |syn, syn_ack| with_echoes(syn, syn_ack, &[(0, ECE)]).responses[0].ecn_cwnd_reductions;
    assert_eq!(marks(0x1c0, 0x80), UNKNOWN);
    assert_eq!(marks(0x1c0, 0x40), 1, "a server without AccECN");
    assert_eq!(marks(0xc0, 0x40), 1);
}

#[test]
fn segments_of_a_connection_have_relative_numbers_and_their_own_times() {
    // Two downloads at the same time; the second one's segments are those of connection 1.
    let mut frames = download(0, 40_000, 80 * MS, 0, 2);
    frames.extend(download(MS, 40_001, 80 * MS, 0, 3));
    frames.sort_by_key(|(time, ..)| *time);
    let file = pcap(RAW, &frames);
    let rows = Reader::new(Path::new("made"), file.as_slice()).unwrap().segments_of(1).unwrap();
    let told: Vec<_> =
        rows.iter().map(|row| (row.time_ns - MS, row.from_server, row.seq, row.length, row.ack)).collect();
    let sent = 80 * MS;
    let expected = [
        (0, 0, 0, 0, 0),
        (0, 1, 0, 0, 1),
        (sent, 0, 1, 0, 1),
        (sent, 0, 1, 100, 1),
        (sent, 1, 1, 1000, 101),
        (sent + 1, 1, 1001, 1000, 101),
        (sent + 2, 1, 2001, 1000, 101),
        (2 * sent, 0, 101, 0, 1001),
        (2 * sent + MS, 0, 101, 0, 2001),
        (2 * sent + 2 * MS, 0, 101, 0, 3001),
    ];
    assert_eq!(told[..10], expected);
    assert_eq!(rows[0].flags, SYN.into());
}

/// A response of nine segments, of which the last with its FIN is never acknowledged and retransmitted with doubled
/// timeouts, as Linux does to a client that is gone.
#[test]
fn a_fin_retransmitted_for_half_a_minute_belongs_to_its_connection() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 9);
    frames.truncate(frames.len() - 4);
    let client_ends = 180 * MS;
    frames.push(raw(client_ends, &segment(false, 200, 8500, FIN | ACK, 0).stamped(120, 1051)));
    let mut time = client_ends + MS;
    for again in 0..8 {
        frames.push(raw(time, &segment(true, 8500, 201, FIN | ACK, 1000).stamped(1231 + (240 << again), 120)));
        time += (240 * MS) << again;
    }
    let told = told(&frames);
    let rows: Vec<_> = told.responses.iter().map(|row| (row.bytes, row.segments_sent, row.retransmissions)).collect();
    assert_eq!((told.connections.len(), rows), (1, vec![(9000, 17, 8)]), "{:?}", told.problems);
}

#[test]
fn data_after_the_end_of_its_connection_makes_no_other_one() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 9);
    let again = segment(true, 8500, 200, FIN | ACK, 1000).stamped(9000, 201);
    frames.extend([5000, 12_000].map(|at| raw(at * MS, &again)));
    let told = told(&frames);
    assert_eq!((told.connections.len(), told.responses[0].bytes), (1, 9000));
    assert_eq!(left_out(&told), [(Trouble::AfterEnd, 2)]);
    frames.extend(download(20_000 * MS, 40_000, 80 * MS, 0, 9));
    assert_eq!(self::told(&frames).connections.len(), 2);
}

/// Three downloads, the second of which is open when the clock is set by `by` at the sixth of its packets.
fn with_a_clock_that_is_set(by: i64, keep_timestamps: bool) -> Told {
    let mut frames = download(0, 40_000, 80 * MS, 0, 20);
    let mut during = download(20_000 * MS, 40_001, 80 * MS, 0, 20);
    let mut after = download(30_000 * MS, 40_002, 80 * MS, 0, 20);
    for frame in during.iter_mut().skip(25).chain(&mut after) {
        frame.0 += by;
    }
    frames.extend(during);
    frames.extend(after);
    if !keep_timestamps {
        for (_, kept, _) in &mut frames {
            // Two options that mean nothing, instead of the last ten bytes.
            let at = kept.len() - 10;
            kept[at..].fill(1);
        }
    }
    told(&frames)
}

#[test]
fn a_connection_during_which_the_clock_was_set_back_is_left_out_and_told() {
    for by in [-20, -9000, -19_990] {
        let told = with_a_clock_that_is_set(by * MS, false);
        assert_eq!(told.connections.len(), 2, "{by} ms");
        assert_eq!(left_out(&told), [(Trouble::ClockSet, 1)], "{by} ms");
        assert!(told.responses.iter().all(|row| row.completion_time_s < 1.0 && row.first_byte_time_s >= 0.0));
    }
}

#[test]
fn a_connection_during_which_the_clock_was_set_forward_is_left_out_and_told() {
    for (by, keep_timestamps) in [(9000, true), (9000, false), (3_600_000, true), (250_000, false)] {
        let told = with_a_clock_that_is_set(by * MS, keep_timestamps);
        assert!(left_out(&told).contains(&(Trouble::ClockSet, 1)), "{by} ms: {:?}", told.problems);
        let rows: Vec<_> = told.connections.iter().filter(|row| row.from_start == 1).collect();
        assert_eq!(rows.len(), 2, "{by} ms");
    }
}

/// A capture at the server of a handshake and four responses of `segments` segments. The second request comes
/// immediately, the others are `apart`; without the client's acknowledgments that carry no data if `filtered`.
fn answers(segments: u32, apart: i64, filtered: bool) -> Vec<Frame> {
    let mut frames = download(0, 40_000, 80 * MS, 0, 0);
    frames.truncate(3);
    for index in 0..4 {
        let [asked, sent] = [100 * index, segments * 1000 * index];
        let now = 80 * MS + if index == 0 { 0 } else { 60 * MS + apart * i64::from(index - 1) };
        frames.push(raw(now, &segment(false, 100 + asked, 500 + sent, ACK, 100)));
        for packet in 0..segments {
            frames.push(raw(now + 2 * MS, &segment(true, 500 + sent + packet * 1000, 200 + asked, ACK, 1000)));
        }
        if !filtered {
            frames.push(raw(now + 42 * MS, &segment(false, 200 + asked, 500 + sent + segments * 1000, ACK, 0)));
        }
    }
    frames
}

#[test]
fn a_connection_without_the_acknowledgments_that_carry_no_data_is_left_out() {
    // A client may hold its acknowledgment back until its next request, but not for long, and not for many segments.
    for (segments, apart, lacks) in [(2, 100, false), (2, 900, true), (2, 30_000, true), (10, 100, true)] {
        let filtered = told(&answers(segments, apart * MS, true));
        let expected = if lacks { vec![(Trouble::Unacknowledged, 1)] } else { Vec::new() };
        assert_eq!(left_out(&filtered), expected, "{segments} segments, {apart} ms apart");
        let whole = told(&answers(segments, apart * MS, false));
        assert!(whole.problems.is_empty(), "{:?}", whole.problems);
        assert_eq!((filtered.connections.len(), whole.connections.len()), (usize::from(!lacks), 1));
    }
}

#[test]
fn a_first_flight_that_is_neither_acknowledged_nor_retransmitted_has_no_size() {
    let sends = |count: u32| (0..count).map(|packet| segment(true, 500 + packet * 1000, 200, ACK, 1000));
    let mut frames = answers(0, 0, true);
    frames.truncate(4);
    frames.extend(sends(50).map(|packet| raw(90 * MS, &packet)));
    let cut_off = told(&frames);
    let row = cut_off.responses[0];
    assert_eq!((row.bytes, row.first_flight_segments, row.first_flight_lost_segments), (50_000, UNKNOWN, UNKNOWN));
    frames.extend(sends(1).map(|packet| raw(900 * MS, &packet)));
    let repeated = told(&frames).responses[0];
    assert_eq!((repeated.first_flight_segments, repeated.first_flight_lost_segments), (50, 1));
}

#[test]
fn a_clock_that_is_set_forward_between_a_request_and_its_answer_is_found_without_timestamps() {
    let mut frames = answers(2, 100 * MS, false);
    // From the answer to the third request on.
    for (time, ..) in &mut frames[12..] {
        *time += 9000 * MS;
    }
    assert_eq!(left_out(&told(&frames)), [(Trouble::ClockSet, 1)]);
}

#[test]
fn packets_of_several_processors_out_of_order_by_milliseconds_are_no_set_clock() {
    let mut frames = download(0, 40_000, 80 * MS, 0, 10);
    for pair in frames[6..24].chunks_exact_mut(2) {
        pair.swap(0, 1);
    }
    let told = told(&frames);
    assert_eq!(told.connections.len(), 1);
    assert!(told.responses.iter().all(|row| row.completion_time_s >= 0.0));
}
