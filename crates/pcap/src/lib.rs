//! Packets as capture files that Wireshark, tshark and tcpdump read.
//!
//! [`Writer`] puts packets into pcapng or pcap with nanosecond times; [`CaptureFile`] does so in a file that is either
//! whole or absent. Nothing here knows where packets come from or what time it is: a simulator and a box on a real link can
//! use it alike.

mod file;
mod writer;

pub use file::{CaptureFile, FileError};
pub use writer::{Format, Writer};

/// Direction of a packet at the interface of its capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// The data that a capture stores of a packet in addition to its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Nanoseconds since 1970, or since the start of a simulation.
    pub time_ns: u64,
    /// Index of the interface; pcap does not keep it.
    pub interface: u32,
    /// The direction; pcap does not store it.
    pub direction: Direction,
}
