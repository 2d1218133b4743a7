//! Parts of a plan without a simulation: users and links as they are drawn, and streams of datagrams that a testbed carries.

use firstflight_sim::{
    Plan,
    observed::{self, Observed},
    population,
    records::{Row, StreamReport},
    topology,
};
use pyo3::{prelude::*, types::PyDict};

use crate::{columns, invalid};

/// The first users of a replicate: `users` as columns of (NumPy dtype, bytes), and lists of what the table leaves out.
#[pyfunction]
pub(crate) fn draw_users<'py>(
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

/// The network of a plan in a replicate.
#[pyclass(frozen)]
pub(crate) struct Topology(topology::Topology);

#[pymethods]
impl Topology {
    #[new]
    fn new(plan: &str, seed: u64, replicate: u32) -> PyResult<Self> {
        let plan = Plan::from_json(plan).map_err(invalid)?;
        let Some(network) = &plan.network else { return Err(invalid("this plan has no network")) };
        topology::Topology::new(network, seed, replicate).map(Self).map_err(invalid)
    }

    /// `[[name, spec], ...]` as JSON: each direction, in the order of the records.
    fn links(&self) -> PyResult<String> {
        serde_json::to_string(self.0.links()).map_err(invalid)
    }

    /// The names of the hosts that a selection names.
    fn hosts(&self, selection: &str) -> PyResult<Vec<String>> {
        let hosts = self.0.select(selection).map_err(invalid)?;
        Ok(hosts.map(|host| self.0.host_name(host)).collect())
    }

    /// The names of the links from one host to another, in order.
    fn path(&self, source: &str, destination: &str) -> PyResult<Vec<String>> {
        let path = self.0.path(self.host(source)?, self.host(destination)?).map_err(invalid)?;
        Ok(path.into_iter().map(|link| self.0.links()[link as usize].0.clone()).collect())
    }
}

impl Topology {
    /// The one host that a selection names.
    fn host(&self, selection: &str) -> PyResult<u32> {
        let hosts = self.0.select(selection).map_err(invalid)?;
        if hosts.len() != 1 {
            let (count, first) = (hosts.len(), self.0.host_name(hosts.start));
            return Err(invalid(format_args!("{selection:?} names {count} hosts; write one, such as {first:?}")));
        }
        Ok(hosts.start)
    }
}

/// What each application's ends send, as JSON.
#[pyfunction]
pub(crate) fn datagram_flows(plan: &str) -> PyResult<String> {
    let plan = Plan::from_json(plan).map_err(invalid)?;
    serde_json::to_string(&observed::flows(&plan)).map_err(invalid)
}

/// The table `streams` of what testbeds saw, given as JSON; as columns of (NumPy dtype, bytes).
#[pyfunction]
pub(crate) fn stream_reports<'py>(py: Python<'py>, plan: &str, streams: &str) -> PyResult<Bound<'py, PyDict>> {
    let plan = Plan::from_json(plan).map_err(invalid)?;
    let mut rows = Vec::<StreamReport>::new();
    for seen in serde_json::from_str::<Vec<Observed>>(streams).map_err(invalid)? {
        let Observed { client, application, .. } = seen;
        let refused = || invalid(format_args!("no client {client} of application {application} can have seen this"));
        rows.push(observed::report(&plan, &seen).ok_or_else(refused)?);
    }
    columns(py, Row::columns(&rows))
}
