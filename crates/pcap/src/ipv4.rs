//! The IPv4 header (RFC 791 §3.1).

use firstflight_tcp::{Ecn, QuickStart, Segment};

use crate::{checksum::Checksum, packet::Envelope};

/// A header without options.
pub(crate) const FIXED_BYTES: usize = 20;

/// The TCP protocol number.
pub(crate) const TCP: u8 = 6;

const DONT_FRAGMENT: u16 = 0x4000;
const CHECKSUM_AT: usize = 10;

/// Option 25 of RFC 4782 §3.1: not copied on fragmentation, class 0.
pub(crate) const QUICK_START: u8 = 25;
pub(crate) const QUICK_START_BYTES: u8 = 8;
/// Its functions.
pub(crate) const REQUEST: u8 = 0;
pub(crate) const REPORT: u8 = 0b1000;

/// The options, in whole words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    bytes: [u8; QUICK_START_BYTES as usize],
    length: usize,
}

impl Options {
    /// The Quick-Start option, if the segment carries one.
    // RFC 4782 §3.1: function 0000 is a rate request, 1000 a report of the approved rate, whose third byte is unused. A
    // router that takes part lowers the QS TTL as it lowers the TTL, so their difference stays; one that does not take
    // part shows as a difference that has changed. The nonce, which lets a sender check the receiver's honesty, is not
    // modelled and stands as zero.
    pub(crate) fn of(segment: &Segment, time_to_live: u8) -> Self {
        let [function_and_rate, quick_start_ttl] = match segment.quick_start {
            QuickStart::None => return Self::default(),
            QuickStart::Request { rate, approved } => {
                [REQUEST << 4 | rate & 15, time_to_live.wrapping_add(u8::from(!approved))]
            }
            QuickStart::Report { rate } => [REPORT << 4 | rate & 15, 0],
        };
        Self { bytes: [QUICK_START, QUICK_START_BYTES, function_and_rate, quick_start_ttl, 0, 0, 0, 0], length: 8 }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Appends the header with its checksum.
// RFC 3168 §5: the ECN field is the low two bits of the former TOS byte. Path MTU discovery (RFC 1191) sets DF.
pub(crate) fn write_header(ecn: Ecn, envelope: &Envelope, options: &Options, total_length: u16, into: &mut Vec<u8>) {
    let start = into.len();
    let words = ((FIXED_BYTES + options.as_slice().len()) / 4) as u8;
    into.extend_from_slice(&[4 << 4 | words, ecn as u8]);
    into.extend_from_slice(&total_length.to_be_bytes());
    into.extend_from_slice(&envelope.identification.to_be_bytes());
    into.extend_from_slice(&DONT_FRAGMENT.to_be_bytes());
    into.extend_from_slice(&[envelope.time_to_live, TCP, 0, 0]);
    into.extend_from_slice(&envelope.source.ip().octets());
    into.extend_from_slice(&envelope.destination.ip().octets());
    into.extend_from_slice(options.as_slice());
    let checksum = Checksum::default().add(&into[start..]).finish();
    into[start + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
}
