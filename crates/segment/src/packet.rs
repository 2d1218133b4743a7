//! A segment as an IP packet.

use crate::{Envelope, Segment, TCP, Unrepresentable, checksum, ip, ipv4, payload::write_payload, tcp};

/// Appends the packet: IP header of the version of its addresses, TCP header, and the payload that [`write_payload`] makes of the stream offset.
///
/// # Errors
/// A segment that no packet can carry; `into` is then as it was.
pub fn write_packet(segment: &Segment, envelope: &Envelope, into: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    write(segment, envelope, |into| write_payload(envelope.stream_offset, segment.payload_bytes, into), into)
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
