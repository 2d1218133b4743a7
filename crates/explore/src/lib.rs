//! The simulator as WebAssembly, for the explorer: a plan in, the tables of one replicate out.
//!
//! The module imports nothing. A page writes the plan (JSON) into [`input`]'s memory, calls [`simulate`] and reads
//! [`output`]. No logic lives here; `crates/python` is the same for Python.

mod boundary;
mod packed;

pub use boundary::{input, output, output_length, simulate};

use firstflight_sim::{Plan, PlanError};

/// Simulates replicate 0 of a plan and packs its tables; `capture` keeps every segment.
///
/// # Errors
/// Something that is no plan, or a plan whose parts do not fit together.
pub fn run(plan: &str, seed: u64, capture: bool) -> Result<Vec<u8>, PlanError> {
    let records = firstflight_sim::simulate(&Plan::from_json(plan)?, seed, 0..1, capture)?;
    Ok(packed::pack(records))
}
