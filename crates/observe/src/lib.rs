//! Connections in captures: packets in as in a pcap or pcapng file, rows out, one per connection and one per
//! response. Nothing is kept but the connections in progress, so a file may be of any length.
//!
//! A capture may be taken anywhere: RTTs to either side of that place are measured separately and added. Checksums are
//! not verified, for offloads leave them to the network card, and packets that a card would have divided count as the
//! segments that they would have become.

mod busy;
mod capture;
mod connection;
mod connections;
mod echo;
mod first_flight;
mod packet;
mod problems;
mod reader;
mod response;
mod round_trip;
mod rows;
mod secures;
mod server_clock;
mod source;
mod stream;
mod tls;

pub use problems::{Problem, Trouble};
pub use reader::{ReadError, Reader};
pub use rows::{Batch, ConnectionRow, HandshakeRow, ResponseRow, SegmentRow, UNKNOWN};
