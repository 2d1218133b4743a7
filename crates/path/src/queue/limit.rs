//! The limit of a queue.

use serde::{Deserialize, Serialize};

use crate::SpecError;

/// A limit in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many bytes, headers included.
    Bytes(u64),
}

impl Limit {
    /// Checks that it is not zero.
    ///
    /// # Errors
    /// The parameter that is wrong.
    pub(super) fn validate(self) -> Result<Limit, SpecError> {
        match self {
            Limit::Packets(0) | Limit::Bytes(0) => {
                Err(SpecError::new("limit", 0, "a queue of zero holds nothing; give at least one packet"))
            }
            limit => Ok(limit),
        }
    }

    /// True if a queue with this content is over the limit.
    pub(super) fn is_exceeded_by(self, packets: u32, bytes: u64) -> bool {
        match self {
            Limit::Packets(limit) => packets > limit,
            Limit::Bytes(limit) => bytes > limit,
        }
    }
}
