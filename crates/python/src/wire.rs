//! Our TCP on the wire.

use std::os::fd::RawFd;

use firstflight_device::{PacketSocket, duplicate};
use firstflight_wire::Plan;
use pyo3::prelude::*;

use crate::{invalid, linkbox::until_raised, refused};

/// Runs a host of our TCP on an interface of the calling thread's network namespace until its control socket says stop
/// or closes. The control descriptor stays the caller's.
#[pyfunction]
pub(crate) fn run_wire(py: Python<'_>, plan_json: &str, interface: &str, control_fd: RawFd) -> PyResult<()> {
    let plan = Plan::from_json(plan_json).map_err(invalid)?;
    let control = duplicate(control_fd).map_err(refused)?;
    let socket = PacketSocket::open(interface, false).map_err(refused)?;
    until_raised(py, |interrupted| firstflight_wire::run(&plan, socket, control, interrupted))
}
