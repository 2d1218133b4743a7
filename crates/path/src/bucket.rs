//! A token bucket in place of a transmitter of packet after packet: the rule of Linux's htb.

use serde::{Deserialize, Serialize};

use crate::{Nanos, SpecError};

/// A token bucket as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSpec {
    /// Tokens that a full bucket holds.
    pub bytes: u32,
}

impl BucketSpec {
    /// Checks the sizes.
    pub(crate) fn validate(&self, rate_bps: Option<u64>) -> Result<(), SpecError> {
        if rate_bps.is_none() {
            return Err(SpecError::new("burst", "set on a link of unlimited rate", "set a rate, or leave burst out"));
        }
        if self.bytes == 0 {
            return Err(SpecError::new("burst.bytes", 0, "give at least 1"));
        }
        Ok(())
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
    /// When the last packet passes.
    start: Nanos,
}

impl Bucket {
    /// A full bucket that the rate fills in `depth`.
    pub(crate) fn new(depth: Nanos) -> Bucket {
        Bucket { depth, full_at: 0, start: 0 }
    }

    /// When a packet that arrives at `now` passes, and until when the tokens are negative after it. At the link's rate it
    /// takes `serialization`. If it `joins` the last one, it passes together with it.
    pub(crate) fn pass(&mut self, now: Nanos, joins: bool, serialization: Nanos) -> (Nanos, Nanos) {
        if !joins {
            self.start = self.full_at.saturating_sub(self.depth).max(now);
        }
        self.full_at = self.full_at.max(self.start).saturating_add(serialization);
        (self.start, self.full_at.saturating_sub(self.depth))
    }
}
