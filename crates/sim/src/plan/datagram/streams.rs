//! Datagrams of one size at a constant rate; and games, in which a client sends its player's actions and the server the
//! state of the world at each tick.

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{Datagrams, Flow, Play, Ways};
use crate::distribution::Distribution;

/// A stream of constant bit rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantRate {
    /// Bits a second, headers included.
    pub rate_bps: u64,
    /// Bytes of a datagram's payload.
    pub payload_bytes: u32,
    pub datagram_header_bytes: u32,
    /// The sending endpoints.
    pub direction: Ways,
    /// Its duration; none: to the end of the run.
    pub length_ns: Option<Nanos>,
    /// A datagram that takes longer is late; none: none is.
    pub deadline_ns: Option<Nanos>,
}

impl ConstantRate {
    /// Time between two datagrams, to the nearest nanosecond.
    fn interval(&self) -> Nanos {
        let bits = 8 * (u64::from(self.payload_bytes) + u64::from(self.datagram_header_bytes));
        (u128::from(bits) * 1_000_000_000 + u128::from(self.rate_bps / 2))
            .checked_div(self.rate_bps.into())
            .unwrap_or(0) as Nanos
    }
}

impl Datagrams for ConstantRate {
    fn flows(&self) -> Vec<Flow> {
        let flow = |&from_server: &bool| Flow {
            interval: self.interval(),
            payload: Distribution::Constant { value: f64::from(self.payload_bytes) },
            header_bytes: self.datagram_header_bytes,
            length: self.length_ns,
            play: self.deadline_ns.map_or(Play::Always, Play::AfterSending),
            ..Flow::new(from_server)
        };
        self.direction.senders().iter().map(flow).collect()
    }

    fn validate(&self) -> Result<(), SpecError> {
        if self.rate_bps == 0 {
            return Err(SpecError::new("rate_bps", 0, "give at least 1"));
        }
        self.flows().iter().try_for_each(Flow::validate)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Game {
    /// Time between two datagrams of a client.
    pub client_interval_ns: Nanos,
    /// Time between two ticks of the server, at which it sends to all clients.
    pub tick_ns: Nanos,
    /// Payload of a client's datagram.
    pub client_payload: Distribution,
    /// Payload of a server's.
    pub server_payload: Distribution,
    pub datagram_header_bytes: u32,
    /// Duration of a client's game; none: to the end of the run.
    pub length_ns: Option<Nanos>,
    /// A datagram that takes longer is late; none: none is.
    pub deadline_ns: Option<Nanos>,
}

impl Datagrams for Game {
    fn flows(&self) -> Vec<Flow> {
        let flow = |from_server: bool, interval: Nanos, payload: &Distribution| Flow {
            interval,
            payload: payload.clone(),
            header_bytes: self.datagram_header_bytes,
            length: self.length_ns,
            play: self.deadline_ns.map_or(Play::Always, Play::AfterSending),
            at_ticks: from_server,
            ..Flow::new(from_server)
        };
        vec![flow(false, self.client_interval_ns, &self.client_payload), flow(true, self.tick_ns, &self.server_payload)]
    }

    fn validate(&self) -> Result<(), SpecError> {
        self.flows().iter().try_for_each(Flow::validate)
    }
}
