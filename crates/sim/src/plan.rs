//! A plan: what a scenario says, in base units, ready to simulate.

use std::sync::Arc;

use firstflight_path::{LinkSpec, Nanos};
use firstflight_tcp::{Profile, Startup};
use serde::Deserialize;

use crate::{
    application::{
        LARGEST_BYTES,
        datagram::{constant_rate::ConstantRate, dns::Dns, game::Game, voice::Voice},
        web_page::{MOST_INLINE_OBJECTS, MOST_LEVELS},
    },
    law::Law,
    population::{Keep, PopulationSpec},
};

/// 31 years: sums and small multiples of times stay far from overflow.
const LONGEST_DURATION: Nanos = 1_000_000_000_000_000_000;
/// As long as an IP packet can be; a segment with headers stays far from overflow.
const MOST_HEADER_BYTES: u32 = 65_535;
/// Ten million: all of them fit into a machine's memory.
const MOST_CLIENTS: u64 = 10_000_000;

/// An arm is numbered with 8 bits.
const MOST_ARMS: usize = 254;

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
    /// Shares of the users, or of the connections, that have a TCP of their own.
    #[serde(default)]
    pub arms: Vec<Arm>,
    /// What they are shares of.
    #[serde(default)]
    pub arms_of: ArmsOf,
}

/// A share of the users or connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name in the records, behind the application's.
    pub name: String,
    /// How much of all it is.
    pub share: f64,
}

/// What is shared out among arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmsOf {
    /// Users: client i of all applications is one.
    #[default]
    Users,
    /// Each connection anew.
    Connections,
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
        let mut profiles = self.applications.iter().flat_map(Application::profiles);
        profiles.any(|profile| matches!(profile.startup, Startup::QuickStart { .. }))
    }

    /// Bytes of the largest packet that an end can send, headers included.
    pub(crate) fn largest_packet_bytes(&self) -> u32 {
        let profiles = self.applications.iter().flat_map(Application::profiles);
        self.header_bytes + profiles.map(|profile| profile.mss_bytes).max().unwrap_or_default()
    }

    /// What the records call an application by its arm: none first, then each arm, for each application in turn.
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

    fn validate_arms(&self) -> Result<(), String> {
        if self.arms.len() > MOST_ARMS {
            return Err(format!("there are {} arms; at most {MOST_ARMS} can be told apart", self.arms.len()));
        }
        if let Some(arm) = self.arms.iter().find(|arm| !(0.0..=1.0).contains(&arm.share)) {
            return Err(format!("arm {:?}: share is {}, but must be from 0 to 1", arm.name, arm.share));
        }
        let sum: f64 = self.arms.iter().map(|arm| arm.share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(format!("the shares of the arms add up to {sum}, but must be at most 1 together"));
        }
        match self.applications.iter().find(|application| application.arms.len() != self.arms.len()) {
            Some(odd) => Err(format!(
                "application {:?} has the TCP of {} arms, and the plan has {}",
                odd.name,
                odd.arms.len(),
                self.arms.len()
            )),
            None => Ok(()),
        }
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
        self.validate_arms()?;
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
        if let Some(Network::Tree { group, .. }) = &self.network {
            for group in group {
                let laws =
                    |laws: &LinkLaws| laws.validate().map_err(|error| format!("group {:?}: {error}", group.name));
                group.draw.iter().try_for_each(laws)?;
            }
        }
        for application in &self.applications {
            application
                .validate()
                .and_then(|()| application.validate_place(self))
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
    /// Servers at the root, and groups of links behind one another with users at the ends.
    Tree {
        /// The servers' links.
        server: Vec<LinkPair>,
        /// Each after the one it is behind.
        group: Vec<Group>,
    },
}

/// Links alike in a tree, behind each link of another group or the root.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What its links are called, and its users if nothing is behind it.
    pub name: String,
    /// The group that it is behind; none: the root.
    #[serde(default)]
    pub behind: Option<String>,
    /// Links behind each link of that group.
    pub count: u32,
    /// A link; forward is away from the root.
    pub link: LinkPair,
    /// What is drawn for each link.
    #[serde(default)]
    pub draw: [LinkLaws; 2],
}

/// What is drawn for one direction of a link, in place of what the link says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLaws {
    /// Bits a second.
    #[serde(default)]
    pub rate_bps: Option<Law>,
    /// Propagation delay.
    #[serde(default)]
    pub delay_ns: Option<Law>,
    /// Probability of loss.
    #[serde(default)]
    pub loss: Option<Law>,
}

impl LinkLaws {
    fn validate(&self) -> Result<(), String> {
        [("rate_bps", &self.rate_bps), ("delay_ns", &self.delay_ns), ("loss", &self.loss)]
            .into_iter()
            .filter_map(|(name, law)| law.as_ref().map(|law| (name, law)))
            .try_for_each(|(name, law)| law.validate(name))
    }
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
    #[serde(default = "one")]
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
    /// Share of the users of a population or a tree that run it; who does is drawn for each user.
    #[serde(default = "every_user")]
    pub share: f64,
    /// Whether the size of a file is that in the user's row of the table of paths.
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
    pub start: Law,
    /// Class of its packets, 0 to 7, where a queue prefers higher ones.
    #[serde(default)]
    pub class: u8,
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

/// TCP of both ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Of the clients.
    pub client_tcp: Arc<Profile>,
    /// Of the servers.
    pub server_tcp: Arc<Profile>,
}

fn one() -> u32 {
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
        /// In-line objects that those before make known: asked for once all of these have arrived.
        #[serde(default)]
        then: Vec<Level>,
        /// Names that the in-line objects are spread over, each with connections of its own, on server hosts in turn.
        #[serde(default = "one")]
        hosts: u32,
        /// Connections to each of them (HTTP/1.1, kept alive).
        #[serde(default = "one")]
        connections: u32,
        /// Connections that have been idle for so long are not used for the next page; none: all are.
        #[serde(default)]
        keep_alive_ns: Option<Nanos>,
        /// Bytes of a frame (HTTP/2).
        #[serde(default = "default_frame_bytes")]
        frame_bytes: u32,
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
    /// Datagrams of one size at a constant rate.
    ConstantRate(ConstantRate),
    /// Look-ups of names.
    Dns(Dns),
    /// Games.
    Game(Game),
    /// Calls.
    Voice(Voice),
    /// Chunks of a video on one connection.
    Video {
        /// Bytes of a chunk.
        chunk: Law,
        /// Bytes of a request.
        request_bytes: u32,
        /// What a chunk takes to be played.
        interval_ns: Nanos,
        /// Chunks that the player holds.
        buffer_chunks: u32,
        /// Chunks per client; none: no end.
        count: Option<u32>,
    },
    /// Files, each on a new connection, whether or not those before are done.
    Arrivals {
        /// Bytes of a file.
        size: Law,
        /// Bytes of the request for a file.
        request_bytes: u32,
        /// Seconds between a request and the next.
        gap: Law,
        /// Files per client; none: no end.
        count: Option<u32>,
    },
}

/// In-line objects of a page that are asked for together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Bytes of an object.
    pub inline: Law,
    /// Objects of a page, at most 65535 of them.
    pub inline_count: Law,
}

/// RFC 9113 section 4.2: what every HTTP/2 end takes.
fn default_frame_bytes() -> u32 {
    16_384
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
    /// One connection for the page, or some for all pages.
    #[serde(rename = "1.1")]
    Http11,
    /// One connection for all pages, on which responses take turns.
    #[serde(rename = "2")]
    Http2,
}

/// How the objects of a page share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistent {
    /// One response of all bytes: RFC 2415's "very rough model".
    Joined,
    /// The primary object, then the requests for all in-line objects at once.
    Pipelined,
    /// One object at a time on each connection, which is kept for the next page.
    KeepAlive,
}

impl Kind {
    /// Whether clients keep connections from object to object and from page to page.
    pub(crate) fn keeps_connections(&self) -> bool {
        match self {
            Kind::WebPage { version: HttpVersion::Http2, .. } => true,
            Kind::WebPage { version: HttpVersion::Http11, persistent, .. } => *persistent == Persistent::KeepAlive,
            _ => false,
        }
    }

    /// Files, pages or requests of a client; none: no end.
    pub fn count(&self) -> Option<u32> {
        match self {
            Kind::Dns(dns) => dns.count,
            Kind::ConstantRate(_) | Kind::Game(_) | Kind::Voice(_) => None,
            Kind::FileTransfer { count, .. }
            | Kind::WebPage { count, .. }
            | Kind::RequestResponse { count, .. }
            | Kind::Video { count, .. }
            | Kind::Arrivals { count, .. } => *count,
        }
    }
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
    fn validate_place(&self, plan: &Plan) -> Result<(), String> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(format!("share is {}, but must be above 0 and at most 1", self.share));
        }
        let Some(population) = &plan.population else {
            if self.share != 1.0 && !matches!(plan.network, Some(Network::Tree { .. })) {
                return Err(format!(
                    "share is {}: only the users of a population or a tree are shared out",
                    self.share
                ));
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
        if self.kind.datagrams().is_some() && population.keep == Keep::Aggregates {
            return Err(
                "it sends datagrams, whose streams a population keeps as rows only: write keep = \"rows\"".into()
            );
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
        for arm in 0..=self.arms.len() {
            let [client, server] = self.ends(arm as u8);
            client.validate().map_err(|error| format!("client_tcp: {error}"))?;
            server.validate().map_err(|error| format!("server_tcp: {error}"))?;
        }
        self.start.validate("start")?;
        if let Some(datagrams) = self.kind.datagrams() {
            return datagrams.validate();
        }
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
            Kind::WebPage {
                primary,
                inline,
                inline_count,
                think,
                count,
                parallel,
                request_bytes,
                then,
                hosts,
                connections,
                frame_bytes,
                ..
            } => {
                asks_for_something(*request_bytes)?;
                if then.len() > MOST_LEVELS {
                    return Err(format!("then has {} levels, but must have at most {MOST_LEVELS}", then.len()));
                }
                for (name, value) in [("hosts", hosts), ("connections", connections), ("frame_bytes", frame_bytes)] {
                    if *value == 0 {
                        return Err(format!("{name} is 0: give at least 1"));
                    }
                }
                if *parallel == Some(0) {
                    return Err("parallel is 0: in-line objects need at least one connection".into());
                }
                let mut laws = vec![
                    ("primary", primary, bytes),
                    ("inline", inline, bytes),
                    ("inline_count", inline_count, objects),
                    ("think", think, time),
                ];
                for level in then {
                    laws.push(("inline", &level.inline, bytes));
                    laws.push(("inline_count", &level.inline_count, objects));
                }
                (laws, *count)
            }
            Kind::RequestResponse { request, response, think, count } => {
                (vec![("request", request, bytes), ("response", response, bytes), ("think", think, time)], *count)
            }
            Kind::ConstantRate(_) | Kind::Dns(_) | Kind::Game(_) | Kind::Voice(_) => (Vec::new(), None),
            Kind::Video { chunk, request_bytes, interval_ns, buffer_chunks, count } => {
                asks_for_something(*request_bytes)?;
                if *interval_ns == 0 || *buffer_chunks == 0 {
                    return Err("a video needs an interval above 0 and a buffer of at least one chunk".into());
                }
                (vec![("chunk", chunk, bytes)], *count)
            }
            Kind::Arrivals { size, request_bytes, gap, count } => {
                asks_for_something(*request_bytes)?;
                if gap.largest() == Some(0.0) {
                    return Err("gap is always 0: all files would arrive at one moment".into());
                }
                (vec![("size", size, bytes), ("gap", gap, time)], *count)
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
