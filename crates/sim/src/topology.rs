//! Topologies: hosts, routers in a row, and the links that a packet crosses between two hosts.
//!
//! Dumbbell, star and chain are all routers in a row with hosts at them: two routers, one, and one a node.

use std::{collections::HashMap, ops::Range};

use firstflight_path::LinkSpec;

use crate::plan::{LinkPair, Network};

/// A host: where it is attached and by which links. Hosts of a chain sit on their router without a link.
#[derive(Clone, Copy, Debug)]
struct Host {
    router: usize,
    up: Option<u32>,
    down: Option<u32>,
}

/// The network, laid out.
#[derive(Debug, Default)]
pub struct Topology {
    links: Vec<(String, LinkSpec)>,
    hosts: Vec<Host>,
    /// Groups of hosts by name.
    groups: Vec<(&'static str, Range<u32>)>,
    /// Links from router i to i + 1, and back.
    trunks: Vec<[u32; 2]>,
}

impl Topology {
    /// Lays out a network.
    ///
    /// # Errors
    /// A side without hosts.
    pub fn new(network: &Network) -> Result<Topology, String> {
        let mut topology = Topology::default();
        match network {
            Network::Dumbbell { bottleneck, left, right } => {
                let trunk = topology.pair("bottleneck".into(), bottleneck);
                topology.trunks.push(trunk);
                topology.group("left", left, |forward, reverse| Host { router: 0, up: forward, down: reverse })?;
                topology.group("right", right, |forward, reverse| Host { router: 1, up: reverse, down: forward })?;
            }
            Network::Star { hub, spokes } => {
                let [forward, reverse] = topology.pair("hub".into(), hub);
                topology.hosts.push(Host { router: 0, up: Some(forward), down: Some(reverse) });
                topology.groups.push(("hub", 0..1));
                topology.group("spokes", spokes, |forward, reverse| Host { router: 0, up: reverse, down: forward })?;
            }
            Network::Chain { links } => {
                if links.is_empty() {
                    return Err("a chain needs at least one link".into());
                }
                for (index, pair) in links.iter().enumerate() {
                    let trunk = topology.pair(format!("links[{index}]"), pair);
                    topology.trunks.push(trunk);
                }
                topology.hosts = (0..=links.len()).map(|router| Host { router, up: None, down: None }).collect();
                topology.groups.push(("node", 0..topology.hosts.len() as u32));
            }
        }
        Ok(topology)
    }

    fn pair(&mut self, name: String, pair: &LinkPair) -> [u32; 2] {
        let first = self.links.len() as u32;
        self.links.push((name.clone(), pair.forward.clone()));
        self.links.push((name + ".reverse", pair.reverse.clone()));
        [first, first + 1]
    }

    fn group(
        &mut self,
        name: &'static str,
        pairs: &[LinkPair],
        host: impl Fn(Option<u32>, Option<u32>) -> Host,
    ) -> Result<(), String> {
        if pairs.is_empty() {
            return Err(format!("the network has no hosts in {name:?}: give at least one access link"));
        }
        let first = self.hosts.len() as u32;
        for (index, pair) in pairs.iter().enumerate() {
            let [forward, reverse] = self.pair(format!("{name}[{index}]"), pair);
            self.hosts.push(host(Some(forward), Some(reverse)));
        }
        self.groups.push((name, first..self.hosts.len() as u32));
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
    pub fn select(&self, selection: &str) -> Result<Range<u32>, String> {
        let known = || self.groups.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (name, index) = match selection.split_once('[') {
            None => (selection, None),
            Some((name, rest)) => {
                let index = rest.strip_suffix(']').and_then(|digits| digits.parse::<u32>().ok());
                (name, Some(index.ok_or_else(|| format!("{selection:?} does not name hosts: write like \"left[2]\""))?))
            }
        };
        let (_, range) = self
            .groups
            .iter()
            .find(|(group, _)| *group == name)
            .ok_or_else(|| format!("there are no hosts {selection:?} in this network; it has {}", known()))?;
        match index {
            None => Ok(range.clone()),
            Some(index) if index < range.len() as u32 => Ok(range.start + index..range.start + index + 1),
            Some(_) => Err(format!("there is no host {selection:?}: {name:?} has {} hosts, from 0", range.len())),
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
    pub fn path(&self, from: u32, to: u32) -> Result<Vec<u32>, String> {
        let (source, destination) = (self.hosts[from as usize], self.hosts[to as usize]);
        if from == to {
            return Err("a client and its server sit on one host, with no link between them".into());
        }
        let (low, high) = (source.router.min(destination.router), source.router.max(destination.router));
        let trunks: Vec<u32> = if source.router <= destination.router {
            self.trunks[low..high].iter().map(|trunk| trunk[0]).collect()
        } else {
            self.trunks[low..high].iter().rev().map(|trunk| trunk[1]).collect()
        };
        Ok(source.up.into_iter().chain(trunks).chain(destination.down).collect())
    }
}

/// A step of a route.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// The link to cross.
    pub link: u32,
    /// What follows.
    pub then: Then,
}

/// What follows on a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next link is fed by this one alone, so packets enter it in the order in which they leave here: its share of
    /// the schedule is computed at once, without an event between.
    Computed,
    /// The next link has other feeders: an event brings the packet there in its turn.
    Event,
    /// The far end is the destination.
    Deliver,
}

/// The routes in use, as runs of hops in one table.
#[derive(Debug, Default)]
pub struct Routes {
    /// Hop table; a route is a run of it that ends with [`Then::Deliver`].
    pub hops: Vec<Hop>,
    index: HashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Feeder {
    Nobody,
    Link(u32),
    Several,
}

impl Routes {
    /// Lays the routes between all `pairs` of hosts, in both directions.
    ///
    /// # Errors
    /// A pair without a link between them.
    pub fn new(topology: &Topology, pairs: impl Iterator<Item = (u32, u32)>) -> Result<Routes, String> {
        let mut routes = Routes::default();
        let mut feeders = vec![Feeder::Nobody; topology.links().len()];
        for (client, server) in pairs {
            for ends in [(client, server), (server, client)] {
                if routes.index.contains_key(&ends) {
                    continue;
                }
                let path = topology.path(ends.0, ends.1)?;
                routes.index.insert(ends, routes.hops.len() as u32);
                // An endpoint that feeds a link is like a second feeder: nothing is known of it ahead of time.
                feeders[path[0] as usize] = Feeder::Several;
                for pair in path.windows(2) {
                    let feeder = &mut feeders[pair[1] as usize];
                    *feeder = match *feeder {
                        Feeder::Nobody => Feeder::Link(pair[0]),
                        Feeder::Link(link) if link == pair[0] => Feeder::Link(link),
                        _ => Feeder::Several,
                    };
                }
                let last = path.len() - 1;
                routes.hops.extend(
                    path.iter().enumerate().map(|(index, &link)| Hop {
                        link,
                        then: if index == last { Then::Deliver } else { Then::Event },
                    }),
                );
            }
        }
        for index in 1..routes.hops.len() {
            let before = routes.hops[index - 1];
            let only_feeder = feeders[routes.hops[index].link as usize] == Feeder::Link(before.link);
            if before.then == Then::Event && only_feeder {
                routes.hops[index - 1].then = Then::Computed;
            }
        }
        Ok(routes)
    }

    /// The first hop from one host to another.
    #[inline]
    pub fn first_hop(&self, from: u32, to: u32) -> u32 {
        self.index[&(from, to)]
    }
}
