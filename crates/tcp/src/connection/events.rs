//! Events for the application.

use std::ops::{BitOr, BitOrAssign};

/// A set of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(u8);

impl Events {
    /// No event.
    pub const NONE: Self = Self(0);
    /// The handshake is complete.
    pub const CONNECTED: Self = Self(1);
    /// New bytes arrived in order.
    pub const READABLE: Self = Self(2);
    /// All bytes written so far are acknowledged.
    pub const SENT: Self = Self(4);
    /// The peer's FIN arrived, and all of its data before it.
    pub const PEER_CLOSED: Self = Self(8);
    /// The connection is over: both sides closed in good order, or [`abort`](crate::Endpoint::abort) was called.
    pub const CLOSED: Self = Self(16);
    /// The peer reset the connection.
    pub const RESET: Self = Self(32);
    /// The connection was aborted after too many retransmissions.
    pub const TIMED_OUT: Self = Self(64);

    /// True if every event of `other` is in the set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Events {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
