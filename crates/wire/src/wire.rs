//! The wire that a host is on, and what it counts there.

use firstflight_tcp::Nanos;
use serde::Serialize;

/// The output for packets, and its clock.
pub trait Wire {
    /// Nanoseconds of a clock that never goes back.
    fn now(&mut self) -> Nanos;

    /// Sends an IP packet, or counts it as lost.
    fn send(&mut self, packet: &[u8]);
}

/// A host's packet counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Traffic {
    /// Packets that arrived for it, including discarded ones.
    pub received: u64,
    /// Packets that could not be read: not TCP over IP, or damaged.
    pub unreadable: u64,
    /// Packets for another address.
    pub foreign: u64,
    /// Segments of no connection, answered with a reset.
    pub refused: u64,
    /// SYNs that found the table full.
    pub turned_away: u64,
    /// Segments that no packet could hold.
    pub unsendable: u64,
}
