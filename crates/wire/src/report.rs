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

/// A connection that is over. Times are nanoseconds of CLOCK_MONOTONIC; null where something never happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "counters are documented where they are made: firstflight_tcp::{Stats, Info}")]
pub struct ConnectionFacts {
    /// Whose it is, and when it began.
    #[serde(flatten)]
    pub life: Life,
    /// How it ended.
    pub end: End,
    /// When it was over.
    pub over_at_ns: Nanos,
    /// Bytes that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that arrived in order.
    pub received_bytes: u64,
    /// Initial window in bytes and in whole segments.
    pub initial_window_bytes: u32,
    pub initial_window_segments: u32,
    pub mss_bytes: u32,
    pub cwnd_bytes: u32,
    /// Null while it is arbitrarily high.
    pub ssthresh_bytes: Option<u32>,
    pub srtt_ns: Option<Nanos>,
    pub rttvar_ns: Nanos,
    pub min_rtt_ns: Option<Nanos>,
    pub rto_ns: Nanos,
    pub delivered_segments: u32,
    pub reordering_seen: u32,
    pub dsack_duplicates: u32,
    pub timestamps: bool,
    pub sack: bool,
    pub window_scaling: bool,
    pub ecn: bool,
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
    /// When the first SYN was sent or received.
    pub opened_at_ns: Nanos,
    /// When the handshake was over.
    pub connected_at_ns: Option<Nanos>,
}

impl ConnectionFacts {
    pub(crate) fn of(life: &Life, endpoint: &Endpoint, end: End, now: Nanos) -> Self {
        let info = endpoint.info();
        Self {
            life: *life,
            end,
            over_at_ns: now,
            acknowledged_bytes: endpoint.acknowledged_bytes(),
            received_bytes: endpoint.received_bytes(),
            initial_window_bytes: endpoint.initial_window_bytes(),
            initial_window_segments: endpoint.initial_window_segments(),
            mss_bytes: endpoint.mss_bytes(),
            cwnd_bytes: endpoint.cwnd_bytes(),
            ssthresh_bytes: endpoint.ssthresh_bytes(),
            srtt_ns: endpoint.srtt(),
            rttvar_ns: info.rttvar_ns,
            min_rtt_ns: info.min_rtt_ns,
            rto_ns: info.rto_ns,
            delivered_segments: info.delivered,
            reordering_seen: info.reordering_seen,
            dsack_duplicates: info.dsack_duplicates,
            timestamps: info.timestamps,
            sack: info.sack,
            window_scaling: info.window_scaling,
            ecn: info.ecn,
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
    /// Bytes that its Content-Length announced.
    pub content_length: Option<u64>,
    /// Bytes of its body that arrived.
    pub body_bytes: u64,
    /// SHA-256 of the body, hexadecimal, if it is complete and was asked for.
    pub sha256: Option<String>,
    /// The error; null for a complete response, with any status.
    pub error: Option<String>,
}
