//! Links in real time, between devices of network namespaces, with the simulator's queues and lines.
//!
//! A packet's way is computed in virtual time from the moment of its arrival: [`Network`] knows no clock. The box
//! ([`run`]) reads packets from its ports, lets the network decide, and hands each packet over at its deadline, never
//! before. Being late at one packet therefore changes nothing for those behind it, and no queue.

mod accounts;
mod capture;
mod connections;
pub mod control;
mod error;
mod header;
mod kept;
mod lateness;
mod link_box;
mod log;
mod network;
mod plan;
mod pool;
mod port;
mod report;
mod segments;

pub use capture::capture;
pub use error::Error;
pub use link_box::run;
pub use network::{Event, Network};
pub use plan::{LinkPlan, Plan, PortPlan, RoutePlan, Way};
pub use port::Device;

/// The highest rate of a link, in bits a second, at which `python -m bench --linkbox` found the box as accurate as the
/// emulator promises: delay within 200 µs and spacing within 20 µs for 99 packets of 100.
pub const CALIBRATED_BPS: u64 = 100_000_000;
