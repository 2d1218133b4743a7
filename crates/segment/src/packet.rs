//! A segment as an IP packet, with the bytes that stand in for those of its stream; and UDP datagrams.

use crate::{Ecn, Envelope, Segment, TCP, UDP, Unrepresentable, checksum, ip, ipv4, tcp};

/// Bytes of the header of UDP (RFC 768).
pub const UDP_BYTES: usize = 8;
const UDP_CHECKSUM_AT: usize = 6;

/// Bytes of a line of the payload.
const LINE: u64 = 16;

/// Appends the packet: IP header of the version of its addresses, TCP header, and the payload that [`write_payload`] makes
/// of its offset in the sender's stream.
///
/// # Errors
/// A segment that no packet can carry; `into` is then as it was.
pub fn write_packet(
    segment: &Segment,
    envelope: &Envelope,
    stream_offset: u64,
    into: &mut Vec<u8>,
) -> Result<(), Unrepresentable> {
    write(segment, envelope, |into| write_payload(stream_offset, segment.payload_bytes, into), into)
}

/// As [`write_packet`], with the payload that is given.
///
/// # Errors
/// A segment that no packet can carry, or whose payload differs in length from the given one; `into` is then unchanged.
pub fn write_packet_with(
    segment: &Segment,
    envelope: &Envelope,
    payload: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), Unrepresentable> {
    if payload.len() != segment.payload_bytes as usize {
        return Err(Unrepresentable::Payload { counted: segment.payload_bytes, given: payload.len() });
    }
    write(segment, envelope, |into| into.extend_from_slice(payload), into)
}

fn write(
    segment: &Segment,
    envelope: &Envelope,
    payload: impl FnOnce(&mut Vec<u8>),
    into: &mut Vec<u8>,
) -> Result<(), Unrepresentable> {
    let (ip_options, ip_length) = ipv4::options_of(segment, envelope.time_to_live);
    let ip_options = &ip_options[..ip_length];
    let options = tcp::Written::of(segment)?;
    let tcp_bytes = tcp::FIXED_BYTES + options.as_slice().len() + segment.payload_bytes as usize;
    ip::write_header(TCP, segment.ecn, envelope, ip_options, tcp_bytes, into)?;
    into.reserve(tcp_bytes);
    let header = into.len();
    tcp::write_header(segment, envelope, &options, into);
    payload(into);
    let checksum = checksum::transport(TCP, envelope.source.ip(), envelope.destination.ip(), &into[header..]);
    into[header + tcp::CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends `length` bytes of the stream from `offset` on.
///
/// The stream is lines of 16 characters, each of them 15 hexadecimal digits that give the offset of the line,
/// so a reader of a packet sees which part of the stream it carries, and equal offsets mean equal bytes.
pub fn write_payload(offset: u64, length: u32, into: &mut Vec<u8>) {
    let mut at = offset;
    let end = offset.saturating_add(u64::from(length));
    while at < end {
        let line = at - at % LINE;
        let text = line_at(line);
        let upto = end.min(line.saturating_add(LINE));
        into.extend_from_slice(&text[(at - line) as usize..(upto - line) as usize]);
        at = upto;
    }
}

fn line_at(offset: u64) -> [u8; LINE as usize] {
    let mut text = [b'\n'; LINE as usize];
    for (place, digit) in text[..15].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(offset >> (4 * (14 - place)) & 15) as usize];
    }
    text
}

/// Appends an IP packet, of the version of its addresses, with a UDP datagram.
///
/// # Errors
/// A payload that no packet can carry; `into` is then as it was.
pub fn write_udp(envelope: &Envelope, payload: &[u8], into: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    let length = UDP_BYTES + payload.len();
    ip::write_header(UDP, Ecn::NotCapable, envelope, &[], length, into)?;
    into.reserve(length);
    let header = into.len();
    into.extend_from_slice(&envelope.source.port().to_be_bytes());
    into.extend_from_slice(&envelope.destination.port().to_be_bytes());
    into.extend_from_slice(&(length as u16).to_be_bytes());
    into.extend_from_slice(&[0; 2]);
    into.extend_from_slice(payload);
    let checksum = match checksum::transport(UDP, envelope.source.ip(), envelope.destination.ip(), &into[header..]) {
        // RFC 768: zero says that there is none.
        0 => u16::MAX,
        checksum => checksum,
    };
    into[header + UDP_CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_offset_at_which_it_begins() {
        let mut bytes = Vec::new();
        write_payload(0x5a0, 32, &mut bytes);
        assert_eq!(bytes, b"0000000000005a0\n0000000000005b0\n");
    }

    #[test]
    fn pieces_of_any_size_make_up_the_same_stream() {
        let mut whole = Vec::new();
        write_payload(3, 1000, &mut whole);
        let mut pieces = Vec::new();
        let mut at = 3;
        for size in (1..).take_while(|size| size * (size + 1) / 2 <= 1000) {
            write_payload(at, size, &mut pieces);
            at += u64::from(size);
        }
        write_payload(at, (1003 - at) as u32, &mut pieces);
        assert_eq!(pieces, whole);
    }
}
