//! The UDP header (RFC 768).

use crate::{Ecn, UDP, Unrepresentable, checksum, envelope::Envelope, ipv4};

/// Bytes of the header.
pub const UDP_BYTES: usize = 8;
const CHECKSUM_AT: usize = 6;

/// Appends an IPv4 packet with a UDP datagram.
///
/// # Errors
/// A payload that no packet can carry; `into` is then as it was.
pub fn write_udp(envelope: &Envelope, payload: &[u8], into: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    let length = UDP_BYTES + payload.len();
    let total = ipv4::FIXED_BYTES + length;
    let total_length = u16::try_from(total).map_err(|_| Unrepresentable::Length(total))?;
    into.reserve(total);
    ipv4::write_header(UDP, Ecn::NotCapable, envelope, &[], total_length, into);
    let header = into.len();
    into.extend_from_slice(&envelope.source.port().to_be_bytes());
    into.extend_from_slice(&envelope.destination.port().to_be_bytes());
    into.extend_from_slice(&(length as u16).to_be_bytes());
    into.extend_from_slice(&[0; 2]);
    into.extend_from_slice(payload);
    let checksum = match checksum::transport(UDP, *envelope.source.ip(), *envelope.destination.ip(), &into[header..]) {
        // RFC 768: zero says that there is none.
        0 => u16::MAX,
        checksum => checksum,
    };
    into[header + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}
