//! Packets in flight: the common fields of segments in place, and segments with options in a separate table.
//!
//! Packets in flight are copied from ring to ring, so they are kept small. A packet without options is complete by
//! itself, and the table costs a comparison. Timestamps alone, which every segment has once the connection has agreed
//! on them, are a word of the packet, so they need no lookup.

use firstflight_path::{Link, Nanos};
use firstflight_segment::TIMESTAMPS_BYTES;
use firstflight_tcp::{Ecn, Flags, QuickStart, Segment, SentAt, Timestamps};

/// A packet in flight to one end of a connection, or to the receiver of a stream of datagrams: 40 bytes.
// Whole words, because a packet is copied at every hop, and field by field that takes three times as long. `seq` and
// `ack` stand in different ones, so that they are not read from the segment as one word: they have only just been
// written as two, and the processor would wait for both to reach the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Sequence number; above it `2 * slot + side` of the receiver. Of a datagram its number in the stream; above it
    /// [`STREAM`] and the stream's index.
    seq_and_to: u64,
    /// Acknowledgment number; above it the generation of the connection. Of a datagram the time at which it was sent.
    ack_and_generation: u64,
    /// The hop that it is on; above it its bytes on the wire.
    hop_and_bytes: u64,
    /// From below: window (16 bits), payload bytes (16), flags (16), ECN (2), retransmission (1), what `option` holds (2).
    // The window stands lowest: elsewhere the compiler reads it together with its neighbor in the segment, and waits.
    rest: u64,
    /// Nothing, [`STAMPS`], [`SENT_AT`] or, of a segment with more, its place in the table ([`PLACE`]).
    option: u64,
}

/// `option` holds timestamps, the only option.
const STAMPS: u64 = 1 << OPTION_SHIFT;

/// It holds the time at which the segment was sent, which is all that it notes.
const SENT_AT: u64 = 2 << OPTION_SHIFT;

/// It holds a place in the table, which has all of the segment.
const PLACE: u64 = 3 << OPTION_SHIFT;

/// Marks the index of a stream where a segment has the end of a connection.
// No connection has so high a slot, so a segment in flight needs no comparison for the sake of datagrams.
const STREAM: u32 = 1 << 31;

/// Position of the ECN bits in [`Packet::rest`].
const ECN_SHIFT: u32 = 48;

/// Position of the retransmission mark there.
const RETRANSMISSION_SHIFT: u32 = 50;

/// Position there of what `option` holds.
const OPTION_SHIFT: u32 = 51;

/// A word of two halves.
const fn word(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Packet {
    /// Fills the unused slots of a ring.
    pub(crate) const NOTHING: Packet =
        Packet { seq_and_to: 0, ack_and_generation: 0, hop_and_bytes: 0, rest: 0, option: 0 };

    /// Sends a segment, on `hop`, behind headers of `header_bytes`; with options it is in the table until it is opened or
    /// discarded.
    #[inline]
    pub(crate) fn new(
        segment: &Segment,
        (to, generation): (u32, u32),
        (hop, header_bytes): (u32, u32),
        table: &mut OptionTable,
    ) -> Packet {
        debug_assert!(segment.payload_bytes <= u32::from(u16::MAX), "no IP packet holds {segment:?}");
        let (holds, option, option_bytes) =
            match (has_more_than_one_number(segment), &segment.timestamps, segment.sent_at) {
                (false, None, None) => (0, 0, 0),
                // In this order, since in the other the compiler would read both as one word, as with `seq` and `ack`.
                (false, Some(timestamps), None) => (STAMPS, word(timestamps.echo, timestamps.value), TIMESTAMPS_BYTES),
                (false, None, Some(sent_at)) => (SENT_AT, sent_at.nanos(), 0),
                _ => (PLACE, table.keep(segment), segment.option_bytes()),
            };
        let packet = Packet {
            seq_and_to: word(segment.seq, to),
            ack_and_generation: word(segment.ack, generation),
            hop_and_bytes: word(hop, header_bytes + segment.payload_bytes + option_bytes),
            rest: u64::from(segment.window)
                | u64::from(segment.payload_bytes as u16) << 16
                | u64::from(segment.flags.bits()) << 32
                | (segment.ecn as u64) << ECN_SHIFT
                | u64::from(segment.retransmission) << RETRANSMISSION_SHIFT
                | holds,
            option,
        };
        debug_assert!(packet.has_segment() || packet.peek(table) == *segment, "no room for all of {segment:?}");
        packet
    }

    /// Sends a datagram behind headers of `header_bytes`.
    pub(crate) fn of_datagram(datagram: &Datagram, header_bytes: u32, hop: u32) -> Packet {
        debug_assert!((1..=u32::from(u16::MAX)).contains(&datagram.payload_bytes), "no UDP packet holds {datagram:?}");
        Packet {
            seq_and_to: word(datagram.number, datagram.stream | STREAM),
            ack_and_generation: datagram.sent_at,
            hop_and_bytes: word(hop, header_bytes + datagram.payload_bytes),
            rest: u64::from(datagram.payload_bytes) << 16,
            option: 0,
        }
    }

    #[inline]
    pub(crate) fn datagram(&self) -> Option<Datagram> {
        (self.to() & STREAM != 0).then(|| Datagram {
            stream: self.to() & !STREAM,
            number: self.seq_and_to as u32,
            sent_at: self.ack_and_generation,
            payload_bytes: self.payload_bytes(),
        })
    }

    /// `2 * slot + side` of the receiver; of a datagram higher than that of any connection.
    pub(crate) fn to(&self) -> u32 {
        (self.seq_and_to >> 32) as u32
    }

    pub(crate) fn generation(&self) -> u32 {
        (self.ack_and_generation >> 32) as u32
    }

    pub(crate) fn hop(&self) -> u32 {
        self.hop_and_bytes as u32
    }

    /// Its connection and direction as one number, that of a stream for a datagram: a connection in a slot that was used
    /// before is another flow.
    #[inline]
    pub(crate) fn flow(&self) -> u32 {
        match self.datagram() {
            Some(datagram) => datagram.stream | STREAM,
            // An odd factor, so that no two generations of a slot are one flow.
            None => self.to().wrapping_add(self.generation().wrapping_mul(0x9e37_79b9)),
        }
    }

    /// Goes on to the next hop.
    pub(crate) fn advance(&mut self) {
        self.hop_and_bytes += 1;
    }

    /// Bytes on the wire.
    pub(crate) fn bytes(&self) -> u32 {
        (self.hop_and_bytes >> 32) as u32
    }

    /// What `option` holds.
    fn holds(&self) -> u64 {
        self.rest & PLACE
    }

    fn payload_bytes(&self) -> u32 {
        u32::from((self.rest >> 16) as u16)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.rest >> ECN_SHIFT & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congestion,
        }
    }

    /// True if it has PSH.
    pub(crate) fn pushes(&self) -> bool {
        self.rest >> 32 & u64::from(Flags::PSH.bits()) != 0
    }

    /// True if it has payload.
    pub(crate) fn carries_data(&self) -> bool {
        self.payload_bytes() > 0
    }

    /// True if a queue may mark it in place of dropping it.
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.rest >> ECN_SHIFT & 3 != 0
    }

    /// Sets "congestion experienced" (RFC 3168 §5).
    pub(crate) fn mark(&mut self) {
        self.rest |= (Ecn::Congestion as u64) << ECN_SHIFT;
    }

    /// Lets the router before a link answer a Quick-Start request that the packet may carry.
    pub(crate) fn pass_router(&self, now: Nanos, link: &mut Link, table: &mut OptionTable) {
        let Some(option) = &mut table.segments[self.option as usize].path_option else { return };
        let QuickStart::Request { rate, approved: true } = option.quick_start else { return };
        option.quick_start = match link.answer_quick_start(now, rate) {
            Some(rate) => QuickStart::Request { rate, approved: true },
            // RFC 4782 §3.3: a router that does not understand the option forwards it unchanged, which the hosts will see
            // by the TTLs.
            None => QuickStart::Request { rate, approved: false },
        };
    }

    /// Fills in the segment that arrives, and frees its place in the table.
    // In place: a segment is large and written field by field, and moving it would wait until all of that has settled.
    #[inline]
    pub(crate) fn open_into(&self, table: &mut OptionTable, into: &mut Segment) {
        self.peek_into(table, into);
        self.discard(table);
    }

    /// The segment as it is in flight.
    pub(crate) fn peek(&self, table: &OptionTable) -> Segment {
        let mut segment = Segment::EMPTY;
        self.peek_into(table, &mut segment);
        segment
    }

    #[inline]
    fn peek_into(&self, table: &OptionTable, into: &mut Segment) {
        if self.has_segment() {
            *into = table.segments[self.option as usize];
        } else {
            into.seq = self.seq_and_to as u32;
            into.ack = self.ack_and_generation as u32;
            into.payload_bytes = self.payload_bytes();
            into.window = self.rest as u16;
            into.flags = Flags::from_bits_truncate((self.rest >> 32) as u16);
            into.retransmission = self.rest >> RETRANSMISSION_SHIFT & 1 != 0;
            into.clear_options();
            let (echo, value) = (self.option as u32, (self.option >> 32) as u32);
            match self.holds() {
                STAMPS => into.timestamps = Some(Timestamps { value, echo }),
                SENT_AT => into.sent_at = Some(SentAt::new(self.option)),
                _ => {}
            }
        }
        into.ecn = self.ecn();
    }

    /// The same packet again, on the same hop.
    pub(crate) fn copy(&self, table: &mut OptionTable) -> Packet {
        if !self.has_segment() {
            return *self;
        }
        Packet { option: table.keep(&self.peek(table)), ..*self }
    }

    /// Nobody will look at the segment again.
    #[inline]
    pub(crate) fn discard(&self, table: &mut OptionTable) {
        if self.has_segment() {
            table.free.push(self.option);
        }
    }

    /// True if the table has all of the segment.
    pub(crate) fn has_segment(&self) -> bool {
        self.holds() == PLACE
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Index of the stream that it belongs to.
    pub(crate) stream: u32,
    /// Its number in the stream, from 0.
    pub(crate) number: u32,
    pub(crate) sent_at: Nanos,
    /// Bytes of its payload, 1 to 65535.
    pub(crate) payload_bytes: u32,
}

/// Whether a segment carries more parts without room in [`Packet`] than timestamps or the time at which it was sent.
#[inline]
fn has_more_than_one_number(segment: &Segment) -> bool {
    // MSS, window scale and SACK-permitted come with a SYN only.
    segment.flags.contains(Flags::SYN) || !segment.sack.is_empty() || segment.path_option.is_some()
}

/// The segments in flight that carry options. Places are used again: a network that carries no more than before
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct OptionTable {
    segments: Vec<Segment>,
    free: Vec<u64>,
}

impl OptionTable {
    /// Places used by packets in flight.
    pub(crate) fn in_use(&self) -> usize {
        self.segments.len() - self.free.len()
    }

    /// Forgets all segments: their packets are gone.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.free.clear();
    }

    // Out of line: the code path of a packet without options matters.
    #[inline(never)]
    fn keep(&mut self, segment: &Segment) -> u64 {
        if let Some(place) = self.free.pop() {
            self.segments[place as usize] = *segment;
            return place;
        }
        self.segments.push(*segment);
        self.segments.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstflight_tcp::{PathOption, SackBlocks, Timestamps};
    use std::num::NonZeroU16;

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
        let syn = Segment {
            flags: Flags::SYN,
            mss: NonZeroU16::new(65_535),
            window_scale: Some(14),
            sack_permitted: true,
            ..Segment::EMPTY
        };
        let timestamps = Some(Timestamps { value: 7, echo: u32::MAX });
        vec![
            plain,
            Segment { retransmission: true, ..plain },
            Segment { timestamps, ..plain },
            Segment { timestamps, sack, ..plain },
            Segment { sent_at: Some(SentAt::new(u64::MAX)), ..plain },
            Segment { sent_at: Some(SentAt::new(1)), sack, ..plain },
            Segment { sack, ecn: Ecn::Capable0, ..plain },
            Segment { ecn: Ecn::Capable1, path_option: PathOption::new(QuickStart::Report { rate: 9 }, None), ..plain },
            Segment { path_option: PathOption::new(QuickStart::None, Some(0)), ..plain },
            Segment { ecn: Ecn::Congestion, ..plain },
            syn,
            Segment { window_scale: Some(0), sack_permitted: false, timestamps, ..syn },
            Segment { path_option: PathOption::new(QuickStart::Request { rate: 15, approved: true }, None), ..syn },
        ]
    }

    fn opened(packet: &Packet, table: &mut OptionTable) -> Segment {
        // Of the segment that was there before nothing is left.
        let mut segment = segments()[3];
        packet.open_into(table, &mut segment);
        segment
    }

    /// A packet of a segment behind headers of 40 bytes, on hop 2.
    fn packet(segment: &Segment, to: u32, generation: u32, table: &mut OptionTable) -> Packet {
        Packet::new(segment, (to, generation), (2, 40), table)
    }

    #[test]
    fn a_segment_arrives_as_it_was_sent() {
        let mut table = OptionTable::default();
        let sent = segments();
        let packets: Vec<Packet> = sent.iter().map(|segment| packet(segment, 0, 0, &mut table)).collect();
        assert_eq!(table.in_use(), packets.iter().filter(|packet| packet.has_segment()).count());
        for (packet, segment) in packets.iter().zip(&sent) {
            assert_eq!(opened(packet, &mut table), *segment);
        }
        assert_eq!(table.in_use(), 0);
    }

    #[test]
    fn places_of_the_table_are_used_again() {
        // Timestamps alone, with a SACK option, the time of sending alone.
        for (index, places) in [(2, 0), (3, 3), (4, 0)] {
            let mut table = OptionTable::default();
            let carries = segments()[index];
            for round in 0..1000 {
                let packets = [(); 3].map(|()| packet(&carries, 0, 0, &mut table));
                packets[round % 3].discard(&mut table);
                for kept in [1, 2] {
                    assert_eq!(opened(&packets[(round + kept) % 3], &mut table), carries);
                }
            }
            assert_eq!((table.segments.len(), table.in_use()), (places, 0));
        }
    }

    #[test]
    fn options_lengthen_a_packet_by_what_they_take_on_the_wire() {
        let mut table = OptionTable::default();
        let extra = |segment: &Segment| packet(segment, 0, 0, &mut table).bytes() - 40 - segment.payload_bytes;
        let found: Vec<u32> = segments().iter().map(extra).collect();
        assert_eq!(found, [0, 0, 12, 12 + 20, 0, 20, 20, 8, 8, 0, 0, 0, 8]);
    }

    #[test]
    fn a_datagram_has_its_own_header_and_no_place_in_the_table() {
        let mut table = OptionTable::default();
        for (payload_bytes, header_bytes) in [(1, 28), (160, 40), (65_535, 60)] {
            let sent = Datagram { stream: 7, number: u32::MAX, sent_at: u64::MAX, payload_bytes };
            let mut packet = Packet::of_datagram(&sent, header_bytes, 3);
            packet.advance();
            assert_eq!((packet.datagram(), packet.hop()), (Some(sent), 4));
            assert_eq!(packet.bytes(), header_bytes + payload_bytes);
            assert!(packet.carries_data() && !packet.has_segment() && !packet.is_ecn_capable());
        }
        assert_eq!(packet(&segments()[0], 5, 0, &mut table).datagram(), None);
    }

    #[test]
    fn a_copy_has_a_place_of_its_own_and_says_the_same() {
        for segment in segments() {
            let mut table = OptionTable::default();
            let packet = packet(&segment, 5, 3, &mut table);
            let copy = packet.copy(&mut table);
            assert_eq!((copy.to(), copy.generation(), copy.hop()), (5, 3, 2));
            assert_eq!([opened(&packet, &mut table), opened(&copy, &mut table)], [segment, segment]);
            assert_eq!(table.in_use(), 0);
        }
    }

    #[test]
    fn a_connection_in_a_recycled_slot_is_another_flow() {
        let mut table = OptionTable::default();
        let plain = segments()[0];
        let mut flows: Vec<u32> = (0..50)
            .flat_map(|to| (0..50).map(move |generation| (to, generation)))
            .map(|(to, generation)| packet(&plain, to, generation, &mut table).flow())
            .collect();
        flows.sort_unstable();
        flows.dedup();
        assert_eq!(flows.len(), 2500);
        let datagram = Datagram { stream: 7, number: 1, sent_at: 9, payload_bytes: 100 };
        let later = Datagram { number: 2, sent_at: 1 << 40, ..datagram };
        assert_eq!(Packet::of_datagram(&datagram, 0, 0).flow(), Packet::of_datagram(&later, 0, 0).flow());
    }

    #[test]
    fn a_mark_keeps_everything_else() {
        let mut table = OptionTable::default();
        for segment in segments().into_iter().filter(|segment| segment.ecn != Ecn::NotCapable) {
            let mut packet = packet(&segment, 0, 0, &mut table);
            assert!(packet.is_ecn_capable());
            packet.mark();
            assert_eq!(opened(&packet, &mut table), Segment { ecn: Ecn::Congestion, ..segment });
        }
    }

    #[test]
    fn a_packet_takes_five_words() {
        assert_eq!(size_of::<Packet>(), 40);
    }
}
