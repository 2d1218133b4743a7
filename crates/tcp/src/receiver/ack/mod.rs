//! When the receiver acknowledges data that arrived in order.

mod adaptive;

use crate::Nanos;
pub(crate) use adaptive::Arrivals;
pub use adaptive::{AdaptiveAck, SackCompression};
use serde::{Deserialize, Serialize};

/// Policy for acknowledgments. Out-of-order data, a filled hole and a FIN are acknowledged immediately under each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum AckPolicy {
    /// Every data segment immediately.
    EverySegment,
    /// After this number of segments, or when a timer that starts with the first unacknowledged one expires.
    Delayed {
        /// Data segments per acknowledgment, at least 1.
        segments: u32,
        /// Longest wait of a segment for its acknowledgment.
        timer_ns: Nanos,
    },
    /// After this number of segments, or at the next beat of a clock that runs from time 0 (BSD's fast timer).
    Heartbeat {
        /// Data segments per acknowledgment, at least 1.
        segments: u32,
        /// Time between two beats.
        interval_ns: Nanos,
        /// Bytes at the start of the connection, and again after out-of-order data, of which every segment is
        /// acknowledged immediately; none: the rule above holds throughout.
        // ns-2's BayFullTcp, need_send(): `switch_spa_thresh_` is 16 kB beyond RCV.NXT.
        every_segment_bytes: Option<u32>,
    },
    /// As Linux: immediately at the start of a connection, then for more than one full segment, or after a delay that
    /// follows the pace of arriving data; short segments are acknowledged as the application reads them, and data
    /// that is answered is acknowledged by the answer.
    Adaptive(AdaptiveAck),
}

/// The response to a data segment that arrived in order.
pub(crate) enum Verdict {
    AtOnce,
    Until(Nanos),
    /// It depends on more than the number of segments: `Endpoint::acknowledge_adaptively`.
    Adaptive,
}

impl AckPolicy {
    /// Decides about the `waiting`-th data segment (counted from 1) since the last acknowledgment was sent;
    /// `wants_each`: whether the receiver is in the bytes of which every segment is acknowledged.
    #[inline]
    pub(crate) fn on_data(self, now: Nanos, waiting: u32, wants_each: impl FnOnce() -> bool) -> Verdict {
        match self {
            Self::EverySegment => Verdict::AtOnce,
            // RFC 5681 §4.2: an ACK SHOULD be generated for at least every second full-sized segment, and MUST be
            // generated within 500 ms of the arrival of the first unacknowledged packet.
            Self::Delayed { segments, timer_ns } => {
                if waiting >= segments {
                    Verdict::AtOnce
                } else {
                    Verdict::Until(now.saturating_add(timer_ns))
                }
            }
            Self::Heartbeat { segments, interval_ns, every_segment_bytes } => {
                if waiting >= segments || every_segment_bytes.is_some() && wants_each() {
                    Verdict::AtOnce
                } else {
                    Verdict::Until((now / interval_ns).saturating_add(1).saturating_mul(interval_ns))
                }
            }
            Self::Adaptive(_) => Verdict::Adaptive,
        }
    }
}
