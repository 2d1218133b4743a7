//! Users of a population, drawn and not simulated.

use firstflight_sim::{Plan, population};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict},
};

/// The first users of a replicate: `users` as columns of (NumPy dtype, bytes), and lists of what the table leaves out.
#[pyfunction]
pub fn draw_users<'py>(
    py: Python<'py>,
    plan: &str,
    seed: u64,
    replicate: u32,
    users: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let drawn = py
        .detach(|| population::draw(&Plan::from_json(plan)?, seed, replicate, 0..users))
        .map_err(PyValueError::new_err)?;
    let table = PyDict::new(py);
    for (column, values) in drawn.users.into_columns() {
        table.set_item(column, (values.dtype(), PyBytes::new(py, &values.to_le_bytes())))?;
    }
    let result = PyDict::new(py);
    result.set_item("users", table)?;
    result.set_item("up_buffer_bytes", drawn.up_buffer_bytes)?;
    result.set_item("bytes", drawn.bytes)?;
    result.set_item("runs", drawn.runs)?;
    Ok(result)
}
