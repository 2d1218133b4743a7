//! A receive window that begins small and grows as the application shows that it keeps up (Linux's receive buffer
//! tuning, "dynamic right-sizing").

mod announce;

use crate::connection::timestamps::round_trip;
use crate::profile::ReceiveWindowGrowth;
use crate::sequence::Position;
use crate::{NEVER, Nanos};

/// Segments of fewer bytes waste too much memory to open the window.
const SMALLEST_USEFUL: u32 = 128;
/// Share of the receive buffer that is taken to hold payload before a segment tells, and the unit of such shares
/// (Linux: `TCP_DEFAULT_SCALING_RATIO`, `TCP_RMEM_TO_WIN_SCALE`).
const FIRST_SHARE: u64 = 128;
const WHOLE: u64 = 256;
/// The segment size that is assumed at first; no smaller one tells a share (Linux: `TCP_MSS_DEFAULT`).
const DEFAULT_SEGMENT: u32 = 536;
/// Segments that the application is taken to have read in the round trip before the first.
const FIRST_SEGMENTS: u32 = 10;

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

/// Data that arrived ahead of a hole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Length of the payload.
    pub bytes: u32,
    /// Not all of it was held already.
    pub is_new: bool,
    /// Segment size.
    pub mss_bytes: u32,
    /// Bytes of the buffer in use before it.
    pub taken: u32,
    /// Bytes from the position expected next to the end of all that lies ahead.
    pub distance: u32,
    /// Window in force.
    pub window_bytes: u32,
}

/// State of one receiver. Names in brackets are those of Linux's `tcp_sock`.
#[derive(Clone, Debug)]
pub(crate) struct GrowingWindow {
    /// Largest window announced [rcv_ssthresh].
    limit: u32,
    /// Size of the receive buffer, of payload and all that comes with it [sk_rcvbuf].
    memory: u64,
    /// How much of it is payload, in 256ths [scaling_ratio].
    share: u64,
    /// Largest segment so far, once it tells that [rcv_mss].
    largest: u32,
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

    /// `announced`: the window of our SYN or SYN-ACK.
    pub(crate) fn new(rules: &ReceiveWindowGrowth, mss_bytes: u32, announced: u32, now: Nanos, next: Position) -> Self {
        let buffer = rules.initial_bytes;
        // Linux, tcp_init_buffer_space: one segment of the buffer is not announced.
        let clamp = if buffer > 2 * mss_bytes { buffer - mss_bytes } else { buffer };
        let limit = announced.min(clamp);
        Self {
            limit,
            memory: u64::from(buffer) * WHOLE / FIRST_SHARE,
            share: FIRST_SHARE,
            largest: mss_bytes.min(DEFAULT_SEGMENT),
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

    /// Where the right edge of the window could be, which is announced in units of 1 << `shift` bytes; `taken`: bytes of
    /// the buffer in use.
    // Linux, __tcp_select_window: in less than half of the buffer nothing is rounded up, and less than a segment or a
    // sixteenth of the buffer is not announced at all. That is the receiver's SWS avoidance of RFC 9293 §3.8.6.2.2.
    pub(crate) fn edge(&self, received: Position, taken: u64, shift: u8) -> Position {
        let mut free = u64::from(self.buffer).saturating_sub(taken);
        let full = self.clamp.min(self.buffer);
        if free < u64::from(full / 2) {
            free = free >> shift << shift;
            if free < u64::from((self.buffer / 16).max(self.largest.min(full))) {
                return received;
            }
        }
        received + free.min(self.limit.into())
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
        // Linux, tcp_rcv_rtt_measure_ts: the echo of a full segment is at least a tick; shorter ones count at once, longer
        // ones by an eighth.
        if let Some(age) = arrival.echo_age {
            let age = round_trip(age);
            self.rtt = if self.rtt == 0 || age < self.rtt { age } else { self.rtt - self.rtt / 8 + age / 8 };
        }
        self.measure_share(arrival.bytes, arrival.window_bytes);
        let unread = u32::try_from(arrival.received - arrival.read).unwrap_or(u32::MAX);
        self.open(unread, arrival.bytes, arrival.mss_bytes)
    }

    /// Data arrived ahead of a hole; true if that opened the window.
    // Linux, tcp_data_queue_ofo (6.18): as for data in order, and the buffer has room for what lies ahead. What is held
    // already is dropped and opens nothing.
    pub(crate) fn on_gap(&mut self, arrival: &Ahead, largest_bytes: u32) -> bool {
        self.measure_share(arrival.bytes, arrival.window_bytes);
        let opened = arrival.is_new && self.open(arrival.taken, arrival.bytes, arrival.mss_bytes);
        self.enlarge(self.read_in_round, arrival.distance, largest_bytes);
        opened
    }

    /// A segment arrived; `taken`: bytes of the buffer in use.
    // Linux, tcp_grow_window: two segments for each that arrives, as far as the buffer has room.
    fn open(&mut self, taken: u32, bytes: u32, mss_bytes: u32) -> bool {
        let room = self.clamp.min(self.buffer.saturating_sub(taken)).saturating_sub(self.limit);
        if bytes < SMALLEST_USEFUL || room == 0 {
            return false;
        }
        self.limit += room.min(2 * mss_bytes.max(bytes));
        true
    }

    /// A segment of a new size tells how much of the buffer is payload.
    // Linux, tcp_measure_rcv_mss and tcp_set_window_clamp.
    fn measure_share(&mut self, bytes: u32, window_bytes: u32) {
        if bytes <= self.largest {
            return;
        }
        self.largest = bytes;
        self.share = (u64::from(bytes) * WHOLE / memory_of(bytes)).max(1);
        self.fit();
        self.limit = self.limit.max(window_bytes).min(self.clamp);
        self.read_in_round = self.read_in_round.min(self.clamp).max(1);
    }

    /// Makes the window follow the buffer.
    fn fit(&mut self) {
        self.buffer = u32::try_from(self.memory * self.share / WHOLE).unwrap_or(u32::MAX);
        self.clamp = self.buffer;
    }

    /// The application has read up to `read`; `ahead`: bytes up to the end of what lies ahead of a hole.
    // Linux, tcp_rcv_space_adjust: once a round trip.
    pub(crate) fn on_read(&mut self, now: Nanos, read: Position, ahead: u32, largest_bytes: u32) {
        if self.rtt == 0 || now.saturating_sub(self.round_start_at) < self.rtt {
            return;
        }
        let copied = u32::try_from(read - self.round_start).unwrap_or(u32::MAX);
        if copied > self.read_in_round {
            self.enlarge(copied, ahead, largest_bytes);
        }
        self.round_start = read;
        self.round_start_at = now;
    }

    /// The buffer becomes what lets a sender in slow start go on, of which `copied` bytes were read in a round trip.
    // Linux, tcp_rcvbuf_grow (6.18).
    fn enlarge(&mut self, copied: u32, ahead: u32, largest_bytes: u32) {
        // Twice what was read, since this is a round trip late; and more by twice the share by which that has grown,
        // since the sender doubles its window meanwhile.
        let base = 2 * u128::from(copied);
        let growth = base * u128::from(copied - self.read_in_round) / u128::from(self.read_in_round);
        let wanted = u64::try_from(base + 2 * growth + u128::from(ahead)).unwrap_or(u64::MAX);
        let largest = u64::from(largest_bytes) * WHOLE / FIRST_SHARE;
        let memory = (wanted.saturating_mul(WHOLE) / self.share).min(largest);
        if memory > self.memory {
            self.memory = memory;
            self.fit();
        }
        self.read_in_round = copied;
    }
}

/// Memory that a segment takes in the receive buffer, in bytes: its headers and payload lie in a block of a power of two
/// with what the driver and the kernel add at both ends, and a description of it lies beside.
// Linux: NET_SKB_PAD 64, IPv4 and TCP with timestamps 52, struct skb_shared_info 320; struct sk_buff 256. A segment of 1448
// bytes takes 2304 behind TUN, AF_PACKET and drivers that allocate for each packet; others waste more.
fn memory_of(payload_bytes: u32) -> u64 {
    (u64::from(payload_bytes) + 64 + 52 + 320).next_power_of_two() + 256
}

/// Shift that makes the largest receive buffer expressible in a window field.
// Linux, tcp_select_initial_window: of the buffer, which is twice the window that it holds.
pub(crate) fn shift(largest_window_bytes: u32) -> u8 {
    (2 * u64::from(largest_window_bytes)).ilog2().saturating_sub(15).min(14) as u8
}
