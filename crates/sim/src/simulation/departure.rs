//! Links whose queue decides on departure: packets wait in it, and an event lets the next one leave.

use firstflight_path::{Left, OfferedPacket};

use crate::{packet::Packet, topology::Then};

use super::{Simulation, forward::loss_draw};

impl Simulation<'_> {
    /// A packet comes to the queue of a link.
    pub(super) fn wait(&mut self, packet: Packet, link: u32, offered: OfferedPacket) {
        let pair = match packet.datagram() {
            Some(datagram) => Some(self.streams[datagram.stream as usize].pair),
            None => {
                let connection = &self.connections[packet.to() / 2];
                (connection.generation == packet.generation()).then_some(connection.pair)
            }
        };
        // A packet whose connection is over belongs to no application any more.
        let class = pair.map_or(0, |pair| self.plan.applications[usize::from(pair.application)].class);
        self.let_leave(link, Some((packet, OfferedPacket { class, ..offered })));
    }

    /// A link takes the next packet from its queue.
    #[cold]
    pub(super) fn depart(&mut self, source: u32) {
        self.let_leave(self.departing[source as usize - self.in_flight.len()], None);
    }

    fn let_leave(&mut self, link: u32, arrival: Option<(Packet, OfferedPacket)>) {
        let mut left = std::mem::take(&mut self.left);
        let directed = &mut self.links[link as usize];
        let Some(holding) = &mut directed.holding else { return };
        let (connections, streams) = (&mut self.connections, &mut self.streams);
        let loss_draw = |packet: &Packet| loss_draw(connections, streams, packet, link);
        match arrival {
            Some((packet, offered)) => {
                holding.offer(&mut directed.link, self.now, offered, packet, loss_draw, &mut left);
            }
            None => holding.advance(&mut directed.link, self.now, loss_draw, &mut left),
        }
        let due = holding.due();
        if due.is_some() {
            directed.departure_order = self.order;
            self.order += 1;
        }
        self.scheduler.set(directed.departures, due.into());
        for Left { packet, offered, arrived, at, outcome, copy } in left.drain(..) {
            if self.is_watched {
                self.note_crossing(&packet, link, arrived, offered.bytes, outcome);
            }
            let Some((mut packet, arrival)) = self.cross(packet, link, at, outcome, copy) else { continue };
            match self.routes.hops[packet.hop() as usize].then {
                Then::Computed => {
                    packet.advance();
                    self.forward(packet, arrival);
                }
                Then::Event(source) | Then::Deliver(source) => self.put_in_flight(packet, source, arrival),
            }
        }
        self.left = left;
    }
}
