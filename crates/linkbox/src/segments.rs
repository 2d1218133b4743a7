//! Captured packets as rows of the records' `segments`.

use firstflight_records::{NO_CONNECTION, NO_LINK, RECEIVED, SENT, SegmentEvent, Sight};
use firstflight_segment::{Ip, TCP, read_headers};
use firstflight_tcp::{Flags, Segment};

use crate::{
    connections::Connections,
    kept::{CapturedHeaders, KeptPacket},
};

/// State of one endpoint of a connection, from its packets.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Its initial sequence number; of a connection whose beginning was not seen, the number that makes its first byte
    /// number 1.
    initial: Option<u32>,
    /// The window scale option of its SYN.
    scale: Option<u8>,
    /// The first sequence number after all that it has sent, relative.
    sent_up_to: u32,
}

const UNSEEN: End = End { initial: None, scale: None, sent_up_to: 0 };

/// Makes rows, and stores the state that they need from earlier packets.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) connections: Connections,
    /// Client and server, by connection.
    ends: Vec<[End; 2]>,
}

impl Rows {
    /// The rows of packets, and how many of TCP cannot be read; times count from `origin`, by the monotonic clock.
    pub(crate) fn of(&mut self, kept: &CapturedHeaders, origin: u64, replicate: u32) -> (Vec<SegmentEvent>, usize) {
        let is_tcp = |packet: &KeptPacket<'_>| Ip::at(packet.headers).is_some_and(|ip| ip.protocol == TCP);
        let mut malformed = 0;
        let row = |packet| {
            let row = self.row(&packet, origin, replicate);
            malformed += usize::from(row.is_none());
            row
        };
        (kept.packets().filter(is_tcp).filter_map(row).collect(), malformed)
    }

    fn row(&mut self, packet: &KeptPacket<'_>, origin: u64, replicate: u32) -> Option<SegmentEvent> {
        let segment = read_headers(packet.headers).ok()?.segment;
        let member = self.connections.of(packet.headers);
        if member.connection == NO_CONNECTION {
            return None;
        }
        let connection = member.connection as usize;
        self.ends.resize(self.ends.len().max(connection + 1), [UNSEEN; 2]);
        let ends = &mut self.ends[connection];
        let (from, to) = (usize::from(member.from_server), usize::from(!member.from_server));
        let repeats = ends[from].sees(&segment);
        if segment.flags.contains(Flags::ACK) && ends[to].initial.is_none() {
            ends[to].initial = Some(segment.ack.wrapping_sub(1));
        }
        let sight = Sight {
            time_ns: packet.time as i64 - origin as i64,
            replicate,
            connection: member.connection,
            event: if packet.outgoing { SENT } else { RECEIVED },
            from_server: member.from_server,
            link: NO_LINK,
            initial_sequences: [from, to].map(|end| ends[end].initial.unwrap_or_default()),
            window_bytes: u64::from(segment.window) << shift(ends, from, &segment),
        };
        Some(SegmentEvent { retransmission: u8::from(repeats), ..sight.row(None, &segment) })
    }

    /// Forgets the connections; numbers begin with 0 again.
    pub(crate) fn clear(&mut self) {
        self.connections.clear();
        self.ends.clear();
    }
}

impl End {
    /// It sent a segment; returns whether part of it was sent before.
    fn sees(&mut self, segment: &Segment) -> bool {
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn {
            self.initial = Some(segment.seq);
            self.scale = segment.window_scale;
        }
        // Without a SYN, the first segment is taken for the first of the stream.
        let initial = *self.initial.get_or_insert(segment.seq.wrapping_sub(1));
        let begin = segment.seq.wrapping_sub(initial);
        let is_fin = segment.flags.contains(Flags::FIN);
        let takes = segment.payload_bytes + u32::from(is_syn) + u32::from(is_fin);
        let end = begin.wrapping_add(takes);
        // RFC 1982: of two sequence numbers the one within 2^31 behind the other is older.
        let is_new = self.sent_up_to.wrapping_sub(begin) as i32 <= 0;
        if self.sent_up_to.wrapping_sub(end) as i32 <= 0 {
            self.sent_up_to = end;
        }
        takes > 0 && !is_new
    }
}

/// By how much an end's window is shifted.
// RFC 7323 §2.2: the window of a SYN is never scaled; that of others is if both ends' SYNs have the option.
fn shift(ends: &[End; 2], from: usize, segment: &Segment) -> u8 {
    let both = ends.iter().all(|end| end.scale.is_some());
    if segment.flags.contains(Flags::SYN) || !both { 0 } else { ends[from].scale.unwrap_or_default().min(14) }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::num::NonZeroU16;

    use firstflight_segment::{Envelope, write_packet};

    use super::*;

    const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)), 40_000);
    const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2)), 80);

    /// Packets (sender, segment), as a capture at the server keeps them, 1 µs apart from 100 µs on.
    fn rows(packets: &[(SocketAddr, Segment)]) -> Vec<SegmentEvent> {
        let mut kept = CapturedHeaders::default();
        for (index, (source, segment)) in packets.iter().enumerate() {
            let destination = if *source == CLIENT { SERVER } else { CLIENT };
            let mut bytes = Vec::new();
            write_packet(segment, &Envelope::between(*source, destination), 0, &mut bytes).unwrap();
            kept.add(100_000 + 1000 * index as u64, 0, *source == SERVER, &bytes, bytes.len() as u16);
        }
        let (table, malformed) = Rows::default().of(&kept, 50_000, 3);
        assert_eq!(malformed, 0);
        table
    }

    fn column<T>(rows: &[SegmentEvent], of: fn(&SegmentEvent) -> T) -> Vec<T> {
        rows.iter().map(of).collect()
    }

    fn syn(seq: u32, scale: Option<u8>) -> Segment {
        Segment {
            seq,
            window: 60_000,
            mss: NonZeroU16::new(1460),
            window_scale: scale,
            flags: Flags::SYN,
            ..Segment::EMPTY
        }
    }

    fn answer(scale: Option<u8>) -> Segment {
        Segment { ack: 1001, flags: Flags::SYN | Flags::ACK, ..syn(u32::MAX - 1, scale) }
    }

    #[test]
    fn numbers_are_relative_across_the_wrap_and_times_to_the_origin() {
        let data = Segment { seq: u32::MAX, ack: 1001, payload_bytes: 5, flags: Flags::ACK, ..Segment::EMPTY };
        let ack = Segment { seq: 1001, ack: 4, flags: Flags::ACK, ..Segment::EMPTY };
        let table = rows(&[(CLIENT, syn(1000, Some(7))), (SERVER, answer(Some(8))), (SERVER, data), (CLIENT, ack)]);
        assert_eq!(column(&table, |row| row.seq), [0, 0, 1, 1]);
        assert_eq!(column(&table, |row| row.ack), [0, 1, 1, 6]);
        assert_eq!(column(&table, |row| row.time_ns), [50_000, 51_000, 52_000, 53_000]);
        assert_eq!(column(&table, |row| row.event), [1, 0, 0, 1]);
        assert_eq!(column(&table, |row| row.from_server), [0, 1, 1, 0]);
        assert_eq!(column(&table, |row| row.length), [0, 0, 5, 0]);
        assert_eq!(column(&table, |row| row.retransmission), [0; 4]);
    }

    #[test]
    fn windows_are_scaled_only_if_both_syns_offer_it_and_never_that_of_a_syn() {
        let ack = Segment { seq: 1001, ack: u32::MAX, window: 100, flags: Flags::ACK, ..Segment::EMPTY };
        let scaled = rows(&[(CLIENT, syn(1000, Some(7))), (SERVER, answer(Some(8))), (CLIENT, ack)]);
        assert_eq!(column(&scaled, |row| row.window_bytes), [60_000, 60_000, 100 << 7]);
        let refused = rows(&[(CLIENT, syn(1000, Some(7))), (SERVER, answer(None)), (CLIENT, ack)]);
        assert_eq!(column(&refused, |row| row.window_bytes), [60_000, 60_000, 100]);
    }

    #[test]
    fn what_was_sent_before_is_a_retransmission_and_a_bare_acknowledgement_never() {
        let data = |seq| Segment { seq, payload_bytes: 100, flags: Flags::ACK, ..Segment::EMPTY };
        let ack = Segment { seq: 1001, flags: Flags::ACK, ..Segment::EMPTY };
        let packets = [syn(1000, Some(7)), syn(1000, Some(7)), data(1001), data(1101), data(1001), ack, data(1201)];
        let table = rows(&packets.map(|segment| (CLIENT, segment)));
        assert_eq!(column(&table, |row| row.retransmission), [0, 1, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_connection_that_was_open_already_counts_from_what_is_seen_first() {
        let data = Segment { seq: 5000, ack: 700, payload_bytes: 100, flags: Flags::ACK, ..Segment::EMPTY };
        let table = rows(&[(CLIENT, data), (CLIENT, Segment { seq: 5100, ..data })]);
        assert_eq!(column(&table, |row| (row.seq, row.ack)), [(1, 1), (101, 1)]);
    }
}
