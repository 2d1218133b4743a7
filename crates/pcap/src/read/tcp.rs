//! Reads the TCP header (RFC 9293 §3.1).

use firstflight_tcp::{Flags, SackBlocks, Segment, Timestamps};

use super::{Malformed, options};
use crate::tcp::{FIXED_BYTES, MSS, QUICK_START, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

const HEADER: &str = "TCP";

/// Largest shift of a window.
// RFC 7323 §2.3: a larger one is to be taken for 14.
const LARGEST_SHIFT: u8 = 14;

/// What the header says that a [`Segment`] does not.
pub(super) struct Header {
    pub header_bytes: usize,
    pub source_port: u16,
    pub destination_port: u16,
}

/// Reads the header at the beginning of a segment of `length` bytes, of which the end may be cut.
pub(super) fn read_header(bytes: &[u8], length: usize, into: &mut Segment) -> Result<Header, Malformed> {
    let short = |needs| Malformed::Short { header: HEADER, needs, has: bytes.len() };
    let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk().ok_or(short(FIXED_BYTES))?;
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    if header_bytes < FIXED_BYTES || header_bytes > length {
        return Err(Malformed::HeaderLength { header: HEADER, bytes: header_bytes });
    }
    let header = bytes.get(..header_bytes).ok_or(short(header_bytes))?;
    into.seq = word(fixed, 4);
    into.ack = word(fixed, 8);
    into.payload_bytes = (length - header_bytes) as u32;
    into.flags = Flags::from_bits(fixed[13]);
    into.window = u16::from_be_bytes([fixed[14], fixed[15]]);
    let is_syn = into.flags.contains(Flags::SYN);
    options::each(HEADER, &header[FIXED_BYTES..], |kind, value| {
        read_option(kind, value, is_syn, into).ok_or(Malformed::Option { header: HEADER, kind })
    })?;
    Ok(Header {
        header_bytes,
        source_port: u16::from_be_bytes([fixed[0], fixed[1]]),
        destination_port: u16::from_be_bytes([fixed[2], fixed[3]]),
    })
}

/// Takes an option over; none if it does not have the length that it must have.
// RFC 9293 §3.2, RFC 2018 §2, RFC 7323 §2.2: MSS, SACK-permitted and window scale mean nothing without SYN.
fn read_option(kind: u8, value: &[u8], is_syn: bool, into: &mut Segment) -> Option<()> {
    match kind {
        MSS if is_syn => into.mss = u16::from_be_bytes(value.try_into().ok()?),
        WINDOW_SCALE if is_syn => {
            let [shift] = value.try_into().ok()?;
            into.window_scale = LARGEST_SHIFT.min(shift);
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
        QUICK_START => {
            let value: &[u8; 6] = value.try_into().ok()?;
            into.quick_start_response = Some(value[0] & 15);
        }
        _ => {}
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
