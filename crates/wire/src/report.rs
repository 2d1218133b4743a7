//! A host's report on its connections.

use std::net::SocketAddr;

use firstflight_tcp::{Endpoint, Nanos, Stats};
use serde::Serialize;

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Both sides closed in good order.
    Closed,
    /// The peer reset it.
    Reset,
    /// It was aborted after too many retransmissions.
    TimedOut,
    /// The application lost patience.
    Aborted,
    /// It was still open when the host stopped.
    Stopped,
}

/// An event to report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// A connection is over.
    Connection(Box<ConnectionFacts>),
    /// A client has got a response, or never will.
    Response(Box<Response>),
}

/// A connection that is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConnectionFacts {
    /// Whose it is.
    #[serde(flatten)]
    pub life: Life,
    /// How it ended.
    pub end: End,
    /// Initial window in whole segments.
    pub initial_window_segments: u32,
    /// Largest payload of its segments.
    pub mss_bytes: u32,
    /// The counters of the endpoint.
    #[serde(flatten)]
    pub stats: Stats,
}

/// The owner's data on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Life {
    /// Number among the connections of this host, from 0.
    pub connection: u32,
    /// True if this host opened it.
    pub opened_here: bool,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

impl ConnectionFacts {
    pub(crate) fn of(life: &Life, endpoint: &Endpoint, end: End) -> Self {
        Self {
            life: *life,
            end,
            initial_window_segments: endpoint.initial_window_segments(),
            mss_bytes: endpoint.mss_bytes(),
            stats: *endpoint.stats(),
        }
    }
}

/// A response to a client. Times are nanoseconds of CLOCK_MONOTONIC, as curl's `time_*` reckoned from `started_at_ns`;
/// null where something never happened.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Response {
    /// The fetch it belongs to.
    pub fetch: u64,
    /// Its number on the connection, from 0.
    pub object: u32,
    /// The path asked for.
    pub path: String,
    /// The connection among those of this host.
    pub connection: u32,
    /// When the connection was opened or, on an open one, the request written.
    pub started_at_ns: Nanos,
    /// When the handshake was over, for the first object of a connection.
    pub connected_at_ns: Option<Nanos>,
    /// When the first byte of the response arrived, header included.
    pub first_byte_at_ns: Option<Nanos>,
    /// When the last byte arrived.
    pub completed_at_ns: Option<Nanos>,
    /// The status code; 0 without a response.
    pub status: u16,
    /// Bytes of the header of the response.
    pub header_bytes: u64,
    /// Bytes of its body that arrived.
    pub body_bytes: u64,
    /// SHA-256 of the body, hexadecimal, if it is complete and was asked for.
    pub sha256: Option<String>,
    /// The error; null for a complete response, with any status.
    pub error: Option<String>,
}
