//! Captures that end too early, are damaged, or are no captures at all: the good part counts, the rest is reported.

use std::path::Path;

use crate::made::{ACK, MS, SYN, download, pcap, read, segment};
use firstflight_observe::{ReadError, Reader, Trouble};
use proptest::prelude::*;

const RAW: u32 = 101;

fn two_connections() -> Vec<u8> {
    let mut frames = download(0, 40_000, 80 * MS, 0, 10);
    frames.extend(download(20_000 * MS, 40_001, 80 * MS, 0, 10));
    pcap(RAW, &frames)
}

#[test]
fn a_capture_that_was_cut_off_gives_what_came_before_and_tells_where_it_ends() {
    let file = two_connections();
    let told = read(&file[..file.len() - 5]);
    assert_eq!(told.connections.len(), 2);
    assert_eq!((told.problems[0].trouble, told.problems[0].count), (Trouble::CutOff, 1));
    // The last packet begins a header and a packet's headers before the end.
    assert_eq!(told.problems[0].first, [(file.len() - 16 - 52) as u64]);
}

#[test]
fn from_where_a_capture_is_damaged_nothing_is_made_up() {
    let mut file = two_connections();
    let middle = 24 + (16 + 52) * 20;
    let from = file.len().min(middle);
    file[from..].fill(0xee);
    let told = read(&file);
    assert_eq!(told.connections.len(), 1);
    assert!(told.problems.iter().any(|problem| matches!(problem.trouble, Trouble::Damaged | Trouble::CutOff)));
}

#[test]
fn what_is_no_capture_is_refused_in_a_sentence() {
    for junk in [&b""[..], b"GET / HTTP/1.1\r\n", &[0; 100]] {
        let error = Reader::new(Path::new("junk"), junk).err();
        assert!(matches!(&error, Some(ReadError::NoCapture(_))), "{error:?}");
    }
}

#[test]
fn a_capture_without_packets_has_no_rows() {
    let told = read(&pcap(RAW, &[]));
    assert!(told.connections.is_empty() && told.problems.is_empty());
}

/// A pcapng file of raw IP with one interface per frame, whose clock has an offset of this number of seconds.
fn with_offsets(frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    with_clocks(6, frames)
}

/// The same, with times in units of 10 to the minus this.
fn with_clocks(resolution: u8, frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let length = (padded + 12) as u32;
        file.extend([kind, length].map(u32::to_le_bytes).concat());
        file.extend(body);
        file.resize(file.len() + padded - body.len(), 0);
        file.extend(length.to_le_bytes());
    };
    block(0x0a0d_0d0a, &[0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes).concat());
    for (index, (seconds, kept)) in frames.iter().enumerate() {
        let unit = [RAW as u8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0];
        block(1, &[&unit[..], &[14, 0, 8, 0], &seconds.to_le_bytes()].concat());
        let fields = [index, 0, 0, kept.len(), kept.len()].map(|field| (field as u32).to_le_bytes()).concat();
        block(6, &[fields, kept.clone()].concat());
    }
    file
}

#[test]
fn a_packet_of_no_time_that_a_clock_shows_is_damage() {
    let syn = segment(false, 99, 0, SYN, 0).ipv4();
    for seconds in [-9_000_000_000, -1, 9_000_000_000] {
        let told = read(&with_offsets(&[(seconds, syn.clone()), (-seconds, syn.clone())]));
        assert_eq!(told.problems[0].trouble, Trouble::Damaged, "{seconds} s");
    }
    let told = read(&with_offsets(&[(0, syn.clone()), (4_000_000_000, syn)]));
    assert_eq!(told.problems.iter().map(|problem| problem.trouble).collect::<Vec<_>>(), [Trouble::Silent]);
}

#[test]
fn a_clock_too_coarse_for_a_round_trip_shows_none() {
    for (resolution, trouble) in [(2, Trouble::WithoutTime), (3, Trouble::Silent)] {
        let told = read(&with_clocks(resolution, &[(0, segment(false, 99, 0, SYN, 0).ipv4())]));
        assert_eq!(told.problems[0].trouble, trouble, "10^-{resolution} s");
    }
}

#[test]
fn a_clock_that_is_set_back_and_forth_brings_nothing_down() {
    let mut frames = vec![segment(false, 99, 0, SYN, 0), segment(true, 499, 100, SYN | ACK, 0)];
    frames.extend((0..30).map(|index| segment(true, 500 + index * 1000, 100, ACK, 1000)));
    frames.extend((0..10).map(|index| segment(false, 100, 3500 + index * 2000, ACK, 0)));
    let seconds = |index: usize| if index == 0 || index > 32 && index % 2 == 0 { 4_000_000_000 } else { 0 };
    let timed: Vec<_> = frames.iter().enumerate().map(|(index, it)| (seconds(index), it.ipv4())).collect();
    let told = read(&with_offsets(&timed));
    assert!(told.connections.is_empty() && told.responses.is_empty());
    assert!(told.problems.iter().any(|problem| problem.trouble == Trouble::ClockSet), "{:?}", told.problems);
}

proptest! {
    #[test]
    fn no_bytes_whatever_bring_the_reader_down(
        at in 0_usize..2000,
        junk in proptest::collection::vec(any::<u8>(), 1..200),
    ) {
        let mut file = two_connections();
        let at = at.min(file.len() - 1);
        let end = (at + junk.len()).min(file.len());
        file[at..end].copy_from_slice(&junk[..end - at]);
        if let Ok(mut reader) = Reader::new(Path::new("junk"), file.as_slice()) {
            while reader.read(10).unwrap().is_some() {}
        }
    }

    #[test]
    fn neither_do_bytes_behind_a_pcapng_header(junk in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut file = Vec::new();
        for value in [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 101, 0, 20] {
            file.extend(value.to_le_bytes());
        }
        for kind in [6_u32, 2, 3] {
            file.extend(kind.to_le_bytes());
            let length = (junk.len().next_multiple_of(4) + 12) as u32;
            file.extend(length.to_le_bytes());
            file.extend(&junk);
            file.resize(file.len().next_multiple_of(4), 0);
            file.extend(length.to_le_bytes());
        }
        let mut reader = Reader::new(Path::new("junk"), file.as_slice()).unwrap();
        while reader.read(10).unwrap().is_some() {}
    }
}
