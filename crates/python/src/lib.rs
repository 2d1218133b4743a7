//! The Python binding: plans in, tables out. No logic lives here.

mod draws;
mod laws;
#[cfg(target_os = "linux")]
mod linux;
mod observe;
mod plans;

use std::{collections::BTreeMap, fmt::Display, hint::black_box, path::PathBuf, time::Instant};

use firstflight_path::{LinkSpec, ScheduleSpec};
use firstflight_pcap::FileError;
use firstflight_records::{COUNTED, DIMENSIONS, GAMMA, SCHEMA_VERSION, TABLES, table::Declared};
use firstflight_sim::{
    Plan, capture_file,
    records::Records,
    scheduler::{MAX_SOURCES, Scheduler},
    table::NamedColumns,
    tap::Place,
};
use firstflight_tcp::{Choices, CongestionState, Deadline, InitialWindow, Profile, Trigger, event_words};
use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict},
};

/// A request that is wrong, as Python's ValueError.
fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What the kernel refused, as Python's OSError with its number and its words.
#[cfg(target_os = "linux")]
fn refused(error: std::io::Error) -> PyErr {
    let text = error.to_string();
    // Python shows the number itself.
    let words = text.split(" (os error").next().unwrap_or_default().to_owned();
    match error.raw_os_error() {
        Some(number) => pyo3::exceptions::PyOSError::new_err((number, words)),
        None => error.into(),
    }
}

/// The version of the native code.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The TCP profiles with all their fields, as JSON.
#[pyfunction]
fn profiles() -> PyResult<String> {
    let profiles: BTreeMap<&str, Option<Profile>> =
        Profile::NAMES.iter().map(|name| (*name, Profile::named(name))).collect();
    serde_json::to_string(&profiles).map_err(invalid)
}

/// Checks a profile, given as JSON.
#[pyfunction]
fn check_profile(profile: &str) -> PyResult<()> {
    let read: Profile = serde_json::from_str(profile).map_err(invalid)?;
    read.validate().map_err(invalid)
}

/// The initial window in bytes by a policy, given as JSON, for segments of so many bytes.
#[pyfunction]
fn initial_window_bytes(policy: &str, mss_bytes: u32) -> PyResult<u32> {
    let policy: InitialWindow = serde_json::from_str(policy).map_err(invalid)?;
    Ok(policy.window_bytes(mss_bytes))
}

/// A column of the records: name, type in NumPy's spelling (none: names), unit, meaning, the value for null.
type SchemaColumn = (&'static str, Option<&'static str>, &'static str, &'static str, Option<f64>);

/// The columns of each table of the records.
#[pyfunction]
fn record_tables() -> Vec<(&'static str, Vec<SchemaColumn>)> {
    let column = |of: &Declared| (of.name, (!of.is_name).then_some(of.dtype), of.unit, of.meaning.trim(), of.null);
    TABLES.iter().map(|&(name, columns)| (name, columns.iter().map(column).collect())).collect()
}

/// What the fields of a profile that have a choice can be set to, as JSON.
#[pyfunction]
fn choices() -> PyResult<String> {
    serde_json::to_string(&Choices::all()).map_err(invalid)
}

/// The queues, losses, rates and impairments that a link can have, as JSON.
#[pyfunction]
fn link_parts() -> PyResult<String> {
    serde_json::to_string(&BTreeMap::from(firstflight_path::parts())).map_err(invalid)
}

/// The key, value and correction of what no link can have, in one given as JSON.
#[pyfunction]
fn check_link(link: &str) -> PyResult<Option<(&'static str, String, String)>> {
    let link: LinkSpec = serde_json::from_str(link).map_err(invalid)?;
    Ok(link.check().err().map(|error| (error.field, error.found, error.right)))
}

/// The mean of a rate that changes, given as JSON.
#[pyfunction]
fn mean_rate_bps(schedule: &str) -> PyResult<u64> {
    let schedule: ScheduleSpec = serde_json::from_str(schedule).map_err(invalid)?;
    schedule.mean_bps().map_err(invalid)
}

/// Simulates replicates of a plan; the columns come as (NumPy dtype, bytes).
#[pyfunction]
#[pyo3(signature = (plan, seed, first_replicate, replicates, capture = false))]
fn simulate<'py>(
    py: Python<'py>,
    plan: &str,
    seed: u64,
    first_replicate: u32,
    replicates: u32,
    capture: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let last = first_replicate
        .checked_add(replicates)
        .ok_or_else(|| invalid(format_args!("replicate numbers end at {}", u32::MAX)))?;
    let records = py
        .detach(|| firstflight_sim::simulate(&Plan::from_json(plan)?, seed, first_replicate..last, capture))
        .map_err(invalid)?;
    to_python(py, records)
}

/// Simulates one replicate and writes the packets that pass a place to a capture file; returns how many there are.
/// The place is that of the first client or server, or the far end of the link that is named. The packets are of IPv4,
/// or of `ipv6`.
#[pyfunction]
#[pyo3(signature = (plan, seed, replicate, path, comment, at = "client", link = None, ipv6 = false))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
fn write_packets(
    py: Python<'_>,
    plan: &str,
    seed: u64,
    replicate: u32,
    path: PathBuf,
    comment: &str,
    at: &str,
    link: Option<String>,
    ipv6: bool,
) -> PyResult<usize> {
    let place = match (link, at) {
        (Some(name), _) => Place::Link(name),
        (None, "client") => Place::Client,
        (None, "server") => Place::Server,
        (None, other) => {
            return Err(invalid(format_args!("packets are taken at \"client\" or \"server\", not at {other:?}")));
        }
    };
    py.detach(|| {
        let plan = Plan::from_json(plan).map_err(invalid)?;
        let watched = firstflight_sim::watch(&plan, seed, replicate, &place).map_err(invalid)?;
        match capture_file::write(&watched, &path, comment, ipv6) {
            Ok(()) => Ok(watched.packets.len()),
            Err(error @ FileError::Io { .. }) => Err(PyOSError::new_err(error.to_string())),
            Err(error @ FileError::Packet(_)) => Err(invalid(error)),
        }
    })
}

fn to_python(py: Python<'_>, records: Records) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    names.set_item("links", &records.link_names)?;
    names.set_item("applications", &records.application_names)?;
    names.set_item("states", CongestionState::NAMES)?;
    names.set_item("triggers", Trigger::NAMES)?;
    let counts = PyDict::new(py);
    for (name, count) in records.counts.named() {
        counts.set_item(name, count)?;
    }
    let tables = PyDict::new(py);
    for columns in records.into_tables() {
        tables.set_item(columns.0, self::columns(py, columns)?)?;
    }
    let result = PyDict::new(py);
    result.set_item("names", names)?;
    result.set_item("tables", tables)?;
    result.set_item("counts", counts)?;
    Ok(result)
}

/// A table as {column: (NumPy dtype, bytes)}.
fn columns(py: Python<'_>, (_, columns): NamedColumns) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for (column, values) in columns {
        table.set_item(column, (values.dtype, PyBytes::new(py, &values.bytes)))?;
    }
    Ok(table)
}

/// Runs a packet script; the report comes as JSON, with the `%{ }%` blocks still to be evaluated.
#[pyfunction]
fn run_script(py: Python<'_>, text: &str, tolerance_ns: u64) -> PyResult<String> {
    let report = py.detach(|| firstflight_script::run_text(text, tolerance_ns));
    serde_json::to_string(&report).map_err(invalid)
}

/// Nanoseconds for taking the earliest event and scheduling the next one of its source, with events of `sources`
/// sources pending at uneven times.
#[pyfunction]
fn scheduler_cost(py: Python<'_>, sources: u32, operations: u64) -> PyResult<f64> {
    if sources == 0 || sources as usize > MAX_SOURCES || operations == 0 {
        return Err(invalid(format_args!(
            "the cost is measured for 1 to {MAX_SOURCES} sources and at least one operation, not for {sources} and \
             {operations}"
        )));
    }
    Ok(py.detach(|| {
        let mut tree = Scheduler::new(sources as usize);
        // Any full-period generator will do: the times need only be uneven.
        let mut state = 1u64;
        let mut uneven = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 54
        };
        for source in 0..sources {
            tree.set(source, Deadline::at(uneven()));
        }
        let start = Instant::now();
        for _ in 0..operations {
            let (time, source) = black_box(tree.earliest());
            let _is_alone = tree.follow(time, source, Deadline::NEVER);
            tree.set(source, Deadline::at(time + uneven()));
        }
        start.elapsed().as_nanos() as f64 / operations as f64
    }))
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        check_link, check_profile, choices, initial_window_bytes, link_parts, mean_rate_bps, profiles, record_tables,
        run_script, scheduler_cost, simulate, version, write_packets,
    };
    #[pymodule_export]
    use crate::draws::{Law, draw};
    #[pymodule_export]
    use crate::laws::{chi_squared_tail, normal_cdf, student_cdf, student_quantile};
    // What emulation and the guard need; on other systems the module has none of it.
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::linux::{ClosedConnections, DrawnWindows, open_device, run_box, run_capture, run_wire};
    #[pymodule_export]
    use crate::observe::CaptureReader;
    #[pymodule_export]
    use crate::plans::{Topology, datagram_flows, draw_users, stream_reports};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(target_os = "linux")]
        module.add("CALIBRATED_BPS", firstflight_linkbox::CALIBRATED_BPS)?;
        module.add("SCHEMA_VERSION", super::SCHEMA_VERSION)?;
        module.add("COUNTED", super::COUNTED)?;
        module.add("DIMENSIONS", super::DIMENSIONS)?;
        module.add("SENDER_EVENTS", super::event_words())?;
        module.add("GAMMA", super::GAMMA)
    }
}
