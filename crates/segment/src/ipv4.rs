//! The IPv4 header (RFC 791 section 3.1).

use std::net::Ipv4Addr;

use crate::{
    Ecn, Ip, Malformed, Options, QUICK_START_BYTES, QuickStart, Segment, checksum::Checksum, envelope::Envelope, kind,
};

/// A header without options.
pub const FIXED_BYTES: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const CHECKSUM_AT: usize = 10;

/// Functions of the Quick-Start option (RFC 4782 section 3.1).
const REQUEST: u8 = 0;
const REPORT: u8 = 0b1000;

/// The header at the beginning of these bytes, as [`Ip::read`].
pub(crate) fn read_header(packet: &[u8], undivided: usize) -> Result<Ip, Malformed> {
    let short = Malformed::Short { header: "IPv4", needs: FIXED_BYTES, has: packet.len() };
    let fixed: &[u8; FIXED_BYTES] = packet.first_chunk().ok_or(short)?;
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into();
    let header_bytes = usize::from(fixed[0] & 15) * 4;
    if header_bytes < FIXED_BYTES {
        return Err(Malformed::HeaderLength { header: "IPv4", bytes: header_bytes });
    }
    Ok(Ip {
        source: address(12),
        destination: address(16),
        protocol: fixed[9],
        header_bytes,
        total_bytes: match half(2) {
            0 => undivided,
            total => total.into(),
        },
        traffic_class: fixed[1],
        identification: half(4),
        time_to_live: fixed[8],
        is_fragment: half(6) & (FRAGMENT_OFFSET | MORE_FRAGMENTS) != 0,
        is_later_fragment: half(6) & FRAGMENT_OFFSET != 0,
    })
}

/// Sets "congestion experienced" (RFC 3168 section 5).
pub(crate) fn mark(packet: &mut [u8]) {
    let before = [packet[0], packet[1]];
    packet[1] |= Ecn::Congestion as u8;
    let after = [packet[0], packet[1]];
    let checksum = Checksum::updated([packet[CHECKSUM_AT], packet[CHECKSUM_AT + 1]], before, after);
    packet[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum);
}

/// Lets a router answer the Quick-Start request that a packet, whose header is whole, may carry: `answer` gives the rate
/// code granted of the one asked for; none: the router does not know such requests.
// RFC 4782 section 3.3: a router that takes part lowers QS TTL and TTL alike, one that does not lowers the TTL alone, by
// which the receiver knows. No TTL is lowered here, so the QS TTL is raised instead: once, for it only matters whether
// they differ.
pub fn answer_quick_start(packet: &mut [u8], answer: impl FnOnce(u8) -> Option<u8>) {
    let Some(Ip { header_bytes, time_to_live, .. }) = Ip::at(packet).filter(|ip| ip.source.is_ipv4()) else { return };
    let mut options = Options(packet.get(FIXED_BYTES..header_bytes).unwrap_or_default());
    let request = loop {
        match options.next() {
            Some(Ok((kind::QUICK_START, value))) if value.len() + 2 == QUICK_START_BYTES as usize => break value,
            Some(Ok(_)) => {}
            _ => return,
        }
    };
    if request[0] >> 4 != REQUEST || request[1] != time_to_live {
        return;
    }
    let (asked, at) = (request[0] & 15, header_bytes - options.0.len() - request.len());
    match answer(asked) {
        Some(granted) => packet[at] = granted & 15,
        None => packet[at + 1] = time_to_live.wrapping_add(1),
    }
    write_checksum(&mut packet[..header_bytes]);
}

fn write_checksum(header: &mut [u8]) {
    header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let checksum = Checksum::default().add(header).finish();
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The Quick-Start option, if the segment carries one: bytes, and how many there are.
// RFC 4782 section 3.1: function 0000 is a rate request, 1000 a report of the approved rate, whose third byte is unused. A
// router that takes part lowers the QS TTL as it lowers the TTL, so their difference stays; one that does not take part
// shows as a difference that has changed. The nonce, which lets a sender check the receiver's honesty, is not modeled and
// stands as zero.
pub(crate) fn options_of(segment: &Segment, time_to_live: u8) -> ([u8; QUICK_START_BYTES as usize], usize) {
    let [function_and_rate, quick_start_ttl] = match segment.quick_start() {
        QuickStart::None => return Default::default(),
        QuickStart::Request { rate, approved } => {
            [REQUEST << 4 | rate & 15, time_to_live.wrapping_add(u8::from(!approved))]
        }
        QuickStart::Report { rate } => [REPORT << 4 | rate & 15, 0],
    };
    let length = QUICK_START_BYTES as u8;
    ([kind::QUICK_START, length, function_and_rate, quick_start_ttl, 0, 0, 0, 0], length.into())
}

/// Appends the header with its checksum.
// RFC 3168 section 5: the ECN field is the low two bits of the former TOS byte. Path MTU discovery (RFC 1191) sets DF.
pub(crate) fn write_header(
    protocol: u8,
    ecn: Ecn,
    envelope: &Envelope,
    [source, destination]: [Ipv4Addr; 2],
    options: &[u8],
    total_length: u16,
    into: &mut Vec<u8>,
) {
    let start = into.len();
    let words = ((FIXED_BYTES + options.len()) / 4) as u8;
    into.extend_from_slice(&[4 << 4 | words, ecn as u8]);
    into.extend_from_slice(&total_length.to_be_bytes());
    into.extend_from_slice(&envelope.identification.to_be_bytes());
    into.extend_from_slice(&DONT_FRAGMENT.to_be_bytes());
    into.extend_from_slice(&[envelope.time_to_live, protocol, 0, 0]);
    into.extend_from_slice(&source.octets());
    into.extend_from_slice(&destination.octets());
    into.extend_from_slice(options);
    write_checksum(&mut into[start..]);
}

/// The Quick-Start option of a header that is checked: its checksum, and its options.
pub(crate) fn read_options(header: &[u8], time_to_live: u8) -> Result<QuickStart, Malformed> {
    if Checksum::default().add(header).finish() != 0 {
        return Err(Malformed::Checksum("IPv4"));
    }
    let mut quick_start = QuickStart::None;
    for option in Options(&header[FIXED_BYTES..]) {
        let malformed = |kind| Malformed::Option { header: "IPv4", kind };
        let (kind, value) = option.map_err(malformed)?;
        if kind == kind::QUICK_START {
            quick_start = read_quick_start(value, time_to_live).ok_or(malformed(kind))?;
        }
    }
    Ok(quick_start)
}

// RFC 4782 section 3.1; see the writer's side for the TTL.
fn read_quick_start(value: &[u8], time_to_live: u8) -> Option<QuickStart> {
    let &[function_and_rate, quick_start_ttl, ..]: &[u8; QUICK_START_BYTES as usize - 2] = value.try_into().ok()?;
    let rate = function_and_rate & 15;
    Some(match function_and_rate >> 4 {
        REQUEST => QuickStart::Request { rate, approved: quick_start_ttl == time_to_live },
        REPORT => QuickStart::Report { rate },
        // RFC 4782 section 3.1 knows no other function.
        _ => QuickStart::None,
    })
}
