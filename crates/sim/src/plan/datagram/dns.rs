//! Look-ups of names: those of a separate application, and those that a page waits for.

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{Datagrams, Flow};
use crate::distribution::Distribution;

/// Look-ups of names: a query, repeated until an answer arrives, and an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queries {
    /// Payload of a query.
    pub query_bytes: u32,
    /// Payload of an answer.
    pub answer: Distribution,
    /// Seconds that the server needs to find an answer.
    pub resolve: Distribution,
    /// Timeout of a client's first query.
    pub timeout_ns: Nanos,
    /// Factor of the timeout of each further one.
    pub backoff: f64,
    /// Queries before it gives up.
    pub attempts: u32,
    pub datagram_header_bytes: u32,
}

/// Look-ups one after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dns {
    /// How.
    #[serde(flatten)]
    pub queries: Queries,
    /// Seconds between a look-up and the next.
    pub think: Distribution,
    /// Look-ups of a client; none: no end.
    pub count: Option<u32>,
}

/// The names of a page's hosts, each looked up before a connection is opened to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// How.
    #[serde(flatten)]
    pub queries: Queries,
    /// Validity of an answer; none: to the end of the run.
    pub ttl_ns: Option<Nanos>,
}

impl Datagrams for Queries {
    fn flows(&self) -> Vec<Flow> {
        let flow = |from_server: bool, payload: Distribution| Flow {
            interval: self.timeout_ns,
            payload,
            header_bytes: self.datagram_header_bytes,
            ..Flow::new(from_server)
        };
        vec![
            flow(false, Distribution::Constant { value: f64::from(self.query_bytes) }),
            flow(true, self.answer.clone()),
        ]
    }

    fn validate(&self) -> Result<(), SpecError> {
        if self.attempts == 0 {
            return Err(SpecError::new("attempts", 0, "a lookup needs at least one query"));
        }
        if !(self.backoff >= 1.0 && self.backoff.is_finite()) {
            return Err(SpecError::new("backoff", self.backoff, "it must be at least 1"));
        }
        self.resolve.validate("resolve")?;
        self.flows().iter().try_for_each(Flow::validate)
    }
}

impl Datagrams for Dns {
    fn flows(&self) -> Vec<Flow> {
        self.queries.flows()
    }

    fn validate(&self) -> Result<(), SpecError> {
        if self.count == Some(0) {
            return Err(SpecError::new("count", 0, "leave it out for no end, or give at least 1"));
        }
        self.think.validate("think")?;
        self.queries.validate()
    }
}
