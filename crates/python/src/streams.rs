//! Streams of datagrams that a testbed carries: what is to be sent, and the records of what was seen.

use firstflight_sim::{
    Plan,
    observed::{self, Observed},
    records::{Row, StreamReport},
};
use pyo3::{prelude::*, types::PyDict};

use crate::{columns, invalid};

/// What each application's ends send, as JSON.
#[pyfunction]
pub(crate) fn datagram_flows(plan: &str) -> PyResult<String> {
    let plan = Plan::from_json(plan).map_err(invalid)?;
    serde_json::to_string(&observed::flows(&plan)).map_err(invalid)
}

/// A stream as Python tells of it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Seen {
    replicate: u32,
    application: u16,
    arm: u8,
    client: u32,
    from_server: bool,
    sent: Vec<[u64; 2]>,
    arrived: Vec<[u64; 2]>,
    lost: u32,
}

/// The table `streams` of what testbeds saw, as columns of (NumPy dtype, bytes).
#[pyfunction]
pub(crate) fn stream_reports<'py>(py: Python<'py>, plan: &str, streams: Vec<Seen>) -> PyResult<Bound<'py, PyDict>> {
    let plan = Plan::from_json(plan).map_err(invalid)?;
    let mut rows = Vec::<StreamReport>::new();
    for Seen { replicate, application, arm, client, from_server, sent, arrived, lost } in streams {
        let seen = Observed { replicate, application, arm, client, from_server, sent, arrived, lost };
        let refused = || invalid(format_args!("no client {client} of application {application} can have seen this"));
        rows.push(observed::report(&plan, &seen).ok_or_else(refused)?);
    }
    columns(py, Row::columns(&rows))
}
