//! A replicate of a plan before its first event: hosts, routes, links, clients.

use std::ops::Range;

use firstflight_path::{Holding, Link, Meter, Ring, SpecError};
use firstflight_tcp::Segment;

use super::{DirectedLink, NOTHING, Simulation, User};
use crate::{
    PlanError,
    application::Client,
    capture::Capture,
    connection::Arena,
    memory::LearnedWindows,
    packet::OptionTable,
    plan::{Kind, Plan, ServerChoice},
    population::{arm_of_user, runs_application},
    random::{Purpose, Sequence, Stream},
    records::{NO_LINK, Records},
    scheduler::{MAX_SOURCES, Scheduler},
    timers::Timers,
    topology::{Routes, Topology},
};

/// Links that a network can have: the records number them with 16 bits.
const MOST_LINKS: usize = NO_LINK as usize;
const _: () = assert!(2 * MOST_LINKS < MAX_SOURCES);

/// Rows that the links' meters can fill: each costs about 100 bytes from the start.
const MOST_METER_ROWS: u64 = 10_000_000;

/// The hosts of clients and servers.
pub(super) struct Places {
    pub(super) clients: Vec<Client>,
    /// Server hosts of each application.
    pub(super) servers: Vec<Range<u32>>,
    /// The pairs of hosts between which packets may travel.
    pub(super) pairs: Vec<(u32, u32)>,
}

impl<'p> Simulation<'p> {
    /// Sets up a replicate. `capture` keeps every segment.
    ///
    /// # Errors
    /// A plan whose network or hosts do not fit together.
    pub fn new(plan: &'p Plan, seed: u64, replicate: u32, capture: bool) -> Result<Simulation<'p>, PlanError> {
        let topology = Topology::new(plan.network()?, seed, replicate)?;
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for (application, spec) in plan.applications.iter().enumerate() {
            let hosts = |selection: &Option<String>| {
                let found = topology.select(selection.as_deref().unwrap_or_default());
                found.map_err(PlanError::within(format_args!("application {:?}", spec.name)))
            };
            let client_hosts = hosts(&spec.client_hosts)?;
            servers.push(hosts(&spec.server_hosts)?);
            let runs = |&index: &u32| runs_application(plan, seed, replicate, application, index);
            clients.extend((0..spec.clients).filter(runs).map(|index| {
                let host = client_hosts.start + index % client_hosts.len() as u32;
                Client::new(application as u16, index, host, arm_of_user(plan, seed, replicate, index))
            }));
        }
        if topology.links().len() > MOST_LINKS {
            return Err(misfit!(
                "the network has {} links; at most {MOST_LINKS} can be simulated",
                topology.links().len()
            ));
        }
        let meter_interval = plan.meter_interval_ns.unwrap_or(plan.duration_ns);
        let rows = plan.duration_ns.div_ceil(meter_interval).saturating_mul(topology.links().len() as u64);
        if rows > MOST_METER_ROWS {
            return Err(misfit!(
                "meter_interval_ns is {meter_interval}: {rows} intervals of all links are more than {MOST_METER_ROWS}, \
                 so give a longer one"
            ));
        }
        let pairs = host_pairs(plan, &clients, &servers);
        let places = Places { clients, servers, pairs };
        let mut simulation = Simulation::assemble(plan, seed, replicate, &topology, places)?;
        (simulation.capture, simulation.is_watched) = (capture.then(Capture::default), capture);
        simulation.is_special |= capture;
        simulation.start_clients();
        Ok(simulation)
    }

    /// All parts put together, at rest.
    pub(super) fn assemble(
        plan: &'p Plan,
        seed: u64,
        replicate: u32,
        topology: &Topology,
        Places { clients, servers, pairs }: Places,
    ) -> Result<Simulation<'p>, PlanError> {
        let routes = Routes::new(topology, pairs.iter().copied())?;
        // A population keeps nothing of its links.
        let metered = if plan.population.is_some() { 0 } else { plan.duration_ns };
        let meter = Meter::new(metered, plan.meter_interval_ns.unwrap_or(plan.duration_ns));
        let mut lines: Vec<DirectedLink> = Vec::with_capacity(topology.links().len());
        let mut departing = Vec::new();
        for (index, (name, spec)) in topology.links().iter().enumerate() {
            let named = PlanError::within(format!("link {name:?}"));
            let queue_stream = Stream::new(seed, replicate, Purpose::Queue, 0, index as u32);
            let [queue_key, link_key] = queue_stream.bits(0);
            let link = Link::new(spec, meter.clone(), link_key).map_err(&named)?;
            let holding = Holding::new(spec, queue_key).map_err(named)?;
            let departures = (routes.sources + departing.len()) as u32;
            if holding.is_some() {
                departing.push(index as u32);
            }
            let queue_draws = Sequence::new(queue_stream);
            lines.push(DirectedLink {
                link,
                queue_draws,
                reorders: spec.reorders(),
                holding,
                departures,
                departure_order: 0,
            });
        }
        for &(client, server) in &pairs {
            let links = [topology.path(client, server)?, topology.path(server, client)?].concat();
            // Without this an application that never waits would do all that it ever does at one moment, for ever.
            if links.iter().all(|&link| lines[link as usize].link.transit(plan.header_bytes) == 0) {
                return Err(misfit!(
                    "from {} to {} and back takes no time: give one of the links between them a delay or a rate",
                    topology.host_name(client),
                    topology.host_name(server)
                ));
            }
        }
        let scheduler = Scheduler::new(routes.sources + departing.len());
        if plan.duration_ns > scheduler.end_of_time() {
            let right = format!("in this network at most {} can be simulated", scheduler.end_of_time());
            return Err(SpecError::new("duration_ns", plan.duration_ns, right).into());
        }
        let records = Records {
            link_names: topology.links().iter().map(|(name, _)| name.clone()).collect(),
            application_names: plan.recorded_applications().map(|(_, name, _)| name).collect(),
            // One row per client: many clients transfer one file. Each growth of the vector would leave a freed block in
            // the heap.
            transfers: Vec::with_capacity(clients.len().min(1 << 20)),
            handshakes: plan.applications.iter().any(|own| own.handshakes.is_some()).then(Vec::new),
            ..Records::default()
        };
        Ok(Simulation {
            plan,
            seed,
            replicate,
            now: 0,
            scheduler,
            in_flight: vec![Ring::new(NOTHING); routes.sources],
            departing,
            left: Vec::new(),
            is_special: plan.asks_for_rates() || !lines.iter().all(|line| line.link.is_plain()),
            lines,
            routes,
            timers: Timers::default(),
            options: OptionTable::default(),
            incoming: Segment::EMPTY,
            outgoing: Segment::EMPTY,
            order: 0,
            last: None,
            connections: Arena::default(),
            memory: LearnedWindows::new(plan),
            asks_for_rates: plan.asks_for_rates(),
            clients,
            streams: Vec::new(),
            servers,
            records,
            capture: None,
            is_watched: false,
            tap: None,
            unfinished: 0,
            stays: true,
            accounts: None,
            user: User::default(),
        })
    }

    /// Sets the time at which each client starts.
    pub(super) fn start_clients(&mut self) {
        for client in 0..self.clients.len() as u32 {
            let spec = &self.plan.applications[usize::from(self.clients[client as usize].application)];
            self.unfinished += u32::from(spec.kind.count().is_some());
            let start = self.start_of(client);
            self.wake_client_at(client, start);
        }
    }
}

/// The pairs of hosts between which packets may travel.
fn host_pairs(plan: &Plan, clients: &[Client], servers: &[Range<u32>]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    let mut random = Vec::new();
    for client in clients {
        let hosts = &servers[usize::from(client.application)];
        let spec = &plan.applications[usize::from(client.application)];
        match spec.server_choice {
            _ if matches!(spec.kind, Kind::WebPage { hosts: 2.., .. }) => {
                random.push((client.application, client.host))
            }
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
