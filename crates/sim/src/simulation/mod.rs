//! The loop: take the earliest event, move a packet or wake an endpoint, record the event.

mod departure;
mod forward;
mod setup;
mod user;
mod watch;

use std::ops::Range;

use firstflight_path::{Holding, Left, Link, Nanos, Ring};
use firstflight_tcp::{Deadline, Events, Segment};

use crate::{
    application::{Client, datagram::DatagramStream},
    capture::Capture,
    connection::Arena,
    memory::LearnedWindows,
    packet::{OptionTable, Packet},
    plan::{Plan, ServerChoice},
    population::{RowHandshake, aggregate::Accounts},
    random::{Purpose, Sequence, Stream},
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

/// One replicate of a plan; of a plan with a population, the users of replicates one after the other.
pub struct Simulation<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) seed: u64,
    pub(crate) replicate: u32,
    pub(crate) now: Nanos,
    lines: Vec<DirectedLink>,
    pub(crate) routes: Routes,
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
    /// Buffer for arriving and departing segments. Between two of them only the common fields are left of the
    /// first, which the second overwrites.
    incoming: Segment,
    outgoing: Segment,
    /// Events scheduled so far: breaks ties.
    order: u64,
    /// Time and number of the last event, where assertions are on.
    last: Option<(Nanos, u64)>,
    pub(crate) connections: Arena,
    /// The data that hosts keep from their connections.
    pub(crate) memory: LearnedWindows,
    /// Some profile asks the routers on the path for a rate.
    asks_for_rates: bool,
    pub(crate) clients: Vec<Client>,
    /// Streams of datagrams.
    pub(crate) streams: Vec<DatagramStream>,
    /// Server hosts of each application.
    pub(crate) servers: Vec<Range<u32>>,
    pub(crate) records: Records,
    capture: Option<Capture>,
    tap: Option<Tap>,
    /// There is a capture or a tap.
    is_watched: bool,
    /// Somebody watches, routers have a say or some link is not plain.
    is_special: bool,
    /// Clients with a count that are not done with it.
    unfinished: u32,
    /// The run goes on to its end whatever the clients have done.
    stays: bool,
    /// Destination of transfers and pages of a population with aggregate records.
    pub(crate) accounts: Option<Box<Accounts>>,
    /// The user of a population who is being simulated.
    user: User,
}

/// State of the user who is being simulated.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    /// Size of the response that the table of paths names.
    bytes: Option<f64>,
    /// The handshake that it names.
    handshake: Option<RowHandshake>,
}

impl<'p> Simulation<'p> {
    /// Runs to the end of the plan's duration and hands over the records.
    pub fn run(mut self) -> Records {
        self.run_events();
        self.now = self.plan.duration_ns;
        self.finish()
    }

    /// Deals with events until the plan's duration is over or no event is left.
    // The one loop, with all of an event in it that is not called from elsewhere.
    #[inline(never)]
    fn run_events(&mut self) {
        while self.goes_on() && self.step() {}
    }

    /// Somebody has something to do.
    #[inline]
    fn goes_on(&self) -> bool {
        self.stays || self.unfinished > 0
    }

    /// Deals with the earliest event; false if there is none before the end of the plan's duration.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let (time, source) = self.scheduler.earliest();
        if self.timers.next() <= Deadline::at(time) {
            return self.expire(time);
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
                self.arrive(packet);
            } else {
                self.in_flight[source as usize].put_back();
                self.scheduler.set(source, Deadline::at(time));
                self.begin_with_first();
            }
        } else if self.scheduler.follow(time, source, Deadline::NEVER)
            || self.is_first(self.departing(source).departure_order)
        {
            self.check_order(self.departing(source).departure_order);
            self.depart(source);
        } else {
            self.scheduler.set(source, Deadline::at(time));
            self.begin_with_first();
        }
        true
    }

    /// Deals with the earliest timer, or with what is due on a link at the same time and was scheduled before it; `other`:
    /// when the earliest event on a link is due. False if the plan's duration is over by then.
    #[inline(never)]
    fn expire(&mut self, other: Nanos) -> bool {
        let Some(expiry) = self.timers.next().time() else { return false };
        if !self.begins_at(expiry) {
            return false;
        }
        if expiry < other {
            self.fire_timer()
        } else {
            self.begin_with_first()
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

    /// The link of a source of departures.
    fn departing(&self, source: u32) -> &DirectedLink {
        &self.lines[self.departing[source as usize - self.in_flight.len()] as usize]
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
    fn begin_with_first(&mut self) {
        let first = self.scheduler.first_scheduled(|source| self.order_of(source));
        if self.timers.next().is_due(self.now) && self.timers.next_order() < self.order_of(first) {
            self.fire_timer();
        } else if let Some(ring) = self.in_flight.get_mut(first as usize) {
            let Some(&InFlight { packet, order, .. }) = ring.pop_front() else { return };
            self.scheduler.set(first, following(ring));
            self.check_order(order);
            self.arrive(packet);
        } else {
            self.scheduler.set(first, Deadline::NEVER);
            self.check_order(self.departing(first).departure_order);
            self.depart(first);
        }
    }

    /// A packet reaches the far end of a link.
    #[inline(always)]
    fn arrive(&mut self, mut packet: Packet) {
        match self.routes.hops[packet.hop() as usize].then {
            Then::Deliver(_) => self.deliver(packet),
            _ => {
                packet.advance();
                self.forward(packet);
            }
        }
    }

    // By value: a packet whose address is not taken stays in registers, and its hop, which decides what happens, is known
    // earlier.
    #[inline(always)]
    fn deliver(&mut self, packet: Packet) {
        let (slot, side) = (packet.to() / 2, (packet.to() % 2) as usize);
        if self.is_watched {
            self.note_delivery(packet, slot, side);
        }
        let Some(connection) = self.connections.get_mut(slot) else { return self.deliver_datagram(packet) };
        if connection.generation != packet.generation() {
            return packet.discard(&mut self.options);
        }
        packet.open_into(&mut self.options, &mut self.incoming);
        connection.ends[side].handle_segment(self.now, &self.incoming);
        if self.is_watched {
            let segment = self.incoming;
            self.note_received(slot, side, &segment);
        }
        packet.strip(&mut self.incoming);
        self.react(slot, side);
    }

    /// After an event at an endpoint: notify the application, then send pending data.
    #[inline(always)]
    fn react(&mut self, slot: u32, side: usize) {
        let connection = &mut self.connections[slot];
        let generation = connection.generation;
        let events = connection.ends[side].poll_events();
        if !events.is_empty() {
            // Of most segments no application hears.
            let is_awaited = events.contains(Events::READABLE) && connection.read_all(side);
            if is_awaited || events != Events::READABLE {
                self.on_events(slot, side, events, is_awaited);
                if self.connections[slot].generation != generation {
                    return;
                }
            }
        }
        self.pump_at_once(slot, side);
    }

    /// Sends the segments that an endpoint has to send, and arms its timer.
    // Out of line but for the arrival of a segment.
    #[inline(never)]
    pub(crate) fn pump(&mut self, slot: u32, side: usize) {
        self.pump_at_once(slot, side);
    }

    #[inline(always)]
    fn pump_at_once(&mut self, slot: u32, side: usize) {
        if self.connections[slot].ends[side].may_transmit() {
            self.send(slot, side);
        }
        self.arm(slot, side);
    }

    #[inline(never)]
    fn send(&mut self, slot: u32, side: usize) {
        loop {
            let connection = &mut self.connections[slot];
            let segment = &mut self.outgoing;
            if !connection.ends[side].poll_transmit_into(self.now, segment) {
                break;
            }
            let to = 2 * slot + (1 - side) as u32;
            let hop = connection.first_hop[side];
            let packet = Packet::new(segment, to, connection.generation, hop, &mut self.options);
            self.records.counts.data_packets += u64::from(segment.payload_bytes > 0);
            if self.is_watched {
                let segment = *segment;
                self.note_sent(slot, side, &segment);
            }
            packet.strip(&mut self.outgoing);
            self.forward(packet);
        }
    }

    /// Sets an end's timer, unless it has one that expires before its deadline.
    #[inline(always)]
    fn arm(&mut self, slot: u32, side: usize) {
        let end = 2 * slot + side as u32;
        let deadline = self.connections[slot].ends[side].poll_timeout();
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

    /// Wakes a client later.
    pub(crate) fn wake_client_at(&mut self, client: u32, time: Nanos) {
        self.set_timer(time.max(self.now), Wake::Client(client));
    }

    /// Wakes the server of a connection later.
    pub(crate) fn wake_server_at(&mut self, slot: u32, time: Nanos) {
        self.set_timer(time, Wake::Server(slot));
    }

    // Most timers are of an endpoint whose deadline has moved: what the others do is out of line.
    #[inline(never)]
    fn fire_timer(&mut self) {
        self.check_order(self.timers.next_order());
        let Some(wake) = self.timers.expire() else { return };
        match wake {
            Wake::Client(client) => self.wake_client(client),
            Wake::Server(slot) => self.answer(slot),
            Wake::Stream(stream) => self.wake_stream(stream),
            Wake::Endpoint(end) => {
                let (slot, side) = (end / 2, (end % 2) as usize);
                debug_assert!(self.connections[slot].live, "the endpoints of a connection that is over have no timers");
                match self.connections[slot].ends[side].poll_timeout().time() {
                    // The deadline has moved since the timer was set.
                    Some(later) if later > self.now => self.set_timer(later, wake),
                    due => {
                        self.timers.cancel(end);
                        if due.is_some() {
                            self.time_out(slot, side);
                        }
                    }
                }
            }
        }
    }

    #[inline(never)]
    fn time_out(&mut self, slot: u32, side: usize) {
        self.connections[slot].ends[side].handle_timeout(self.now);
        self.react(slot, side);
    }

    /// Writes the rows of unfinished objects and pages.
    fn book_what_is_unfinished(&mut self) {
        for line in &mut self.lines {
            if let Some(holding) = &mut line.holding {
                holding.close(&mut line.link, self.now, |packet| packet.discard(&mut self.options));
            }
        }
        debug_assert_eq!(self.options.in_use(), self.packets_with_options(), "options without a packet");
        for slot in 0..self.connections.len() {
            if self.connections[slot].live {
                self.book_unfinished(slot);
            }
        }
        self.book_unfinished_pages();
        self.book_streams();
    }

    fn finish(mut self) -> Records {
        self.book_what_is_unfinished();
        for (index, line) in self.lines.iter().enumerate() {
            for (start, length, counts) in line.link.meter().intervals() {
                self.records.links.push(counts.row(self.replicate, index as u16, start, length));
            }
        }
        if let Some(mut capture) = self.capture {
            for slot in 0..self.connections.len() {
                if self.connections[slot].live {
                    capture.published(self.replicate, &mut self.connections[slot]);
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
