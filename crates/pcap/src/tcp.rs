//! The TCP header (RFC 9293 §3.1) with its options in the order in which Linux lays them out.

use std::net::Ipv4Addr;

use firstflight_tcp::{Flags, NO_WINDOW_SCALE, Segment};

use crate::{
    checksum::Checksum,
    ipv4,
    packet::{Envelope, Unrepresentable},
};

/// A header without options.
pub(crate) const FIXED_BYTES: usize = 20;

/// The data offset counts up to 15 words.
pub(crate) const MOST_OPTION_BYTES: usize = 40;

/// Where the checksum stands in the header.
pub(crate) const CHECKSUM_AT: usize = 16;

const NOP: u8 = 1;
pub(crate) const MSS: u8 = 2;
pub(crate) const WINDOW_SCALE: u8 = 3;
pub(crate) const SACK_PERMITTED: u8 = 4;
pub(crate) const SACK: u8 = 5;
pub(crate) const TIMESTAMPS: u8 = 8;
pub(crate) const QUICK_START: u8 = 27;

/// What all options take that a segment can have at once, whether or not a header has room for them.
const ALL_OPTION_BYTES: usize = 68;

/// The options, in whole words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    bytes: [u8; ALL_OPTION_BYTES],
    length: usize,
}

impl Options {
    /// The options of a segment.
    ///
    /// A SYN has MSS, SACK permitted, timestamps, window scale; other segments timestamps, SACK: each option aligned so
    /// that its numbers stand on whole words, SACK permitted in place of the padding of the timestamps where both are.
    pub(crate) fn of(segment: &Segment) -> Result<Self, Unrepresentable> {
        let mut options = Self { bytes: [0; ALL_OPTION_BYTES], length: 0 };
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn && segment.mss != 0 {
            options.put(&[MSS, 4]).put(&segment.mss.to_be_bytes());
        }
        let permits_sack = is_syn && segment.sack_permitted;
        if permits_sack {
            options.put(if segment.timestamps.is_some() { &[] } else { &[NOP, NOP] }).put(&[SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = segment.timestamps {
            options
                .put(if permits_sack { &[] } else { &[NOP, NOP] })
                .put(&[TIMESTAMPS, 10])
                .put(&timestamps.value.to_be_bytes())
                .put(&timestamps.echo.to_be_bytes());
        }
        if is_syn && segment.window_scale != NO_WINDOW_SCALE {
            options.put(&[NOP, WINDOW_SCALE, 3, segment.window_scale]);
        }
        let blocks = segment.sack.as_slice();
        if !blocks.is_empty() {
            options.put(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for [left, right] in blocks {
                options.put(&left.to_be_bytes()).put(&right.to_be_bytes());
            }
        }
        // RFC 4782 §3.2: TTL Diff is what the request's option tells the receiver, zero here where every router took
        // part; a refusal is a rate of 0. The nonce is not modelled.
        if let Some(rate) = segment.quick_start_response {
            options.put(&[QUICK_START, 8, rate & 15, 0, 0, 0, 0, 0]);
        }
        debug_assert_eq!(options.length % 4, 0);
        if options.length > MOST_OPTION_BYTES { Err(Unrepresentable::Options(options.length)) } else { Ok(options) }
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Appends the header, with zero for a checksum.
pub(crate) fn write_header(segment: &Segment, envelope: &Envelope, options: &Options, into: &mut Vec<u8>) {
    let words = ((FIXED_BYTES + options.as_slice().len()) / 4) as u8;
    into.extend_from_slice(&envelope.source.port().to_be_bytes());
    into.extend_from_slice(&envelope.destination.port().to_be_bytes());
    into.extend_from_slice(&segment.seq.to_be_bytes());
    into.extend_from_slice(&segment.ack.to_be_bytes());
    into.extend_from_slice(&[words << 4, segment.flags.bits()]);
    into.extend_from_slice(&segment.window.to_be_bytes());
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(options.as_slice());
}

/// The checksum of header and payload: of a segment in which it stands as zero, what belongs there; of one in which it
/// stands, zero.
// RFC 9293 §3.1: a pseudo-header of both addresses, the protocol and the length of the segment is summed as well.
pub(crate) fn checksum(source: Ipv4Addr, destination: Ipv4Addr, segment: &[u8]) -> u16 {
    Checksum::default()
        .add(&source.octets())
        .add(&destination.octets())
        .add(&[0, ipv4::TCP])
        .add(&(segment.len() as u16).to_be_bytes())
        .add(segment)
        .finish()
}
