//! Feeds arbitrary bytes to the reader of captures: on any input nothing panics, and a connection has no more bytes
//! than sequence numbers can distinguish.
//!
//! `cargo fuzz run capture` in `crates/observe`; captures of your own are a corpus to start from. A reader
//! that takes an arbitrary file for no capture learns little, so half of the inputs get a file header.

#![no_main]

use std::path::Path;

use firstflight_observe::{Reader, UNKNOWN};
use libfuzzer_sys::fuzz_target;

/// A pcap file with nanoseconds of raw IP packets, up to its first packet.
const HEADER: [u8; 24] = [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];

fuzz_target!(|input: (bool, &[u8])| {
    let (with_header, bytes) = input;
    let file = if with_header { [&HEADER, bytes].concat() } else { bytes.to_vec() };
    let Ok(mut reader) = Reader::new(Path::new("fuzzed"), file.as_slice()) else { return };
    while let Some(batch) = reader.read(100).expect("memory can be read") {
        for row in batch.responses {
            assert!(row.delivered_bytes <= row.bytes, "{row:?}");
            assert!(row.retransmissions <= row.segments_sent, "{row:?}");
            assert!(
                row.first_flight_segments == UNKNOWN || row.first_flight_lost_segments <= row.first_flight_segments,
                "{row:?}"
            );
        }
    }
    reader.problems();
});
