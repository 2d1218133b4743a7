//! What the halves of an endpoint share.

use super::ecn::EcnState;
use super::handshake::Handshake;
use super::info::Stats;
use crate::profile::Profile;
use crate::segment::Flags;
use crate::sequence::SeqNum;
use bitflags::bitflags;
use std::sync::Arc;

bitflags! {
    /// A set of events for the application.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// No event.
        const NONE = 0;
        /// The handshake is complete.
        const CONNECTED = 1;
        /// New bytes arrived in order.
        const READABLE = 2;
        /// All bytes written so far are acknowledged.
        const SENT = 4;
        /// The peer's FIN arrived, and all of its data before it.
        const PEER_CLOSED = 8;
        /// The connection is over: both sides closed in good order, or [`abort`](crate::Endpoint::abort) was called.
        const CLOSED = 16;
        /// The peer reset the connection.
        const RESET = 32;
        /// The connection was aborted after too many retransmissions.
        const TIMED_OUT = 64;
    }
}

/// Things to send as soon as the caller polls, as a set of bits.
pub(crate) mod due {
    /// The reset in `Memory::reset`.
    pub const RESET: u8 = 1;
    /// SYN or SYN-ACK.
    pub const SYN: u8 = 2;
    /// An acknowledgment alone, ahead of data.
    pub const ACK_FIRST: u8 = 4;
    /// The first unacknowledged segment again.
    pub const RETRANSMIT: u8 = 8;
    /// A probe of a closed window.
    pub const PROBE: u8 = 16;
    /// Whatever fits a window too small for a full segment.
    pub const OVERRIDE: u8 = 32;
    /// An acknowledgment, alone if no data goes out.
    pub const ACK: u8 = 64;
    /// The stream, as far as it may: something happened since no more of it could leave.
    pub const STREAM: u8 = 128;
    /// State before data.
    pub const URGENT: u8 = RESET | SYN | ACK_FIRST | RETRANSMIT | PROBE;
}

/// End of an endless stream: later than any position that a connection can reach.
pub(crate) const ENDLESS: SeqNum = 1 << 62;

/// A reset that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reset {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: Flags,
    /// It belongs to a connection with timestamps.
    pub(crate) stamped: bool,
}

/// What the halves of an endpoint share.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub profile: Arc<Profile>,
    pub handshake: Handshake,
    /// Things to send, of [`due`].
    pub due: u8,
    /// Events that the application has not polled yet.
    pub events: Events,
    pub ecn: EcnState,
    pub stats: Stats,
}
