//! TCP segments: their fields, flags, options and sequence numbers; and the packets that carry them. The only crate that
//! reads or writes headers, and a leaf: it depends on no other.
//!
//! [`write_packet`] makes the bytes of an IPv4 or IPv6 packet from a [`Segment`]: real headers, options in Linux's order, the
//! checksums, and a payload that is a function of the stream offset alone, so that a retransmission carries the bytes of
//! the first transmission; [`write_packet_with`] takes the payload from its caller. [`read_packet`] is the inverse, for
//! packets from a network, and [`read_headers`] for truncated packets of a capture. For a few fields of a header, see
//! [`Ip`], [`Tcp`], [`Options`].

mod checksum;
mod envelope;
mod ip;
mod ipv4;
mod ipv6;
mod malformed;
mod options;
mod packet;
mod read;
mod segment;
pub mod sequence;
mod tcp;

pub use envelope::{Envelope, Unrepresentable};
pub use ip::{Ip, mark};
pub use ipv4::{FIXED_BYTES as IPV4_BYTES, answer_quick_start};
pub use ipv6::FIXED_BYTES as IPV6_BYTES;
pub use malformed::Malformed;
pub use options::{Options, QUICK_START_BYTES, TIMESTAMPS_BYTES, kind};
pub use packet::{UDP_BYTES, write_packet, write_packet_with, write_payload, write_udp};
pub use read::{Packet, read_headers, read_packet};
pub use segment::{Ecn, Flags, MOST_SACK_BLOCKS, PathOption, QuickStart, SackBlocks, Segment, SentAt, Timestamps};
pub use tcp::{FIXED_BYTES as TCP_BYTES, Tcp, ports};

/// Protocol number of TCP in the header of the Internet Protocol.
pub const TCP: u8 = 6;

/// Protocol number of UDP.
pub const UDP: u8 = 17;
