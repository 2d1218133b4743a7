//! A packet goes from link to link: what the links do with it, and when it reaches the far end of the last.

use firstflight_path::{LinkOutcome, Nanos, OfferedPacket};
use firstflight_tcp::Deadline;

use crate::{capture::Note, connection::Arena, datagram::DatagramStream, packet::Packet, topology::Then};

use super::{InFlight, Simulation};

impl Simulation<'_> {
    /// Offers a packet to the link of its hop, and to the links after it as far as they can be computed ahead.
    #[inline(always)]
    pub(super) fn forward(&mut self, mut packet: Packet) {
        if self.is_special {
            return self.forward_as::<true>(packet, self.now);
        }
        let bytes = packet.bytes(self.plan.header_bytes, &self.options);
        let mut at = self.now;
        loop {
            let hop = self.routes.hops[packet.hop() as usize];
            let Some(arrival) = self.lines[hop.link as usize].link.pass(at, bytes) else {
                return self.forward_as::<false>(packet, at);
            };
            self.records.counts.packet_hops += 1;
            at = arrival;
            match hop.then {
                Then::Computed => packet.advance(),
                Then::Event(source) | Then::Deliver(source) => return self.put_in_flight(packet, source, at),
            }
        }
    }

    /// As [`Simulation::forward`] from `at` on, where a packet may be lost or dropped. `SPECIAL`: there is a tap, routers
    /// answer requests or links are not plain.
    #[inline(never)]
    pub(super) fn forward_as<const SPECIAL: bool>(&mut self, mut packet: Packet, mut at: Nanos) {
        let bytes = packet.bytes(self.plan.header_bytes, &self.options);
        let offered = OfferedPacket {
            bytes,
            ecn_capable: packet.is_ecn_capable(),
            carries_data: packet.carries_data(),
            ends_train: packet.pushes(),
            connection: packet.flow(),
            class: 0,
        };
        loop {
            let hop = self.routes.hops[packet.hop() as usize];
            let line = &mut self.lines[hop.link as usize];
            self.records.counts.packet_hops += 1;
            if SPECIAL && self.asks_for_rates && packet.has_segment() {
                packet.pass_router(at, &mut line.link, &mut self.options);
            }
            if SPECIAL && line.holding.is_some() {
                debug_assert_eq!(at, self.now, "a queue that decides on departure cannot be computed ahead");
                return self.wait(packet, hop.link, offered);
            }
            let (draws, connections, streams) = (&mut line.queue_draws, &mut self.connections, &mut self.streams);
            let lost = || loss_draw(connections, streams, &packet, hop.link);
            let outcome = line.link.offer_as::<SPECIAL>(at, offered, || draws.uniform(), lost);
            if SPECIAL && self.is_watched {
                self.note_crossing(&packet, hop.link, at, bytes, outcome);
            }
            match outcome {
                LinkOutcome::Arrives(arrival) => at = arrival,
                LinkOutcome::Marked(arrival) => {
                    packet.mark();
                    at = arrival;
                }
                outcome => return self.lose(&packet, hop.link, at, outcome),
            }
            match hop.then {
                Then::Computed => packet.advance(),
                Then::Event(source) | Then::Deliver(source) if SPECIAL && self.lines[hop.link as usize].reorders => {
                    let copy = self.lines[hop.link as usize].link.copy();
                    return self.put_in_flight_anywhere(packet, source, at, copy);
                }
                Then::Event(source) | Then::Deliver(source) => return self.put_in_flight(packet, source, at),
            }
        }
    }

    /// A packet is on the link of a source and reaches its far end at `at`.
    #[inline(always)]
    pub(super) fn put_in_flight(&mut self, packet: Packet, source: u32, at: Nanos) {
        let order = self.order;
        self.order += 1;
        let in_flight = &mut self.in_flight[source as usize];
        if in_flight.is_empty() {
            self.scheduler.set(source, Deadline::at(at));
        }
        in_flight.push_back(InFlight { at, order, packet });
    }

    /// A packet is on a link where it can overtake others, and a copy of it perhaps.
    #[cold]
    pub(super) fn put_in_flight_anywhere(&mut self, packet: Packet, source: u32, at: Nanos, copy: Option<Nanos>) {
        self.insert_in_flight(packet, source, at);
        if let Some(at) = copy {
            let packet = packet.copy(&mut self.options);
            self.note_copy(&packet, self.routes.hops[packet.hop() as usize].link, at);
            self.insert_in_flight(packet, source, at);
        }
    }

    fn insert_in_flight(&mut self, packet: Packet, source: u32, at: Nanos) {
        let order = self.order;
        self.order += 1;
        let in_flight = &mut self.in_flight[source as usize];
        in_flight.insert(InFlight { at, order, packet }, |other| other.at > at);
        if in_flight.front().is_some_and(|first| first.order == order) {
            self.scheduler.set(source, Deadline::at(at));
        }
    }

    #[cold]
    pub(super) fn lose(&mut self, packet: &Packet, link: u32, at: Nanos, outcome: LinkOutcome) {
        if let Some(datagram) = packet.datagram() {
            // A link computed ahead may have looked beyond the end of the run.
            if at < self.plan.duration_ns {
                self.streams[datagram.stream as usize].lost();
            }
            return;
        }
        let segment = &packet.peek(&self.options);
        packet.discard(&mut self.options);
        if at >= self.plan.duration_ns {
            // A link computed ahead has looked beyond the end of the run.
            return;
        }
        let (slot, sender) = (packet.to() / 2, (1 - packet.to() % 2) as usize);
        let connection = &mut self.connections[slot];
        if connection.generation != packet.generation() {
            return;
        }
        if segment.payload_bytes > 0
            && !segment.retransmission
            && sender == connection.data_sender()
            && connection.ends[sender].in_first_flight(segment.seq)
        {
            connection.first_flight_lost_segments += 1;
        }
        if let Some(capture) = &mut self.capture {
            let (event, link) = (outcome.event(), link as u16);
            capture.note(connection, &Note { time: at, event, link, sender, observer: sender, segment });
        }
    }
}

/// The draw by which a packet is lost at random on a link.
#[inline]
pub(super) fn loss_draw(connections: &mut Arena, streams: &mut [DatagramStream], packet: &Packet, link: u32) -> f64 {
    match packet.datagram() {
        None => connections.loss_draw(packet, link),
        Some(datagram) => streams[datagram.stream as usize].loss_draw(link),
    }
}
