//! What travels between two endpoints: a TCP header without addresses, and a byte count in place of the payload.

use crate::Nanos;
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
    /// ECN echo (RFC 3168 §6.1): congestion was experienced; on a SYN, part of the negotiation.
    pub const ECE: Self = Self(64);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(128);

    /// The bits as they stand in a header.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Flags from header bits; URG is dropped, because no rule here reads it.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & !32)
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

/// The two ECN bits of the IP header (RFC 3168 §5), with the values they have on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The packet is not ECN-capable.
    #[default]
    NotCapable = 0,
    /// ECN-capable, ECT(1).
    Capable1 = 1,
    /// ECN-capable, ECT(0).
    Capable0 = 2,
    /// Congestion experienced.
    Congestion = 3,
}

/// The timestamps option (RFC 7323 §3.2), in milliseconds of each side's clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr; significant with [`Flags::ACK`].
    pub echo: u32,
}

/// Ranges in a SACK option.
pub const MOST_SACK_BLOCKS: usize = 4;

/// The SACK option (RFC 2018 §3): ranges of sequence numbers `[left, right)` in the order of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [[u32; 2]; MOST_SACK_BLOCKS],
}

impl SackBlocks {
    /// No option.
    pub const NONE: Self = Self { count: 0, blocks: [[0; 2]; MOST_SACK_BLOCKS] };

    /// Adds a range after the others; without effect once there are [`MOST_SACK_BLOCKS`].
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = [left, right];
            self.count += 1;
        }
    }

    /// The ranges.
    #[inline]
    pub fn as_slice(&self) -> &[[u32; 2]] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether the option is absent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The Quick-Start option of the IP header (RFC 4782 §3.1): the rate code N stands for 40 kbit/s x 2^N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum QuickStart {
    /// Absent.
    #[default]
    None,
    /// A request: routers on the path may lower the rate; one that does not know the option leaves its TTL short of the
    /// hops travelled, which makes the request void: `approved` stands for what a TTL that fits would show.
    Request {
        /// Rate code N, 1 to 15; 0 once a router refused.
        rate: u8,
        /// Whether every router so far has taken part.
        approved: bool,
    },
    /// A report of the rate that the sender may use.
    Report {
        /// Rate code N that was granted; 0: none.
        rate: u8,
    },
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
    /// SACK-permitted option (RFC 2018 §2), on a SYN only.
    pub sack_permitted: bool,
    /// The ECN bits of the IP header.
    pub ecn: Ecn,
    /// Quick-Start request or report, in the IP header.
    pub quick_start: QuickStart,
    /// Quick-Start response (TCP option, RFC 4782 §4.2): the rate code that was granted; 0: none.
    pub quick_start_response: Option<u8>,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// The sender's note for meters that some of this was sent before. Not on the wire; no rule reads it.
    pub retransmission: bool,
    /// When the segment was sent, on the clock of the simulation, with `rto.samples = ack_one_way`: ns-2's header has it
    /// at no cost (`hdr_tcp::ts()`). Not on the wire.
    pub sent_at: Option<Nanos>,
}

impl Segment {
    /// No payload, no flag, no option.
    pub const EMPTY: Self = Self {
        seq: 0,
        ack: 0,
        payload_bytes: 0,
        window: 0,
        mss: 0,
        window_scale: NO_WINDOW_SCALE,
        flags: Flags::NONE,
        sack_permitted: false,
        ecn: Ecn::NotCapable,
        quick_start: QuickStart::None,
        quick_start_response: None,
        timestamps: None,
        sack: SackBlocks::NONE,
        retransmission: false,
        sent_at: None,
    };

    /// Bytes on the wire of what not every segment carries: timestamps (RFC 7323 §3.2) and SACK (RFC 2018 §3), each
    /// behind two no-operations that align it, and Quick-Start's IP or TCP option (RFC 4782 §3.1, §4.1). A SYN's other
    /// options are not counted.
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        let mut bytes = if self.quick_start == QuickStart::None { 0 } else { 8 };
        bytes += if self.quick_start_response.is_some() { 8 } else { 0 };
        if !self.flags.contains(Flags::SYN) {
            bytes += if self.timestamps.is_some() { 12 } else { 0 };
            bytes += if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.as_slice().len() as u32 };
        }
        bytes
    }

    /// Sequence numbers that the segment takes: payload bytes, plus one for SYN, plus one for FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let bits = self.flags.bits() as u32;
        self.payload_bytes.saturating_add((bits >> 1 & 1) + (bits & 1))
    }
}
