//! When the receiver acknowledges data.

use super::with_defaults;
use crate::{MILLISECOND, Nanos};
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

with_defaults! {
    /// Parameters of the adaptive policy, by default Linux's.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct AdaptiveAck {
        /// Shortest delay of an acknowledgment, and the first one (Linux: `TCP_ATO_MIN`, `TCP_DELACK_MIN`).
        delay_min_ns: Nanos = 40 * MILLISECOND,
        /// Longest delay (Linux: `TCP_DELACK_MAX`).
        delay_max_ns: Nanos = 200 * MILLISECOND,
        /// Acknowledgments sent without delay at the start, after an idle time and after trouble, at most (Linux:
        /// `TCP_MAX_QUICKACKS`).
        max_quickacks: u16 = 16,
        /// How acknowledgments of data that arrives ahead of a hole are merged; none: each segment is acknowledged
        /// immediately.
        sack_compression: Option<SackCompression> = Some(SackCompression::DEFAULT),
    }
}

with_defaults! {
    /// Acknowledgments with selective blocks, after the third for one hole: few are sent for many segments.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SackCompression {
        /// Longest wait (Linux: `tcp_comp_sack_delay_ns`, 1 ms).
        delay_max_ns: Nanos = MILLISECOND,
        /// The wait is the RTT divided by this number, at least 1 (Linux: 20).
        rtt_divisor: u32 = 20,
        /// Most segments for one acknowledgment (Linux: `tcp_comp_sack_nr`, 44).
        max_segments: u16 = 44,
    }
}
