//! Users of a population, drawn and not simulated.

use firstflight_sim::{Plan, population, records::Row};
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
    result.set_item("runs", drawn.runs)?;
    Ok(result)
}
