//! The TCP header (RFC 9293 §3.1) with its options in the order in which Linux lays them out.

use std::num::NonZeroU16;

use crate::{
    Flags, Malformed, Options, PathOption, QUICK_START_BYTES, SackBlocks, Segment, Timestamps,
    envelope::{Envelope, Unrepresentable},
    kind::{MSS, NO_OPERATION, QUICK_START_RESPONSE, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE},
    options::MOST_BYTES,
};

/// A header without options.
pub const FIXED_BYTES: usize = 20;

/// Offset of the checksum in the header.
pub(crate) const CHECKSUM_AT: usize = 16;

/// A look at a TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a>(&'a [u8; FIXED_BYTES]);

impl<'a> Tcp<'a> {
    /// The header at the beginning of these bytes, if they have its fixed part.
    pub fn at(segment: &'a [u8]) -> Option<Self> {
        segment.first_chunk().map(Self)
    }

    /// Port of the sender.
    pub fn source_port(self) -> u16 {
        self.half(0)
    }

    /// Port of the receiver.
    pub fn destination_port(self) -> u16 {
        self.half(2)
    }

    /// Sequence number.
    pub fn seq(self) -> u32 {
        word(self.0, 4)
    }

    /// Acknowledgment number.
    pub fn ack(self) -> u32 {
        word(self.0, 8)
    }

    /// Bytes of the header, which may be fewer than its fixed part has.
    pub fn header_bytes(self) -> usize {
        usize::from(self.0[12] >> 4) * 4
    }

    /// Control bits.
    pub fn flags(self) -> Flags {
        Flags::from_bits_truncate(self.half(12))
    }

    /// Window field, before scaling.
    pub fn window(self) -> u16 {
        self.half(14)
    }

    fn half(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }
}

/// Ports of the sender and the receiver: TCP's header and UDP's begin with them.
pub fn ports(body: &[u8]) -> Option<[u16; 2]> {
    let &[a, b, c, d] = body.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The size of all options that a segment can have together, whether or not they fit into a header.
const ALL_OPTION_BYTES: usize = 68;

/// The options, in whole words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    bytes: [u8; ALL_OPTION_BYTES],
    length: usize,
}

impl Written {
    /// The options of a segment.
    ///
    /// A SYN has MSS, SACK permitted, timestamps, window scale; other segments timestamps, SACK: each option aligned so
    /// that its numbers stand on whole words, SACK permitted in place of the padding of the timestamps where both are.
    pub(crate) fn of(segment: &Segment) -> Result<Self, Unrepresentable> {
        let mut options = Self { bytes: [0; ALL_OPTION_BYTES], length: 0 };
        let is_syn = segment.flags.contains(Flags::SYN);
        if let Some(mss) = segment.mss.filter(|_| is_syn) {
            options.put(&[MSS, 4]).put(&mss.get().to_be_bytes());
        }
        let permits_sack = is_syn && segment.sack_permitted;
        if permits_sack {
            options
                .put(if segment.timestamps.is_some() { &[] } else { &[NO_OPERATION, NO_OPERATION] })
                .put(&[SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = segment.timestamps {
            options
                .put(if permits_sack { &[] } else { &[NO_OPERATION, NO_OPERATION] })
                .put(&[TIMESTAMPS, 10])
                .put(&timestamps.value.to_be_bytes())
                .put(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = segment.window_scale.filter(|_| is_syn) {
            options.put(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        let blocks = segment.sack.as_slice();
        if !blocks.is_empty() {
            options.put(&[NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
            for [left, right] in blocks {
                options.put(&left.to_be_bytes()).put(&right.to_be_bytes());
            }
        }
        // RFC 4782 §3.2: TTL Diff is computed by the receiver from the request's option, zero here where every
        // router took part; a refusal is a rate of 0. The nonce is not modeled.
        if let Some(rate) = segment.quick_start_response() {
            options.put(&[QUICK_START_RESPONSE, QUICK_START_BYTES as u8, rate & 15, 0, 0, 0, 0, 0]);
        }
        debug_assert_eq!(options.length % 4, 0);
        if options.length > MOST_BYTES { Err(Unrepresentable::Options(options.length)) } else { Ok(options) }
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
pub(crate) fn write_header(segment: &Segment, envelope: &Envelope, options: &Written, into: &mut Vec<u8>) {
    let words = ((FIXED_BYTES + options.as_slice().len()) / 4) as u16;
    into.extend_from_slice(&envelope.source.port().to_be_bytes());
    into.extend_from_slice(&envelope.destination.port().to_be_bytes());
    into.extend_from_slice(&segment.seq.to_be_bytes());
    into.extend_from_slice(&segment.ack.to_be_bytes());
    into.extend_from_slice(&(words << 12 | segment.flags.bits()).to_be_bytes());
    into.extend_from_slice(&segment.window.to_be_bytes());
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(options.as_slice());
}

const HEADER: &str = "TCP";

/// Largest shift of a window.
// RFC 7323 §2.3: a larger one is to be taken for 14.
const LARGEST_SHIFT: u8 = 14;

/// Reads the header at the beginning of a segment of `length` bytes, of which the end may be cut.
pub(crate) fn read_header<'a>(bytes: &'a [u8], length: usize, into: &mut Segment) -> Result<Tcp<'a>, Malformed> {
    let short = |needs| Malformed::Short { header: HEADER, needs, has: bytes.len() };
    let tcp = Tcp::at(bytes).ok_or(short(FIXED_BYTES))?;
    let header_bytes = tcp.header_bytes();
    if header_bytes < FIXED_BYTES || header_bytes > length {
        return Err(Malformed::HeaderLength { header: HEADER, bytes: header_bytes });
    }
    let header = bytes.get(..header_bytes).ok_or(short(header_bytes))?;
    into.seq = tcp.seq();
    into.ack = tcp.ack();
    into.payload_bytes = (length - header_bytes) as u32;
    into.flags = tcp.flags();
    into.window = tcp.window();
    let is_syn = into.flags.contains(Flags::SYN);
    for option in Options(&header[FIXED_BYTES..]) {
        let malformed = |kind| Malformed::Option { header: HEADER, kind };
        let (kind, value) = option.map_err(malformed)?;
        read_option(kind, value, is_syn, into).ok_or(malformed(kind))?;
    }
    Ok(tcp)
}

/// Takes an option over; none if it does not have the length that it must have.
// RFC 9293 §3.2, RFC 2018 §2, RFC 7323 §2.2: MSS, SACK-permitted and window scale mean nothing without SYN.
fn read_option(kind: u8, value: &[u8], is_syn: bool, into: &mut Segment) -> Option<()> {
    match kind {
        MSS if is_syn => into.mss = NonZeroU16::new(u16::from_be_bytes(value.try_into().ok()?)),
        WINDOW_SCALE if is_syn => {
            let [shift] = value.try_into().ok()?;
            into.window_scale = Some(LARGEST_SHIFT.min(shift));
        }
        SACK_PERMITTED if is_syn => {
            let [] = value.try_into().ok()?;
            into.sack_permitted = true;
        }
        SACK => {
            let ranges = value.chunks_exact(8);
            if value.is_empty() || !ranges.remainder().is_empty() {
                return None;
            }
            into.sack = SackBlocks::NONE;
            ranges.for_each(|range| into.sack.push(word(range, 0), word(range, 4)));
        }
        TIMESTAMPS => {
            let value: &[u8; 8] = value.try_into().ok()?;
            into.timestamps = Some(Timestamps { value: word(value, 0), echo: word(value, 4) });
        }
        QUICK_START_RESPONSE => {
            let value: &[u8; 6] = value.try_into().ok()?;
            into.path_option = PathOption::new(into.quick_start(), Some(value[0] & 15));
        }
        _ => {}
    }
    Some(())
}
