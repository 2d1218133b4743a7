//! Routes: which links a packet crosses in turn, and which of them are computed together.

use std::collections::BTreeMap;

use firstflight_path::LinkSpec;

use super::Topology;
use crate::PlanError;

/// A step of a route.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// The link to cross.
    pub link: u32,
    /// The next step.
    pub then: Then,
}

/// The step after a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next link is fed by this one alone, so packets enter it in the order in which they leave here: its share of
    /// the schedule is computed immediately, without an event between.
    Computed,
    /// The next link has other feeders: an event of this source brings the packet there in its turn.
    Event(u32),
    /// The far end is the destination, where an event of this source brings the packet.
    Deliver(u32),
}

/// The routes in use, as runs of hops in one table.
#[derive(Debug, Default)]
pub struct Routes {
    /// Hop table; a route is a run of it that ends with [`Then::Deliver`].
    pub hops: Vec<Hop>,
    /// Number of sources: the links whose packets have an event at the far end, in their order.
    pub sources: usize,
    index: BTreeMap<(u32, u32), u32>,
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
    pub fn new(topology: &Topology, pairs: impl Iterator<Item = (u32, u32)>) -> Result<Routes, PlanError> {
        let mut routes = Routes::default();
        // A queue that decides on departure cannot say in advance which packet it releases when.
        let unfed = |(_, spec): &(String, LinkSpec)| match spec.queue.decides_on_departure() {
            true => Feeder::Several,
            false => Feeder::Nobody,
        };
        let mut feeders: Vec<Feeder> = topology.links().iter().map(unfed).collect();
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
                        // Nor can a link that reorders say which packet arrives when.
                        _ if topology.links()[pair[0] as usize].1.reorders() => Feeder::Several,
                        Feeder::Nobody => Feeder::Link(pair[0]),
                        Feeder::Link(link) if link == pair[0] => Feeder::Link(link),
                        _ => Feeder::Several,
                    };
                }
                let last = path.len() - 1;
                // The links stand for the sources until those are numbered.
                routes.hops.extend(path.iter().enumerate().map(|(index, &link)| Hop {
                    link,
                    then: if index == last { Then::Deliver(link) } else { Then::Event(link) },
                }));
            }
        }
        for index in 1..routes.hops.len() {
            let before = routes.hops[index - 1];
            let only_feeder = feeders[routes.hops[index].link as usize] == Feeder::Link(before.link);
            if matches!(before.then, Then::Event(_)) && only_feeder {
                routes.hops[index - 1].then = Then::Computed;
            }
        }
        routes.number_sources();
        Ok(routes)
    }

    /// Numbers the links that have events, so that the scheduler has no others.
    fn number_sources(&mut self) {
        let has_events = |hop: &&Hop| hop.then != Then::Computed;
        let mut links: Vec<u32> = self.hops.iter().filter(has_events).map(|hop| hop.link).collect();
        links.sort_unstable();
        links.dedup();
        for hop in &mut self.hops {
            if let Then::Event(source) | Then::Deliver(source) = &mut hop.then {
                *source = links.partition_point(|&link| link < hop.link) as u32;
            }
        }
        self.sources = links.len();
    }

    /// The first hop from one host to another.
    pub fn first_hop(&self, from: u32, to: u32) -> u32 {
        self.index[&(from, to)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Network;

    #[test]
    fn only_links_whose_packets_have_an_event_at_the_far_end_are_sources() {
        let link = json!({"rate_bps": 1000, "delay_ns": 1, "queue": {"kind": "drop_tail", "limit": {"packets": 9}}});
        let pair = json!({"forward": link, "reverse": link});
        let network: Network = serde_json::from_value(
            json!({"topology": "dumbbell", "bottleneck": pair, "left": [pair, pair], "right": [pair, pair]}),
        )
        .unwrap();
        let topology = Topology::new(&network, 1, 0).unwrap();
        let routes = Routes::new(&topology, [(0, 2), (1, 3)].into_iter()).unwrap();
        // The bottleneck is computed together with the links behind it, which it alone feeds.
        assert_eq!((topology.links().len(), routes.sources), (10, 8));
        let first = routes.first_hop(0, 2) as usize;
        let thens: Vec<Then> = routes.hops[first..first + 3].iter().map(|hop| hop.then).collect();
        assert!(matches!(thens[..], [Then::Event(0), Then::Computed, Then::Deliver(4)]), "{thens:?}");
    }
}
