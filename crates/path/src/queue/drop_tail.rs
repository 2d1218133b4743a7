//! Drop tail: a packet is refused when the queue is full.

use super::{Arrival, Limit, Verdict};
use crate::{Nanos, SpecError, spec::spec};

spec! {
    /// First in, first out; arrivals at a full queue are dropped.
    ///
    /// `counts_packet_in_service`: whether the packet being transmitted takes a place. It does for ns-2 (measured with
    /// ns-2.35), whose "25" means 24 packets that wait and one in service; it does not for ns-3 and Linux.
    pub struct DropTailSpec {
        /// limit; packets that arrive beyond it are dropped
        limit: Limit,
        /// count the packet in service against `limit`
        #[serde(default)]
        counts_packet_in_service: bool = false,
    }
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
    /// A limit of zero.
    pub fn new(spec: &DropTailSpec, _serialization: &impl Fn(u32) -> Nanos) -> Result<DropTail, SpecError> {
        Ok(DropTail { limit: spec.limit.validate()?, counts_packet_in_service: spec.counts_packet_in_service })
    }

    /// Packets and bytes that may wait while one is in service; 0 for a unit that is not limited, or not by the waiting
    /// packets alone.
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
                // A packet that finds none in service does not wait.
                !arrival.serving || arrival.packets(self.counts_packet_in_service) < limit
            }
            Limit::Bytes(limit) => {
                !arrival.serving
                    || arrival.bytes_held(self.counts_packet_in_service) + u64::from(arrival.bytes) <= limit
            }
        };
        if fits { Verdict::Admit } else { Verdict::Drop }
    }
}
