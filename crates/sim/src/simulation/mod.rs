//! The loop: take the earliest event, move a packet or wake an endpoint, record the event.

mod departure;
mod forward;
mod setup;
mod watch;

use firstflight_path::{Holding, Left, Link, Nanos, Ring};
use firstflight_tcp::{Deadline, Events, Segment};

use crate::{
    capture::Capture,
    connection::{Arena, Opening},
    datagram::DatagramStream,
    memory::LearnedWindows,
    packet::{Datagram, OptionTable, Packet},
    plan::Plan,
    random::Sequence,
    records::Records,
    scheduler::Scheduler,
    tap::Tap,
    timers::{Timers, Wake},
    topology::{Routes, Then},
};

/// A packet that a link has accepted and not yet brought to its far end.
// Of one cache line each.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct InFlight {
    at: Nanos,
    order: u64,
    packet: Packet,
}

const _: () = assert!(size_of::<InFlight>() <= 64, "the rings are what the caches see");

/// Fills the unused slots of a link's ring.
const NOTHING: InFlight = InFlight { at: 0, order: 0, packet: Packet::NOTHING };

/// A link of the network.
// As in `Link`, what each packet needs comes first.
#[repr(C, align(64))]
struct DirectedLink {
    link: Link,
    queue_draws: Sequence,
    /// Its packets may arrive in another order, or twice.
    reorders: bool,
    /// The packets that wait, if the queue decides on departure.
    holding: Option<Holding<Packet>>,
    /// The source of its departures in the scheduler.
    departures: u32,
    /// Events scheduled before its next departure.
    departure_order: u64,
}

/// When the next of the packets on a link reaches its far end.
#[inline(always)]
fn following(in_flight: &Ring<InFlight>) -> Deadline {
    in_flight.read_front(Deadline::NEVER, |next| Deadline::at(next.at))
}

/// The applications of a simulation: the loop calls them, and they act on the simulation.
pub(crate) trait Applications {
    /// An event at one endpoint of a connection. `is_awaited`: its application has read the data that it waited for.
    fn on_events(&mut self, sim: &mut Simulation<'_>, slot: u32, side: usize, events: Events, is_awaited: bool);

    fn on_datagram(&mut self, sim: &mut Simulation<'_>, datagram: &Datagram);

    /// A time has come that a client, a server or a stream was to be woken at.
    fn wake(&mut self, sim: &mut Simulation<'_>, wake: Wake);
}

/// One replicate of a plan without its applications; of a plan with a population, one user after the other.
pub(crate) struct Simulation<'p> {
    plan: &'p Plan,
    pub(crate) replicate: u32,
    pub(crate) now: Nanos,
    links: Vec<DirectedLink>,
    routes: Routes,
    scheduler: Scheduler,
    timers: Timers,
    /// By source, the packets on its link that have an event when they reach the far end, in the order in which they do.
    /// Only the first one is in the scheduler.
    in_flight: Vec<Ring<InFlight>>,
    /// The links of the other sources of the scheduler, from whose queues packets depart.
    departing: Vec<u32>,
    /// The packet that just left a queue.
    left: Vec<Left<Packet>>,
    /// Options of the packets on the links.
    options: OptionTable,
    /// Buffer for the segment that arrives or leaves.
    segment: Segment,
    /// Events scheduled so far: breaks ties.
    order: u64,
    /// Time and number of the last event, where assertions are on.
    last: Option<(Nanos, u64)>,
    pub(crate) connections: Arena,
    /// The data that hosts keep from their connections.
    memory: LearnedWindows,
    /// Some profile asks the routers on the path for a rate.
    asks_for_rates: bool,
    pub(crate) streams: Vec<DatagramStream>,
    pub(crate) records: Records,
    capture: Option<Capture>,
    tap: Option<Tap>,
    /// There is a capture or a tap.
    is_watched: bool,
    /// Clients with a count that are not done with it.
    pub(crate) unfinished: u32,
    /// The run goes on to its end whatever the clients have done.
    pub(crate) stays: bool,
}

impl Simulation<'_> {
    /// Deals with events until the plan's duration is over or no event is left.
    // The one loop, with all of an event in it that is not called from elsewhere.
    #[inline(never)]
    pub(crate) fn run(&mut self, applications: &mut impl Applications) {
        while self.goes_on() && self.step(applications) {}
    }

    /// Somebody has something to do.
    fn goes_on(&self) -> bool {
        self.stays || self.unfinished > 0
    }

    /// Deals with the earliest event; false if there is none before the end of the plan's duration.
    #[inline(always)]
    fn step(&mut self, applications: &mut impl Applications) -> bool {
        let (time, source) = self.scheduler.earliest();
        if self.timers.next() <= Deadline::at(time) {
            return self.expire(applications, time);
        }
        if !self.begins_at(time) {
            return false;
        }
        let arriving = self.in_flight.get_mut(source as usize).and_then(|ring| {
            let &InFlight { packet, order, .. } = ring.pop_front()?;
            Some((packet, order, following(ring)))
        });
        if let Some((packet, order, following)) = arriving {
            if self.scheduler.follow(time, source, following) || self.is_first(order) {
                self.check_order(order);
                self.arrive(applications, packet);
            } else {
                self.in_flight[source as usize].put_back();
                self.scheduler.set(source, Deadline::at(time));
                self.begin_with_first(applications);
            }
        } else if self.scheduler.follow(time, source, Deadline::NEVER)
            || self.is_first(self.departing(source).departure_order)
        {
            self.check_order(self.departing(source).departure_order);
            self.depart(source);
        } else {
            self.scheduler.set(source, Deadline::at(time));
            self.begin_with_first(applications);
        }
        true
    }

    /// Deals with the earliest timer, or with what is due on a link at the same time and was scheduled before it; `other`:
    /// when the earliest event on a link is due. False if the plan's duration is over by then.
    #[inline(never)]
    fn expire(&mut self, applications: &mut impl Applications, other: Nanos) -> bool {
        let Some(expiry) = self.timers.next().time() else { return false };
        if !self.begins_at(expiry) {
            return false;
        }
        if expiry < other {
            self.fire_timer(applications)
        } else {
            self.begin_with_first(applications)
        }
        true
    }

    /// Moves the clock to an event; false, and it stays, if the plan's duration is over then.
    #[inline(always)]
    fn begins_at(&mut self, time: Nanos) -> bool {
        if time >= self.plan.duration_ns {
            return false;
        }
        self.now = time;
        self.records.counts.events += 1;
        true
    }

    /// Checks that events happen by time, and those of the same time in the order of scheduling.
    #[inline(always)]
    fn check_order(&mut self, order: u64) {
        if cfg!(debug_assertions) {
            let this = Some((self.now, order));
            assert!(self.last < this, "{:?} before {this:?}", self.last);
            self.last = this;
        }
    }

    fn departing(&self, source: u32) -> &DirectedLink {
        &self.links[self.departing[source as usize - self.in_flight.len()] as usize]
    }

    /// True if the event of this number was scheduled before all that are due on links at the time of the earliest.
    #[cold]
    fn is_first(&self, order: u64) -> bool {
        order < self.order_of(self.scheduler.first_scheduled(|source| self.order_of(source)))
    }

    /// The number of a source's next event in the order of scheduling.
    fn order_of(&self, source: u32) -> u64 {
        match self.in_flight.get(source as usize) {
            Some(ring) => ring.front().map_or(0, |next| next.order),
            None => self.departing(source).departure_order,
        }
    }

    /// Deals with that event of those due now that was scheduled first; something is due on a link.
    #[cold]
    fn begin_with_first(&mut self, applications: &mut impl Applications) {
        let first = self.scheduler.first_scheduled(|source| self.order_of(source));
        if self.timers.next().is_due(self.now) && self.timers.next_order() < self.order_of(first) {
            self.fire_timer(applications);
        } else if let Some(ring) = self.in_flight.get_mut(first as usize) {
            let Some(&InFlight { packet, order, .. }) = ring.pop_front() else { return };
            self.scheduler.set(first, following(ring));
            self.check_order(order);
            self.arrive(applications, packet);
        } else {
            self.scheduler.set(first, Deadline::NEVER);
            self.check_order(self.departing(first).departure_order);
            self.depart(first);
        }
    }

    /// A packet reaches the far end of a link.
    #[inline(always)]
    fn arrive(&mut self, applications: &mut impl Applications, mut packet: Packet) {
        match self.routes.hops[packet.hop() as usize].then {
            Then::Deliver(_) => self.deliver(applications, packet),
            _ => {
                packet.advance();
                self.forward(packet, self.now);
            }
        }
    }

    // By value: a packet whose address is not taken stays in registers, and its hop, which decides what happens, is known
    // earlier.
    #[inline(always)]
    fn deliver(&mut self, applications: &mut impl Applications, packet: Packet) {
        let (slot, side) = (packet.to() / 2, (packet.to() % 2) as usize);
        if self.is_watched {
            self.note_delivery(packet, slot, side);
        }
        let Some(connection) = self.connections.get_mut(slot) else {
            return self.deliver_datagram(applications, packet);
        };
        if connection.generation != packet.generation() {
            return packet.discard(&mut self.options);
        }
        packet.open_into(&mut self.options, &mut self.segment);
        connection.ends[side].handle_segment(self.now, &self.segment);
        if let Some(capture) = &mut self.capture {
            capture.received(self.now, connection, side, &self.segment);
        }
        self.react(applications, slot, side);
    }

    /// After an event at an endpoint: notify the application, then send pending data.
    #[inline(always)]
    fn react(&mut self, applications: &mut impl Applications, slot: u32, side: usize) {
        let connection = &mut self.connections[slot];
        let events = connection.ends[side].poll_events();
        if !events.is_empty() {
            // Of most segments no application hears.
            let is_awaited = events.contains(Events::READABLE) && connection.read_all(side);
            if is_awaited || events != Events::READABLE {
                let generation = connection.generation;
                applications.on_events(self, slot, side, events, is_awaited);
                if self.connections[slot].generation != generation {
                    return;
                }
            }
        }
        self.pump_inlined(slot, side);
    }

    /// Sends the segments that an endpoint has to send, and arms its timer.
    // Out of line but for the arrival of a segment.
    #[inline(never)]
    pub(crate) fn pump(&mut self, slot: u32, side: usize) {
        self.pump_inlined(slot, side);
    }

    #[inline(always)]
    fn pump_inlined(&mut self, slot: u32, side: usize) {
        let end = &self.connections[slot].ends[side];
        let deadline = if end.may_transmit() { self.send(slot, side) } else { end.poll_timeout() };
        self.arm(slot, side, deadline);
    }

    /// Sends the segments that an endpoint has to send; its deadline then.
    #[inline(never)]
    fn send(&mut self, slot: u32, side: usize) -> Deadline {
        loop {
            let connection = &mut self.connections[slot];
            let segment = &mut self.segment;
            if !connection.ends[side].poll_transmit_into(self.now, segment) {
                return connection.ends[side].poll_timeout();
            }
            let to = (2 * slot + (1 - side) as u32, connection.generation);
            let first = (connection.first_hop[side], self.plan.header_bytes);
            let packet = Packet::new(segment, to, first, &mut self.options);
            self.records.counts.data_packets += u64::from(segment.payload_bytes > 0);
            if self.is_watched {
                let segment = *segment;
                self.note_sent(slot, side, &segment);
            }
            self.forward(packet, self.now);
        }
    }

    /// Sets an end's timer, unless it has one that expires before its deadline.
    #[inline(always)]
    fn arm(&mut self, slot: u32, side: usize, deadline: Deadline) {
        let end = 2 * slot + side as u32;
        if let Some(time) = deadline.time().filter(|_| deadline < self.timers.of_endpoint(end)) {
            self.set_timer(time, Wake::Endpoint(end));
        }
    }

    #[inline(always)]
    pub(crate) fn set_timer(&mut self, time: Nanos, wake: Wake) {
        let order = self.order;
        self.order += 1;
        self.timers.set((time, order, wake));
    }

    pub(crate) fn wake_client_at(&mut self, client: u32, time: Nanos) {
        self.set_timer(time.max(self.now), Wake::Client(client));
    }

    pub(crate) fn wake_server_at(&mut self, slot: u32, time: Nanos) {
        self.set_timer(time, Wake::Server(slot));
    }

    // Most timers are of an endpoint whose deadline has moved: what the others do is out of line.
    #[inline(never)]
    fn fire_timer(&mut self, applications: &mut impl Applications) {
        self.check_order(self.timers.next_order());
        let Some(wake) = self.timers.expire() else { return };
        match wake {
            Wake::Endpoint(end) => {
                let (slot, side) = (end / 2, (end % 2) as usize);
                debug_assert!(self.connections[slot].live, "the endpoints of a connection that is over have no timers");
                match self.connections[slot].ends[side].poll_timeout().time() {
                    // The deadline has moved since the timer was set.
                    Some(later) if later > self.now => self.set_timer(later, wake),
                    due => {
                        self.timers.cancel(end);
                        if due.is_some() {
                            self.time_out(applications, slot, side);
                        }
                    }
                }
            }
            wake => applications.wake(self, wake),
        }
    }

    #[inline(never)]
    fn time_out(&mut self, applications: &mut impl Applications, slot: u32, side: usize) {
        self.connections[slot].ends[side].handle_timeout(self.now);
        self.react(applications, slot, side);
    }

    /// Empties the queues that hold packets.
    pub(crate) fn close_queues(&mut self) {
        for directed in &mut self.links {
            if let Some(holding) = &mut directed.holding {
                holding.close(&mut directed.link, self.now, |packet| packet.discard(&mut self.options));
            }
        }
        debug_assert_eq!(self.options.in_use(), self.packets_with_options(), "options without a packet");
    }

    /// The records, once the run is over.
    pub(crate) fn into_records(mut self) -> Records {
        for (index, directed) in self.links.iter().enumerate() {
            for (start, length, counts) in directed.link.meter().intervals() {
                self.records.links.push(counts.row(self.replicate, index as u16, start, length));
            }
        }
        if let Some(mut capture) = self.capture {
            for slot in 0..self.connections.len() {
                if self.connections[slot].live {
                    capture.published(&mut self.connections[slot]);
                }
            }
            let (segments, sender_events, crossings) = capture.into_tables();
            self.records.segments = Some(segments);
            self.records.sender_events = Some(sender_events);
            self.records.crossings = Some(crossings);
        }
        self.records
    }

    /// Packets on the links that carry options.
    fn packets_with_options(&self) -> usize {
        self.in_flight.iter().flat_map(Ring::iter).filter(|flying| flying.packet.has_segment()).count()
    }

    pub(crate) fn open(&mut self, opening: &Opening<'_>) -> u32 {
        let [client, server] = opening.pair.hosts;
        let first_hop = [self.routes.first_hop(client, server), self.routes.first_hop(server, client)];
        let slot = self.connections.open(self.now, opening, first_hop);
        self.memory.on_open(self.now, slot, &mut self.connections);
        self.note_opening(slot);
        slot
    }

    pub(crate) fn open_stream(&mut self, mut stream: DatagramStream) -> u32 {
        let sender = stream.sender();
        stream.first_hop = self.routes.first_hop(stream.pair.hosts[sender], stream.pair.hosts[1 - sender]);
        self.streams.push(stream);
        self.streams.len() as u32 - 1
    }

    pub(crate) fn send_datagram(&mut self, index: u32, payload_bytes: u32) {
        let stream = &mut self.streams[index as usize];
        let datagram = Datagram { stream: index, number: stream.send(payload_bytes), sent_at: self.now, payload_bytes };
        let (sender, first_hop, header_bytes) = (stream.sender(), stream.first_hop, stream.flow.header_bytes);
        if self.is_watched {
            self.note_datagram(&datagram, sender);
        }
        self.forward(Packet::of_datagram(&datagram, header_bytes, first_hop), self.now);
    }

    /// A packet that belongs to no connection has reached its destination.
    #[cold]
    fn deliver_datagram(&mut self, applications: &mut impl Applications, packet: Packet) {
        let Some(datagram) = packet.datagram() else { return };
        self.streams[datagram.stream as usize].arrived(self.now, &datagram);
        applications.on_datagram(self, &datagram);
    }

    /// A client ended the file, page or request that was its `begun`-th, of `count` that it will begin.
    pub(crate) fn note_end(&mut self, begun: u32, count: Option<u32>) {
        if count == Some(begun) {
            self.unfinished -= 1;
        }
    }

    /// A connection is over: its outcome is stored, and its slot is free for another.
    pub(crate) fn release(&mut self, slot: u32) {
        self.memory.on_over(self.now, slot, &self.connections);
        if self.is_watched {
            self.note_release(slot);
        }
        self.connections.release(slot);
        self.timers.cancel(2 * slot);
        self.timers.cancel(2 * slot + 1);
    }
}
