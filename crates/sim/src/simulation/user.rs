//! A user of a population: the same simulation from its beginning, with another path, and nothing allocated again.

use std::ops::Range;

use firstflight_path::{
    LinkSpec, Ring,
    queue::{DropTailSpec, Limit, QueueSpec},
};

use super::{Simulation, setup::Places};
use crate::{
    NO_REPLICATES, PlanError,
    application::Client,
    plan::{LinkPair, Network, Plan},
    population::{Keep, Path, Paths, PopulationSpec, RowHandshake, aggregate::Accounts, arm_of_user, runs_application},
    random::{Purpose, Sequence, Stream},
    records::Records,
    topology::Topology,
};

/// Node of the server.
const SERVER_HOST: u32 = 0;
/// Node of the user.
const USER_HOST: u32 = 1;

/// Users whose paths are drawn together, so that the processor overlaps the draws of different users, and does not load
/// the code that draws and the code that simulates for each user again.
const BATCH: u32 = 64;

impl<'p> Simulation<'p> {
    /// Simulates a range of replicates of a plan with a population.
    ///
    /// # Errors
    /// A law that gave a value that no path can have; a capture, which would be of too many connections; sums that no
    /// column can hold.
    pub(crate) fn users(
        plan: &'p Plan,
        population: &PopulationSpec,
        seed: u64,
        replicates: Range<u32>,
        capture: bool,
    ) -> Result<Records, PlanError> {
        if capture {
            return Err(misfit!(
                "the segments of a population are not captured: take one of its users as a network of its own"
            ));
        }
        if replicates.is_empty() {
            return Err(misfit!("{}", NO_REPLICATES));
        }
        let paths = Paths::new(population, plan.largest_packet_bytes())?;
        let mut simulation = Simulation::of_users(plan, population, seed)?;
        for replicate in replicates {
            simulation.replicate = replicate;
            simulation.connections.restart_numbers();
            for first in (0..population.users).step_by(BATCH as usize) {
                let batch = first..population.users.min(first.saturating_add(BATCH));
                let drawn = paths.of(seed, replicate, batch.clone())?;
                for (user, path) in batch.zip(&drawn) {
                    simulation.simulate_user(user, path)?;
                }
            }
            simulation.end_replicate()?;
        }
        Ok(simulation.records)
    }

    /// A simulation for the users of a plan with a population, one after the other.
    ///
    /// # Errors
    /// Parts that do not fit together.
    fn of_users(plan: &'p Plan, population: &PopulationSpec, seed: u64) -> Result<Simulation<'p>, PlanError> {
        let topology = Topology::new(&Network::Chain { links: vec![PLACEHOLDER] }, seed, 0)?;
        let places = Places {
            clients: Vec::with_capacity(plan.applications.len()),
            servers: vec![SERVER_HOST..SERVER_HOST + 1; plan.applications.len()],
            pairs: vec![(USER_HOST, SERVER_HOST)],
        };
        let mut simulation = Simulation::assemble(plan, seed, 0, &topology, places)?;
        simulation.records.link_names.clear();
        if population.keep == Keep::Aggregates {
            simulation.accounts = Some(Box::new(Accounts::new(plan, &population.buckets)));
            simulation.records.handshakes = None;
            simulation.records.aggregates = Some(Vec::new());
            simulation.records.histograms = Some(Vec::new());
        } else {
            simulation.records.users = Some(Vec::new());
        }
        // Without a count users stay to the end.
        simulation.stays = plan.applications.iter().all(|application| application.kind.count().is_none());
        Ok(simulation)
    }

    /// The users of a replicate have all been simulated.
    ///
    /// # Errors
    /// Sums that no column can hold.
    fn end_replicate(&mut self) -> Result<(), PlanError> {
        let Records { aggregates, histograms, .. } = &mut self.records;
        match (&mut self.accounts, aggregates, histograms) {
            (Some(accounts), Some(aggregates), Some(histograms)) => {
                accounts.close(self.replicate, aggregates, histograms)
            }
            _ => Ok(()),
        }
    }

    /// Simulates a user from time 0 until every application with a count is done, or to the end of the plan's duration.
    ///
    /// # Errors
    /// A path that cannot be simulated.
    fn simulate_user(&mut self, user: u32, path: &Path) -> Result<(), PlanError> {
        self.restart(user, path)
            .map_err(PlanError::within(format_args!("user {user} of replicate {}", self.replicate)))?;
        if let Some(accounts) = &mut self.accounts {
            accounts.begin_user(path);
        }
        self.run_events();
        self.book_what_is_unfinished();
        if let Some(users) = &mut self.records.users {
            users.push(path.row(self.replicate, user));
        }
        Ok(())
    }

    /// The beginning of time for a user.
    fn restart(&mut self, user: u32, path: &Path) -> Result<(), PlanError> {
        self.now = 0;
        self.order = 0;
        self.last = None;
        self.unfinished = 0;
        self.scheduler.clear();
        self.in_flight.iter_mut().for_each(Ring::clear);
        self.timers.clear();
        self.options.clear();
        self.connections.release_all();
        self.memory.clear();
        for (index, (line, spec)) in self.lines.iter_mut().zip([Path::down, Path::up]).enumerate() {
            let member = 2 * user + index as u32;
            let queue_stream = Stream::new(self.seed, self.replicate, Purpose::Queue, 0, member);
            line.link.restart(&spec(path), || queue_stream.bits(0)[1])?;
            line.queue_draws = Sequence::new(queue_stream);
            debug_assert!(line.holding.is_none(), "a user's queues decide on arrival");
        }
        if self.lines.iter().all(|line| line.link.transit(self.plan.header_bytes) == 0) {
            return Err(misfit!("the path takes no time: give it a round trip or lower rates"));
        }
        self.user.bytes = path.bytes;
        self.user.handshake = path.handshake;
        self.clients.clear();
        self.streams.clear();
        let arm = arm_of_user(self.plan, self.seed, self.replicate, user);
        for application in 0..self.plan.applications.len() {
            if runs_application(self.plan, self.seed, self.replicate, application, user) {
                self.clients.push(Client::new(application as u16, user, USER_HOST, arm));
            }
        }
        self.start_clients();
        Ok(())
    }

    /// Size of the response that the table of paths names for this user, in bytes.
    pub(crate) fn bytes_in_row(&self) -> Option<f64> {
        self.user.bytes
    }

    /// The handshake that the table of paths names for this user.
    pub(crate) fn handshake_in_row(&self) -> Option<RowHandshake> {
        self.user.handshake
    }

    /// A client ended the file, page or request that was its `begun`-th, of `count` that it will begin.
    pub(crate) fn note_end(&mut self, begun: u32, count: Option<u32>) {
        if count == Some(begun) {
            self.unfinished -= 1;
        }
    }
}

/// A link until a user's takes its place.
const NO_LINE: LinkSpec = LinkSpec::plain(
    None,
    1,
    QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(1), counts_packet_in_service: false }),
);

/// A path until a user's takes its place.
const PLACEHOLDER: LinkPair = LinkPair { forward: NO_LINE, reverse: NO_LINE };
