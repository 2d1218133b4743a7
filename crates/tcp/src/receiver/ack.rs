//! When the receiver acknowledges data that arrived in order: by the number of segments and by a timer, or as a Linux
//! receiver does: immediately while the sender is in slow start, every second segment when data flows one way, and in
//! answers when it goes back and forth.

use crate::profile::{AckPolicy, AdaptiveAck};
use crate::receiver::segment_size::Compared;
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};

/// Acknowledgments for one hole that are not merged (Linux: `TCP_FASTRETRANS_THRESH`).
const NOT_COMPRESSED: u8 = 3;

/// The response to a data segment that arrived in order.
pub(crate) enum Verdict {
    Immediately,
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
            Self::EverySegment => Verdict::Immediately,
            // RFC 5681 §4.2: an ACK SHOULD be generated for at least every second full-sized segment, and MUST be
            // generated within 500 ms of the arrival of the first unacknowledged packet.
            Self::Delayed { segments, timer_ns } => {
                if waiting >= segments {
                    Verdict::Immediately
                } else {
                    Verdict::Until(now.saturating_add(timer_ns))
                }
            }
            Self::Heartbeat { segments, interval_ns, every_segment_bytes } => {
                if waiting >= segments || every_segment_bytes.is_some() && wants_each() {
                    Verdict::Immediately
                } else {
                    Verdict::Until((now / interval_ns).saturating_add(1).saturating_mul(interval_ns))
                }
            }
            Self::Adaptive(_) => Verdict::Adaptive,
        }
    }
}

/// State of the adaptive policy about the data that arrives. Names in brackets are those of Linux's
/// `inet_connection_sock`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// The policy's parameters.
    rules: AdaptiveAck,
    /// Tick in which it counts time; 1 ns without.
    tick: Nanos,
    /// The tick in which data last arrived in order [lrcvtime].
    received_at: Nanos,
    /// Interval at which data arrives, 0 before there was any [ato].
    interval: Nanos,
    /// Acknowledgments still to be sent immediately [quick].
    quick: u16,
    /// True if data goes back and forth, so that acknowledgments ride on it [pingpong].
    pub interactive: bool,
    /// Something that arrived is not acknowledged yet [ICSK_ACK_SCHED].
    pub scheduled: bool,
    /// Short segments among the unacknowledged data: one [ICSK_ACK_PUSHED], several [ICSK_ACK_PUSHED2].
    pushed: bool,
    pushed_twice: bool,
    /// Deadline of the waiting acknowledgment, before the timer rounds it up [timeout].
    timeout: Deadline,
    /// When the timer of such a delay, set last, expires: an acknowledgment does not stop it [icsk_delack_timer].
    timer_set: Deadline,
    /// Acknowledgments that were merged and wait [compressed_ack].
    pub compressed: u16,
    /// Acknowledgments sent at this position with a hole there [dup_ack_counter, compressed_ack_rcv_nxt].
    duplicates: u8,
    duplicates_at: SeqNum,
}

impl Arrivals {
    pub(crate) fn new(rules: AdaptiveAck, tick: Option<Nanos>) -> Self {
        Self { rules, tick: tick.unwrap_or(1), ..Self::default() }
    }

    /// True if acknowledgments of data that arrives ahead of a hole are merged.
    pub(crate) fn compresses(&self) -> bool {
        self.rules.sack_compression.is_some()
    }

    /// `time`, rounded down to whole ticks.
    // A division takes longer than most of what happens to a segment, and most clocks have no ticks.
    fn floor(&self, time: Nanos) -> Nanos {
        if self.tick == 1 { time } else { time / self.tick * self.tick }
    }

    /// The handshake is over.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.received_at = self.floor(now);
    }

    /// A data segment arrived, in order or ahead of a hole.
    // Linux, tcp_measure_rcv_mss: a full segment with PSH ends a write, and its sender may have no more to send before an
    // acknowledgment.
    pub(crate) fn on_segment(&mut self, compared: Compared, pushes: bool) {
        self.scheduled = true;
        match compared {
            Compared::Longer | Compared::Full => self.pushed |= pushes,
            Compared::Settled => {}
            Compared::Short => {
                self.pushed_twice |= self.pushed;
                self.pushed = true;
            }
        }
    }

    /// Data arrived in order.
    // Linux, tcp_event_data_recv.
    pub(crate) fn on_data(&mut self, now: Nanos, segment_bytes: u32, window_bytes: u32, rto: Nanos) {
        let now = self.floor(now);
        let half_least = self.floor(self.rules.delay_min_ns / 2);
        if self.interval == 0 {
            // The first data: the sender is in slow start and needs every acknowledgment.
            self.raise_quick(self.rules.max_quickacks, segment_bytes, window_bytes);
            self.interval = self.rules.delay_min_ns;
        } else {
            let gap = now.saturating_sub(self.received_at);
            if gap <= half_least {
                self.interval = self.floor(self.interval / 2) + half_least;
            } else if gap < self.interval {
                self.interval = (self.floor(self.interval / 2) + gap).min(rto);
            } else if gap > rto {
                // The sender starts again after a gap of this length.
                self.raise_quick(self.rules.max_quickacks, segment_bytes, window_bytes);
            }
        }
        self.received_at = now;
    }

    /// At least one more acknowledgment is sent immediately.
    pub(crate) fn quickack_once(&mut self) {
        self.quick |= 1;
    }

    /// Something happened that the sender should hear of quickly, also with the next acknowledgments.
    // Linux, tcp_enter_quickack_mode.
    pub(crate) fn enter_quickack(&mut self, most: Option<u16>, segment_bytes: u32, window_bytes: u32) {
        self.raise_quick(most.unwrap_or(self.rules.max_quickacks), segment_bytes, window_bytes);
        self.interactive = false;
        self.interval = self.rules.delay_min_ns;
    }

    // Linux, tcp_incr_quickack.
    fn raise_quick(&mut self, most: u16, segment_bytes: u32, window_bytes: u32) {
        let fitting = match window_bytes / (2 * segment_bytes) {
            0 => 2,
            fitting => u16::try_from(fitting).unwrap_or(u16::MAX),
        };
        self.quick = self.quick.max(fitting.min(most));
    }

    /// The buffer is nearly full: no more acknowledgments are sent immediately.
    pub(crate) fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// True if acknowledgments are sent immediately.
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// Deadline for the acknowledgment of arrived data; none if one that waits already is nearly due.
    // Linux, tcp_send_delayed_ack.
    pub(crate) fn wait(&mut self, now: Nanos, srtt: Option<Nanos>) -> Option<Nanos> {
        let mut delay = self.interval;
        if delay > self.rules.delay_min_ns {
            if let Some(srtt) = srtt {
                delay = delay.min(srtt.div_ceil(self.tick).saturating_mul(self.tick).max(self.rules.delay_min_ns));
            }
        }
        delay = delay.min(self.rules.delay_max_ns);
        let tick = self.floor(now);
        if self.timeout.is_due(tick.saturating_add(self.floor(delay / 4))) {
            return None;
        }
        self.timeout = self.timeout.earliest(Deadline::at(tick.saturating_add(delay)));
        Some(now.saturating_add(delay))
    }

    /// The timer of a delay was set.
    pub(crate) fn set_timer(&mut self, expiry: Deadline) {
        self.timer_set = expiry;
    }

    /// Until when the acknowledgment of a segment may wait while there is a hole at `next`; none if it may not.
    // Linux, __tcp_ack_snd_check; tcp_delack_timer_handler sends compressed ACKs, too, if it runs meanwhile.
    pub(crate) fn compress(&mut self, now: Nanos, next: SeqNum, rtt: Nanos) -> Option<Deadline> {
        let rules = self.rules.sack_compression.filter(|rules| self.compressed < rules.max_segments)?;
        if std::mem::replace(&mut self.duplicates_at, next) != next {
            self.duplicates = 0;
        }
        if self.duplicates < NOT_COMPRESSED {
            self.duplicates += 1;
            return None;
        }
        self.compressed += 1;
        let end = Deadline::at(now.saturating_add((rtt / u64::from(rules.rtt_divisor)).min(rules.delay_max_ns)));
        Some(if self.timer_set.is_due(now) { end } else { end.earliest(self.timer_set) })
    }

    /// The delay passed and no data went out: it was not worth waiting.
    // Linux, tcp_delack_timer_handler.
    pub(crate) fn on_expiry(&mut self, rto: Nanos) {
        self.timeout = Deadline::NEVER;
        if !self.scheduled || self.compressed > 0 {
            return;
        }
        if self.interactive {
            self.interactive = false;
            self.interval = self.rules.delay_min_ns;
        } else {
            self.interval = self.interval.saturating_mul(2).min(rto).min(self.rules.delay_max_ns);
        }
    }

    /// The application took all that had arrived: whether that is the moment to acknowledge.
    pub(crate) fn is_due_once_read(&self) -> bool {
        self.pushed_twice || self.pushed && !self.interactive
    }

    /// The application wants its next acknowledgment immediately (`TCP_QUICKACK`).
    pub(crate) fn push(&mut self) {
        self.pushed = true;
    }

    /// A segment with an acknowledgment leaves.
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
        self.timeout = Deadline::NEVER;
        self.compressed = 0;
    }

    /// A segment with data leaves: an answer, if data arrived not long ago.
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        if self.floor(now).saturating_sub(self.received_at) < self.interval {
            self.interactive = true;
        }
    }
}
