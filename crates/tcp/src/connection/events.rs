//! Events for the application.

use bitflags::bitflags;

bitflags! {
    /// A set of events.
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
