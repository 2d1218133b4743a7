//! The path of a packet: a [`Link`] with a rate, a propagation delay, a queue and losses.
//!
//! A FIFO link knows its rate for all time, and thus when a packet will leave it at the moment it accepts the packet, so
//! [`Link::offer`] returns immediately the packet's [`LinkOutcome`]: the time at which it reaches the far end, or why it
//! never will. Before a link whose queue decides on departure, packets are in a [`Holding`] until they leave. Nothing here
//! owns a clock or a source of randomness: the time of arrival and random draws are arguments, so the same code serves
//! virtual time (the simulator) and real time (the link box).
//!
//! Packets must be offered to a link in the order of their arrival times.

mod backlog;
mod bucket;
mod gso;
mod hash;
mod holding;
mod impairment;
mod link;
mod loss;
mod meter;
pub mod queue;
mod quick_start;
mod rate;
mod ring;
mod select;
mod spec;

pub use bucket::BucketSpec;
pub use gso::GsoSpec;
pub use holding::{Holding, Left};
pub use impairment::{Distribution, DuplicationSpec, ImpairmentSpec, JitterSpec, ReorderingSpec, WakeSpec};
pub use link::{Link, LinkOutcome, LinkSpec, OfferedPacket};
pub use loss::{GilbertElliottSpec, LossModel};
pub use meter::{Interval, Meter};
pub use quick_start::QuickStartSpec;
pub use rate::{Rate, ScheduleSpec, StepsSpec, TraceSpec};
pub use ring::Ring;
pub use select::select;
pub use spec::{Field, Part, SpecError};

/// The queues, losses, rates and impairments that a link can have, in the order of their tables.
pub fn parts() -> [(&'static str, Vec<Part>); 4] {
    [
        ("queue", queue::QueueSpec::parts()),
        ("loss_model", LossModel::parts()),
        ("rate_schedule", ScheduleSpec::parts()),
        ("impairments", ImpairmentSpec::parts()),
    ]
}

/// Nanoseconds of the caller's clock.
pub type Nanos = u64;
