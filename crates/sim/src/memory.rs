//! Data that hosts keep from their connections for the IW of later ones: `remembered` per destination,
//! `adaptive` per population.
//!
//! A server remembers, for each application, each host that its clients sit on, and a client host the servers of each
//! application. A population is all connections of an application that one host opens, or answers. All is looked up by
//! key, never walked through, and nothing is drawn, so a run repeats exactly.

use std::collections::BTreeMap;

use firstflight_path::Nanos;
use firstflight_tcp::{
    DestinationMemory, Endpoint, InitialWindow, Outcome, PopulationWindow, Remembered, StartingPoint, State,
};

use crate::{
    connection::{Arena, CLIENT, Pair, SERVER},
    plan::{Application, Plan},
};

/// An application, a side of its connections, and the host that is remembered or that learns.
type Key = (u16, u8, u32);

/// A destination with the connections to it that are alive.
#[derive(Debug, Default)]
struct Destination {
    memory: DestinationMemory,
    /// Slots of connections.
    alive: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct LearnedWindows {
    /// Some profile of the plan learns.
    in_use: bool,
    destinations: BTreeMap<Key, Destination>,
    populations: BTreeMap<Key, PopulationWindow>,
}

impl Pair {
    fn destination(&self, side: usize, policy: &Remembered) -> Key {
        (self.application, side as u8, self.hosts[CLIENT] / policy.hosts)
    }

    fn population(&self, side: usize) -> Key {
        (self.application, side as u8, self.hosts[side])
    }
}

impl LearnedWindows {
    pub(crate) fn new(plan: &Plan) -> LearnedWindows {
        let learns = |window| matches!(window, InitialWindow::Remembered(_) | InitialWindow::Adaptive(_));
        let in_use =
            plan.applications.iter().flat_map(Application::profiles).any(|profile| learns(profile.initial_window));
        LearnedWindows { in_use, destinations: BTreeMap::new(), populations: BTreeMap::new() }
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.in_use {
            self.destinations.clear();
            self.populations.clear();
        }
    }

    /// A connection was put into a slot: its endpoints begin with the learned state.
    #[inline]
    pub(crate) fn on_open(&mut self, now: Nanos, slot: u32, connections: &mut Arena) {
        if self.in_use {
            for side in [CLIENT, SERVER] {
                self.start(now, slot, side, connections);
            }
        }
    }

    fn start(&mut self, now: Nanos, slot: u32, side: usize, connections: &mut Arena) {
        let connection = &connections[slot];
        let pair = connection.pair;
        let start = match connection.ends[side].profile().initial_window {
            InitialWindow::Remembered(policy) => {
                let destination = self.destinations.entry(pair.destination(side, &policy)).or_default();
                let alive = destination.alive.iter().filter_map(|&slot| window(&connections[slot].ends[side]));
                destination.memory.observe(&policy, now, alive);
                destination.alive.push(slot);
                destination.memory.starting_point(&policy, now)
            }
            InitialWindow::Adaptive(policy) => {
                let population =
                    self.populations.entry(pair.population(side)).or_insert_with(|| PopulationWindow::new(&policy));
                StartingPoint { window_segments: population.open(&policy), ssthresh_segments: None }
            }
            _ => return,
        };
        connections[slot].ends[side].start_from(start);
    }

    /// A connection is over, and still in its slot: its outcome is learned.
    #[inline]
    pub(crate) fn on_over(&mut self, now: Nanos, slot: u32, connections: &Arena) {
        if self.in_use {
            for side in [CLIENT, SERVER] {
                self.learn(now, slot, side, connections);
            }
        }
    }

    fn learn(&mut self, now: Nanos, slot: u32, side: usize, connections: &Arena) {
        let connection = &connections[slot];
        let (pair, end) = (connection.pair, &connection.ends[side]);
        let outcome: Outcome = end.outcome();
        match end.profile().initial_window {
            InitialWindow::Remembered(policy) => {
                let destination = self.destinations.entry(pair.destination(side, &policy)).or_default();
                destination.alive.retain(|&other| other != slot);
                if has_sent(end) {
                    destination.memory.learn(&policy, now, &outcome);
                }
            }
            InitialWindow::Adaptive(_) if outcome.initial_window_failed => {
                if let Some(population) = self.populations.get_mut(&pair.population(side)) {
                    population.note_failure();
                }
            }
            _ => {}
        }
    }
}

/// The window of a live connection, if it has one to speak of.
fn window(end: &Endpoint) -> Option<u32> {
    (end.state() >= State::Established && has_sent(end)).then(|| end.outcome().window_segments)
}

/// An end that never sent data has learned nothing of the path.
fn has_sent(end: &Endpoint) -> bool {
    end.stats().data_segments_sent > 0
}
