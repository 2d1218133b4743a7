//! A token bucket in place of a line that transmits packet after packet: the rule of Linux's htb.

use serde::{Deserialize, Serialize};

use crate::{Nanos, OfferedPacket, SpecError};

/// A token bucket as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSpec {
    /// Tokens that a full bucket holds.
    pub bytes: u32,
    /// Data packets that pass as one, if they belong to one connection and arrive together: the segments of a GSO packet.
    #[serde(default = "one")]
    pub gso_max_segs: u32,
}

fn one() -> u32 {
    1
}

impl BucketSpec {
    /// Checks the sizes.
    ///
    /// # Errors
    /// The parameter that is wrong.
    pub(crate) fn validate(&self, rate_bps: Option<u64>) -> Result<(), SpecError> {
        if rate_bps.is_none() {
            return Err(SpecError::new("burst", "set on a link of unlimited rate", "set a rate, or leave burst out"));
        }
        let sizes = [("burst.bytes", self.bytes), ("burst.gso_max_segs", self.gso_max_segs)];
        match sizes.into_iter().find(|&(_, size)| size == 0) {
            Some((field, _)) => Err(SpecError::new(field, 0, "give at least 1")),
            None => Ok(()),
        }
    }
}

/// A bucket at work.
///
/// A packet passes, all of it at one moment, as soon as the tokens are not negative; they then fall by its whole size
/// (`htb_class_mode` and `htb_accnt_tokens` in Linux's `sch_htb.c`). Only the time at which the bucket will be full is
/// kept, as GCRA does (ITU-T I.371), so nothing has to be refilled.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Time in which the rate fills it.
    depth: Nanos,
    full_at: Nanos,
    gso_max_segs: u32,
    /// When the last packet came, and from which connection.
    last: (Nanos, u32),
    /// When it passes.
    start: Nanos,
    /// Segments of the GSO packet that it belongs to; 0: it carried no data.
    segments: u32,
}

impl Bucket {
    /// A full bucket that the rate fills in `depth`.
    pub(crate) fn new(spec: BucketSpec, depth: Nanos) -> Bucket {
        Bucket { depth, full_at: 0, gso_max_segs: spec.gso_max_segs, last: (0, 0), start: 0, segments: 0 }
    }

    /// When a packet that arrives at `now` passes, and until when the tokens are negative after it. At the link's rate it
    /// takes `serialization`.
    pub(crate) fn pass(&mut self, now: Nanos, packet: OfferedPacket, serialization: Nanos) -> (Nanos, Nanos) {
        let joins = packet.carries_data
            && (1..self.gso_max_segs).contains(&self.segments)
            && self.last == (now, packet.connection);
        if !joins {
            self.start = self.full_at.saturating_sub(self.depth).max(now);
            self.segments = 0;
        }
        self.segments += u32::from(packet.carries_data);
        self.last = (now, packet.connection);
        self.full_at = self.full_at.max(self.start).saturating_add(serialization);
        (self.start, self.full_at.saturating_sub(self.depth))
    }
}
