//! Simulates one replicate of a plan (JSON on stdin) and prints its data packets: the program that
//! `python -m bench --instructions` counts, and that a profiler can run.

use std::io::{Error, read_to_string, stdin};

use firstflight_sim::{Plan, simulate};

fn main() -> Result<(), Error> {
    let plan = Plan::from_json(&read_to_string(stdin())?).map_err(Error::other)?;
    let records = simulate(&plan, 1, 0..1, false).map_err(Error::other)?;
    println!("{}", records.counts.data_packets);
    Ok(())
}
