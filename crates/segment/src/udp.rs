//! The UDP header (RFC 768).

use crate::{Ecn, UDP, Unrepresentable, checksum, envelope::Envelope, ip};

/// Bytes of the header.
pub const UDP_BYTES: usize = 8;
const CHECKSUM_AT: usize = 6;

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
    into[header + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}
