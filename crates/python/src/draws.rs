//! The simulator's draws, for the real programs of a testbed.

use firstflight_sim::{
    distribution::Distribution,
    random::{Purpose, Stream},
};
use pyo3::prelude::*;

use crate::invalid;

/// A law of sizes or times, given as JSON.
#[pyclass(frozen)]
pub(crate) struct Law(Distribution);

#[pymethods]
impl Law {
    #[new]
    fn new(law: &str) -> PyResult<Self> {
        serde_json::from_str(law).map(Self).map_err(invalid)
    }
}

/// A draw of one client of one application in a replicate: from a law, or else uniform in [0, 1).
#[pyfunction]
#[pyo3(signature = (owner, purpose, index, law = None))]
pub(crate) fn draw(owner: (u64, u32, u32, u32), purpose: &str, index: u64, law: Option<&Law>) -> PyResult<f64> {
    let purpose = match purpose {
        "start" => Purpose::Start,
        "think" => Purpose::Think,
        "request_size" => Purpose::RequestSize,
        "response_size" => Purpose::ResponseSize,
        "inline_count" => Purpose::InlineCount,
        "server" => Purpose::Server,
        "share" => Purpose::Share,
        "arm" => Purpose::Arm,
        "handshake" => Purpose::Handshake,
        other => return Err(invalid(format_args!("nothing is drawn here for {other:?}"))),
    };
    let (seed, replicate, application, client) = owner;
    let stream = Stream::new(seed, replicate, purpose, application, client);
    Ok(law.map_or_else(|| stream.uniforms(index)[0], |law| law.0.draw(&stream, index)))
}
