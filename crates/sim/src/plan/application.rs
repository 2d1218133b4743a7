//! Applications of a plan: their hosts, their TCP, and their activity.

use std::sync::Arc;

use firstflight_path::{Nanos, SpecError};
use firstflight_tcp::Profile;
use serde::Deserialize;

use super::{Handshakes, Kind, Network, Plan, default_of};
use crate::{PlanError, distribution::Distribution};

/// Choice of a client's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerChoice {
    /// Drawn for each connection.
    Random,
    /// Client i asks server i modulo their number.
    #[default]
    ByClient,
}

/// A group of clients that do the same.
#[derive(Clone, Debug, Deserialize)]
pub struct Application {
    /// Its name in the records.
    pub name: String,
    /// Number of clients; of a user, 1.
    #[serde(default = "default_of::<1>")]
    pub clients: u32,
    /// The clients' hosts, assigned round robin: "left", "left[2]", "hub", "spokes", "node[0]" ...; in a population
    /// left out: at the user.
    pub client_hosts: Option<String>,
    /// The servers' hosts; in a population left out: at the other end of the user's path.
    pub server_hosts: Option<String>,
    /// Choice of a client's server.
    #[serde(default)]
    pub server_choice: ServerChoice,
    /// Share of the users of a population or a tree that run it; who does is drawn for each user.
    #[serde(default = "every_user")]
    pub share: f64,
    /// True if the size of a file is that in the user's row of the table of paths.
    #[serde(default)]
    pub size_from_row: bool,
    /// TCP of the clients.
    pub client_tcp: Arc<Profile>,
    /// TCP of the servers.
    pub server_tcp: Arc<Profile>,
    /// TCP in each arm of the plan.
    #[serde(default)]
    pub arms: Vec<Ends>,
    /// When each client starts, in seconds.
    pub start: Distribution,
    /// Class of its packets, 0 to 7, where a queue prefers higher ones.
    #[serde(default)]
    pub class: u8,
    /// Bytes that a server sends before each object: the header of an HTTP response.
    #[serde(default)]
    pub response_header_bytes: u32,
    /// A server's service time: from the last byte of a request until it writes.
    #[serde(default)]
    pub service_time_ns: Nanos,
    /// What passes before the first request of a connection; none: the request follows TCP's handshake.
    pub handshakes: Option<Box<Handshakes>>,
    /// The clients' activity.
    #[serde(flatten)]
    pub kind: Kind,
}

/// TCP of both ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Of the clients.
    pub client_tcp: Arc<Profile>,
    /// Of the servers.
    pub server_tcp: Arc<Profile>,
}

fn every_user() -> f64 {
    1.0
}

impl Application {
    /// TCP of the client and of the server in an arm, counted from 1; 0 is none.
    pub(crate) fn ends(&self, arm: u8) -> [&Arc<Profile>; 2] {
        match usize::from(arm).checked_sub(1) {
            None => [&self.client_tcp, &self.server_tcp],
            Some(index) => [&self.arms[index].client_tcp, &self.arms[index].server_tcp],
        }
    }

    /// All profiles that an end can have.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        (0..=self.arms.len()).flat_map(|arm| self.ends(arm as u8))
    }

    /// Hosts are named in a network, and users shared out in a population or a tree.
    pub(super) fn validate_place(&self, plan: &Plan) -> Result<(), PlanError> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(SpecError::new("share", self.share, "it must be above 0 and at most 1").into());
        }
        let Some(population) = &plan.population else {
            if self.share != 1.0 && !matches!(plan.network, Some(Network::Tree { .. })) {
                let right = "only the users of a population or a tree are shared out";
                return Err(SpecError::new("share", self.share, right).into());
            }
            if self.size_from_row {
                return Err(misfit!("size_from_row needs a population whose paths are a table with bytes"));
            }
            if self.has_handshake_from_row() {
                return Err(misfit!(
                    "from_row of handshakes needs a population whose paths are a table with tls_bytes"
                ));
            }
            return [("client_hosts", &self.client_hosts), ("server_hosts", &self.server_hosts)]
                .into_iter()
                .try_for_each(|(name, hosts)| {
                    hosts.as_ref().map(drop).ok_or_else(|| misfit!("{name} is missing: name hosts of the network"))
                });
        };
        if self.clients != 1 {
            return Err(misfit!(
                "it has {} clients, but in a population a client is a user: leave clients out",
                self.clients
            ));
        }
        if self.client_hosts.is_some() || self.server_hosts.is_some() {
            return Err(misfit!(
                "it names hosts, but each user of a population has a path of their own: leave them out"
            ));
        }
        if self.has_handshake_from_row() && !population.has_handshakes() {
            return Err(misfit!("from_row of handshakes is true, but the paths are no table with tls_bytes"));
        }
        match (&self.kind, self.size_from_row) {
            (_, false) => Ok(()),
            (Kind::FileTransfer { .. }, true) if population.has_bytes() => Ok(()),
            (Kind::FileTransfer { .. }, true) => {
                Err(misfit!("size_from_row is true, but the paths are no table with bytes"))
            }
            _ => Err(misfit!("size_from_row is for file transfers only")),
        }
    }

    fn has_handshake_from_row(&self) -> bool {
        self.handshakes.as_ref().is_some_and(|handshakes| handshakes.from_row)
    }

    pub(super) fn validate(&self) -> Result<(), PlanError> {
        if self.clients == 0 {
            return Err(misfit!("it has no clients: give at least one"));
        }
        for arm in 0..=self.arms.len() {
            let [client, server] = self.ends(arm as u8);
            client.validate().map_err(PlanError::within("client_tcp"))?;
            server.validate().map_err(PlanError::within("server_tcp"))?;
        }
        self.start.validate("start")?;
        if let Some(handshakes) = &self.handshakes {
            handshakes.validate().map_err(PlanError::within("handshakes"))?;
        }
        self.kind.validate()
    }
}
