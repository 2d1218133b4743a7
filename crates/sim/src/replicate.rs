//! One replicate of a plan with a network: its clients on their hosts, run to the end or watched at a place.

use std::ops::Range;

use crate::{
    PlanError,
    application::{Client, Clients},
    plan::{Kind, Plan, ServerChoice},
    population::{arm_of_user, runs_application},
    records::Records,
    simulation::Simulation,
    tap::{Place, Tap, Watched},
    topology::Topology,
};

/// Runs a replicate to the end of the plan's duration. `capture` keeps every segment.
pub(crate) fn run(plan: &Plan, seed: u64, replicate: u32, capture: bool) -> Result<Records, PlanError> {
    let topology = Topology::new(plan.network()?, seed, replicate)?;
    let (mut simulation, mut clients) = set_up(plan, seed, replicate, &topology)?;
    if capture {
        simulation.capture();
    }
    clients.start(&mut simulation);
    simulation.run(&mut clients);
    simulation.now = plan.duration_ns;
    simulation.close_queues();
    clients.book_unfinished(&mut simulation);
    Ok(simulation.into_records())
}

/// Runs a replicate and hands over the packets that pass a place.
///
/// # Errors
/// A plan whose network or hosts do not fit together; no link of that name; a client's or server's place where no
/// connection begins.
pub fn watch(plan: &Plan, seed: u64, replicate: u32, place: &Place) -> Result<Watched, PlanError> {
    let topology = Topology::new(plan.network()?, seed, replicate)?;
    let tap = match place {
        Place::Link(name) => Tap::at_link(name, &topology)?,
        Place::Client | Place::Server => {
            let (mut simulation, mut clients) = set_up(plan, seed, replicate, &topology)?;
            clients.start(&mut simulation);
            let Some(hosts) = simulation.first_hosts(&mut clients, 0) else {
                let name = &plan.applications[0].name;
                return Err(misfit!("application {name:?} sends nothing before the end of the run"));
            };
            Tap::at_host(hosts[usize::from(*place == Place::Server)], &topology)
        }
    };
    let (mut simulation, mut clients) = set_up(plan, seed, replicate, &topology)?;
    simulation.tap(tap);
    clients.start(&mut simulation);
    simulation.run(&mut clients);
    Ok(simulation.into_watched())
}

/// A replicate before its first event.
fn set_up<'p>(
    plan: &'p Plan,
    seed: u64,
    replicate: u32,
    topology: &Topology,
) -> Result<(Simulation<'p>, Clients<'p>), PlanError> {
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
    let pairs = host_pairs(plan, &clients, &servers);
    let mut simulation = Simulation::new(plan, seed, replicate, topology, &pairs)?;
    // One row per client: many clients transfer one file. Each growth of the vector would leave a freed block in the
    // heap.
    simulation.records.transfers.reserve_exact(clients.len().min(1 << 20));
    Ok((simulation, Clients::new(plan, seed, replicate, clients, servers)))
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
