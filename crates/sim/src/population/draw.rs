//! Users without their simulation: their draws, for callers that build a network of them.

use std::ops::Range;

use super::Paths;
use crate::{
    Plan, PlanError,
    plan::ArmsOf,
    random::{Purpose, Stream},
    records::User,
};

/// Users of a replicate and all that was drawn for them before they were simulated.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Their paths.
    pub users: Vec<User>,
    /// Limits of the queues before the links from them.
    pub up_buffer_bytes: Vec<u64>,
    /// Sizes of responses, where the table of paths has such a column.
    pub bytes: Vec<f64>,
    /// Handshakes, likewise: bytes of the server's first flight, and exchanges.
    pub handshakes: Vec<(f64, u8)>,
    /// True if they run each application of the plan.
    pub runs: Vec<Vec<bool>>,
}

/// Draws a range of a replicate's users.
///
/// # Errors
/// A plan without a population, users that it does not have, or a law that gave a value that no path can have.
pub fn draw(plan: &Plan, seed: u64, replicate: u32, users: Range<u32>) -> Result<Drawn, PlanError> {
    let Some(population) = &plan.population else { return Err(misfit!("this plan has no population")) };
    if users.end > population.users {
        return Err(misfit!("the population has {} users, so there is no user {}", population.users, users.end - 1));
    }
    let paths = Paths::new(population, plan.largest_packet_bytes())?;
    let mut drawn = Drawn { runs: vec![Vec::new(); plan.applications.len()], ..Drawn::default() };
    for (user, path) in users.clone().zip(paths.of(seed, replicate, users)?) {
        drawn.users.push(path.row(replicate, user));
        drawn.up_buffer_bytes.push(path.up_buffer_bytes);
        drawn.bytes.extend(path.bytes);
        drawn.handshakes.extend(path.handshake.map(|row| (row.bytes, row.exchanges)));
        for (application, runs) in drawn.runs.iter_mut().enumerate() {
            runs.push(runs_application(plan, seed, replicate, application, user));
        }
    }
    Ok(drawn)
}

/// True if a user is among those who run an application.
pub(crate) fn runs_application(plan: &Plan, seed: u64, replicate: u32, application: usize, user: u32) -> bool {
    let share = plan.applications[application].share;
    share >= 1.0 || {
        let stream = Stream::new(seed, replicate, Purpose::Share, application as u32, user);
        stream.uniforms(0)[0] < share
    }
}

/// The arm of an owner, counted from 1; 0 is none. A larger share holds all owners of a smaller one.
pub(crate) fn arm_of(plan: &Plan, owner: &Stream, index: u64) -> u8 {
    if plan.arms.is_empty() {
        return 0;
    }
    let draw = owner.uniforms(index)[0];
    let mut shared = 0.0;
    let is_in = |share: f64| {
        shared += share;
        draw < shared
    };
    plan.arms.iter().map(|arm| arm.share).position(is_in).map_or(0, |index| index as u8 + 1)
}

/// The arm of a user, if users are shared out.
pub(crate) fn arm_of_user(plan: &Plan, seed: u64, replicate: u32, user: u32) -> u8 {
    match plan.arms_of {
        ArmsOf::Users => arm_of(plan, &Stream::new(seed, replicate, Purpose::Arm, 0, user), 0),
        ArmsOf::Connections => 0,
    }
}
