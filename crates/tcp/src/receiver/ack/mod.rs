//! When the receiver acknowledges data that arrived in order.

mod adaptive;

use crate::Nanos;
use crate::profile::AckPolicy;
pub(crate) use adaptive::Arrivals;

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
