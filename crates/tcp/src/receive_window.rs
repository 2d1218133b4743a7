//! A receive window that begins small and grows as the application shows that it keeps up (Linux's receive buffer
//! tuning, "dynamic right-sizing").

use crate::profile::ReceiveWindowGrowth;
use crate::sequence::Position;
use crate::{NEVER, Nanos};

/// Segments of fewer bytes waste too much memory to open the window.
const SMALLEST_USEFUL: u32 = 128;
/// Segments on top of twice what was read, for small variations.
const CUSHION_SEGMENTS: u64 = 16;
/// Segments that the application is taken to have read in the round trip before the first.
const FIRST_SEGMENTS: u32 = 10;

const MILLISECOND: Nanos = 1_000_000;

/// Data that arrived in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder {
    /// Length of the payload.
    pub bytes: u32,
    /// Segment size.
    pub mss_bytes: u32,
    /// Next position expected, after this.
    pub received: Position,
    /// Next position that the application will read.
    pub read: Position,
    /// Window in force.
    pub window_bytes: u32,
    /// Age of the timestamp that it echoes, if it is a full segment.
    pub echo_age: Option<Nanos>,
}

/// State of one receiver. Names in brackets are those of Linux's `tcp_sock`.
#[derive(Clone, Debug)]
pub(crate) struct GrowingWindow {
    /// Largest window announced [rcv_ssthresh].
    limit: u32,
    /// Payload that the receive buffer has room for.
    buffer: u32,
    /// As much of it as is announced [window_clamp].
    clamp: u32,
    /// Bytes read in the best round trip so far [rcvq_space.space].
    read_in_round: u32,
    /// Where and when the present round of reading began [rcvq_space].
    round_start: Position,
    round_start_at: Nanos,
    /// Round trip as the receiver sees it [rcv_rtt_est], 0 if unknown.
    rtt: Nanos,
    /// A window's worth of data is timed up to here, since then; never before the first data.
    timed_end: Position,
    timed_at: Nanos,
}

impl GrowingWindow {
    /// Window of the SYN, in whole segments.
    // Linux, tcp_select_initial_window: the buffer rounded down to segments, 65535 bytes at most.
    pub(crate) fn announced_at_first(rules: &ReceiveWindowGrowth, mss_bytes: u32) -> u32 {
        let initial = rules.initial_bytes;
        let whole = if initial > mss_bytes { initial / mss_bytes * mss_bytes } else { initial };
        whole.min(65535)
    }

    pub(crate) fn new(rules: &ReceiveWindowGrowth, mss_bytes: u32, now: Nanos, next: Position) -> Self {
        let buffer = rules.initial_bytes;
        // Linux, tcp_init_buffer_space: one segment of the buffer is not announced.
        let clamp = if buffer > 2 * mss_bytes { buffer - mss_bytes } else { buffer };
        let announced = Self::announced_at_first(rules, mss_bytes);
        let limit = announced.min(clamp);
        Self {
            limit,
            buffer,
            clamp,
            read_in_round: limit.min(FIRST_SEGMENTS * mss_bytes).max(1),
            round_start: next,
            round_start_at: now,
            rtt: 0,
            timed_end: next,
            timed_at: NEVER,
        }
    }

    /// Where the right edge of the window could be.
    pub(crate) fn edge(&self, received: Position, read: Position) -> Position {
        (received + u64::from(self.limit)).min(read + u64::from(self.buffer))
    }

    /// Window that is announced at the most at present.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Largest window that the buffer has room for at present.
    pub(crate) fn clamp(&self) -> u32 {
        self.clamp
    }

    /// Data arrived in order; true if that opened the window.
    pub(crate) fn on_data(&mut self, now: Nanos, arrival: &InOrder) -> bool {
        // Linux, tcp_rcv_rtt_measure: without timestamps, a window's worth of data takes at least a round trip.
        if self.timed_at == NEVER || arrival.received >= self.timed_end {
            if self.timed_at != NEVER {
                let sample = now.saturating_sub(self.timed_at).max(1);
                self.rtt = if self.rtt == 0 { sample } else { self.rtt.min(sample) };
            }
            self.timed_end = arrival.received + u64::from(arrival.window_bytes.max(1));
            self.timed_at = now;
        }
        // Linux, tcp_rcv_rtt_measure_ts: the echo of a full segment, smoothed, is at least a tick.
        if let Some(age) = arrival.echo_age {
            let age = age.max(MILLISECOND);
            self.rtt = if self.rtt == 0 { age } else { self.rtt - self.rtt / 8 + age / 8 };
        }
        // Linux, tcp_grow_window: two segments for each that arrives, as far as the buffer has room.
        let unread = u32::try_from(arrival.received - arrival.read).unwrap_or(u32::MAX);
        let room = self.clamp.min(self.buffer.saturating_sub(unread)).saturating_sub(self.limit);
        if arrival.bytes < SMALLEST_USEFUL || room == 0 {
            return false;
        }
        self.limit += room.min(2 * arrival.mss_bytes.max(arrival.bytes));
        true
    }

    /// The application has read up to `read`.
    // Linux, tcp_rcv_space_adjust: once a round trip, the buffer becomes what lets a sender in slow start go on.
    pub(crate) fn on_read(&mut self, now: Nanos, read: Position, mss_bytes: u32, largest_bytes: u32) {
        if self.rtt == 0 || now.saturating_sub(self.round_start_at) < self.rtt {
            return;
        }
        let copied = u32::try_from(read - self.round_start).unwrap_or(u32::MAX);
        if copied > self.read_in_round {
            // Twice what was read copes with losses; three or four times, if it grew by a quarter or a half, with a sender
            // whose window doubles meanwhile.
            let base = 2 * u64::from(copied) + CUSHION_SEGMENTS * u64::from(mss_bytes);
            let growth = base * u64::from(copied - self.read_in_round) / u64::from(self.read_in_round);
            let wanted = (base + 2 * growth).min(u64::from(largest_bytes)) as u32;
            if wanted > self.buffer {
                self.buffer = wanted;
                self.clamp = wanted;
            }
            self.read_in_round = copied;
        }
        self.round_start = read;
        self.round_start_at = now;
    }
}

/// Shift that makes the largest receive buffer expressible in a window field.
// Linux, tcp_select_initial_window: of the buffer, which is twice the window that it holds.
pub(crate) fn shift(largest_window_bytes: u32) -> u8 {
    (2 * u64::from(largest_window_bytes)).ilog2().saturating_sub(15).min(14) as u8
}
