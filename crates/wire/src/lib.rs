//! Our TCP on a wire: endpoints with real payload, on the IP packets of one interface.
//!
//! A [`Host`] is what a kernel is for its programs: it has an address, a table of connections by their four-tuple,
//! ports that listen, and timers. It does no input or output of its own: packets come in by [`Host::handle_packet`],
//! leave through a [`Wire`], and time passes by [`Host::handle_timeout`]; [`run`] drives it on a packet
//! socket. What the connections are for is HTTP/1.1: a server that answers `GET /N` with N bytes of a known stream, and
//! a client that fetches and checks.
//!
//! Memory is bounded by the receive windows and the number of connections: no file is held, a response's bytes are made
//! when a segment takes them ([`firstflight_segment::write_payload`]), and those of a download are digested and dropped.

mod application;
mod connection;
mod host;
pub mod http;
mod inbound;
mod log;
mod memory;
mod outbound;
mod plan;
mod report;
mod run;
mod wire;

pub use application::{Application, Conversation};
pub use firstflight_linkbox::Error;
pub use host::{Host, Listener, Opening};
pub use outbound::Piece;
pub use plan::{Command, Plan};
pub use report::{ConnectionFacts, End, Life, Report, Response};
pub use run::run;
pub use wire::{Traffic, Wire};
