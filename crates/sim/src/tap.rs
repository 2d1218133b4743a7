//! A tap: every packet that passes one place, as a capture program there would see it.

use std::collections::HashMap;

use firstflight_path::{LinkOutcome, Nanos};
use firstflight_tcp::Segment;

use crate::{PlanError, connection::SERVER, plan::Rtp, topology::Topology};

/// Place of the tap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The host of the client that opens the first connection of the first application.
    Client,
    /// The host of the server of that connection.
    Server,
    /// The far end of the link with this name.
    Link(String),
}

/// A packet as the tap saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tapped {
    /// When.
    pub time: Nanos,
    /// Index of the interface.
    pub interface: u32,
    /// True if it came towards the tap: at a host from the network, on a link over the link with the tap's name.
    pub inbound: bool,
    /// Whose it is.
    pub connection: Identity,
    /// True if the server sent it.
    pub from_server: bool,
    /// Its payload.
    pub load: Load,
}

/// The payload of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// A segment.
    Segment(Segment),
    /// A datagram.
    Datagram(Sight),
}

/// A datagram as a capture shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sight {
    /// Number in its stream.
    pub number: u32,
    /// Bytes of all headers and of the payload.
    pub bytes: u32,
    /// Its RTP header, if it has one.
    pub rtp: Option<Rtp>,
}

/// Identifies a connection, or the streams of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// Number of the connection or of the client in the replicate.
    pub number: u32,
    /// Hosts of client and server, numbered over the network.
    pub hosts: [u32; 2],
    /// Initial sequence numbers of client and server.
    pub initial_sequences: [u32; 2],
}

/// All that a tap saw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watched {
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// The packets in the order of time.
    pub packets: Vec<Tapped>,
}

/// The place of the tap.
#[derive(Clone, Copy, Debug)]
enum At {
    Host(u32),
    /// A link and its reverse path.
    Link {
        towards: u32,
        away: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Tap {
    at: At,
    interfaces: Vec<String>,
    /// Packets that are still in flight when both endpoints have closed their connection keep its identity.
    identities: HashMap<(u32, u32), Identity>,
    packets: Vec<Tapped>,
}

impl Tap {
    pub(crate) fn at_host(host: u32, topology: &Topology) -> Self {
        Self::new(At::Host(host), vec![topology.host_name(host)])
    }

    /// A tap at the far end of a link.
    pub(crate) fn at_link(name: &str, topology: &Topology) -> Result<Self, PlanError> {
        let find = |name: &str| topology.links().iter().position(|(link, _)| link == name).map(|index| index as u32);
        let back = match name.strip_suffix(".reverse") {
            Some(forward) => forward.to_owned(),
            None => format!("{name}.reverse"),
        };
        let (Some(towards), Some(away)) = (find(name), find(&back)) else {
            let known: Vec<String> = topology.links().iter().map(|(link, _)| format!("{link:?}")).collect();
            return Err(misfit!("there is no link {name:?} in this network; it has {}", known.join(", ")));
        };
        Ok(Self::new(At::Link { towards, away }, vec![name.to_owned(), back]))
    }

    fn new(at: At, interfaces: Vec<String>) -> Self {
        Self { at, interfaces, identities: HashMap::new(), packets: Vec::new() }
    }

    /// A connection takes a slot of the arena.
    pub(crate) fn opened(&mut self, slot: u32, generation: u32, identity: Identity) {
        self.identities.insert((slot, generation), identity);
    }

    /// Whose a segment is, by the slot and the generation of its connection.
    pub(crate) fn identity(&self, place: (u32, u32)) -> Identity {
        self.identities[&place]
    }

    /// A packet passes the host of an end of its connection, which sends or receives it.
    pub(crate) fn at_end(&mut self, now: Nanos, connection: Identity, sender: usize, side: usize, load: Load) {
        if matches!(self.at, At::Host(host) if host == connection.hosts[side]) {
            self.packets.push(Tapped {
                time: now,
                interface: 0,
                inbound: sender != side,
                connection,
                from_server: sender == SERVER,
                load,
            });
        }
    }

    /// A packet is dropped, lost or delivered at a link; all of it was sent at `end`.
    pub(crate) fn crossed(
        &mut self,
        link: u32,
        end: Nanos,
        outcome: LinkOutcome,
        connection: Identity,
        sender: usize,
        load: Load,
    ) {
        let At::Link { towards, away } = self.at else { return };
        let (time, interface) = match outcome {
            LinkOutcome::Arrives(arrival) | LinkOutcome::Marked(arrival) if link == towards => (arrival, 0),
            // A packet sent from the tap is seen there, even if it is lost later.
            LinkOutcome::Arrives(_) | LinkOutcome::Marked(_) | LinkOutcome::Lost if link == away => (end, 1),
            _ => return,
        };
        self.packets.push(Tapped {
            time,
            interface,
            inbound: link == towards,
            connection,
            from_server: sender == SERVER,
            load,
        });
    }

    /// True if it is at the far end of this link.
    pub(crate) fn is_behind(&self, link: u32) -> bool {
        matches!(self.at, At::Link { towards, .. } if link == towards)
    }

    /// The packets that passed before `end`. Links are computed ahead, hence the sort; it is stable, so packets at
    /// one time keep their order.
    pub(crate) fn into_watched(mut self, end: Nanos) -> Watched {
        self.packets.retain(|packet| packet.time < end);
        self.packets.sort_by_key(|packet| packet.time);
        Watched { interfaces: self.interfaces, packets: self.packets }
    }
}
