//! Packet-level simulation of TCP in virtual time.
//!
//! A [`Plan`] says who talks over which network with which TCP; [`simulate`] turns it, a seed and a range of
//! replicates into [`Records`]. A replicate is a function of plan, seed and its number alone: the same on every
//! machine and in every order.
//!
//! In place of a network a plan may have a [`population`]: users with a path each, simulated one after the other.
//!
//! Speed comes from having little to schedule. A link knows when a packet will leave it as soon as it accepts the
//! packet, so a hop costs at most one event; the packets on a link wait in a ring of which only the head is in the
//! [`scheduler`]; and a link fed by one other link alone is computed together with it, without an event
//! ([`topology::Then::Computed`]).

#[macro_use]
mod error;
mod application;
mod capture;
pub mod capture_file;
mod connection;
mod datagram;
pub mod distribution;
mod exchange;
mod histogram;
mod loss_draws;
mod memory;
mod normal;
mod packet;
pub mod plan;
pub mod population;
pub mod records;
mod replicate;
pub mod scheduler;
mod simulation;
pub mod tap;
mod timers;
pub mod topology;
mod tournament;
mod users;

use std::ops::Range;

pub use datagram::observed;
pub use error::PlanError;
pub use firstflight_path::Nanos;
pub use firstflight_random as random;
pub use firstflight_records::table;
pub use firstflight_tcp::Deadline;
pub use plan::Plan;
pub use records::Records;
pub use replicate::watch;

/// Simulates a range of replicates of a plan, one after the other. `capture` keeps every segment.
///
/// # Errors
/// A plan whose parts do not fit together.
pub fn simulate(plan: &Plan, seed: u64, replicates: Range<u32>, capture: bool) -> Result<Records, PlanError> {
    if let Some(population) = &plan.population {
        return users::run(plan, population, seed, replicates, capture);
    }
    let mut all: Option<Records> = None;
    for replicate in replicates {
        let records = replicate::run(plan, seed, replicate, capture)?;
        match &mut all {
            None => all = Some(records),
            Some(all) => all.append(records),
        }
    }
    all.ok_or_else(|| misfit!("{}", NO_REPLICATES))
}

const NO_REPLICATES: &str = "there are no replicates to simulate: ask for at least one";
