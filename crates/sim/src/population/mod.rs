//! Populations: users with a path each, one after the other through one simulation.
//!
//! A user is a chain of one link, the server at its first node and the user at its second: to the user at the rate
//! down, through the queue and the losses; back at the rate up. The user's run is a separate little simulation, from
//! time 0 until every application that has a count is done, or to the end of the plan's duration. State that a server
//! remembers of one user is not used for another.
//!
//! A population keeps one row per transfer, page and user, or the accounts of its buckets ([`Keep`]).
//!
//! Path, sizes and losses of a user depend on plan, seed, replicate and the user's number alone: two plans that differ
//! in their initial windows meet the same users (common random numbers), however many users a replicate has.

pub(crate) mod aggregate;
mod column;
mod copula;
mod draw;
mod paths;
mod spec;

pub use column::Column;
pub use draw::{Drawn, draw};
pub(crate) use draw::{arm_of, arm_of_user, runs_application};
pub use paths::{Path, Paths, RowHandshake};
pub(crate) use spec::check;
pub use spec::{Buckets, Draw, Keep, MarginalsSpec, PathsSpec, PopulationSpec, TableSpec};

use crate::records::{NO_ROW, NO_SUBNET, User, seconds};

impl Path {
    /// The row of the user whose path it is.
    pub(crate) fn row(&self, replicate: u32, user: u32) -> User {
        User {
            replicate,
            client: user,
            subnet: self.subnet.unwrap_or(NO_SUBNET),
            row: self.row.unwrap_or(NO_ROW),
            weight: self.weight,
            rtt_s: seconds(self.rtt),
            max_rtt_s: f64::NAN,
            down_bps: self.down_bps as f64,
            up_bps: self.up_bps as f64,
            buffer_bytes: self.down_buffer_bytes,
            loss: self.loss,
        }
    }
}
