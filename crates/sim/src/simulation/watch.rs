//! For those who watch packets: taps at a place, and the capture of everything.

use firstflight_path::{LinkOutcome, Nanos};
use firstflight_tcp::{Ecn, Endpoint, Segment};

use super::{Applications, Simulation};
use crate::{
    capture::{Capture, Note},
    connection::SERVER,
    packet::{Datagram, Packet},
    records::{Crossing, NO_CONNECTION, NO_LINK, SENT},
    tap::{Identity, Load, Sight, Tap, Watched},
};

impl Simulation<'_> {
    /// Keeps every segment and every packet at a link.
    pub(crate) fn capture(&mut self) {
        self.capture = Some(Capture::new(self.replicate));
        self.watch();
    }

    /// Keeps the packets that pass a tap.
    pub(crate) fn tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
        self.watch();
    }

    /// Somebody watches each packet, also where it would only pass.
    fn watch(&mut self) {
        self.is_watched = true;
        self.links.iter_mut().for_each(|directed| directed.link.offer_all());
    }

    /// The packets that passed the tap.
    pub(crate) fn into_watched(self) -> Watched {
        self.tap.map(|tap| tap.into_watched(self.plan.duration_ns)).unwrap_or_default()
    }

    /// Runs until an application opens its first connection, or its first stream if it has no connections, and returns the
    /// hosts of client and server; none if it never does.
    pub(crate) fn first_hosts(&mut self, applications: &mut impl Applications, application: u16) -> Option<[u32; 2]> {
        let only_streams = self.plan.applications[usize::from(application)].kind.datagrams().is_some();
        loop {
            let connections = (0..self.connections.len()).map(|slot| self.connections[slot].pair);
            let streams = self.streams.iter().map(|stream| stream.pair).filter(|_| only_streams);
            let mut pairs = connections.chain(streams);
            if let Some(pair) = pairs.find(|pair| pair.application == application) {
                return Some(pair.hosts);
            }
            if !self.step(applications) {
                return None;
            }
        }
    }

    /// For those who watch packets: a connection was opened.
    pub(crate) fn note_opening(&mut self, slot: u32) {
        if self.capture.is_some() {
            self.connections[slot].ends.iter_mut().for_each(Endpoint::listen);
        }
        let Some(tap) = &mut self.tap else { return };
        let connection = &self.connections[slot];
        let initial_sequences = [0, 1].map(|side: usize| connection.ends[side].initial_sequence());
        let identity = Identity { number: connection.number, hosts: connection.pair.hosts, initial_sequences };
        tap.opened(slot, connection.generation, identity);
    }

    /// For those who watch senders: a connection is over.
    #[cold]
    pub(super) fn note_release(&mut self, slot: u32) {
        if let Some(capture) = &mut self.capture {
            capture.published(&mut self.connections[slot]);
        }
    }

    /// For those who watch packets: an end hands a segment to the network.
    #[cold]
    pub(super) fn note_sent(&mut self, slot: u32, side: usize, segment: &Segment) {
        let connection = &self.connections[slot];
        if let Some(capture) = &mut self.capture {
            let note = Note { time: self.now, event: SENT, link: NO_LINK, sender: side, observer: side, segment };
            capture.note(connection, &note);
        }
        if let Some(tap) = &mut self.tap {
            let identity = tap.identity((slot, connection.generation));
            tap.at_end(self.now, identity, side, side, Load::Segment(*segment));
        }
    }

    /// For those who watch packets: one reaches the host of an end, whether or not its connection is over by then.
    #[cold]
    pub(super) fn note_delivery(&mut self, packet: Packet, slot: u32, side: usize) {
        if let Some(datagram) = packet.datagram() {
            let receiver = 1 - self.streams[datagram.stream as usize].sender();
            return self.note_datagram(&datagram, receiver);
        }
        if let Some(tap) = &mut self.tap {
            let identity = tap.identity((slot, packet.generation()));
            tap.at_end(self.now, identity, 1 - side, side, Load::Segment(packet.peek(&self.options)));
        }
    }

    /// For those who watch packets: a datagram passes the host of one of its ends.
    #[cold]
    pub(crate) fn note_datagram(&mut self, datagram: &Datagram, side: usize) {
        let (identity, load, sender) =
            (self.stream_identity(datagram), self.sight(datagram), self.streams[datagram.stream as usize].sender());
        if let Some(tap) = &mut self.tap {
            tap.at_end(self.now, identity, sender, side, load);
        }
    }

    fn stream_identity(&self, datagram: &Datagram) -> Identity {
        let stream = &self.streams[datagram.stream as usize];
        Identity { number: stream.client, hosts: stream.pair.hosts, initial_sequences: [0; 2] }
    }

    fn sight(&self, datagram: &Datagram) -> Load {
        let flow = &self.streams[datagram.stream as usize].flow;
        Load::Datagram(Sight {
            number: datagram.number,
            bytes: flow.header_bytes + datagram.payload_bytes,
            rtp: flow.call.map(|call| call.rtp),
        })
    }

    /// For those who watch links: a copy of a packet reaches the far end of one at `at`.
    pub(super) fn note_copy(&mut self, packet: &Packet, link: u32, at: Nanos) {
        // Nearer to the sender there is none.
        if self.tap.as_ref().is_some_and(|tap| tap.is_behind(link)) {
            self.tap_crossing(packet, link, at, LinkOutcome::Arrives(at));
        }
    }

    /// For those who watch links: a packet came to one at `at`.
    #[cold]
    pub(super) fn note_crossing(&mut self, packet: &Packet, link: u32, at: Nanos, bytes: u32, outcome: LinkOutcome) {
        let (start, end) = match outcome {
            LinkOutcome::Dropped => (at, at),
            _ => self.links[link as usize].link.last_transmission(bytes),
        };
        self.tap_crossing(packet, link, end, outcome);
        let (slot, sender) = (packet.to() / 2, (1 - packet.to() % 2) as usize);
        let stream = packet.datagram().map(|datagram| &self.streams[datagram.stream as usize]);
        let Some(capture) = &mut self.capture else { return };
        // A link computed ahead may look beyond the end of the run.
        if at < self.plan.duration_ns {
            let (connection, from_server) = match stream {
                Some(stream) => (NO_CONNECTION, stream.flow.from_server),
                None => {
                    let connection = &self.connections[slot];
                    let is_alive = connection.generation == packet.generation();
                    (if is_alive { connection.number } else { NO_CONNECTION }, sender == SERVER)
                }
            };
            capture.crossed(Crossing {
                time_ns: at as i64,
                replicate: self.replicate,
                link: link as u16,
                connection,
                from_server: u8::from(from_server),
                bytes,
                event: outcome.event(),
                start_ns: start as i64,
                end_ns: end as i64,
            });
        }
    }

    /// For a tap: a packet is dropped, lost or delivered at a link, which has sent all of it at `end`.
    fn tap_crossing(&mut self, packet: &Packet, link: u32, end: Nanos, outcome: LinkOutcome) {
        let seen = packet.datagram().map(|datagram| {
            (self.stream_identity(&datagram), self.streams[datagram.stream as usize].sender(), self.sight(&datagram))
        });
        let Some(tap) = &mut self.tap else { return };
        let (identity, sender, load) = seen.unwrap_or_else(|| {
            let mut segment = packet.peek(&self.options);
            if matches!(outcome, LinkOutcome::Marked(_)) {
                segment.ecn = Ecn::Congestion;
            }
            let place = (packet.to() / 2, packet.generation());
            (tap.identity(place), (1 - packet.to() % 2) as usize, Load::Segment(segment))
        });
        tap.crossed(link, end, outcome, identity, sender, load);
    }
}
