//! Drop tail: a packet is refused when the queue is full.

use serde::{Deserialize, Serialize};

use super::{Arrival, Limit, Verdict};
use crate::{Nanos, SpecError};

/// Drop tail as a scenario describes it: exactly one of the limits is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropTailSpec {
    /// Packets held.
    #[serde(default)]
    pub limit_packets: Option<u32>,
    /// Bytes held.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// True if the packet on the line counts against the limit. It does for ns-2, whose "25" means 24 packets that
    /// wait and one on the line; it does not for ns-3, Linux and this project's default.
    #[serde(default)]
    pub counts_packet_in_service: bool,
}

/// A drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    counts_packet_in_service: bool,
}

impl DropTail {
    /// Builds the queue.
    ///
    /// # Errors
    /// No limit, two limits, or a limit of zero.
    pub fn new(spec: &DropTailSpec, _serialization: &impl Fn(u32) -> Nanos) -> Result<DropTail, SpecError> {
        let limit = match (spec.limit_packets, spec.limit_bytes) {
            (Some(packets), None) => Limit::Packets(packets),
            (None, Some(bytes)) => Limit::Bytes(bytes),
            (packets, _) => {
                let found = if packets.is_some() { "given twice" } else { "missing" };
                let right = "a drop-tail queue takes exactly one of limit_packets and limit_bytes";
                return Err(SpecError::new("limit", found, right));
            }
        };
        let limit = limit.validate()?;
        Ok(DropTail { limit, counts_packet_in_service: spec.counts_packet_in_service })
    }

    /// Packets and bytes that may wait on a busy line; 0 for a unit that is not limited, or not by the waiting packets
    /// alone.
    pub(crate) fn room(&self) -> (u32, u64) {
        match self.limit {
            Limit::Packets(limit) => (limit - u32::from(self.counts_packet_in_service), 0),
            Limit::Bytes(limit) if !self.counts_packet_in_service => (0, limit),
            Limit::Bytes(_) => (0, 0),
        }
    }

    /// True if the arriving packet fits. Nothing is left to chance.
    #[inline]
    pub fn on_arrival(&mut self, arrival: Arrival<'_>, _random: &mut impl FnMut() -> f64) -> Verdict {
        let fits = match self.limit {
            Limit::Packets(limit) => {
                // A packet that finds the line idle does not wait.
                !arrival.line_busy || arrival.packets(self.counts_packet_in_service) < limit
            }
            Limit::Bytes(limit) => {
                !arrival.line_busy
                    || arrival.bytes_held(self.counts_packet_in_service) + u64::from(arrival.bytes) <= limit
            }
        };
        if fits { Verdict::Admit } else { Verdict::Drop }
    }
}
