//! Segments as packets, and packets as capture files that Wireshark, tshark and tcpdump read.
//!
//! [`write_packet`] makes the bytes of an IPv4 packet from a [`Segment`](firstflight_tcp::Segment): real headers,
//! options in Linux's order, both checksums, and a payload that is a function of the stream offset alone, so that a
//! retransmission carries the bytes of the first transmission; [`write_packet_with`] takes the payload from its caller.
//! [`read_packet`] is the inverse, for what a network brings, and [`read_headers`] for what a capture has cut. [`Writer`] puts packets into pcapng or pcap with
//! nanosecond times; [`CaptureFile`] does so in a file that is either whole or absent. Nothing here knows where packets
//! come from or what time it is: a simulator and a box on a real link can use it alike.

mod checksum;
mod file;
mod ipv4;
mod packet;
mod payload;
mod pcap;
mod pcapng;
mod read;
mod tcp;
mod writer;

pub use file::{CaptureFile, FileError};
pub use packet::{Envelope, Unrepresentable, write_packet, write_packet_with};
pub use payload::write_payload;
pub use read::{Malformed, Packet, read_headers, read_packet};
pub use writer::{Direction, Format, Record, Writer};
