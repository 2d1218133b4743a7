//! The parts of a packet outside its segment, and the reasons why a segment fits no packet.

use std::net::SocketAddr;

use thiserror::Error;

use crate::options::MOST_BYTES;

/// The fields of a packet that its segment does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver, of the same version of the Internet Protocol.
    pub destination: SocketAddr,
    /// IPv4's identification; IPv6 has none.
    pub identification: u16,
    /// Hops that the packet may still take.
    pub time_to_live: u8,
}

impl Envelope {
    /// Of a packet from one end to another: identification 0, and hops by Linux's default.
    pub fn between(source: SocketAddr, destination: SocketAddr) -> Self {
        Self { source, destination, identification: 0, time_to_live: 64 }
    }
}

/// Why a segment cannot be a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Unrepresentable {
    /// The options take this number of bytes; a TCP header has room for 40 (RFC 9293 §3.1).
    #[error("a segment has {0} bytes of TCP options; a header has room for {most}", most = MOST_BYTES)]
    Options(usize),
    /// Headers and payload take this number of bytes; an IPv4 packet has at most 65535 (RFC 791 §3.1), one of IPv6 as many
    /// behind its header (RFC 8200 section 3).
    #[error("a packet of {0} bytes does not fit into the Internet Protocol, whose packets have at most 65535")]
    Length(usize),
    /// Quick-Start in IPv6 (RFC 4782 section 3.2), which is not modeled.
    #[error("a Quick-Start option in IPv6 is not modeled")]
    QuickStart,
    /// The two addresses are of different versions of the Internet Protocol.
    #[error("a packet has two IPv4 or two IPv6 addresses, not one of each")]
    Versions,
    /// The payload given is not as long as the segment says.
    #[error("a segment counts {counted} bytes of payload, and was given {given}")]
    Payload {
        /// Bytes that the segment counts.
        counted: u32,
        /// Bytes that were given.
        given: usize,
    },
}
