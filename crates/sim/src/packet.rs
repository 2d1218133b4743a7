//! Packets on their way: what every segment has in place, and segments with options in a table beside.
//!
//! What is in flight is copied from ring to ring, so it is kept small: without options a packet is all there is to it,
//! and the table costs a comparison.

use firstflight_path::{Link, Nanos};
use firstflight_tcp::{Ecn, Flags, QuickStart, Segment};

/// A packet on its way to one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    seq: u32,
    ack: u32,
    payload_bytes: u16,
    window: u16,
    flags: Flags,
    ecn: Ecn,
    retransmission: bool,
    /// Where the table has the segment with its options, or [`NO_OPTIONS`].
    options: u32,
    /// `2 * slot + side`.
    pub(crate) to: u32,
    pub(crate) generation: u32,
    /// The hop that it is on.
    pub(crate) hop: u32,
}

/// [`Packet::options`] of a packet without.
const NO_OPTIONS: u32 = u32::MAX;

impl Packet {
    /// What fills the unused slots of a ring.
    pub(crate) const NOTHING: Packet = Packet {
        seq: 0,
        ack: 0,
        payload_bytes: 0,
        window: 0,
        flags: Flags::NONE,
        ecn: Ecn::NotCapable,
        retransmission: false,
        options: NO_OPTIONS,
        to: 0,
        generation: 0,
        hop: 0,
    };

    /// Puts a segment on its way; with options it is in the table until [`Packet::open`] or [`Packet::discard`].
    #[inline]
    pub(crate) fn new(segment: &Segment, to: u32, generation: u32, hop: u32, table: &mut OptionTable) -> Packet {
        debug_assert!(segment.payload_bytes <= u32::from(u16::MAX), "no IP packet holds {segment:?}");
        let packet = Packet {
            seq: segment.seq,
            ack: segment.ack,
            payload_bytes: segment.payload_bytes as u16,
            window: segment.window,
            flags: segment.flags,
            ecn: segment.ecn,
            retransmission: segment.retransmission,
            options: if has_options(segment) { table.keep(segment) } else { NO_OPTIONS },
            to,
            generation,
            hop,
        };
        debug_assert!(packet.has_options() || packet.open(table) == *segment, "no room for all of {segment:?}");
        packet
    }

    /// Bytes of its payload and of the options that the plan's header does not count.
    #[inline]
    pub(crate) fn payload_and_option_bytes(&self, table: &OptionTable) -> u32 {
        let options = if self.has_options() { table.segments[self.options as usize].option_bytes() } else { 0 };
        u32::from(self.payload_bytes) + options
    }

    /// Whether a queue may mark it in place of dropping it.
    #[inline]
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }

    /// Sets "congestion experienced" (RFC 3168 §5).
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.ecn = Ecn::Congestion;
    }

    /// Lets the router before a link answer a Quick-Start request that the packet may carry.
    pub(crate) fn pass_router(&self, now: Nanos, link: &mut Link, table: &mut OptionTable) {
        let option = &mut table.segments[self.options as usize].quick_start;
        let QuickStart::Request { rate, approved: true } = *option else { return };
        let round_down = |bps| QuickStart::bits_per_second(QuickStart::code_within(bps));
        *option = match link.answer_quick_start(now, QuickStart::bits_per_second(rate), round_down) {
            Some(granted) => QuickStart::Request { rate: QuickStart::code_within(granted), approved: true },
            // RFC 4782 §3.3: a router that does not understand the option forwards it unchanged, which the hosts will see
            // by the TTLs.
            None => QuickStart::Request { rate, approved: false },
        };
    }

    /// The segment as it arrives, which leaves the table.
    #[inline]
    pub(crate) fn open(&self, table: &mut OptionTable) -> Segment {
        let segment = self.peek(table);
        self.discard(table);
        segment
    }

    /// The segment as it is on its way.
    #[inline]
    pub(crate) fn peek(&self, table: &OptionTable) -> Segment {
        if self.has_options() {
            return Segment { ecn: self.ecn, ..table.segments[self.options as usize] };
        }
        Segment {
            seq: self.seq,
            ack: self.ack,
            payload_bytes: self.payload_bytes.into(),
            window: self.window,
            flags: self.flags,
            ecn: self.ecn,
            retransmission: self.retransmission,
            ..Segment::EMPTY
        }
    }

    /// Nobody will look at it again.
    #[inline]
    pub(crate) fn discard(&self, table: &mut OptionTable) {
        if self.has_options() {
            table.give_back(self.options);
        }
    }

    /// Whether it has a place in the table.
    #[inline]
    pub(crate) fn has_options(&self) -> bool {
        self.options != NO_OPTIONS
    }
}

/// Whether a segment carries what [`Packet`] has no room for.
#[inline]
fn has_options(segment: &Segment) -> bool {
    // MSS, window scale and SACK-permitted come with a SYN only.
    segment.flags.contains(Flags::SYN)
        || segment.timestamps.is_some()
        || !segment.sack.is_empty()
        || segment.quick_start != QuickStart::None
        || segment.quick_start_response.is_some()
}

/// The segments on their way that carry options. Places are used again: a network that carries no more than before
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct OptionTable {
    segments: Vec<Segment>,
    free: Vec<u32>,
}

impl OptionTable {
    /// Places taken by packets on their way.
    pub(crate) fn in_use(&self) -> usize {
        self.segments.len() - self.free.len()
    }

    // Out of line: the way of a packet without options is what matters.
    #[inline(never)]
    fn keep(&mut self, segment: &Segment) -> u32 {
        if let Some(place) = self.free.pop() {
            self.segments[place as usize] = *segment;
            return place;
        }
        self.segments.push(*segment);
        self.segments.len() as u32 - 1
    }

    #[inline(never)]
    fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstflight_tcp::{SackBlocks, Timestamps};

    /// Header fields, flags and options in all their forms.
    fn segments() -> Vec<Segment> {
        let mut sack = SackBlocks::NONE;
        sack.push(u32::MAX, 5);
        sack.push(10, 20);
        let plain = Segment {
            seq: 1,
            ack: u32::MAX,
            payload_bytes: 65_535,
            window: 65_535,
            flags: Flags::ACK | Flags::CWR,
            ..Segment::EMPTY
        };
        let syn = Segment { flags: Flags::SYN, mss: 65_535, window_scale: 14, sack_permitted: true, ..Segment::EMPTY };
        let timestamps = Some(Timestamps { value: 7, echo: u32::MAX });
        vec![
            plain,
            Segment { retransmission: true, ..plain },
            Segment { timestamps, ..plain },
            Segment { timestamps, sack, ..plain },
            Segment { sack, ecn: Ecn::Capable0, ..plain },
            Segment { ecn: Ecn::Capable1, quick_start: QuickStart::Report { rate: 9 }, ..plain },
            Segment { quick_start_response: Some(0), ..plain },
            Segment { ecn: Ecn::Congestion, ..plain },
            syn,
            Segment { window_scale: 0, sack_permitted: false, timestamps, ..syn },
            Segment { quick_start: QuickStart::Request { rate: 15, approved: true }, ..syn },
        ]
    }

    #[test]
    fn a_segment_arrives_as_it_was_sent() {
        let mut table = OptionTable::default();
        let sent = segments();
        let packets: Vec<Packet> = sent.iter().map(|segment| Packet::new(segment, 0, 0, 0, &mut table)).collect();
        assert_eq!(table.in_use(), packets.iter().filter(|packet| packet.has_options()).count());
        for (packet, segment) in packets.iter().zip(&sent) {
            assert_eq!(packet.open(&mut table), *segment);
        }
        assert_eq!(table.in_use(), 0);
    }

    #[test]
    fn places_of_the_table_are_used_again() {
        let mut table = OptionTable::default();
        let carries = segments()[3];
        for round in 0..1000 {
            let packets = [(); 3].map(|()| Packet::new(&carries, 0, 0, 0, &mut table));
            packets[round % 3].discard(&mut table);
            for kept in [1, 2] {
                assert_eq!(packets[(round + kept) % 3].open(&mut table), carries);
            }
        }
        assert_eq!((table.segments.len(), table.in_use()), (3, 0));
    }

    #[test]
    fn options_lengthen_a_packet_by_what_they_take_on_the_wire() {
        let mut table = OptionTable::default();
        let extra = |segment: &Segment| {
            let packet = Packet::new(segment, 0, 0, 0, &mut table);
            packet.payload_and_option_bytes(&table) - segment.payload_bytes
        };
        let found: Vec<u32> = segments().iter().map(extra).collect();
        assert_eq!(found, [0, 0, 12, 12 + 20, 20, 8, 8, 0, 0, 0, 8]);
    }

    #[test]
    fn a_mark_keeps_everything_else() {
        let mut table = OptionTable::default();
        for segment in segments().into_iter().filter(|segment| segment.ecn != Ecn::NotCapable) {
            let mut packet = Packet::new(&segment, 0, 0, 0, &mut table);
            assert!(packet.is_ecn_capable());
            packet.mark();
            assert_eq!(packet.open(&mut table), Segment { ecn: Ecn::Congestion, ..segment });
        }
    }

    #[test]
    fn a_packet_takes_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
