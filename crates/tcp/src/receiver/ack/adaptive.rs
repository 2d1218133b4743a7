//! Acknowledgements as a Linux receiver sends them: at once while the sender is in slow start, every second segment
//! when data flows one way, and in answers when it goes back and forth.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Smallest and largest first guess at the segment size of the peer.
const SMALLEST_SEGMENT: u32 = 88;
const DEFAULT_SEGMENT: u32 = 536;

/// Parameters of the adaptive policy; Linux's are 40 ms, 200 ms and 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveAck {
    /// Shortest delay of an acknowledgement, and the first one (Linux: `TCP_ATO_MIN`, `TCP_DELACK_MIN`).
    pub delay_min_ns: Nanos,
    /// Longest delay (Linux: `TCP_DELACK_MAX`).
    pub delay_max_ns: Nanos,
    /// Acknowledgements sent without delay at the start, after an idle time and after trouble, at most (Linux:
    /// `TCP_MAX_QUICKACKS`).
    pub quick_segments: u16,
}

/// What the policy knows of the data that arrives. Names in brackets are those of Linux's `inet_connection_sock`.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    /// The policy's parameters.
    rules: AdaptiveAck,
    /// When data last arrived in order [lrcvtime].
    received_at: Nanos,
    /// Interval at which data arrives, 0 before there was any [ato].
    interval: Nanos,
    /// Segment size of the peer [rcv_mss].
    pub segment_bytes: u32,
    /// Size of the last segment, if it was shorter [last_seg_size].
    short_bytes: u32,
    /// Acknowledgements still to be sent at once [quick].
    quick: u16,
    /// Whether data goes back and forth, so that acknowledgements ride on it [pingpong].
    pub interactive: bool,
    /// Something that arrived is not acknowledged yet [ICSK_ACK_SCHED].
    pub scheduled: bool,
    /// Short segments among what is not acknowledged: one [ICSK_ACK_PUSHED], several [ICSK_ACK_PUSHED2].
    pushed: bool,
    pushed_twice: bool,
}

/// A data segment that arrived in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Length of the payload.
    pub bytes: u32,
    /// The length plus those options that not every segment has.
    pub bytes_with_sack: u32,
    /// PSH or FIN is set.
    pub ends: bool,
    /// Segment size that we announced, less the options that every segment has.
    pub largest_bytes: u32,
    /// Receive window in force.
    pub window_bytes: u32,
    pub rto: Nanos,
}

impl Arrivals {
    pub(crate) fn new(rules: AdaptiveAck) -> Self {
        Self {
            rules,
            received_at: 0,
            interval: 0,
            segment_bytes: DEFAULT_SEGMENT,
            short_bytes: 0,
            quick: 0,
            interactive: false,
            scheduled: false,
            pushed: false,
            pushed_twice: false,
        }
    }

    /// The handshake tells the segment size and the receive window.
    pub(crate) fn begin(&mut self, now: Nanos, mss_bytes: u32, window_bytes: u32) {
        self.received_at = now;
        self.segment_bytes = mss_bytes.min(window_bytes / 2).clamp(SMALLEST_SEGMENT, DEFAULT_SEGMENT);
    }

    /// Data arrived in order.
    pub(crate) fn on_data(&mut self, now: Nanos, arrival: &Arrival) {
        self.scheduled = true;
        self.measure_segment(arrival);
        if self.interval == 0 {
            // The first data: the sender is in slow start and needs every acknowledgement.
            self.raise_quick(self.rules.quick_segments, arrival.window_bytes);
            self.interval = self.rules.delay_min_ns;
        } else {
            let gap = now.saturating_sub(self.received_at);
            if gap <= self.rules.delay_min_ns / 2 {
                self.interval = self.interval / 2 + self.rules.delay_min_ns / 2;
            } else if gap < self.interval {
                self.interval = (self.interval / 2 + gap).min(arrival.rto);
            } else if gap > arrival.rto {
                // The sender starts anew after such a gap.
                self.raise_quick(self.rules.quick_segments, arrival.window_bytes);
            }
        }
        self.received_at = now;
    }

    /// Learns the peer's segment size: the largest seen, or a shorter one that comes twice in a row.
    fn measure_segment(&mut self, arrival: &Arrival) {
        let previous = std::mem::take(&mut self.short_bytes);
        if arrival.bytes >= self.segment_bytes {
            self.segment_bytes = arrival.bytes.min(arrival.largest_bytes);
            // A full segment that ends a write: its sender may have no more to send before an acknowledgement.
            self.pushed |= arrival.ends;
            return;
        }
        let length = arrival.bytes_with_sack;
        if length >= DEFAULT_SEGMENT || length >= SMALLEST_SEGMENT && !arrival.ends {
            self.short_bytes = length;
            if length == previous {
                self.segment_bytes = length;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// At least one more acknowledgement goes out at once.
    pub(crate) fn hurry_once(&mut self) {
        self.quick |= 1;
    }

    /// Something happened that the sender should hear of quickly, also with the next acknowledgements.
    pub(crate) fn hurry(&mut self, most: Option<u16>, window_bytes: u32) {
        self.raise_quick(most.unwrap_or(self.rules.quick_segments), window_bytes);
        self.interactive = false;
        self.interval = self.rules.delay_min_ns;
        self.scheduled = true;
    }

    fn raise_quick(&mut self, most: u16, window_bytes: u32) {
        let fitting = (window_bytes / (2 * self.segment_bytes)).max(2);
        self.quick = self.quick.max(u16::try_from(fitting).unwrap_or(u16::MAX).min(most));
    }

    /// Whether acknowledgements go out at once.
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// How long the acknowledgement of what has arrived may wait.
    pub(crate) fn delay(&self, srtt: Option<Nanos>) -> Nanos {
        let mut delay = self.interval;
        if delay > self.rules.delay_min_ns
            && let Some(srtt) = srtt
        {
            delay = delay.min(srtt.max(self.rules.delay_min_ns));
        }
        delay.min(self.rules.delay_max_ns)
    }

    /// The delay passed and no data went out: it was not worth waiting.
    pub(crate) fn on_expiry(&mut self, rto: Nanos) {
        if self.interactive {
            self.interactive = false;
            self.interval = self.rules.delay_min_ns;
        } else {
            self.interval = self.interval.saturating_mul(2).min(rto);
        }
    }

    /// The application took all that had arrived: whether that is the moment to acknowledge.
    pub(crate) fn is_due_once_read(&self) -> bool {
        self.pushed_twice || self.pushed && !self.interactive
    }

    /// The application wants its next acknowledgement at once (`TCP_QUICKACK`).
    pub(crate) fn push(&mut self) {
        self.pushed = true;
    }

    /// A segment with an acknowledgement leaves.
    pub(crate) fn on_ack_sent(&mut self) {
        if self.scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.interval = self.rules.delay_min_ns;
            }
        }
        self.scheduled = false;
        self.pushed = false;
        self.pushed_twice = false;
    }

    /// A segment with data leaves: an answer, if data arrived not long ago.
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        if now.saturating_sub(self.received_at) < self.interval {
            self.interactive = true;
        }
    }
}
