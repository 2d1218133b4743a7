//! Packets as capture files that Wireshark, tshark and tcpdump read.
//!
//! [`Writer`] puts packets into pcapng or pcap with nanosecond times; [`CaptureFile`] does so in a file that is either
//! whole or absent. Nothing here knows where packets come from or what time it is: a simulator and a box on a real link can
//! use it alike.

mod file;
mod pcap;
mod pcapng;
mod record;
mod writer;

pub use file::{CaptureFile, FileError};
pub use record::{Direction, Record};
pub use writer::{Format, Writer};
