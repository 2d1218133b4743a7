//! The loop: take the earliest event, move a packet or wake an endpoint, book what happened.

use std::ops::Range;

use firstflight_path::{Fate, Link, Meter, Nanos};
use firstflight_tcp::{Flags, NEVER, NO_WINDOW_SCALE, Segment};

use crate::{
    application::Client,
    capture::Capture,
    connection::{Arena, CLIENT},
    plan::{Plan, ServerChoice},
    random::{Purpose, Sequence, Stream},
    records::{LinkInterval, NO_LINK, Records, seconds},
    ring::Ring,
    scheduler::{self, IDLE, MAX_SOURCES, Scheduler},
    timers::{Timers, Wake},
    topology::{Routes, Then, Topology},
};

/// Links that a network can have: the records number them with 16 bits.
const MOST_LINKS: usize = NO_LINK as usize;
const _: () = assert!(MOST_LINKS < MAX_SOURCES);

/// Rows that the links' meters can fill: each costs about 100 bytes from the start.
const MOST_METER_ROWS: u64 = 10_000_000;

/// A packet on its way to one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) segment: Segment,
    /// `2 * slot + side`.
    pub(crate) to: u32,
    pub(crate) generation: u32,
    /// The hop that it is on.
    hop: u32,
}

/// A packet that a link has accepted and not yet brought to its far end.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    at: Nanos,
    order: u64,
    packet: Packet,
}

/// What fills the unused slots of a link's ring.
const NOTHING: InFlight = InFlight {
    at: 0,
    order: 0,
    packet: Packet {
        segment: Segment {
            seq: 0,
            ack: 0,
            payload_bytes: 0,
            window: 0,
            mss: 0,
            window_scale: NO_WINDOW_SCALE,
            flags: Flags::NONE,
            retransmission: false,
        },
        to: 0,
        generation: 0,
        hop: 0,
    },
};

/// A link of the network with the packets on it.
struct Line {
    link: Link,
    /// In the order of arrival at the far end; only the head is in the scheduler.
    in_flight: Ring<InFlight>,
    draws: Sequence,
}

/// One replicate of a plan.
pub struct Simulation<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) seed: u64,
    pub(crate) replicate: u32,
    pub(crate) now: Nanos,
    lines: Vec<Line>,
    pub(crate) routes: Routes,
    scheduler: Scheduler,
    timers: Timers,
    timer_source: u32,
    /// Events scheduled so far: breaks ties.
    order: u64,
    pub(crate) connections: Arena,
    pub(crate) clients: Vec<Client>,
    /// Server hosts of each application.
    pub(crate) servers: Vec<Range<u32>>,
    pub(crate) records: Records,
    capture: Option<Capture>,
}

impl<'p> Simulation<'p> {
    /// Sets up a replicate. `capture` keeps every segment.
    ///
    /// # Errors
    /// A plan whose network or hosts do not fit together: one sentence.
    pub fn new(plan: &'p Plan, seed: u64, replicate: u32, capture: bool) -> Result<Simulation<'p>, String> {
        let topology = Topology::new(&plan.network)?;
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for (application, spec) in plan.applications.iter().enumerate() {
            let place = |error| format!("application {:?}: {error}", spec.name);
            let client_hosts = topology.select(&spec.client_hosts).map_err(place)?;
            servers.push(topology.select(&spec.server_hosts).map_err(place)?);
            clients.extend((0..spec.clients).map(|index| {
                let host = client_hosts.start + index % client_hosts.len() as u32;
                Client::new(application as u16, index, host)
            }));
        }
        if topology.links().len() > MOST_LINKS {
            return Err(format!(
                "the network has {} links; at most {MOST_LINKS} can be simulated",
                topology.links().len()
            ));
        }
        let pairs = host_pairs(plan, &clients, &servers);
        let routes = Routes::new(&topology, pairs.iter().copied())?;
        let meter_interval = plan.meter_interval_ns.unwrap_or(plan.duration_ns);
        let rows = plan.duration_ns.div_ceil(meter_interval).saturating_mul(topology.links().len() as u64);
        if rows > MOST_METER_ROWS {
            return Err(format!(
                "meter_interval_ns is {meter_interval}: {rows} intervals of all links are more than {MOST_METER_ROWS}, \
                 so give a longer one"
            ));
        }
        let meter = Meter::new(plan.duration_ns, meter_interval);
        let mut lines = Vec::with_capacity(topology.links().len());
        for (index, (name, spec)) in topology.links().iter().enumerate() {
            let link = Link::new(spec, meter.clone()).map_err(|error| format!("link {name:?}: {error}"))?;
            let draws = Sequence::new(Stream::new(seed, replicate, Purpose::Link, 0, index as u32));
            lines.push(Line { link, in_flight: Ring::new(NOTHING), draws });
        }
        for &(client, server) in &pairs {
            let links = [topology.path(client, server)?, topology.path(server, client)?].concat();
            // Without this an application that never waits would do all that it ever does at one moment, for ever.
            if links.iter().all(|&link| lines[link as usize].link.transit(plan.header_bytes) == 0) {
                return Err(format!(
                    "from {} to {} and back takes no time: give one of the links between them a delay or a rate",
                    topology.host_name(client),
                    topology.host_name(server)
                ));
            }
        }
        let records = Records {
            link_names: topology.links().iter().map(|(name, _)| name.clone()).collect(),
            application_names: plan.applications.iter().map(|application| application.name.clone()).collect(),
            ..Records::default()
        };
        let timer_source = lines.len() as u32;
        let mut simulation = Simulation {
            plan,
            seed,
            replicate,
            now: 0,
            scheduler: Scheduler::new(lines.len() + 1),
            lines,
            routes,
            timers: Timers::default(),
            timer_source,
            order: 0,
            connections: Arena::default(),
            clients,
            servers,
            records,
            capture: capture.then(Capture::default),
        };
        for client in 0..simulation.clients.len() as u32 {
            let start = simulation.start_of(client);
            simulation.wake_client_at(client, start);
        }
        Ok(simulation)
    }

    /// Runs to the end of the plan's duration and hands over the records.
    pub fn run(mut self) -> Records {
        let end = self.plan.duration_ns;
        while let Some((time, source)) = self.scheduler.next() {
            if time >= end {
                break;
            }
            debug_assert!(time >= self.now, "time runs backwards");
            self.now = time;
            self.records.counts.events += 1;
            if source == self.timer_source {
                self.fire_timer();
            } else {
                self.arrive(source);
            }
        }
        self.now = end;
        self.finish()
    }

    /// The packet at the head of a link reaches the far end.
    #[inline]
    fn arrive(&mut self, source: u32) {
        let line = &mut self.lines[source as usize];
        let Some(&InFlight { packet, .. }) = line.in_flight.front() else { return };
        line.in_flight.drop_front();
        let key = line.in_flight.front().map_or(IDLE, |next| scheduler::key(next.at, next.order, source));
        self.scheduler.set(source, key);
        match self.routes.hops[packet.hop as usize].then {
            Then::Deliver => self.deliver(&packet),
            _ => self.forward(Packet { hop: packet.hop + 1, ..packet }),
        }
    }

    /// Offers a packet to the link of its hop, and to the links after it as far as they can be computed ahead.
    #[inline]
    fn forward(&mut self, mut packet: Packet) {
        let bytes = packet.segment.payload_bytes + self.plan.header_bytes;
        let mut at = self.now;
        loop {
            let hop = self.routes.hops[packet.hop as usize];
            let line = &mut self.lines[hop.link as usize];
            self.records.counts.packet_hops += 1;
            let draws = &mut line.draws;
            match line.link.offer(at, bytes, || draws.uniform()) {
                Fate::Arrives(arrival) => at = arrival,
                fate => return self.lose(&packet, hop.link, at, fate),
            }
            if hop.then == Then::Computed {
                packet.hop += 1;
                continue;
            }
            let order = self.order;
            self.order += 1;
            if line.in_flight.is_empty() {
                self.scheduler.set(hop.link, scheduler::key(at, order, hop.link));
            }
            line.in_flight.push_back(InFlight { at, order, packet });
            return;
        }
    }

    #[cold]
    fn lose(&mut self, packet: &Packet, link: u32, at: Nanos, fate: Fate) {
        if at >= self.plan.duration_ns {
            // A link computed ahead has looked beyond the end of the run.
            return;
        }
        let (slot, sender) = (packet.to / 2, (1 - packet.to % 2) as usize);
        let connection = &mut self.connections[slot];
        if connection.generation != packet.generation {
            return;
        }
        let segment = &packet.segment;
        if segment.payload_bytes > 0
            && !segment.retransmission
            && sender == connection.data_sender()
            && connection.ends[sender].in_first_flight(segment.seq)
        {
            connection.first_flight_lost += 1;
        }
        if let Some(capture) = &mut self.capture {
            capture.lost(at, self.replicate, connection, sender, segment, link as u16, fate);
        }
    }

    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        let (slot, side) = (packet.to / 2, (packet.to % 2) as usize);
        let connection = &mut self.connections[slot];
        if connection.generation != packet.generation {
            return;
        }
        connection.ends[side].handle_segment(self.now, &packet.segment);
        if let Some(capture) = &mut self.capture {
            capture.received(self.now, self.replicate, connection, side, &packet.segment);
        }
        self.react(slot, side);
    }

    /// After something happened to an end: tell the application, then send what there is to send.
    #[inline]
    fn react(&mut self, slot: u32, side: usize) {
        let connection = &mut self.connections[slot];
        let generation = connection.generation;
        let events = connection.ends[side].poll_events();
        if !events.is_empty() {
            self.on_events(slot, side, events);
            if self.connections[slot].generation != generation {
                return;
            }
        }
        self.pump(slot, side);
    }

    /// Sends what an end has to send, and arms its timer.
    #[inline]
    pub(crate) fn pump(&mut self, slot: u32, side: usize) {
        loop {
            let connection = &mut self.connections[slot];
            let Some(segment) = connection.ends[side].poll_transmit(self.now) else { break };
            let packet = Packet {
                segment,
                to: 2 * slot + (1 - side) as u32,
                generation: connection.generation,
                hop: connection.first_hop[side],
            };
            self.records.counts.data_packets += u64::from(segment.payload_bytes > 0);
            if let Some(capture) = &mut self.capture {
                capture.sent(self.now, self.replicate, connection, side, &segment);
            }
            self.forward(packet);
        }
        let connection = &mut self.connections[slot];
        let deadline = connection.ends[side].poll_timeout();
        if deadline < connection.armed[side] {
            connection.armed[side] = deadline;
            self.set_timer(deadline, Wake::Endpoint(2 * slot + side as u32));
        }
    }

    fn set_timer(&mut self, time: Nanos, wake: Wake) {
        let order = self.order;
        self.order += 1;
        if self.timers.push(time, order, wake) {
            self.scheduler.set(self.timer_source, scheduler::key(time, order, self.timer_source));
        }
    }

    /// Wakes a client later.
    pub(crate) fn wake_client_at(&mut self, client: u32, time: Nanos) {
        self.set_timer(time.max(self.now), Wake::Client(client));
    }

    fn fire_timer(&mut self) {
        let Some((time, wake)) = self.timers.pop() else { return };
        let next = self.timers.next();
        let key = next.map_or(IDLE, |(time, order)| scheduler::key(time, order, self.timer_source));
        self.scheduler.set(self.timer_source, key);
        match wake {
            Wake::Client(client) => self.wake_client(client),
            Wake::Endpoint(end) => {
                let (slot, side) = (end / 2, (end % 2) as usize);
                let connection = &mut self.connections[slot];
                if !connection.live {
                    return;
                }
                if connection.armed[side] == time {
                    connection.armed[side] = NEVER;
                }
                if connection.ends[side].poll_timeout() <= self.now {
                    connection.ends[side].handle_timeout(self.now);
                    self.react(slot, side);
                } else {
                    // The deadline has moved since the entry was made.
                    self.pump(slot, side);
                }
            }
        }
    }

    fn finish(mut self) -> Records {
        for slot in 0..self.connections.len() {
            if self.connections[slot].live {
                self.book_unfinished(slot);
            }
        }
        self.book_unfinished_pages();
        for (index, line) in self.lines.iter().enumerate() {
            for (start, length, counts) in line.link.meter().intervals() {
                self.records.links.push(LinkInterval {
                    replicate: self.replicate,
                    link: index as u16,
                    interval_start_s: seconds(start),
                    interval_s: seconds(length),
                    offered_packets: counts.offered_packets,
                    dropped_packets: counts.dropped_packets,
                    lost_packets: counts.lost_packets,
                    sent_packets: counts.sent_packets,
                    sent_bytes: counts.sent_bytes,
                    busy_s: seconds(counts.busy),
                    queue_mean_packets: counts.waiting as f64 / length as f64,
                    queue_max_packets: counts.queue_max_packets,
                });
            }
        }
        self.records.segments = self.capture.map(Capture::into_events);
        self.records
    }

    /// A stream of draws of a client.
    pub(crate) fn stream(&self, client: u32, purpose: Purpose) -> Stream {
        let client = &self.clients[client as usize];
        Stream::new(self.seed, self.replicate, purpose, u32::from(client.application), client.index)
    }

    /// The host of the server that a client asks; `index` numbers its connections.
    pub(crate) fn server_host(&self, client: u32, index: u64) -> u32 {
        let state = &self.clients[client as usize];
        let hosts = &self.servers[usize::from(state.application)];
        let count = hosts.len() as u32;
        match self.plan.applications[usize::from(state.application)].server_choice {
            ServerChoice::ByClient => hosts.start + state.index % count,
            ServerChoice::Random => {
                let [draw, _] = self.stream(client, Purpose::Server).bits(index);
                // The high bits of draw * count: unbiased enough for a handful of hosts, and without a loop.
                hosts.start + ((u128::from(draw) * u128::from(count)) >> 64) as u32
            }
        }
    }

    /// Both ends are done: the slot is free for another connection.
    pub(crate) fn recycle_if_finished(&mut self, slot: u32) {
        if self.connections[slot].is_finished() {
            self.connections.release(slot);
        }
    }

    /// Sends what a client has to send after it was given work outside of an event of its connection.
    pub(crate) fn pump_client(&mut self, slot: u32) {
        self.pump(slot, CLIENT);
    }
}

/// The pairs of hosts between which packets may travel.
fn host_pairs(plan: &Plan, clients: &[Client], servers: &[Range<u32>]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    let mut random = Vec::new();
    for client in clients {
        let hosts = &servers[usize::from(client.application)];
        match plan.applications[usize::from(client.application)].server_choice {
            ServerChoice::Random => random.push((client.application, client.host)),
            ServerChoice::ByClient => pairs.push((client.host, hosts.start + client.index % hosts.len() as u32)),
        }
    }
    // Many clients may share a host: the hosts, not the clients, are multiplied by the servers.
    random.sort_unstable();
    random.dedup();
    for (application, host) in random {
        pairs.extend(servers[usize::from(application)].clone().map(|server| (host, server)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
