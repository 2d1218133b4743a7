//! What needs Linux: the link box and our TCP on the wire, connections as the kernel destroys them, and windows drawn for
//! those that it accepts.

use std::{
    borrow::Cow,
    os::fd::{IntoRawFd, OwnedFd, RawFd},
    path::PathBuf,
    time::Duration,
};

use firstflight_device::{self as device, Closed, Filter, PacketSocket, Tun, duplicate};
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

/// Runs a host of our TCP on an interface of the calling thread's network namespace until its control socket says stop
/// or closes. The control descriptor stays the caller's.
#[pyfunction]
pub(crate) fn run_wire(py: Python<'_>, plan_json: &str, interface: &str, control_fd: RawFd) -> PyResult<()> {
    let plan = firstflight_wire::Plan::from_json(plan_json).map_err(invalid)?;
    let control = duplicate(control_fd).map_err(refused)?;
    let socket = PacketSocket::open(interface, false).map_err(refused)?;
    until_raised(py, |interrupted| firstflight_wire::run(&plan, socket, control, interrupted))
}

/// Lets other threads run while `work` does; it asks, after a signal, whether Python's handler for it has raised.
fn until_raised<E: Send + std::fmt::Display>(
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

/// Network, data segments sent without retransmissions, retransmissions of data, DSACKs, bytes acknowledged, cwnd, smallest
/// RTT, delivery rate, marks, timeouts, the socket's cookie.
type Row = (Cow<'static, [u8]>, u32, u32, u32, u64, u32, Option<u32>, u64, u32, Option<u16>, u64);

/// The kernel's reports of destroyed TCP connections, in the network namespace of the thread that made it.
#[pyclass]
pub(crate) struct ClosedConnections(device::ClosedConnections);

#[pymethods]
impl ClosedConnections {
    #[new]
    fn new(ports: Vec<u16>, prefix_lengths: (u8, u8)) -> PyResult<Self> {
        Ok(Self(device::ClosedConnections::open(Filter { ports, prefix_lengths }).map_err(refused)?))
    }

    /// A row for each connection that is destroyed within `wait_s`, at most about `limit`.
    fn take(&mut self, py: Python<'_>, wait_s: f64, limit: usize) -> PyResult<Vec<Row>> {
        let wait = Duration::try_from_secs_f64(wait_s).map_err(invalid)?;
        let found = py.detach(|| self.0.take(wait, limit)).map_err(refused)?;
        Ok(found.iter().map(row).collect())
    }

    /// Connections reported, passed over, beyond the limit, and dropped by the kernel.
    fn counts(&self) -> PyResult<(u64, u64, u64, u64)> {
        let counts = self.0.counts().map_err(refused)?;
        Ok((counts.reported, counts.passed_over, counts.beyond, counts.dropped))
    }
}

fn row(closed: &Closed) -> Row {
    let network = &closed.network;
    let network = if network[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] { &network[12..] } else { network };
    (
        Cow::Owned(network.to_vec()),
        closed.data_segments.saturating_sub(closed.data_retransmissions()),
        closed.data_retransmissions(),
        closed.dsacks,
        closed.acked_bytes,
        closed.cwnd,
        closed.min_rtt_us,
        closed.delivery_rate,
        closed.marks,
        closed.timeouts.or(closed.ended_in_loss.then_some(1)),
        closed.cookie,
    )
}

/// A BPF program on a cgroup that draws each accepted connection's initial window.
#[pyclass(frozen)]
pub(crate) struct DrawnWindows(device::DrawnWindows);

#[pymethods]
impl DrawnWindows {
    #[new]
    fn new(cgroup: PathBuf, ports: Vec<u16>, compared: u32) -> PyResult<Self> {
        Ok(Self(device::DrawnWindows::attach(&cgroup, &ports, compared).map_err(refused)?))
    }

    /// Draws `segments` with probability `share` for connections to a network, given as 4 or 16 bytes.
    fn set(&self, network: &[u8], length: u8, segments: u32, share: f64) -> PyResult<()> {
        let (network, length) = mapped(network, length)?;
        self.0.set(network, length, segments, share).map_err(refused)
    }

    /// Draws nothing for connections to a network any more.
    fn remove(&self, network: &[u8], length: u8) -> PyResult<()> {
        let (network, length) = mapped(network, length)?;
        self.0.remove(network, length).map_err(refused)
    }

    /// The window drawn for a socket and whether its first flight lost a segment; None if nothing was drawn.
    fn take(&self, cookie: u64) -> PyResult<Option<(u32, bool)>> {
        let drawn = self.0.take(cookie).map_err(refused)?;
        Ok(drawn.map(|drawn| (drawn.segments, drawn.first_flight_lost)))
    }
}

/// IPv4 mapped into IPv6, with the length of its prefix there.
fn mapped(network: &[u8], length: u8) -> PyResult<([u8; 16], u8)> {
    let mut address = [0; 16];
    match network.len() {
        4 => {
            address[10..12].copy_from_slice(&[0xff; 2]);
            address[12..].copy_from_slice(network);
            Ok((address, length + 96))
        }
        16 => {
            address.copy_from_slice(network);
            Ok((address, length))
        }
        other => Err(invalid(format!("a network of {other} bytes"))),
    }
}
