//! Data that a host keeps from its connections for the IW of later ones: `remembered` per peer's address, `adaptive`
//! over all connections that it opens, or answers on a port.

use std::{collections::BTreeMap, net::IpAddr};

use firstflight_tcp::{
    DestinationMemory, Endpoint, InitialWindow, Nanos, PopulationWindow, Remembered, StartingPoint, State,
};

/// The results learned on a port, or by all connections that are opened here.
#[derive(Debug, Default)]
pub(crate) struct LearnedWindows {
    destinations: BTreeMap<u128, DestinationMemory>,
    population: Option<PopulationWindow>,
}

impl LearnedWindows {
    /// Starting point of a connection that is opened now; none if its policy does not learn. `alive` are the others
    /// with the same peer.
    pub(crate) fn starting_point<'a>(
        &mut self,
        now: Nanos,
        policy: &InitialWindow,
        peer: IpAddr,
        alive: impl Iterator<Item = &'a Endpoint>,
    ) -> Option<StartingPoint> {
        match policy {
            InitialWindow::Remembered(policy) => {
                let memory = self.destinations.entry(key(peer, policy)).or_default();
                memory.observe(policy, now, alive.filter_map(window));
                Some(memory.starting_point(policy, now))
            }
            InitialWindow::Adaptive(policy) => {
                let population = self.population.get_or_insert_with(|| PopulationWindow::new(policy));
                Some(StartingPoint { window_segments: population.open(policy), ssthresh_segments: None })
            }
            _ => None,
        }
    }

    /// A connection is over.
    pub(crate) fn learn(&mut self, now: Nanos, peer: IpAddr, endpoint: &Endpoint) {
        let outcome = endpoint.outcome();
        match &endpoint.profile().initial_window {
            InitialWindow::Remembered(policy) if has_sent(endpoint) => {
                self.destinations.entry(key(peer, policy)).or_default().learn(policy, now, &outcome);
            }
            InitialWindow::Adaptive(_) if outcome.initial_window_failed => {
                if let Some(population) = &mut self.population {
                    population.note_failure();
                }
            }
            _ => {}
        }
    }
}

/// Neighbors that share a memory have one key.
fn key(peer: IpAddr, policy: &Remembered) -> u128 {
    let address = match peer {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    };
    address / u128::from(policy.hosts)
}

/// The window of a live connection, if it has one to speak of.
fn window(endpoint: &Endpoint) -> Option<u32> {
    let speaks = endpoint.state() >= State::Established && !endpoint.is_finished() && has_sent(endpoint);
    speaks.then(|| endpoint.outcome().window_segments)
}

/// An end that never sent data has learned nothing of the path.
fn has_sent(endpoint: &Endpoint) -> bool {
    endpoint.stats().data_segments_sent > 0
}
