//! A plan: what a scenario says, in base units, ready to simulate.

use std::sync::Arc;

use firstflight_path::{LinkSpec, Nanos};
use firstflight_tcp::{Profile, Startup};
use serde::Deserialize;

use crate::{
    application::{LARGEST_BYTES, web_page::MOST_INLINE_OBJECTS},
    law::Law,
    population::PopulationSpec,
};

/// 31 years: sums and small multiples of times stay far from overflow.
const LONGEST_DURATION: Nanos = 1_000_000_000_000_000_000;
/// As long as an IP packet can be; a segment with headers stays far from overflow.
const MOST_HEADER_BYTES: u32 = 65_535;
/// Ten million: all of them fit into a machine's memory.
const MOST_CLIENTS: u64 = 10_000_000;

/// Everything a simulation needs besides its seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How long to simulate.
    pub duration_ns: Nanos,
    /// Length of the links' counting intervals; none: one interval for the whole run.
    #[serde(default)]
    pub meter_interval_ns: Option<Nanos>,
    /// Bytes of TCP and IP headers in each packet.
    #[serde(default = "default_header_bytes")]
    pub header_bytes: u32,
    /// The network, unless there is a population.
    #[serde(default)]
    pub network: Option<Network>,
    /// Users with a path each, in place of a network.
    #[serde(default)]
    pub population: Option<PopulationSpec>,
    /// Who talks.
    pub applications: Vec<Application>,
}

fn default_header_bytes() -> u32 {
    40
}

impl Plan {
    /// Reads a plan from JSON and checks what a type cannot say.
    ///
    /// # Errors
    /// One sentence that says what is wrong and where.
    pub fn from_json(json: &str) -> Result<Plan, String> {
        let plan: Plan = serde_json::from_str(json).map_err(|error| format!("this is not a plan: {error}"))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Whether some profile asks for a rate by Quick-Start.
    pub(crate) fn asks_for_rates(&self) -> bool {
        self.applications.iter().any(|application| {
            [&application.client_tcp, &application.server_tcp]
                .iter()
                .any(|profile| matches!(profile.startup, Startup::QuickStart { .. }))
        })
    }

    /// Bytes of the largest packet that an end can send, headers included.
    pub(crate) fn largest_packet_bytes(&self) -> u32 {
        let profiles =
            self.applications.iter().flat_map(|application| [&application.client_tcp, &application.server_tcp]);
        self.header_bytes + profiles.map(|profile| profile.mss_bytes).max().unwrap_or_default()
    }

    fn validate(&self) -> Result<(), String> {
        if self.duration_ns == 0 {
            return Err("duration_ns is 0: there is nothing to simulate".into());
        }
        if self.duration_ns > LONGEST_DURATION {
            return Err(format!("duration_ns is {}: at most {LONGEST_DURATION} can be simulated", self.duration_ns));
        }
        if self.header_bytes > MOST_HEADER_BYTES {
            return Err(format!("header_bytes is {}, but must be at most {MOST_HEADER_BYTES}", self.header_bytes));
        }
        if self.meter_interval_ns == Some(0) {
            return Err("meter_interval_ns is 0: intervals need a length".into());
        }
        if self.applications.is_empty() || self.applications.len() > 256 {
            return Err(format!("a plan has 1 to 256 applications, not {}", self.applications.len()));
        }
        let clients: u64 = self.applications.iter().map(|application| u64::from(application.clients)).sum();
        if clients > MOST_CLIENTS {
            return Err(format!("the applications have {clients} clients; at most {MOST_CLIENTS} can be simulated"));
        }
        match (&self.network, &self.population) {
            (Some(_), None) => {}
            (None, Some(_)) if self.meter_interval_ns.is_some() => {
                return Err("meter_interval_ns counts on the links of a network, and a population has none".into());
            }
            (None, Some(population)) => population.validate().map_err(|error| format!("population: {error}"))?,
            _ => return Err("a plan has either a network or a population".into()),
        }
        for application in &self.applications {
            application
                .validate()
                .and_then(|()| application.validate_place(self.population.as_ref()))
                .map_err(|error| format!("application {:?}: {error}", application.name))?;
        }
        Ok(())
    }

    /// The network.
    ///
    /// # Errors
    /// The plan has a population, whose users are simulated one by one: one sentence.
    pub(crate) fn network(&self) -> Result<&Network, String> {
        self.network.as_ref().ok_or_else(|| {
            "a population has no network to watch: its users are simulated one by one, each on a path of their own"
                .into()
        })
    }
}

/// The two directions of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPair {
    /// Left to right; host to router on the left, router to host on the right; server to user in a star.
    pub forward: LinkSpec,
    /// The other direction.
    pub reverse: LinkSpec,
}

/// Topologies.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "topology", rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Hosts on two sides of a bottleneck.
    Dumbbell {
        /// Between the two routers.
        bottleneck: LinkPair,
        /// Access links of the hosts on the left.
        left: Vec<LinkPair>,
        /// Access links of the hosts on the right.
        right: Vec<LinkPair>,
    },
    /// One server and users with a link each.
    Star {
        /// The server's link.
        hub: LinkPair,
        /// The users' links.
        spokes: Vec<LinkPair>,
    },
    /// Links in a row, with a host at each node.
    Chain {
        /// From node 0 on.
        links: Vec<LinkPair>,
    },
}

/// How a client picks its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerChoice {
    /// Anew for each connection.
    Random,
    /// Client i asks server i modulo their number.
    ByClient,
}

/// A group of clients that do the same.
#[derive(Clone, Debug, Deserialize)]
pub struct Application {
    /// Its name in the records.
    pub name: String,
    /// Number of clients; of a user, 1.
    #[serde(default = "one_client")]
    pub clients: u32,
    /// Where the clients sit, spread round robin: "left", "left[2]", "hub", "spokes", "node[0]" ...; in a population
    /// left out: at the user.
    #[serde(default)]
    pub client_hosts: Option<String>,
    /// Where the servers sit; in a population left out: at the other end of the user's path.
    #[serde(default)]
    pub server_hosts: Option<String>,
    /// How a client picks its server.
    #[serde(default = "server_by_client")]
    pub server_choice: ServerChoice,
    /// Share of a population's users that run it; who does is drawn for each user.
    #[serde(default = "every_user")]
    pub share: f64,
    /// Whether the size of a file is that in the user's row of the table of paths.
    #[serde(default)]
    pub size_from_row: bool,
    /// TCP of the clients.
    pub client_tcp: Arc<Profile>,
    /// TCP of the servers.
    pub server_tcp: Arc<Profile>,
    /// When each client starts, in seconds.
    pub start: Law,
    /// Bytes that a server sends before each object: the header of an HTTP response.
    #[serde(default)]
    pub response_header_bytes: u32,
    /// How long a server works at its answer: from the last byte of a request until it writes.
    #[serde(default)]
    pub service_time_ns: Nanos,
    /// What the clients do.
    #[serde(flatten)]
    pub kind: Kind,
}

fn one_client() -> u32 {
    1
}

fn server_by_client() -> ServerChoice {
    ServerChoice::ByClient
}

fn every_user() -> f64 {
    1.0
}

/// What clients do.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// Files one after the other, each on a new connection.
    FileTransfer {
        /// Bytes of a file.
        size: Law,
        /// Bytes of the request for a file.
        request_bytes: u32,
        /// Seconds between the end of a file and the next request.
        gap: Law,
        /// Who sends the file.
        direction: Direction,
        /// Files per client; none: no end.
        count: Option<u32>,
    },
    /// Web pages: a primary object, then in-line objects; then the user thinks.
    WebPage {
        /// HTTP's version decides on the connections.
        version: HttpVersion,
        /// Bytes of the primary object.
        primary: Law,
        /// Bytes of an in-line object.
        inline: Law,
        /// In-line objects of a page, at most 65535 of them.
        inline_count: Law,
        /// Bytes of a request.
        request_bytes: u32,
        /// Seconds between a page and the next.
        think: Law,
        /// In-line connections at once (HTTP/1.0); none: all.
        parallel: Option<u32>,
        /// How objects share the connection (HTTP/1.1).
        persistent: Persistent,
        /// Pages per client; none: no end.
        count: Option<u32>,
    },
    /// Requests and responses in turn on one connection.
    RequestResponse {
        /// Bytes of a request.
        request: Law,
        /// Bytes of a response.
        response: Law,
        /// Seconds between a response and the next request.
        think: Law,
        /// Requests per client; none: no end.
        count: Option<u32>,
    },
}

/// Who sends a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The server.
    Download,
    /// The client.
    Upload,
}

/// HTTP versions, by their use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum HttpVersion {
    /// A connection per object; in-line objects in parallel.
    #[serde(rename = "1.0")]
    Http10,
    /// One connection for the page.
    #[serde(rename = "1.1")]
    Http11,
}

/// How the objects of a page share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistent {
    /// One response of all bytes: RFC 2415's "very rough model".
    Joined,
    /// The primary object, then the requests for all in-line objects at once.
    Pipelined,
}

impl Kind {
    /// Files, pages or requests of a client; none: no end.
    pub fn count(&self) -> Option<u32> {
        match self {
            Kind::FileTransfer { count, .. } | Kind::WebPage { count, .. } | Kind::RequestResponse { count, .. } => {
                *count
            }
        }
    }
}

impl Application {
    /// Hosts are named in a network, and users shared out in a population.
    fn validate_place(&self, population: Option<&PopulationSpec>) -> Result<(), String> {
        let Some(population) = population else {
            if self.share != 1.0 {
                return Err(format!("share is {}: only the users of a population are shared out", self.share));
            }
            if self.size_from_row {
                return Err("size_from_row needs a population whose paths are a table with bytes".into());
            }
            return [("client_hosts", &self.client_hosts), ("server_hosts", &self.server_hosts)]
                .into_iter()
                .try_for_each(|(name, hosts)| {
                    hosts.as_ref().map(drop).ok_or_else(|| format!("{name} is missing: name hosts of the network"))
                });
        };
        if self.clients != 1 {
            return Err(format!(
                "it has {} clients, but in a population a client is a user: leave clients out",
                self.clients
            ));
        }
        if self.client_hosts.is_some() || self.server_hosts.is_some() {
            return Err("it names hosts, but each user of a population has a path of their own: leave them out".into());
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(format!("share is {}, but must be above 0 and at most 1", self.share));
        }
        match (&self.kind, self.size_from_row) {
            (_, false) => Ok(()),
            (Kind::FileTransfer { .. }, true) if population.has_bytes() => Ok(()),
            (Kind::FileTransfer { .. }, true) => {
                Err("size_from_row is true, but the paths are no table with bytes".into())
            }
            _ => Err("size_from_row is for file transfers only".into()),
        }
    }

    fn validate(&self) -> Result<(), String> {
        if self.clients == 0 {
            return Err("it has no clients: give at least one".into());
        }
        self.client_tcp.validate().map_err(|error| format!("client_tcp: {error}"))?;
        self.server_tcp.validate().map_err(|error| format!("server_tcp: {error}"))?;
        self.start.validate("start")?;
        let bytes = LARGEST_BYTES as f64;
        let objects = MOST_INLINE_OBJECTS;
        let time = f64::INFINITY;
        // A law with its name and the largest value that makes sense.
        let (laws, count): (Vec<(&str, &Law, f64)>, Option<u32>) = match &self.kind {
            Kind::FileTransfer { size, gap, count, request_bytes, direction } => {
                if *direction == Direction::Download {
                    asks_for_something(*request_bytes)?;
                }
                (vec![("size", size, bytes), ("gap", gap, time)], *count)
            }
            Kind::WebPage { primary, inline, inline_count, think, count, parallel, request_bytes, .. } => {
                asks_for_something(*request_bytes)?;
                if *parallel == Some(0) {
                    return Err("parallel is 0: in-line objects need at least one connection".into());
                }
                let laws = vec![
                    ("primary", primary, bytes),
                    ("inline", inline, bytes),
                    ("inline_count", inline_count, objects),
                    ("think", think, time),
                ];
                (laws, *count)
            }
            Kind::RequestResponse { request, response, think, count } => {
                (vec![("request", request, bytes), ("response", response, bytes), ("think", think, time)], *count)
            }
        };
        if count == Some(0) {
            return Err("count is 0: leave it out for no end, or give at least 1".into());
        }
        laws.into_iter().try_for_each(|(name, law, most)| {
            law.validate(name)?;
            match law.largest() {
                Some(largest) if largest > most => Err(format!("{name} reaches {largest}, but must be at most {most}")),
                _ => Ok(()),
            }
        })
    }
}

/// A server answers the requests that reach it, and nothing cannot reach it.
fn asks_for_something(request_bytes: u32) -> Result<(), String> {
    if request_bytes == 0 {
        return Err("request_bytes is 0: the server would never hear of it; give at least 1".into());
    }
    Ok(())
}
