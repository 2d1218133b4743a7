//! GSO packets: segments that reach a link together and take one place in its queue.

use serde::{Deserialize, Serialize};

use crate::{
    Nanos, OfferedPacket, SpecError,
    queue::{DropTailSpec, Limit, QueueSpec, Verdict},
};

/// Which data packets of one connection that arrive at one moment are the segments of one GSO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GsoSpec {
    /// Up to so many; none: those of one train of the sender.
    pub max_segs: Option<u32>,
}

impl GsoSpec {
    /// Checks the number, and that the queue counts packets as they arrive.
    pub(crate) fn validate(self, queue: &QueueSpec) -> Result<(), SpecError> {
        if self.max_segs == Some(0) {
            return Err(SpecError::new("gso.max_segs", 0, "give at least 1"));
        }
        match queue {
            QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(_), .. }) => Ok(()),
            _ => Err(SpecError::new("gso", "set", "give the link a drop-tail queue with a limit in packets")),
        }
    }
}

/// The GSO packet that came last.
#[derive(Clone, Debug)]
pub(crate) struct Gso {
    max_segs: Option<u32>,
    /// When its last segment came, and from which connection.
    last: (Nanos, u32),
    /// Its segments; 0: no other joins it.
    segments: u32,
    /// The last segment belongs to the GSO packet of the one before.
    pub(crate) joins: bool,
    verdict: Verdict,
}

impl Gso {
    pub(crate) fn new(spec: GsoSpec) -> Gso {
        Gso { max_segs: spec.max_segs, last: (0, 0), segments: 0, joins: false, verdict: Verdict::Drop }
    }

    /// The verdict on the GSO packet that this segment is a part of; `decide` gives that on one that begins.
    pub(crate) fn judge(&mut self, now: Nanos, packet: OfferedPacket, decide: impl FnOnce() -> Verdict) -> Verdict {
        self.joins = packet.carries_data
            && (1..self.max_segs.unwrap_or(u32::MAX)).contains(&self.segments)
            && self.last == (now, packet.connection);
        self.segments = if self.joins { self.segments + 1 } else { u32::from(packet.carries_data) };
        if self.max_segs.is_none() && packet.ends_train {
            self.segments = 0;
        }
        self.last = (now, packet.connection);
        if !self.joins {
            self.verdict = decide();
        }
        self.verdict
    }
}
