//! The kinds of application: files, pages, requests, videos and datagrams.

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{
    datagram::{
        Datagrams,
        dns::{Dns, Names},
        streams::{ConstantRate, Game},
        voice::Voice,
    },
    default_of,
};
use crate::{PlanError, distribution::Distribution};

/// The largest file, 8.8 TB: more than a run is likely to carry, and small enough for a page's worth of them to be added up.
pub(crate) const LARGEST_BYTES: u64 = 1 << 43;
/// The records number a page's objects with 16 bits. Only the tail of an unbounded law can pass this.
pub(crate) const MOST_INLINE_OBJECTS: f64 = 65_535.0;
/// Levels behind the first: all objects of a page are numbered with 20 bits in its draws.
const MOST_LEVELS: usize = 15;

/// The kind of an application.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// Files one after the other, each on a new connection.
    FileTransfer {
        /// Bytes of a file.
        size: Distribution,
        /// Bytes of the request for a file.
        request_bytes: u32,
        /// Seconds between the end of a file and the next request.
        gap: Distribution,
        /// The sender of the file.
        direction: Direction,
        /// Files per client; none: no end.
        count: Option<u32>,
    },
    /// Web pages: a primary object, then in-line objects; then the user thinks.
    WebPage {
        /// HTTP's version decides on the connections.
        version: HttpVersion,
        /// Bytes of the primary object.
        primary: Distribution,
        /// Bytes of an in-line object.
        inline: Distribution,
        /// In-line objects of a page, at most 65535 of them.
        inline_count: Distribution,
        /// Bytes of a request.
        request_bytes: u32,
        /// Seconds between a page and the next.
        think: Distribution,
        /// True if that time begins with the page, and not with its end; a page that takes longer is waited for. It
        /// passes before the first page, too.
        #[serde(default)]
        think_from_start: bool,
        /// Concurrent in-line connections (HTTP/1.0); none: all.
        parallel: Option<u32>,
        /// Sharing of the connection by objects (HTTP/1.1).
        persistent: Persistent,
        /// In-line objects that those before make known: asked for once all of these have arrived.
        #[serde(default)]
        then: Vec<Level>,
        /// Names that the in-line objects are spread over, each with its own connections, on server hosts in turn.
        #[serde(default = "default_of::<1>")]
        hosts: u32,
        /// Connections to each of them (HTTP/1.1, kept alive).
        #[serde(default = "default_of::<1>")]
        connections: u32,
        /// Connections that have been idle for so long are not used for the next page; none: all are.
        keep_alive_ns: Option<Nanos>,
        /// Bytes of a frame (HTTP/2).
        // RFC 9113 section 4.2: the frame size that every HTTP/2 endpoint accepts.
        #[serde(default = "default_of::<16_384>")]
        frame_bytes: u32,
        /// Look-ups of the names; none: they are known.
        dns: Option<Box<Names>>,
        /// Pages per client; none: no end.
        count: Option<u32>,
    },
    /// Requests and responses in turn on one connection.
    RequestResponse {
        /// Bytes of a request.
        request: Distribution,
        /// Bytes of a response.
        response: Distribution,
        /// Seconds between a response and the next request.
        think: Distribution,
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
        chunk: Distribution,
        /// Bytes of a request.
        request_bytes: u32,
        /// The playing time of a chunk.
        interval_ns: Nanos,
        /// Chunks that the player holds.
        buffer_chunks: u32,
        /// Chunks per client; none: no end.
        count: Option<u32>,
    },
    /// Files, each on a new connection, whether or not those before are done.
    Arrivals {
        /// Bytes of a file.
        size: Distribution,
        /// Bytes of the request for a file.
        request_bytes: u32,
        /// Seconds between a request and the next.
        gap: Distribution,
        /// Files per client; none: no end.
        count: Option<u32>,
    },
}

/// In-line objects of a page that are asked for together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Bytes of an object.
    pub inline: Distribution,
    /// Objects of a page, at most 65535 of them.
    pub inline_count: Distribution,
}

/// The sender of a file.
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

/// Sharing of a connection by the objects of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistent {
    /// One response of all bytes: RFC 2415's "very rough model".
    Joined,
    /// The primary object, then the requests for all in-line objects together.
    Pipelined,
    /// One object at a time on each connection, which is kept for the next page.
    KeepAlive,
}

impl Kind {
    /// True if clients keep connections from object to object and from page to page.
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

    /// Checks conditions that a type cannot express.
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        if let Some(datagrams) = self.datagrams() {
            return Ok(datagrams.validate()?);
        }
        let bytes = LARGEST_BYTES as f64;
        let objects = MOST_INLINE_OBJECTS;
        let time = f64::INFINITY;
        // A law with its name and the largest value that makes sense.
        let (laws, count): (Vec<(&'static str, &Distribution, f64)>, Option<u32>) = match self {
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
                dns,
                ..
            } => {
                asks_for_something(*request_bytes)?;
                if let Some(names) = dns {
                    names.queries.validate().map_err(PlanError::within("dns"))?;
                }
                if then.len() > MOST_LEVELS {
                    return Err(misfit!("then has {} levels, but must have at most {MOST_LEVELS}", then.len()));
                }
                for (name, value) in [("hosts", hosts), ("connections", connections), ("frame_bytes", frame_bytes)] {
                    if *value == 0 {
                        return Err(SpecError::new(name, 0, "give at least 1").into());
                    }
                }
                if *parallel == Some(0) {
                    return Err(SpecError::new("parallel", 0, "in-line objects need at least one connection").into());
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
                    return Err(misfit!("a video needs an interval above 0 and a buffer of at least one chunk"));
                }
                (vec![("chunk", chunk, bytes)], *count)
            }
            Kind::Arrivals { size, request_bytes, gap, count } => {
                asks_for_something(*request_bytes)?;
                if gap.largest() == Some(0.0) {
                    return Err(SpecError::new(
                        "gap",
                        "always 0",
                        "all files would arrive at the same time; give a gap above 0",
                    )
                    .into());
                }
                (vec![("size", size, bytes), ("gap", gap, time)], *count)
            }
        };
        if count == Some(0) {
            return Err(SpecError::new("count", 0, "leave it out for no end, or give at least 1").into());
        }
        laws.into_iter().try_for_each(|(name, law, most)| validate_law(name, law, most))
    }
}

/// Checks a law, whose largest value makes sense up to `most`.
pub(super) fn validate_law(name: &'static str, law: &Distribution, most: f64) -> Result<(), PlanError> {
    law.validate(name)?;
    match law.largest() {
        Some(largest) if largest > most => Err(misfit!("{name} reaches {largest}, but must be at most {most}")),
        _ => Ok(()),
    }
}

/// A server answers the requests that reach it, and nothing cannot reach it.
fn asks_for_something(request_bytes: u32) -> Result<(), SpecError> {
    if request_bytes == 0 {
        return Err(SpecError::new("request_bytes", 0, "a request has at least 1 byte"));
    }
    Ok(())
}
