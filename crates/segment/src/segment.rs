//! A segment between two endpoints: a TCP header without addresses, and a byte count in place of the payload.

use std::num::{NonZeroU16, NonZeroU64};

use bitflags::bitflags;

use crate::options::{QUICK_START_BYTES, TIMESTAMPS_BYTES, sack_bytes};

bitflags! {
    /// The control bits of a segment, with the values they have on the wire. URG, which no rule here reads, and the
    /// reserved bits are none of them.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u16 {
        /// No control bit.
        const NONE = 0;
        /// The sender has no more data.
        const FIN = 1;
        /// Synchronise sequence numbers.
        const SYN = 2;
        /// Reset the connection.
        const RST = 4;
        /// Push: the last byte handed over so far is in this segment.
        const PSH = 8;
        /// The acknowledgment field is significant.
        const ACK = 16;
        /// ECN echo (RFC 3168 §6.1): congestion was experienced; on a SYN, part of the negotiation.
        const ECE = 64;
        /// Congestion window reduced (RFC 3168 §6.1).
        const CWR = 128;
        /// Accurate ECN (RFC 9768 §3.1.1), in the header the low bit of the byte before the others; nothing here sets it.
        const AE = 256;
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

impl Ecn {
    /// The low two bits of the byte that is called type of service in IPv4 and traffic class in IPv6.
    #[inline]
    pub(crate) fn of(byte: u8) -> Self {
        match byte & 0b11 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congestion,
        }
    }
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
    pub fn as_slice(&self) -> &[[u32; 2]] {
        &self.blocks[..usize::from(self.count)]
    }

    /// True if the option is absent.
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
    /// hops traveled, which makes the request void: `approved` stands for the result of a matching TTL.
    Request {
        /// Rate code N, 1 to 15; 0 once a router refused.
        rate: u8,
        /// True if every router so far has taken part.
        approved: bool,
    },
    /// A report of the rate that the sender may use.
    Report {
        /// Rate code N that was granted; 0: none.
        rate: u8,
    },
}

impl QuickStart {
    /// Bits a second that a rate code stands for, headers included.
    // RFC 4782 §3.1: the request rate is K*2^N bps, for K set to 40,000; for N=0 it is zero.
    pub const fn bits_per_second(code: u8) -> u64 {
        if code == 0 { 0 } else { 40_000 << code }
    }

    /// The largest code whose rate is not above `bits_per_second`; 0 if there is none.
    pub const fn code_within(bits_per_second: u64) -> u8 {
        let mut code = 0;
        while code < 15 && Self::bits_per_second(code + 1) <= bits_per_second {
            code += 1;
        }
        code
    }
}

/// A segment's message to the routers on its path, which may lower a request, and its answer to the peer's message:
/// Quick-Start's options (RFC 4782). One of the two is there; hardly any segment has either.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathOption {
    /// The request or report in the IP header.
    pub quick_start: QuickStart,
    /// The response in the TCP header (RFC 4782 §4.2): the rate code that was granted; 0: none.
    pub response: Option<u8>,
}

impl PathOption {
    /// Both; none if there is neither.
    pub fn new(quick_start: QuickStart, response: Option<u8>) -> Option<Self> {
        (quick_start != QuickStart::None || response.is_some()).then_some(Self { quick_start, response })
    }

    /// Bytes on the wire (RFC 4782 §3.1, §4.1).
    fn bytes(self) -> u32 {
        let count = u32::from(self.quick_start != QuickStart::None) + u32::from(self.response.is_some());
        QUICK_START_BYTES * count
    }
}

/// A moment on the clock of a simulation; an `Option` of it takes no more than it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SentAt(NonZeroU64);

impl SentAt {
    /// The moment in nanoseconds; `u64::MAX` is taken for the one before.
    pub const fn new(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The moment in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0.get() - 1
    }
}

// Each segment is copied where it is queued, so its size counts.
const _: () = assert!(size_of::<Segment>() <= 88);

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
    /// Maximum segment size option in bytes, on a SYN only.
    pub mss: Option<NonZeroU16>,
    /// Window scale option, on a SYN only: a shift, of which no more than 14 counts (RFC 7323 §2.3).
    pub window_scale: Option<u8>,
    /// Control bits.
    pub flags: Flags,
    /// SACK-permitted option (RFC 2018 §2), on a SYN only.
    pub sack_permitted: bool,
    /// The ECN bits of the IP header.
    pub ecn: Ecn,
    /// Its message to the routers on its path.
    pub path_option: Option<PathOption>,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// The sender's note for meters that some of this was sent before. Not on the wire; no rule reads it.
    pub retransmission: bool,
    /// When the segment was sent, with `rto.samples = ack_one_way`: ns-2's header contains it at no cost
    /// (`hdr_tcp::ts()`).
    /// Not on the wire.
    pub sent_at: Option<SentAt>,
}

impl Segment {
    /// No payload, no flag, no option.
    pub const EMPTY: Self = Self {
        seq: 0,
        ack: 0,
        payload_bytes: 0,
        window: 0,
        mss: None,
        window_scale: None,
        flags: Flags::NONE,
        sack_permitted: false,
        ecn: Ecn::NotCapable,
        path_option: None,
        timestamps: None,
        sack: SackBlocks::NONE,
        retransmission: false,
        sent_at: None,
    };

    /// Takes away all options and the ECN codepoint.
    // `Segment::EMPTY` in its place would be as good, but a segment is large, and a simulation makes many.
    #[inline]
    pub fn clear_options(&mut self) {
        (self.mss, self.window_scale, self.sack_permitted) = (None, None, false);
        (self.path_option, self.timestamps, self.sent_at) = (None, None, None);
        self.ecn = Ecn::NotCapable;
        if !self.sack.is_empty() {
            self.sack = SackBlocks::NONE;
        }
    }

    /// Bytes on the wire of optional parts of a segment: timestamps (RFC 7323 §3.2) and SACK (RFC 2018 §3), each
    /// behind two no-operations that align it, and Quick-Start's. A SYN's other options are not counted.
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        let mut bytes = self.path_option.map_or(0, PathOption::bytes);
        if !self.flags.contains(Flags::SYN) {
            bytes += if self.timestamps.is_some() { TIMESTAMPS_BYTES } else { 0 };
            bytes += sack_bytes(self.sack.as_slice().len());
        }
        bytes
    }

    /// Quick-Start request or report, in the IP header.
    pub fn quick_start(&self) -> QuickStart {
        self.path_option.map_or(QuickStart::None, |option| option.quick_start)
    }

    /// Quick-Start response.
    pub fn quick_start_response(&self) -> Option<u8> {
        self.path_option?.response
    }

    /// Sequence numbers that the segment takes: payload bytes, plus one for SYN, plus one for FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let bits = self.flags.bits() as u32;
        self.payload_bytes.saturating_add((bits >> 1 & 1) + (bits & 1))
    }
}
