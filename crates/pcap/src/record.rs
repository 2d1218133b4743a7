//! The data that a capture stores of a packet.

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
