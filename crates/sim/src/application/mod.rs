//! Applications: the requests of clients and the answers of servers.
//!
//! A server is the same for all: it reads requests, answers each with the bytes that the client's object names, and
//! closes after the client has signaled the end of its requests. The clients differ.

mod answers;
mod browser;
mod dns;
mod files;
mod handshake;
mod interleave;
mod streams;
mod web_page;

use std::ops::Range;

use firstflight_path::Nanos;
use firstflight_tcp::{Deadline, Events};

use crate::{
    PlanError,
    connection::{CLIENT, Object, Opening, Pair, SERVER},
    distribution::Distribution,
    packet::Datagram,
    plan::{Application, ArmsOf, Kind, LARGEST_BYTES, Plan, ServerChoice},
    population::{Buckets, Path, RowHandshake, aggregate::Accounts, arm_of, arm_of_user, runs_application},
    random::{Purpose, Stream},
    records::{Records, SenderCounts},
    simulation::{Applications, Simulation},
    timers::Wake,
};
use browser::Browser;
use dns::Resolver;
use web_page::Page;

/// The clients of all applications of a replicate.
pub(crate) struct Clients<'p> {
    plan: &'p Plan,
    seed: u64,
    pub(crate) replicate: u32,
    clients: Vec<Client>,
    /// Server hosts of each application.
    servers: Vec<Range<u32>>,
    /// Destination of transfers and pages of a population with aggregate records.
    accounts: Option<Box<Accounts>>,
    /// Size of the response that the table of paths names for the user who is being simulated.
    row_bytes: Option<f64>,
    row_handshake: Option<RowHandshake>,
}

#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) application: u16,
    /// Among the application's clients.
    pub(crate) index: u32,
    pub(crate) host: u32,
    /// Its arm, counted from 1, where users are shared out; 0 is none.
    arm: u8,
    /// Files, pages or requests begun.
    begun: u32,
    opened: u32,
    activity: Activity,
    /// Connections that it keeps for more than one object.
    browser: Option<Box<Browser>>,
    resolver: Option<Box<Resolver>>,
}

/// The current activity of a client.
#[derive(Debug, Default)]
enum Activity {
    /// Nothing, or a file of its own connection.
    #[default]
    None,
    // In a box: most clients of many never have one.
    Page(Box<Page>),
    /// Requests on this connection.
    Connected(u32),
    /// Files that arrive at any time; the number of those that have ended.
    Ended(u32),
}

impl Client {
    pub(crate) fn new(application: u16, index: u32, host: u32, arm: u8) -> Client {
        Client { application, index, host, arm, ..Client::default() }
    }

    /// Counts the next file, page or request; none once `count` are begun.
    fn begin(&mut self, count: Option<u32>) -> Option<u32> {
        let number = self.begun;
        if count.is_some_and(|count| number >= count) {
            return None;
        }
        self.begun += 1;
        Some(number)
    }
}

#[derive(Clone, Copy, Debug)]
struct Ask {
    page: u32,
    number: u32,
    request_bytes: u64,
    response_bytes: u64,
}

/// An object that has arrived, or never will, for the client that asked.
#[derive(Clone, Copy, Debug)]
struct Done {
    client: u32,
    /// The slot of its connection, current or former: a failed one has left the slot. None: its host's name was not
    /// found.
    slot: Option<u32>,
    object: Object,
    booked: SenderCounts,
    connected_at: Option<Nanos>,
    completed: bool,
}

/// Draws of a client that loads pages, behind those of its pages and objects.
const BEHIND_PAGES: u64 = 1 << 47;

/// Seconds as nanoseconds; a value beyond the clock's range is the end of time.
fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// A drawn number of bytes: whole, at least one. The tail of an unbounded law can go beyond all bounds, hence the cut.
fn bytes(value: f64) -> u64 {
    (value.round() as u64).clamp(1, LARGEST_BYTES)
}

impl Applications for Clients<'_> {
    /// Handles a reset, a handshake's end, data that was awaited and the peer's end, in this order.
    fn on_events(&mut self, sim: &mut Simulation<'_>, slot: u32, side: usize, events: Events, is_awaited: bool) {
        let now = sim.now;
        if events.contains(Events::RESET) || events.contains(Events::TIMED_OUT) {
            return self.fail(sim, slot);
        }
        let connection = &mut sim.connections[slot];
        let generation = connection.generation;
        if side == CLIENT && events.contains(Events::CONNECTED) {
            connection.connected_at = Deadline::at(now);
        }
        if events.contains(Events::CONNECTED) && connection.exchange.is_some() {
            self.advance_handshake(sim, slot);
            self.await_more(sim, slot, side);
        }
        if is_awaited {
            self.on_awaited(sim, slot, side);
            if sim.connections[slot].generation != generation {
                return;
            }
        }
        if events.contains(Events::PEER_CLOSED) {
            sim.connections[slot].ends[side].close(now);
        }
        if sim.connections[slot].is_finished() {
            sim.release(slot);
        }
    }

    fn on_datagram(&mut self, sim: &mut Simulation<'_>, datagram: &Datagram) {
        let client = sim.streams[datagram.stream as usize].client;
        self.dns_datagram(sim, client, datagram);
    }

    fn wake(&mut self, sim: &mut Simulation<'_>, wake: Wake) {
        match wake {
            Wake::Client(client) => self.wake_client(sim, client),
            Wake::Server(slot) => self.answer(sim, slot),
            Wake::Stream(stream) => self.wake_stream(sim, stream),
            Wake::Endpoint(_) => debug_assert!(false, "an endpoint's timer is the simulation's"),
        }
    }
}

impl<'p> Clients<'p> {
    /// All clients at rest, of applications with these server hosts.
    pub(crate) fn new(
        plan: &'p Plan,
        seed: u64,
        replicate: u32,
        clients: Vec<Client>,
        servers: Vec<Range<u32>>,
    ) -> Clients<'p> {
        Clients { plan, seed, replicate, clients, servers, accounts: None, row_bytes: None, row_handshake: None }
    }

    /// Transfers and pages go into the sums of these buckets instead of into rows.
    pub(crate) fn keep_aggregates(&mut self, buckets: &Buckets) {
        self.accounts = Some(Box::new(Accounts::new(self.plan, buckets)));
    }

    /// From now on the clients are those of this user of a population, at this host.
    pub(crate) fn begin_user(&mut self, user: u32, host: u32, path: &Path) {
        let &mut Clients { plan, seed, replicate, .. } = self;
        (self.row_bytes, self.row_handshake) = (path.bytes, path.handshake);
        let arm = arm_of_user(plan, seed, replicate, user);
        let applications = (0..plan.applications.len())
            .filter(|&application| runs_application(plan, seed, replicate, application, user));
        self.clients.clear();
        self.clients.extend(applications.map(|application| Client::new(application as u16, user, host, arm)));
        if let Some(accounts) = &mut self.accounts {
            accounts.begin_user(path);
        }
    }

    /// The replicate of a population is over: its sums become rows.
    ///
    /// # Errors
    /// Sums that no column can hold.
    pub(crate) fn close_accounts(&mut self, records: &mut Records) -> Result<(), PlanError> {
        let Records { aggregates, histograms, .. } = records;
        match (&mut self.accounts, aggregates, histograms) {
            (Some(accounts), Some(aggregates), Some(histograms)) => {
                accounts.close(self.replicate, aggregates, histograms)
            }
            _ => Ok(()),
        }
    }

    /// Sets the time at which each client starts.
    pub(crate) fn start(&self, sim: &mut Simulation<'_>) {
        for client in 0..self.clients.len() as u32 {
            sim.unfinished += u32::from(self.spec(client).kind.count().is_some());
            sim.wake_client_at(client, self.start_of(client));
        }
    }

    /// At the end of the run: the rows of all that is unfinished.
    pub(crate) fn book_unfinished(&mut self, sim: &mut Simulation<'_>) {
        for slot in 0..sim.connections.len() {
            if sim.connections[slot].live {
                self.book_unfinished_objects(sim, slot);
            }
        }
        self.book_unfinished_pages(sim);
        self.book_streams(sim);
    }

    /// A stream of draws of a client.
    fn stream(&self, client: u32, purpose: Purpose) -> Stream {
        let client = &self.clients[client as usize];
        Stream::new(self.seed, self.replicate, purpose, u32::from(client.application), client.index)
    }

    /// The host of the server that a client asks; `index` numbers its connections.
    fn server_host(&self, client: u32, index: u64) -> u32 {
        let state = &self.clients[client as usize];
        let hosts = &self.servers[usize::from(state.application)];
        let count = hosts.len() as u32;
        match self.spec(client).server_choice {
            ServerChoice::ByClient => hosts.start + state.index % count,
            ServerChoice::Random => {
                let [draw, _] = self.stream(client, Purpose::Server).bits(index);
                // The high bits of draw * count: unbiased enough for a handful of hosts, and without a loop.
                hosts.start + ((u128::from(draw) * u128::from(count)) >> 64) as u32
            }
        }
    }

    fn spec(&self, client: u32) -> &'p Application {
        &self.plan.applications[usize::from(self.clients[client as usize].application)]
    }

    fn draw(&self, client: u32, law: &Distribution, purpose: Purpose, index: u64) -> f64 {
        law.draw(&self.stream(client, purpose), index)
    }

    /// When a client starts.
    fn start_of(&self, client: u32) -> Nanos {
        let start = nanos(self.draw(client, &self.spec(client).start, Purpose::Start, 0));
        match &self.spec(client).kind {
            // Before the first page a time passes as well, or all clients would begin at one moment.
            Kind::WebPage { think, think_from_start: true, .. } => {
                start.saturating_add(nanos(self.draw(client, think, Purpose::Think, BEHIND_PAGES)))
            }
            _ => start,
        }
    }

    /// A client's time has come: it begins its next file, page or request.
    #[inline(never)]
    fn wake_client(&mut self, sim: &mut Simulation<'_>, client: u32) {
        match &self.spec(client).kind {
            Kind::FileTransfer { .. } => self.begin_file(sim, client),
            Kind::WebPage { .. } => self.begin_page(sim, client),
            Kind::RequestResponse { .. } => self.begin_request(sim, client),
            Kind::ConstantRate(_) | Kind::Game(_) | Kind::Voice(_) => self.begin_streams(sim, client),
            Kind::Dns(_) => self.begin_lookup(sim, client),
            Kind::Video { .. } => self.begin_chunk(sim, client),
            Kind::Arrivals { .. } => self.begin_arrival(sim, client),
        }
    }

    /// Opens a connection to the server host that `server_index` draws, and asks for a first object.
    fn open(
        &mut self,
        sim: &mut Simulation<'_>,
        client: u32,
        server_index: u64,
        upload: bool,
        close_when_served: bool,
        ask: Ask,
    ) -> u32 {
        let server = self.server_host(client, server_index);
        let slot = self.connect(sim, client, server, upload);
        self.ask(sim, slot, ask, close_when_served);
        slot
    }

    /// Opens a connection to a server host.
    fn connect(&mut self, sim: &mut Simulation<'_>, client: u32, server: u32, upload: bool) -> u32 {
        let spec = self.spec(client);
        let state = &mut self.clients[client as usize];
        let (host, opened, arm) = (state.host, state.opened, state.arm);
        state.opened += 1;
        let arm = match self.plan.arms_of {
            ArmsOf::Users => arm,
            ArmsOf::Connections => arm_of(self.plan, &self.stream(client, Purpose::Arm), u64::from(opened)),
        };
        let [isns, loss_key] = self.stream(client, Purpose::InitialSequence).bits(u64::from(opened));
        let opening = Opening {
            client,
            pair: Pair { application: self.clients[client as usize].application, hosts: [host, server] },
            profiles: spec.ends(arm),
            arm,
            initial_sequences: [isns as u32, (isns >> 32) as u32],
            loss_key,
            upload,
        };
        let slot = sim.open(&opening);
        sim.connections[slot].exchange = self.draw_handshake(client, opened);
        sim.connections[slot].ends[CLIENT].connect(sim.now);
        slot
    }

    /// Asks for an object on a connection. After the last one the server closes.
    fn ask(&mut self, sim: &mut Simulation<'_>, slot: u32, ask: Ask, close_when_served: bool) {
        let now = sim.now;
        let header_bytes = u64::from(self.spec(sim.connections[slot].client).response_header_bytes);
        let flights = self.flights_before_request(sim, slot);
        let is_secured = sim.connections[slot].exchange.is_some();
        let handshakes = self.handshakes(sim.connections[slot].client).filter(|_| is_secured);
        let overhead = |payload| handshakes.map_or(0, |handshakes| handshakes.overhead(payload));
        let connection = &mut sim.connections[slot];
        let (request_start, response_start) =
            connection.objects.last().map_or((0, 0), |last| (last.request_end, last.response_end));
        let upload = connection.upload;
        let payload = ask.response_bytes + if upload { 0 } else { header_bytes };
        let request_bytes = ask.request_bytes + overhead(ask.request_bytes);
        let response_bytes = payload + overhead(payload);
        connection.forget_done();
        let file_payload = if upload { ask.request_bytes } else { payload };
        let object = Object {
            request_end: request_start + flights[CLIENT] + request_bytes,
            response_end: response_start.saturating_add(flights[SERVER] + response_bytes),
            bytes: if upload { request_bytes } else { response_bytes },
            page: ask.page,
            number: ask.number,
            asked_at: now,
            first_byte_at: None,
            overhead_bytes: overhead(file_payload),
            usable_bytes: handshakes.map_or(1, |handshakes| handshakes.first_record(file_payload)),
            usable_at: Deadline::NEVER,
        };
        let object = self.interleaved(sim, slot, object, flights[CLIENT] + request_bytes);
        let connection = &mut sim.connections[slot];
        if connection.objects.capacity() == 0 {
            // Most connections carry one at a time, and a vector begins with room for four.
            connection.objects.reserve_exact(1);
        }
        connection.objects.push(object);
        connection.close_when_served = close_when_served;
        connection.awaited = [0; 2];
        self.write_request(sim, slot, request_bytes);
        sim.pump(slot, CLIENT);
    }

    /// Asks for a client's next object on the one connection that it has, opened if need be.
    fn ask_in_turn(&mut self, sim: &mut Simulation<'_>, client: u32, ask: Ask, count: Option<u32>) {
        let last = count.is_some_and(|count| ask.number + 1 == count);
        if let Activity::Connected(slot) = self.clients[client as usize].activity {
            return self.ask(sim, slot, ask, last);
        }
        let slot = self.open(sim, client, u64::from(ask.number), false, last, ask);
        self.clients[client as usize].activity = Activity::Connected(slot);
    }

    /// An endpoint has received the data that its application waited for.
    #[inline(never)]
    fn on_awaited(&mut self, sim: &mut Simulation<'_>, slot: u32, side: usize) {
        if sim.connections[slot].exchange.is_some() {
            self.advance_handshake(sim, slot);
        }
        if side == SERVER {
            self.serve_in_time(sim, slot);
        }
        if side != sim.connections[slot].data_sender() {
            self.progress(sim, slot);
        }
        self.await_more(sim, slot, side);
        if side == CLIENT {
            self.await_turns(sim, slot);
        }
    }

    fn object_done(&mut self, sim: &mut Simulation<'_>, done: Done) {
        let client = done.client;
        match &self.spec(client).kind {
            Kind::FileTransfer { .. } => self.file_done(sim, client),
            Kind::WebPage { .. } => self.page_object_done(sim, client, done),
            Kind::RequestResponse { .. } => self.response_done(sim, client, done),
            Kind::ConstantRate(_) | Kind::Dns(_) | Kind::Game(_) | Kind::Voice(_) => {}
            Kind::Video { .. } => self.chunk_done(sim, client, done),
            Kind::Arrivals { .. } => self.arrival_done(sim, client),
        }
    }
}
