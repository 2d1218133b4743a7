//! A plan: what a scenario says, in base units, ready to simulate.

use std::sync::Arc;

use firstflight_path::{LinkSpec, Nanos};
use firstflight_tcp::{Profile, Startup};
use serde::Deserialize;

use crate::{
    application::{LARGEST_BYTES, web_page::MOST_INLINE_OBJECTS},
    law::Law,
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
    /// The network.
    pub network: Network,
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
        for application in &self.applications {
            application.validate().map_err(|error| format!("application {:?}: {error}", application.name))?;
        }
        Ok(())
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
    /// Number of clients.
    pub clients: u32,
    /// Where the clients sit, spread round robin: "left", "left[2]", "hub", "spokes", "node[0]" ...
    pub client_hosts: String,
    /// Where the servers sit.
    pub server_hosts: String,
    /// How a client picks its server.
    pub server_choice: ServerChoice,
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

impl Application {
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
