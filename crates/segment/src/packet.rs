//! A segment as an IPv4 packet.

use std::{error::Error, fmt, net::SocketAddrV4};

use crate::{Segment, TCP, checksum, ipv4, payload::write_payload, tcp};

/// What a segment does not know about the packet that carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Address and port of the sender.
    pub source: SocketAddrV4,
    /// Address and port of the receiver.
    pub destination: SocketAddrV4,
    /// IP identification.
    pub identification: u16,
    /// Hops that the packet may still take.
    pub time_to_live: u8,
    /// Offset in the sender's stream at which the payload begins: it says which bytes [`write_packet`] gives the payload.
    /// Nothing else reads it, and a packet that is read does not tell it: it is then 0.
    pub stream_offset: u64,
}

/// Why a segment cannot be a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unrepresentable {
    /// The options take so many bytes; a TCP header has room for 40 (RFC 9293 §3.1).
    Options(usize),
    /// Headers and payload take so many bytes; an IPv4 packet has at most 65535 (RFC 791 §3.1).
    Length(usize),
    /// The payload given is not as long as the segment says.
    Payload {
        /// Bytes that the segment counts.
        counted: u32,
        /// Bytes that were given.
        given: usize,
    },
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(bytes) => {
                write!(
                    f,
                    "a segment has {bytes} bytes of TCP options; a header has room for {}",
                    tcp::MOST_OPTION_BYTES
                )
            }
            Self::Length(bytes) => {
                write!(f, "a packet of {bytes} bytes does not fit into IPv4, whose packets have at most 65535")
            }
            Self::Payload { counted, given } => {
                write!(f, "a segment counts {counted} bytes of payload, and was given {given}")
            }
        }
    }
}

impl Error for Unrepresentable {}

/// Appends the packet: IPv4 header, TCP header, and the payload that [`write_payload`] makes of the stream offset.
///
/// # Errors
/// A segment that no packet can carry; `into` is then as it was.
pub fn write_packet(segment: &Segment, envelope: &Envelope, into: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    write(segment, envelope, |into| write_payload(envelope.stream_offset, segment.payload_bytes, into), into)
}

/// As [`write_packet`], with the payload that is given.
///
/// # Errors
/// A segment that no packet can carry, or whose payload is not as long as what is given; `into` is then as it was.
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
    let total = ipv4::FIXED_BYTES + ip_options.len() + tcp_bytes;
    let total_length = u16::try_from(total).map_err(|_| Unrepresentable::Length(total))?;
    into.reserve(total);
    ipv4::write_header(TCP, segment.ecn, envelope, ip_options, total_length, into);
    let header = into.len();
    tcp::write_header(segment, envelope, &options, into);
    payload(into);
    let checksum = checksum::transport(TCP, *envelope.source.ip(), *envelope.destination.ip(), &into[header..]);
    into[header + tcp::CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}
