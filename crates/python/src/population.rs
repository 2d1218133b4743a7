//! Users of a population and links of a network, drawn and not simulated.

use firstflight_sim::{Plan, population, records::Row, topology::Topology};
use pyo3::{prelude::*, types::PyDict};

use crate::{columns, invalid};

/// The first users of a replicate: `users` as columns of (NumPy dtype, bytes), and lists of what the table leaves out.
#[pyfunction]
pub fn draw_users<'py>(
    py: Python<'py>,
    plan: &str,
    seed: u64,
    replicate: u32,
    users: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let drawn = py.detach(|| population::draw(&Plan::from_json(plan)?, seed, replicate, 0..users)).map_err(invalid)?;
    let result = PyDict::new(py);
    result.set_item("users", columns(py, Row::columns(&drawn.users))?)?;
    result.set_item("up_buffer_bytes", drawn.up_buffer_bytes)?;
    result.set_item("bytes", drawn.bytes)?;
    result.set_item("handshakes", drawn.handshakes)?;
    result.set_item("runs", drawn.runs)?;
    Ok(result)
}

/// The links of a network in a replicate, `[[name, spec], ...]` as JSON: each direction, in the order of the records.
#[pyfunction]
pub fn draw_links(plan: &str, seed: u64, replicate: u32) -> PyResult<String> {
    let plan = Plan::from_json(plan).map_err(invalid)?;
    let Some(network) = &plan.network else { return Err(invalid("this plan has no network")) };
    let topology = Topology::new(network, seed, replicate).map_err(invalid)?;
    serde_json::to_string(topology.links()).map_err(invalid)
}
