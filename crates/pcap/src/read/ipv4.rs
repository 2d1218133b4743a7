//! Reads the IPv4 header (RFC 791 §3.1).

use std::net::Ipv4Addr;

use firstflight_tcp::{Ecn, QuickStart};

use super::{Malformed, options};
use crate::{
    checksum::Checksum,
    ipv4::{FIXED_BYTES, QUICK_START, QUICK_START_BYTES, REPORT, REQUEST, TCP},
};

const HEADER: &str = "IPv4";

/// More fragments follow, and the place of this one: both zero in a packet that is whole.
const FRAGMENTED: u16 = 0x3fff;

/// What the header says, as far as it is of use.
pub(super) struct Header {
    pub header_bytes: usize,
    pub payload_bytes: usize,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub identification: u16,
    pub time_to_live: u8,
    pub ecn: Ecn,
    pub quick_start: QuickStart,
}

/// Reads the header at the beginning of a packet; what follows it may be cut.
pub(super) fn read_header(bytes: &[u8]) -> Result<Header, Malformed> {
    let short = |needs| Malformed::Short { header: HEADER, needs, has: bytes.len() };
    let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk().ok_or(short(FIXED_BYTES))?;
    if fixed[0] >> 4 != 4 {
        return Err(Malformed::Version(fixed[0] >> 4));
    }
    let header_bytes = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header_bytes < FIXED_BYTES || header_bytes > total {
        return Err(Malformed::HeaderLength { header: HEADER, bytes: header_bytes });
    }
    let header = bytes.get(..header_bytes).ok_or(short(header_bytes))?;
    if Checksum::default().add(header).finish() != 0 {
        return Err(Malformed::Checksum(HEADER));
    }
    if u16::from_be_bytes([fixed[6], fixed[7]]) & FRAGMENTED != 0 {
        return Err(Malformed::Fragment);
    }
    if fixed[9] != TCP {
        return Err(Malformed::Protocol(fixed[9]));
    }
    let time_to_live = fixed[8];
    let mut quick_start = QuickStart::None;
    options::each(HEADER, &header[FIXED_BYTES..], |kind, value| {
        if kind == QUICK_START {
            quick_start = read_quick_start(value, time_to_live)?;
        }
        Ok(())
    })?;
    Ok(Header {
        header_bytes,
        payload_bytes: total - header_bytes,
        source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
        destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
        identification: u16::from_be_bytes([fixed[4], fixed[5]]),
        time_to_live,
        ecn: match fixed[1] & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congestion,
        },
        quick_start,
    })
}

// RFC 4782 §3.1; see the writer's side for the TTL.
fn read_quick_start(value: &[u8], time_to_live: u8) -> Result<QuickStart, Malformed> {
    if value.len() + 2 != usize::from(QUICK_START_BYTES) {
        return Err(Malformed::Option { header: HEADER, kind: QUICK_START });
    }
    let rate = value[0] & 15;
    Ok(match value[0] >> 4 {
        REQUEST => QuickStart::Request { rate, approved: value[1] == time_to_live },
        REPORT => QuickStart::Report { rate },
        // RFC 4782 §3.1 knows no other function.
        _ => QuickStart::None,
    })
}
