//! The link box: devices, the loop.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};

use firstflight_device::{PacketSocket, Tun, duplicate};
use firstflight_linkbox::{Device, Plan};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::{invalid, refused};

/// Opens a device in the calling thread's network namespace; its descriptor is the caller's.
#[pyfunction]
pub(crate) fn open_device(kind: &str, name: &str) -> PyResult<RawFd> {
    let opened = match kind {
        "tun" => Tun::open(name).map(OwnedFd::from),
        "packet" => PacketSocket::open(name, false).map(OwnedFd::from),
        _ => return Err(invalid(format_args!("a device is \"tun\" or \"packet\", not {kind:?}"))),
    };
    Ok(opened.map_err(refused)?.into_raw_fd())
}

/// Runs a box on devices given as (kind, descriptor) until its control socket says stop or closes. The
/// descriptors stay the caller's.
#[pyfunction]
pub(crate) fn run_box(py: Python<'_>, plan_json: &str, fds: Vec<(String, RawFd)>, control_fd: RawFd) -> PyResult<()> {
    let plan = Plan::from_json(plan_json).map_err(invalid)?;
    let control = duplicate(control_fd).map_err(refused)?;
    let mut devices = Vec::with_capacity(fds.len());
    for (kind, fd) in fds {
        devices.push(Device::adopt(&kind, duplicate(fd).map_err(refused)?)?);
    }
    until_raised(py, |interrupted| firstflight_linkbox::run(&plan, devices, control, interrupted))
}

/// Captures what passes an interface of the calling thread's network namespace until the control socket says stop or
/// closes.
#[pyfunction]
#[pyo3(signature = (interface, control_fd, mtu = 1500))]
pub(crate) fn run_capture(py: Python<'_>, interface: &str, control_fd: RawFd, mtu: u16) -> PyResult<()> {
    let control = duplicate(control_fd).map_err(refused)?;
    until_raised(py, |interrupted| firstflight_linkbox::capture(interface, mtu, control, interrupted))
}

/// Lets other threads run while `work` does; it asks, after a signal, whether Python's handler for it has raised.
pub(crate) fn until_raised<E: Send + std::fmt::Display>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<(), E> + Send,
) -> PyResult<()> {
    let mut raised = None;
    let ended = py.detach(|| {
        work(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        })
    });
    match raised {
        Some(error) => Err(error),
        None => ended.map_err(|error| PyRuntimeError::new_err(error.to_string())),
    }
}
