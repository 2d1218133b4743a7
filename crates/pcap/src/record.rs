//! The data that a capture stores of a packet.

/// Which way a packet crosses the interface it was captured on.
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
    /// Which way; pcap does not keep it.
    pub direction: Direction,
}
