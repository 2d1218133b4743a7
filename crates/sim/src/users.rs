//! The users of a population: for each the same simulation from its beginning, with another path, and nothing allocated again.

use std::ops::Range;

use firstflight_path::{
    LinkSpec,
    queue::{DropTailSpec, Limit, QueueSpec},
};

use crate::{
    NO_REPLICATES, PlanError,
    application::Clients,
    plan::{LinkPair, Network, Plan},
    population::{Keep, Path, Paths, PopulationSpec},
    records::Records,
    simulation::Simulation,
    topology::Topology,
};

/// Node of the server.
const SERVER_HOST: u32 = 0;
/// Node of the user.
const USER_HOST: u32 = 1;

/// Users whose paths are drawn together, so that the processor overlaps the draws of different users, and does not load
/// the code that draws and the code that simulates for each user again.
const BATCH: u32 = 64;

/// Simulates a range of replicates of a plan with a population.
///
/// # Errors
/// A law that gave a value that no path can have; a capture, which would be of too many connections; sums that no
/// column can hold.
pub(crate) fn run(
    plan: &Plan,
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
    let (mut simulation, mut clients) = set_up(plan, population, seed)?;
    for replicate in replicates {
        simulation.replicate = replicate;
        clients.replicate = replicate;
        // A connection's number is that in its replicate: the records are the same whichever replicates ran before.
        simulation.connections.opened = 0;
        for first in (0..population.users).step_by(BATCH as usize) {
            let batch = first..population.users.min(first.saturating_add(BATCH));
            let drawn = paths.of(seed, replicate, batch.clone())?;
            for (user, path) in batch.zip(&drawn) {
                run_user(&mut simulation, &mut clients, seed, user, path)?;
            }
        }
        clients.close_accounts(&mut simulation.records)?;
    }
    Ok(simulation.records)
}

/// A simulation for the users of a plan with a population, one after the other.
fn set_up<'p>(
    plan: &'p Plan,
    population: &PopulationSpec,
    seed: u64,
) -> Result<(Simulation<'p>, Clients<'p>), PlanError> {
    let topology = Topology::new(&Network::Chain { links: vec![PLACEHOLDER] }, seed, 0)?;
    let mut simulation = Simulation::new(plan, seed, 0, &topology, &[(USER_HOST, SERVER_HOST)])?;
    let servers = vec![SERVER_HOST..SERVER_HOST + 1; plan.applications.len()];
    let mut clients = Clients::new(plan, seed, 0, Vec::with_capacity(plan.applications.len()), servers);
    let records = &mut simulation.records;
    records.link_names.clear();
    if population.keep == Keep::Aggregates {
        clients.keep_aggregates(&population.buckets);
        records.handshakes = None;
        records.aggregates = Some(Vec::new());
        records.histograms = Some(Vec::new());
    } else {
        records.users = Some(Vec::new());
    }
    // Without a count users stay to the end.
    simulation.stays = plan.applications.iter().all(|application| application.kind.count().is_none());
    Ok((simulation, clients))
}

/// Simulates a user from time 0 until every application with a count is done, or to the end of the plan's duration.
fn run_user(
    simulation: &mut Simulation<'_>,
    clients: &mut Clients<'_>,
    seed: u64,
    user: u32,
    path: &Path,
) -> Result<(), PlanError> {
    let replicate = simulation.replicate;
    simulation
        .restart(seed, user, path)
        .map_err(PlanError::within(format_args!("user {user} of replicate {replicate}")))?;
    clients.begin_user(user, USER_HOST, path);
    clients.start(simulation);
    simulation.run(clients);
    simulation.close_queues();
    clients.book_unfinished(simulation);
    if let Some(users) = &mut simulation.records.users {
        users.push(path.row(replicate, user));
    }
    Ok(())
}

/// A link until a user's takes its place.
const NO_LINE: LinkSpec = LinkSpec::plain(
    None,
    1,
    QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(1), counts_packet_in_service: false }),
);

/// A path until a user's takes its place.
const PLACEHOLDER: LinkPair = LinkPair { forward: NO_LINE, reverse: NO_LINE };
