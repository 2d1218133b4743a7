//! A simulation before its first event: routes and links.

use firstflight_path::{Holding, Link, Meter, Ring, SpecError};
use firstflight_tcp::Segment;

use super::{DirectedLink, NOTHING, Simulation};
use crate::{
    PlanError,
    connection::Arena,
    memory::LearnedWindows,
    packet::OptionTable,
    plan::Plan,
    population::Path,
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

impl<'p> Simulation<'p> {
    /// All parts put together, at rest; packets may travel between these pairs of hosts.
    pub(crate) fn new(
        plan: &'p Plan,
        seed: u64,
        replicate: u32,
        topology: &Topology,
        pairs: &[(u32, u32)],
    ) -> Result<Simulation<'p>, PlanError> {
        if topology.links().len() > MOST_LINKS {
            return Err(misfit!(
                "the network has {} links; at most {MOST_LINKS} can be simulated",
                topology.links().len()
            ));
        }
        // A population keeps nothing of its links.
        let metered = if plan.population.is_some() { 0 } else { plan.duration_ns };
        let meter_interval = plan.meter_interval_ns.unwrap_or(plan.duration_ns);
        let rows = metered.div_ceil(meter_interval).saturating_mul(topology.links().len() as u64);
        if rows > MOST_METER_ROWS {
            return Err(misfit!(
                "meter_interval_ns is {meter_interval}: {rows} intervals of all links are more than {MOST_METER_ROWS}, \
                 so give a longer one"
            ));
        }
        let routes = Routes::new(topology, pairs.iter().copied())?;
        let meter = Meter::new(metered, meter_interval);
        let mut links: Vec<DirectedLink> = Vec::with_capacity(topology.links().len());
        let mut departing = Vec::new();
        for (index, (name, spec)) in topology.links().iter().enumerate() {
            let named = PlanError::within(format!("link {name:?}"));
            let queue_stream = Stream::new(seed, replicate, Purpose::Queue, 0, index as u32);
            let [queue_key, link_key] = queue_stream.bits(0);
            let mut link = Link::new(spec, meter.clone(), link_key).map_err(&named)?;
            if plan.asks_for_rates() {
                link.offer_all();
            }
            let holding = Holding::new(spec, queue_key).map_err(named)?;
            let departures = (routes.sources + departing.len()) as u32;
            if holding.is_some() {
                departing.push(index as u32);
            }
            let queue_draws = Sequence::new(queue_stream);
            links.push(DirectedLink {
                link,
                queue_draws,
                reorders: spec.reorders(),
                holding,
                departures,
                departure_order: 0,
            });
        }
        for &(client, server) in pairs {
            let way = [topology.path(client, server)?, topology.path(server, client)?].concat();
            // Without this an application that never waits would do all that it ever does at one moment, for ever.
            if way.iter().all(|&link| links[link as usize].link.transit(plan.header_bytes) == 0) {
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
            handshakes: plan.applications.iter().any(|own| own.handshakes.is_some()).then(Vec::new),
            ..Records::default()
        };
        Ok(Simulation {
            plan,
            replicate,
            now: 0,
            scheduler,
            in_flight: vec![Ring::new(NOTHING); routes.sources],
            departing,
            left: Vec::new(),
            links,
            routes,
            timers: Timers::default(),
            options: OptionTable::default(),
            segment: Segment::EMPTY,
            order: 0,
            last: None,
            connections: Arena::default(),
            memory: LearnedWindows::new(plan),
            asks_for_rates: plan.asks_for_rates(),
            streams: Vec::new(),
            records,
            capture: None,
            is_watched: false,
            tap: None,
            unfinished: 0,
            stays: true,
        })
    }

    /// The beginning of time for a user of a population on this path.
    pub(crate) fn restart(&mut self, seed: u64, user: u32, path: &Path) -> Result<(), PlanError> {
        self.now = 0;
        self.order = 0;
        self.last = None;
        self.unfinished = 0;
        self.scheduler.clear();
        self.in_flight.iter_mut().for_each(Ring::clear);
        self.timers.clear();
        self.options.clear();
        self.connections.release_all();
        self.streams.clear();
        self.memory.clear();
        for (index, (directed, spec)) in self.links.iter_mut().zip([Path::down, Path::up]).enumerate() {
            let member = 2 * user + index as u32;
            let queue_stream = Stream::new(seed, self.replicate, Purpose::Queue, 0, member);
            directed.link.restart(&spec(path), || queue_stream.bits(0)[1])?;
            if self.asks_for_rates {
                directed.link.offer_all();
            }
            directed.queue_draws = Sequence::new(queue_stream);
            debug_assert!(directed.holding.is_none(), "a user's queues decide on arrival");
        }
        if self.links.iter().all(|directed| directed.link.transit(self.plan.header_bytes) == 0) {
            return Err(misfit!("the path takes no time: give it a round trip or lower rates"));
        }
        Ok(())
    }
}
