//! What travels between two endpoints: a TCP header without addresses, and a byte count in place of the payload.

use std::ops::BitOr;

/// Value of [`Segment::window_scale`] when the option is absent (the option itself never exceeds 14, RFC 7323 §2.3).
pub const NO_WINDOW_SCALE: u8 = 255;

/// The control bits of a segment, with the values they have on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// No control bit.
    pub const NONE: Self = Self(0);
    /// The sender has no more data.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(2);
    /// Reset the connection.
    pub const RST: Self = Self(4);
    /// Push: the last byte handed over so far is in this segment.
    pub const PSH: Self = Self(8);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(16);

    /// The bits as they stand in a header.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Flags from header bits; bits above ACK (URG, ECE, CWR) are dropped, because no rule here reads them.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 31)
    }

    /// Whether every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets of bits (the `|` operator, usable in constants).
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// One TCP segment. The payload is a length: its bytes are those of the sender's stream that begin at `seq`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// Sequence number of the first byte (of the SYN if there is one).
    pub seq: u32,
    /// Next sequence number expected from the other side; significant with [`Flags::ACK`].
    pub ack: u32,
    /// Length of the payload in bytes.
    pub payload_bytes: u32,
    /// Window field as on the wire, that is, before scaling.
    pub window: u16,
    /// Maximum segment size option in bytes, on a SYN only; 0 if absent.
    pub mss: u16,
    /// Window scale option, on a SYN only; [`NO_WINDOW_SCALE`] if absent.
    pub window_scale: u8,
    /// Control bits.
    pub flags: Flags,
    /// The sender's note for meters that some of this was sent before. Not on the wire; no rule reads it.
    pub retransmission: bool,
}

impl Segment {
    /// Sequence numbers that the segment takes: payload bytes, plus one for SYN, plus one for FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let bits = self.flags.bits() as u32;
        self.payload_bytes.saturating_add((bits >> 1 & 1) + (bits & 1))
    }
}
