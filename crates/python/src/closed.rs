//! Connections as the kernel destroys them.

use std::{borrow::Cow, time::Duration};

use firstflight_device::{self as device, Closed, Filter};
use pyo3::prelude::*;

/// Network, data segments sent without retransmissions, retransmissions of data, DSACKs, bytes acknowledged, cwnd, smallest
/// RTT, delivery rate, marks, timeouts.
type Row = (Cow<'static, [u8]>, u32, u32, u32, u64, u32, Option<u32>, u64, u32, Option<u16>);

/// The kernel's reports of destroyed TCP connections, in the network namespace of the thread that made it.
#[pyclass]
pub(crate) struct ClosedConnections(device::ClosedConnections);

#[pymethods]
impl ClosedConnections {
    #[new]
    fn new(ports: Vec<u16>, prefix_lengths: (u8, u8)) -> PyResult<Self> {
        Ok(Self(device::ClosedConnections::open(Filter { ports, prefix_lengths })?))
    }

    /// A row for each connection that is destroyed within `wait_s`, at most about `limit`.
    fn take(&mut self, py: Python<'_>, wait_s: f64, limit: usize) -> PyResult<Vec<Row>> {
        let wait = Duration::try_from_secs_f64(wait_s).map_err(crate::invalid)?;
        let found = py.detach(|| self.0.take(wait, limit))?;
        Ok(found.iter().map(row).collect())
    }

    /// Connections reported, passed over, beyond the limit, and dropped by the kernel.
    fn counts(&self) -> PyResult<(u64, u64, u64, u64)> {
        let counts = self.0.counts()?;
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
        (closed.min_rtt_us != u32::MAX).then_some(closed.min_rtt_us),
        closed.delivery_rate,
        closed.marks,
        closed.timeouts.or(closed.ended_in_loss.then_some(1)),
    )
}
