//! A host: an address, its connections, the ports that listen, and timers.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    hash::{DefaultHasher, Hash, Hasher},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use firstflight_records::SegmentEvent;
use firstflight_segment::{Envelope, read_packet, write_packet_with};
use firstflight_tcp::{Deadline, Endpoint, Flags, Nanos, Profile, Segment};

use crate::{
    Error,
    application::Application,
    connection::{Books, Connection},
    log::SegmentLog,
    memory::LearnedWindows,
    report::{End, Life, Report},
    wire::{Traffic, Wire},
};

/// The ports of connections that are opened here, used in turn: the dynamic ones of RFC 6335 §6.
const FIRST_PORT: u16 = 49_152;

/// Concurrent connections, those in TIME-WAIT included; as many as the default of Linux's `tcp_max_orphans` on a
/// machine of a few gigabytes.
const MOST_CONNECTIONS: usize = 32_768;

/// A port that listens.
pub struct Listener {
    /// Its number.
    pub port: u16,
    /// The profile of its connections.
    pub profile: Arc<Profile>,
    /// Makes what a new connection is for.
    pub application: Box<dyn Fn() -> Box<dyn Application>>,
}

/// A connection to be opened.
pub struct Opening {
    /// To where.
    pub peer: SocketAddr,
    /// Its profile.
    pub profile: Arc<Profile>,
    /// Makes what it is for, given its number.
    pub application: Box<dyn FnOnce(u32) -> Box<dyn Application>>,
}

/// Our port, and the peer's address and port.
type Tuple = (u16, SocketAddr);

/// A host.
pub struct Host {
    address: IpAddr,
    secret: u64,
    listeners: Vec<(Listener, LearnedWindows)>,
    /// Results learned from connections that were opened here.
    memory: LearnedWindows,
    connections: BTreeMap<Tuple, Connection>,
    /// Entries may be older than what they are for.
    timers: BinaryHeap<Reverse<(Deadline, Tuple)>>,
    opened: u32,
    next_port: u16,
    books: Books,
}

impl Host {
    /// A host without connections. `seed` decides its initial sequence numbers, together with the clock.
    pub fn new(address: IpAddr, seed: u64) -> Host {
        Host {
            address,
            secret: seed,
            listeners: Vec::new(),
            memory: LearnedWindows::default(),
            connections: BTreeMap::new(),
            timers: BinaryHeap::new(),
            opened: 0,
            next_port: FIRST_PORT,
            books: Books::default(),
        }
    }

    /// Keeps a row of every segment from now on.
    pub fn keep_segments(&mut self) {
        self.books.log = Some(SegmentLog::default());
    }

    /// The rows of segments since the last call, if they are kept.
    pub fn take_segments(&mut self) -> Option<Vec<SegmentEvent>> {
        self.books.log.as_mut().map(SegmentLog::take)
    }

    /// Listens on a port, in place of what listened there before: connections from now on behave as it says, and have
    /// learned nothing from those before them.
    pub fn listen(&mut self, listener: Listener) {
        let known = self.listeners.iter().position(|(other, _)| other.port == listener.port);
        match known {
            Some(index) => {
                self.listeners[index] = (listener, LearnedWindows::default());
                let of_before = self.connections.values_mut().filter(|connection| connection.listener == Some(index));
                of_before.for_each(|connection| connection.is_of_before = true);
            }
            None => self.listeners.push((listener, LearnedWindows::default())),
        }
    }

    /// Opens a connection; returns its number and our port.
    ///
    /// # Errors
    /// No port is free for a connection to that peer.
    pub fn open(&mut self, opening: Opening, wire: &mut impl Wire) -> Result<(u32, u16), Error> {
        let Some(port) = self.free_port(opening.peer) else {
            return Err(Error::NoPort { first: FIRST_PORT, peer: opening.peer });
        };
        let now = wire.now();
        let application = (opening.application)(self.opened);
        let tuple = (port, opening.peer);
        let endpoint = Endpoint::client(opening.profile, self.initial_sequence(now, tuple));
        self.insert(now, tuple, endpoint, None, application);
        self.with(tuple, wire, |connection, now, books| connection.open(now, books));
        Ok((self.opened - 1, port))
    }

    /// A packet came.
    pub fn handle_packet(&mut self, bytes: &[u8], wire: &mut impl Wire) {
        self.books.traffic.received += 1;
        let Ok(packet) = read_packet(bytes) else {
            self.books.traffic.unreadable += 1;
            return;
        };
        let Envelope { source: peer, destination, .. } = packet.envelope;
        if destination.ip() != self.address {
            self.books.traffic.foreign += 1;
            return;
        }
        let tuple = (destination.port(), peer);
        let known = self.connections.get(&tuple);
        if known.is_some_and(|connection| connection.gives_way_to(&packet.segment)) {
            self.forget(tuple);
        }
        if self.connections.contains_key(&tuple) || self.accept(tuple, &packet.segment, wire) {
            self.with(tuple, wire, |connection, now, books| connection.handle_packet(now, &packet, bytes, books));
        }
    }

    /// Time passed: to be called once [`Host::poll_timeout`] is reached.
    pub fn handle_timeout(&mut self, wire: &mut impl Wire) {
        let now = wire.now();
        while let Some(&Reverse((at, tuple))) = self.timers.peek().filter(|Reverse((at, _))| at.is_due(now)) {
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(&tuple) else { continue };
            if connection.armed != at {
                continue;
            }
            connection.armed = Deadline::NEVER;
            self.with(tuple, wire, |connection, now, books| {
                if connection.deadline().is_due(now) {
                    connection.handle_timeout(now, books);
                }
            });
        }
    }

    /// When [`Host::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Deadline {
        self.timers.peek().map_or(Deadline::NEVER, |Reverse((at, _))| *at)
    }

    /// The report since the last call.
    pub fn poll_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.books.reports)
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Counters since the beginning.
    pub fn traffic(&self) -> &Traffic {
        &self.books.traffic
    }

    /// Connections at present, those in TIME-WAIT included.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Ends all connections immediately.
    pub fn stop(&mut self, wire: &mut impl Wire) {
        while let Some((&tuple, _)) = self.connections.first_key_value() {
            self.with(tuple, wire, |connection, now, books| connection.abort(now, End::Stopped, books));
            self.forget(tuple);
        }
    }

    /// Lets something happen to a connection, then sends what it has to send, sets its timer, and forgets it once it is
    /// gone.
    fn with(&mut self, tuple: Tuple, wire: &mut impl Wire, happens: impl FnOnce(&mut Connection, Nanos, &mut Books)) {
        let Some(connection) = self.connections.get_mut(&tuple) else { return };
        let now = wire.now();
        let was_over = connection.is_over();
        happens(connection, now, &mut self.books);
        connection.pump(wire, &mut self.books);
        // The next connection learns from this one as soon as it is over, not only after its TIME-WAIT.
        if connection.is_over() && !was_over {
            let memory = match connection.listener {
                Some(index) => &mut self.listeners[index].1,
                None => &mut self.memory,
            };
            if !connection.is_of_before {
                memory.learn(now, tuple.1.ip(), &connection.endpoint);
            }
        }
        if connection.is_gone() {
            self.forget(tuple);
            return;
        }
        let deadline = connection.deadline();
        if deadline < connection.armed {
            connection.armed = deadline;
            self.timers.push(Reverse((deadline, tuple)));
        }
    }

    fn forget(&mut self, tuple: Tuple) {
        let gone = self.connections.remove(&tuple);
        if let (Some(gone), Some(log)) = (gone, &mut self.books.log) {
            log.forget(gone.life.connection);
        }
    }

    /// A segment of no connection: makes one of it if it is a SYN for a port that listens; else answers with a reset.
    fn accept(&mut self, tuple: Tuple, segment: &Segment, wire: &mut impl Wire) -> bool {
        let listener = self.listeners.iter().position(|(listener, _)| listener.port == tuple.0);
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        let Some(index) = listener.filter(|_| opens) else {
            self.refuse(tuple, segment, wire);
            return false;
        };
        if self.connections.len() >= MOST_CONNECTIONS {
            self.books.traffic.turned_away += 1;
            return false;
        }
        let now = wire.now();
        let (listener, _) = &self.listeners[index];
        let application = (listener.application)();
        let endpoint = Endpoint::server(Arc::clone(&listener.profile), self.initial_sequence(now, tuple));
        self.insert(now, tuple, endpoint, Some(index), application);
        true
    }

    fn insert(
        &mut self,
        now: Nanos,
        tuple: Tuple,
        mut endpoint: Endpoint,
        listener: Option<usize>,
        application: Box<dyn Application>,
    ) {
        let peer = tuple.1.ip();
        let memory = match listener {
            Some(index) => &mut self.listeners[index].1,
            None => &mut self.memory,
        };
        let same = |(other, connection): (&Tuple, &'_ Connection)| {
            other.1.ip() == peer && connection.listener == listener && !connection.is_of_before
        };
        let alive = self.connections.iter().filter(|&entry| same(entry)).map(|(_, connection)| &connection.endpoint);
        if let Some(start) = memory.starting_point(now, &endpoint.profile().initial_window, peer, alive) {
            endpoint.start_from(start);
        }
        let life = Life {
            connection: self.opened,
            opened_here: listener.is_none(),
            local: SocketAddr::new(self.address, tuple.0),
            peer: tuple.1,
        };
        self.opened += 1;
        self.connections.insert(tuple, Connection::new(endpoint, life, listener, application));
    }

    // RFC 9293 §3.10.7.1: a closed endpoint answers everything but a reset with one.
    fn refuse(&mut self, tuple: Tuple, segment: &Segment, wire: &mut impl Wire) {
        let now = wire.now();
        let mut nobody = Endpoint::client(Arc::new(Profile::rfc()), 0);
        nobody.handle_segment(now, segment);
        let Some(reset) = nobody.poll_transmit(now) else { return };
        self.books.traffic.refused += 1;
        let envelope = Envelope::between(SocketAddr::new(self.address, tuple.0), tuple.1);
        let mut packet = Vec::new();
        match write_packet_with(&reset, &envelope, &[], &mut packet) {
            Ok(()) => wire.send(&packet),
            Err(_) => self.books.traffic.unsendable += 1,
        }
    }

    fn free_port(&mut self, peer: SocketAddr) -> Option<u16> {
        if self.connections.len() >= MOST_CONNECTIONS {
            return None;
        }
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
            if !self.connections.contains_key(&(port, peer)) {
                return Some(port);
            }
        }
        None
    }

    // RFC 6528 §3: ISN = M + F(local address, local port, remote address, remote port, secret), where M ticks every 4 µs.
    fn initial_sequence(&self, now: Nanos, tuple: Tuple) -> u32 {
        // std does not specify the algorithm of this hasher. These numbers need not be unpredictable.
        let mut hasher = DefaultHasher::new();
        (self.secret, self.address, tuple).hash(&mut hasher);
        ((now / 4000) as u32).wrapping_add(hasher.finish() as u32)
    }
}
