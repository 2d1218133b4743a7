//! A packet goes from link to link: what the links do with it, and when it reaches the far end of the last.

use firstflight_path::{LinkOutcome, Nanos, OfferedPacket};
use firstflight_tcp::Deadline;

use crate::{capture::Note, connection::Arena, datagram::DatagramStream, packet::Packet, topology::Then};

use super::{InFlight, Simulation};

impl Simulation<'_> {
    /// Offers a packet at `at` to the link of its hop, and to the links after it as far as they can be computed ahead.
    #[inline(always)]
    pub(super) fn forward(&mut self, mut packet: Packet, mut at: Nanos) {
        loop {
            let hop = self.routes.hops[packet.hop() as usize];
            self.records.counts.packet_hops += 1;
            match self.links[hop.link as usize].link.pass(at, packet.bytes()) {
                Some(arrival) => at = arrival,
                None => match self.offer(packet, hop.link, at) {
                    Some(taken) => (packet, at) = taken,
                    None => return,
                },
            }
            match hop.then {
                Then::Computed => packet.advance(),
                Then::Event(source) | Then::Deliver(source) => return self.put_in_flight(packet, source, at),
            }
        }
    }

    /// Offers a packet to a link that may do more than let it pass. Returns the packet as it reaches the far end, and when;
    /// none: it waits in the queue, is lost, or has been put in flight.
    #[inline(never)]
    fn offer(&mut self, packet: Packet, link: u32, at: Nanos) -> Option<(Packet, Nanos)> {
        let directed = &mut self.links[link as usize];
        let (draws, connections, streams) = (&mut directed.queue_draws, &mut self.connections, &mut self.streams);
        let mut lost = || loss_draw(connections, streams, &packet, link);
        match directed.link.pass_or_lose(at, packet.bytes(), packet.carries_data(), &mut lost) {
            Some(LinkOutcome::Arrives(arrival)) => return Some((packet, arrival)),
            Some(outcome) => return self.cross(packet, link, at, outcome, None),
            None => {}
        }
        if self.asks_for_rates && packet.has_segment() {
            packet.pass_router(at, &mut directed.link, &mut self.options);
        }
        let offered = OfferedPacket {
            bytes: packet.bytes(),
            ecn_capable: packet.is_ecn_capable(),
            carries_data: packet.carries_data(),
            ends_train: packet.pushes(),
            connection: packet.flow(),
            class: 0,
        };
        if directed.holding.is_some() {
            debug_assert_eq!(at, self.now, "a queue that decides on departure cannot be computed ahead");
            self.wait(packet, link, offered);
            return None;
        }
        let outcome = directed.link.offer(at, offered, || draws.uniform(), lost);
        let copy = directed.link.copy();
        if self.is_watched {
            self.note_crossing(&packet, link, at, offered.bytes, outcome);
        }
        self.cross(packet, link, at, outcome, copy)
    }

    /// What is left to do for a packet that a link took or refused at `at`; `copy`: when a copy of it arrives. Returns as
    /// [`Simulation::offer`].
    pub(super) fn cross(
        &mut self,
        mut packet: Packet,
        link: u32,
        at: Nanos,
        outcome: LinkOutcome,
        copy: Option<Nanos>,
    ) -> Option<(Packet, Nanos)> {
        let arrival = match outcome {
            LinkOutcome::Arrives(arrival) => arrival,
            LinkOutcome::Marked(arrival) => {
                packet.mark();
                arrival
            }
            outcome => {
                self.lose(&packet, link, at, outcome);
                return None;
            }
        };
        match self.routes.hops[packet.hop() as usize].then {
            Then::Event(source) | Then::Deliver(source) if self.links[link as usize].reorders => {
                self.put_in_flight_anywhere(packet, source, arrival, copy);
                None
            }
            _ => Some((packet, arrival)),
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
    fn put_in_flight_anywhere(&mut self, packet: Packet, source: u32, at: Nanos, copy: Option<Nanos>) {
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
    fn lose(&mut self, packet: &Packet, link: u32, at: Nanos, outcome: LinkOutcome) {
        // A link computed ahead may have looked beyond the end of the run.
        let counts = at < self.plan.duration_ns;
        if let Some(datagram) = packet.datagram() {
            if counts {
                self.streams[datagram.stream as usize].lost();
            }
            return;
        }
        let segment = &packet.peek(&self.options);
        packet.discard(&mut self.options);
        let (slot, sender) = (packet.to() / 2, (1 - packet.to() % 2) as usize);
        let connection = &mut self.connections[slot];
        if !counts || connection.generation != packet.generation() {
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
