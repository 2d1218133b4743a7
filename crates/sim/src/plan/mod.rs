//! A plan: the contents of a scenario, in base units, ready to simulate.

mod application;
pub(crate) mod datagram;
mod handshake;
mod kind;
mod network;

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

pub use application::{Application, Ends, ServerChoice};
pub use datagram::Rtp;
pub use handshake::{CLIENT, Flight, From, Handshake, Handshakes, Resumption, SERVER};
pub use kind::{Direction, HttpVersion, Kind, Level, Persistent};
pub(crate) use kind::{LARGEST_BYTES, MOST_INLINE_OBJECTS};
pub use network::{DrawnLimit, Group, LinkLaws, LinkPair, Network};

use crate::{PlanError, population::PopulationSpec};

/// 31 years: sums and small multiples of times stay far from overflow.
const LONGEST_DURATION: Nanos = 1_000_000_000_000_000_000;
/// As long as an IP packet can be; a segment with headers stays far from overflow.
const MOST_HEADER_BYTES: u32 = 65_535;
/// Ten million: all of them fit into a machine's memory.
const MOST_CLIENTS: u64 = 10_000_000;

/// An arm is numbered with 8 bits.
const MOST_ARMS: usize = 254;

/// Everything a simulation needs except for its seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The simulated time.
    pub duration_ns: Nanos,
    /// Length of the links' counting intervals; none: one interval for the whole run.
    pub meter_interval_ns: Option<Nanos>,
    /// Bytes of TCP and IP headers in each packet.
    #[serde(default = "default_of::<40>")]
    pub header_bytes: u32,
    /// The network, unless there is a population.
    pub network: Option<Network>,
    /// Users with a path each, in place of a network.
    pub population: Option<PopulationSpec>,
    /// The applications.
    pub applications: Vec<Application>,
    /// Shares of the users, or of the connections, that have their own TCP.
    #[serde(default)]
    pub arms: Vec<Arm>,
    /// The total that they are shares of.
    #[serde(default)]
    pub arms_of: ArmsOf,
}

/// A share of the users or connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name in the records, behind the application's.
    pub name: String,
    /// Its part of the total.
    pub share: f64,
}

/// The unit that is divided among arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmsOf {
    /// Users: client i of all applications is one.
    #[default]
    Users,
    /// Each connection separately.
    Connections,
}

/// The default of a parameter.
fn default_of<const NUMBER: u32>() -> u32 {
    NUMBER
}

impl Plan {
    /// Reads a plan from JSON and checks conditions that a type cannot express.
    ///
    /// # Errors
    /// The problem and its place.
    pub fn from_json(json: &str) -> Result<Plan, PlanError> {
        let plan: Plan = serde_json::from_str(json).map_err(PlanError::Unreadable)?;
        plan.validate()?;
        Ok(plan)
    }

    /// True if some profile asks the routers on the path for a rate.
    pub(crate) fn asks_for_rates(&self) -> bool {
        let mut profiles = self.applications.iter().flat_map(Application::profiles);
        profiles.any(|profile| profile.startup.asks_for_rate())
    }

    /// Bytes of the largest packet that an end can send, headers included.
    pub(crate) fn largest_packet_bytes(&self) -> u32 {
        let profiles = self.applications.iter().flat_map(Application::profiles);
        self.header_bytes + profiles.map(|profile| profile.mss_bytes).max().unwrap_or_default()
    }

    /// The names of an application in the records: without an arm first, then by arm, for each application in turn.
    pub(crate) fn recorded(&self, application: u16, arm: u8) -> u16 {
        application * (1 + self.arms.len() as u16) + u16::from(arm)
    }

    /// The applications as the records number them: each with its name, and its arm counted from 1, 0 for none.
    pub(crate) fn recorded_applications(&self) -> impl Iterator<Item = (&Application, String, u8)> {
        self.applications.iter().flat_map(|application| {
            let arms =
                self.arms.iter().zip(1..).map(|(arm, number)| (format!("{}.{}", application.name, arm.name), number));
            let names = std::iter::once((application.name.clone(), 0)).chain(arms);
            names.map(move |(name, arm)| (application, name, arm))
        })
    }

    fn validate_arms(&self) -> Result<(), PlanError> {
        if self.arms.len() > MOST_ARMS {
            return Err(misfit!("there are {} arms; at most {MOST_ARMS} are possible", self.arms.len()));
        }
        if let Some(arm) = self.arms.iter().find(|arm| !(0.0..=1.0).contains(&arm.share)) {
            let error = SpecError::new("share", arm.share, "it must be from 0 to 1");
            return Err(PlanError::within(format_args!("arm {:?}", arm.name))(error));
        }
        let sum: f64 = self.arms.iter().map(|arm| arm.share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(misfit!("the shares of the arms add up to {sum}, but must be at most 1 together"));
        }
        match self.applications.iter().find(|application| application.arms.len() != self.arms.len()) {
            Some(odd) => Err(misfit!(
                "application {:?} has the TCP of {} arms, and the plan has {}",
                odd.name,
                odd.arms.len(),
                self.arms.len()
            )),
            None => Ok(()),
        }
    }

    fn validate(&self) -> Result<(), PlanError> {
        if self.duration_ns == 0 {
            return Err(SpecError::new("duration_ns", 0, "give a time above 0").into());
        }
        if self.duration_ns > LONGEST_DURATION {
            let right = format!("at most {LONGEST_DURATION} can be simulated");
            return Err(SpecError::new("duration_ns", self.duration_ns, right).into());
        }
        if self.header_bytes > MOST_HEADER_BYTES {
            let right = format!("it must be at most {MOST_HEADER_BYTES}");
            return Err(SpecError::new("header_bytes", self.header_bytes, right).into());
        }
        if self.meter_interval_ns == Some(0) {
            return Err(SpecError::new("meter_interval_ns", 0, "give a length above 0").into());
        }
        if self.applications.is_empty() || self.applications.len() > 256 {
            return Err(misfit!("a plan has 1 to 256 applications, not {}", self.applications.len()));
        }
        self.validate_arms()?;
        let clients: u64 = self.applications.iter().map(|application| u64::from(application.clients)).sum();
        if clients > MOST_CLIENTS {
            return Err(misfit!("the applications have {clients} clients; at most {MOST_CLIENTS} can be simulated"));
        }
        match (&self.network, &self.population) {
            (Some(_), None) => {}
            (None, Some(_)) if self.meter_interval_ns.is_some() => {
                return Err(misfit!("meter_interval_ns counts on the links of a network, and a population has none"));
            }
            (None, Some(population)) => population.validate().map_err(PlanError::within("population"))?,
            _ => return Err(misfit!("a plan has either a network or a population")),
        }
        if let Some(Network::Tree { group, .. }) = &self.network {
            for group in group {
                let laws = group.draw.iter().try_for_each(LinkLaws::validate);
                laws.map_err(PlanError::within(format_args!("group {:?}", group.name)))?;
            }
        }
        for application in &self.applications {
            application
                .validate()
                .and_then(|()| application.validate_place(self))
                .map_err(PlanError::within(format_args!("application {:?}", application.name)))?;
        }
        Ok(())
    }

    pub(crate) fn network(&self) -> Result<&Network, PlanError> {
        self.network.as_ref().ok_or_else(|| {
            misfit!(
                "a population has no network to watch: its users are simulated one by one, each on a path of their own"
            )
        })
    }
}
