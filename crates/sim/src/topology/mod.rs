//! Topologies: hosts, a tree of routers, and the links that a packet crosses between two hosts.
//!
//! All are routers with hosts at them: two of a dumbbell, one of a star, one a node of a chain, and one an instance of
//! each group of a tree that has other groups behind it.

mod routes;
mod tree;

use std::ops::Range;

use firstflight_path::LinkSpec;
pub use routes::{Hop, Routes, Then};

use crate::{
    PlanError,
    plan::{LinkPair, Network},
};

/// A host: where it is attached and by which links. Hosts of a chain sit on their router without a link.
#[derive(Clone, Copy, Debug)]
struct Host {
    router: usize,
    up: Option<u32>,
    down: Option<u32>,
}

/// A router: how it is attached to the one before it. The root has none before it.
#[derive(Clone, Copy, Debug)]
struct Router {
    parent: usize,
    /// Routers between it and the root, itself included.
    depth: u32,
    /// Links to it from the router before it, and back.
    trunk: [u32; 2],
}

impl Router {
    const ROOT: Router = Router { parent: 0, depth: 0, trunk: [u32::MAX; 2] };
}

/// The network, laid out.
#[derive(Debug, Default)]
pub struct Topology {
    links: Vec<(String, LinkSpec)>,
    hosts: Vec<Host>,
    /// Groups of hosts by name.
    groups: Vec<(String, Range<u32>)>,
    /// Each after the one before it; the first is the root.
    routers: Vec<Router>,
}

impl Topology {
    /// Lays out a network; the draws of a tree for its links depend on the seed and the replicate.
    ///
    /// # Errors
    /// A side without hosts, a tree that does not hang together, a law that gave a value that no link can have.
    pub fn new(network: &Network, seed: u64, replicate: u32) -> Result<Topology, PlanError> {
        let mut topology = Topology { routers: vec![Router::ROOT], ..Topology::default() };
        match network {
            Network::Dumbbell { bottleneck, left, right } => {
                let trunk = topology.pair("bottleneck".into(), bottleneck);
                topology.router(0, trunk);
                topology.group("left", left, |forward, reverse| Host { router: 0, up: forward, down: reverse })?;
                topology.group("right", right, |forward, reverse| Host { router: 1, up: reverse, down: forward })?;
            }
            Network::Star { hub, spokes } => {
                let [forward, reverse] = topology.pair("hub".into(), hub);
                topology.hosts.push(Host { router: 0, up: Some(forward), down: Some(reverse) });
                topology.groups.push(("hub".into(), 0..1));
                topology.group("spokes", spokes, |forward, reverse| Host { router: 0, up: reverse, down: forward })?;
            }
            Network::Chain { links } => {
                if links.is_empty() {
                    return Err(misfit!("a chain needs at least one link"));
                }
                for (index, pair) in links.iter().enumerate() {
                    let trunk = topology.pair(format!("links[{index}]"), pair);
                    topology.router(index, trunk);
                }
                topology.hosts = (0..=links.len()).map(|router| Host { router, up: None, down: None }).collect();
                topology.groups.push(("node".into(), 0..topology.hosts.len() as u32));
            }
            Network::Tree { server, group } => topology.tree(server, group, seed, replicate)?,
        }
        Ok(topology)
    }

    /// Adds a router behind another and returns its number.
    fn router(&mut self, parent: usize, trunk: [u32; 2]) -> usize {
        self.routers.push(Router { parent, depth: self.routers[parent].depth + 1, trunk });
        self.routers.len() - 1
    }

    fn pair(&mut self, name: String, pair: &LinkPair) -> [u32; 2] {
        let first = self.links.len() as u32;
        self.links.push((name.clone(), pair.forward.clone()));
        self.links.push((name + ".reverse", pair.reverse.clone()));
        [first, first + 1]
    }

    fn group(
        &mut self,
        name: &str,
        pairs: &[LinkPair],
        host: impl Fn(Option<u32>, Option<u32>) -> Host,
    ) -> Result<(), PlanError> {
        if pairs.is_empty() {
            return Err(misfit!("the network has no hosts in {name:?}: give at least one access link"));
        }
        let first = self.hosts.len() as u32;
        for (index, pair) in pairs.iter().enumerate() {
            let [forward, reverse] = self.pair(format!("{name}[{index}]"), pair);
            self.hosts.push(host(Some(forward), Some(reverse)));
        }
        self.groups.push((name.into(), first..self.hosts.len() as u32));
        Ok(())
    }

    /// The links with their names, in the order of their indices.
    pub fn links(&self) -> &[(String, LinkSpec)] {
        &self.links
    }

    /// The hosts that a selection names: a group ("left") or one of it ("left[2]").
    ///
    /// # Errors
    /// An unknown group, an index beyond it, a malformed selection.
    pub fn select(&self, selection: &str) -> Result<Range<u32>, PlanError> {
        let known = || self.groups.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (name, index) = match selection.split_once('[') {
            None => (selection, None),
            Some((name, rest)) => {
                let index = rest.strip_suffix(']').and_then(|digits| digits.parse::<u32>().ok());
                (name, Some(index.ok_or_else(|| misfit!("{selection:?} does not name hosts: write like \"left[2]\""))?))
            }
        };
        let (_, range) = self
            .groups
            .iter()
            .find(|(group, _)| group == name)
            .ok_or_else(|| misfit!("there are no hosts {selection:?} in this network; it has {}", known()))?;
        match index {
            None => Ok(range.clone()),
            Some(index) if index < range.len() as u32 => Ok(range.start + index..range.start + index + 1),
            Some(_) => Err(misfit!("there is no host {selection:?}: {name:?} has {} hosts, from 0", range.len())),
        }
    }

    /// The name of a host, as [`Topology::select`] knows it.
    pub fn host_name(&self, host: u32) -> String {
        let group = self.groups.iter().find(|(_, range)| range.contains(&host));
        group.map_or_else(|| host.to_string(), |(name, range)| format!("{name}[{}]", host - range.start))
    }

    /// The links from one host to another, in order.
    ///
    /// # Errors
    /// The two are one host.
    pub fn path(&self, from: u32, to: u32) -> Result<Vec<u32>, PlanError> {
        let (source, destination) = (self.hosts[from as usize], self.hosts[to as usize]);
        if from == to {
            return Err(misfit!("a client and its server sit on one host, with no link between them"));
        }
        let (mut near, mut far) = (source.router, destination.router);
        let mut links: Vec<u32> = source.up.into_iter().collect();
        let mut away: Vec<u32> = destination.down.into_iter().collect();
        // From both ends towards the root, until they meet.
        while near != far {
            let [here, there] = [self.routers[near], self.routers[far]];
            if here.depth >= there.depth {
                links.push(here.trunk[1]);
                near = here.parent;
            } else {
                away.push(there.trunk[0]);
                far = there.parent;
            }
        }
        links.extend(away.iter().rev());
        Ok(links)
    }
}
