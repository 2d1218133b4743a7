//! A receive window that begins small and grows as the application shows that it keeps up (Linux's receive buffer
//! tuning, "dynamic right-sizing").

mod announce;
mod blocks;
#[cfg(test)]
mod tests;

use crate::Nanos;
use crate::profile::ReceiveWindowGrowth;
use crate::sequence::SeqNum;
pub(crate) use blocks::{Block, Blocks};

/// Segments with fewer bytes in order do not open the window.
const SMALLEST_USEFUL: u32 = 128;
/// Share of the receive buffer that is taken to hold payload before a segment shows it, and the unit of such shares
/// (Linux: `TCP_DEFAULT_SCALING_RATIO`, `TCP_RMEM_TO_WIN_SCALE`).
const FIRST_SHARE: i64 = 128;
const WHOLE: i64 = 256;
/// Segments that the application is taken to have read in the RTT before the first (Linux: `TCP_INIT_CWND`).
const FIRST_SEGMENTS: u32 = 10;

/// A segment with payload that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub block: Block,
    pub payload_bytes: u32,
    /// Longer than any before.
    pub is_longer: bool,
    /// Segment size of the peer [rcv_mss].
    pub segment_bytes: u32,
    /// Window in force [rcv_wnd].
    pub window_bytes: u32,
}

/// The window that the buffer has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected {
    pub bytes: u64,
    /// Less than half of the buffer is free.
    pub is_tight: bool,
}

/// State of one receiver. Names in brackets are those of Linux's `tcp_sock`.
#[derive(Clone, Debug)]
pub(crate) struct GrowingWindow {
    /// Our own segment size [advmss].
    own_mss: u32,
    /// Largest window announced [rcv_ssthresh].
    limit: u32,
    /// Size of the receive buffer, of payload and all that comes with it [sk_rcvbuf], and the largest [tcp_rmem].
    memory: i64,
    most_memory: i64,
    /// Its payload part, in 256ths [scaling_ratio].
    share: i64,
    /// Largest window that may be announced [window_clamp].
    clamp: u32,
    blocks: Blocks,
    /// Bytes read in the best RTT so far [rcvq_space.space].
    read_in_round: u32,
    /// Sequence number and time at which the current round of reading began [rcvq_space].
    round_start: SeqNum,
    round_start_at: Nanos,
    /// When something last arrived or left [tcp_mstamp].
    touched_at: Nanos,
}

impl GrowingWindow {
    /// The window at first, in whole segments of our own size. A SYN has no shift and says 65,535 bytes at most.
    // Linux, tcp_select_initial_window: the buffer rounded down to segments.
    pub(crate) fn announced_at_first(rules: &ReceiveWindowGrowth, own_mss: u32) -> u32 {
        let initial = rules.initial_bytes;
        match initial / own_mss {
            0 => initial,
            segments => segments * own_mss,
        }
    }

    /// `announced`: the window of our SYN or SYN-ACK, if its field could hold it. `most_bytes`: as [`Profile::receive_window_bytes`].
    /// `blocks`: empty.
    ///
    /// [`Profile::receive_window_bytes`]: crate::Profile::receive_window_bytes
    // Linux, tcp_init_buffer_space.
    pub(crate) fn new(
        rules: &ReceiveWindowGrowth,
        own_mss: u32,
        announced: u32,
        most_bytes: u32,
        next: SeqNum,
        blocks: Blocks,
    ) -> Self {
        let buffer = rules.initial_bytes;
        // One segment of the buffer is not announced.
        let clamp = buffer.min(buffer.saturating_sub(own_mss).max(2 * own_mss));
        let limit = announced.min(clamp);
        Self {
            own_mss,
            limit,
            memory: i64::from(buffer) * WHOLE / FIRST_SHARE,
            most_memory: i64::from(most_bytes) * WHOLE / FIRST_SHARE,
            share: FIRST_SHARE,
            clamp,
            blocks,
            read_in_round: limit.min(FIRST_SEGMENTS * own_mss).max(1),
            round_start: next,
            round_start_at: 0,
            touched_at: 0,
        }
    }

    /// Its memory, for another one.
    pub(crate) fn into_blocks(self) -> Blocks {
        self.blocks
    }

    /// The handshake is over.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.round_start_at = now;
    }

    /// The payload that this amount of memory holds.
    // Linux, tcp_win_from_space.
    fn payload_of(&self, memory: i64) -> i64 {
        memory * self.share / WHOLE
    }

    /// Payload that the rest of the buffer holds; negative if it holds too much already.
    // Linux, tcp_space.
    fn free(&self) -> i64 {
        self.payload_of(self.memory - self.blocks.memory() as i64)
    }

    /// The window to announce, in units of 1 << `shift` bytes; `left`: the unused part of the advertised one.
    // Linux, __tcp_select_window: in less than half of the buffer nothing is rounded up, and less than a segment or a
    // sixteenth of the buffer is not announced at all. That is the receiver's SWS avoidance of RFC 9293 §3.8.6.2.2.
    pub(crate) fn select(&self, segment_bytes: u32, window_bytes: u32, shift: u8) -> Selected {
        let (mut free, allowed) = (self.free(), self.payload_of(self.memory));
        let full = allowed.min(self.clamp.into());
        let segment = i64::from(segment_bytes).min(full);
        if segment <= 0 {
            return Selected { bytes: 0, is_tight: false };
        }
        let is_tight = free < full >> 1;
        if is_tight {
            free = free >> shift << shift;
            if free < allowed >> 4 || free < segment {
                return Selected { bytes: 0, is_tight };
            }
        }
        let free = free.min(self.limit.into());
        let in_force = i64::from(window_bytes);
        let bytes = if shift > 0 {
            // The part that the shift would cut off is announced.
            (free + (1 << shift) - 1) >> shift << shift
        } else if in_force <= free - segment || in_force > free {
            free / segment * segment
        } else if segment == full && free > in_force + (full >> 1) {
            free
        } else {
            in_force
        };
        Selected { bytes: bytes as u64, is_tight }
    }

    /// Largest window that the buffer has room for at present.
    pub(crate) fn clamp(&self) -> u32 {
        self.clamp
    }

    /// Something arrived or left, of which the clock of reading takes note.
    pub(crate) fn touch(&mut self, now: Nanos) {
        self.touched_at = now;
    }

    /// Data arrived in order; true if that opened the window.
    // Linux, tcp_queue_rcv and tcp_event_data_recv.
    pub(crate) fn on_data(&mut self, segment: &Arrived) -> bool {
        self.blocks.push(segment.block);
        self.measure_share(segment);
        segment.payload_bytes >= SMALLEST_USEFUL && self.open(segment, self.free())
    }

    /// Data arrived ahead of a hole; `distance`: from the position expected to the end of all that lies ahead. True if it
    /// opened the window.
    // Linux, tcp_data_queue_ofo: without SACK the window stays, so that duplicates are known as such. Data that is held
    // already is dropped.
    pub(crate) fn on_gap(&mut self, segment: &Arrived, distance: u32, has_sack: bool) -> bool {
        self.measure_share(segment);
        // Without the new block.
        let free = self.free();
        let opened = self.blocks.insert(segment.block) && has_sack && self.open(segment, free);
        self.enlarge(self.read_in_round, distance);
        opened
    }

    /// A hole was filled: the data ahead is in order up to `next`; `before`: up to where it was without.
    pub(crate) fn on_filled(&mut self, before: SeqNum, next: SeqNum) {
        self.blocks.advance(before, next);
    }

    /// Makes room for a segment; whether more arrived before than the buffer has room for, which grows then.
    // Linux, tcp_try_rmem_schedule, tcp_prune_queue and tcp_clamp_window. Of in-order segments only those are looked at for
    // which no memory is set aside, every third of 536 bytes.
    pub(crate) fn make_room(&mut self, block: &Block, in_order: bool) -> bool {
        if in_order && self.blocks.has_reserved(block) {
            return false;
        }
        self.blocks.reserve(block);
        let used = self.blocks.memory() as i64;
        let is_over = used > self.memory;
        if is_over {
            self.memory = used.min(self.most_memory).max(self.memory);
            if used > self.memory {
                self.limit = self.clamp.min(2 * self.own_mss);
            }
        }
        is_over
    }

    /// Opens the window by two segments for each that arrives, as far as the buffer has room; by less, if segments waste
    /// more memory than their share.
    // Linux, tcp_grow_window and __tcp_grow_window.
    fn open(&mut self, segment: &Arrived, free: i64) -> bool {
        let limit = i64::from(self.limit);
        let room = free.min(self.clamp.into()) - limit;
        if room <= 0 {
            return false;
        }
        let bytes = i64::from(segment.payload_bytes);
        let mut cost = self.payload_of(segment.block.memory.into());
        let mut step = 2 * i64::from(self.own_mss);
        if cost > bytes {
            cost >>= 1;
            let mut window = self.payload_of(self.most_memory) >> 1;
            while limit <= window && cost > bytes {
                cost >>= 1;
                window >>= 1;
            }
            if limit > window {
                return false;
            }
            step = 2 * i64::from(segment.segment_bytes);
        }
        self.limit += room.min(step.max(2 * bytes)) as u32;
        true
    }

    /// A segment longer than all before shows how much of the buffer is payload.
    // Linux, tcp_measure_rcv_mss and tcp_set_window_clamp.
    fn measure_share(&mut self, segment: &Arrived) {
        if !segment.is_longer {
            return;
        }
        let share = (i64::from(segment.payload_bytes) * WHOLE / i64::from(segment.block.memory)).max(1);
        if std::mem::replace(&mut self.share, share) == share {
            return;
        }
        let before = self.clamp;
        self.clamp_to_memory();
        if self.clamp < before {
            self.limit = self.limit.min(self.clamp);
        } else if self.clamp > before {
            self.limit = self.limit.max(segment.window_bytes.min(self.clamp));
        }
        self.read_in_round = self.read_in_round.min(self.clamp).max(1);
    }

    fn clamp_to_memory(&mut self) {
        self.clamp = u32::try_from(self.payload_of(self.memory)).unwrap_or(u32::MAX);
    }

    /// The application reads the data between two positions; `received`: in order up to here; `ahead`: bytes from there
    /// to the end of what lies ahead of a hole; `rtt`: as the receiver sees it.
    // Linux, tcp_recvmsg_locked: block by block.
    pub(crate) fn on_read(&mut self, from: SeqNum, to: SeqNum, received: SeqNum, ahead: u32, rtt: Option<Nanos>) {
        let mut at = from;
        while let Some(end) = self.blocks.read_next(at, to) {
            at = end;
            if rtt.is_some_and(|rtt| self.is_round_over(rtt)) {
                self.end_round(at, received, ahead);
            }
        }
    }

    fn is_round_over(&self, rtt: Nanos) -> bool {
        self.touched_at.saturating_sub(self.round_start_at) / 1_000 >= rtt / 1_000
    }

    // Linux, tcp_rcv_space_adjust: once an RTT, less the data that still waits to be read.
    fn end_round(&mut self, read: SeqNum, received: SeqNum, ahead: u32) {
        let waiting = received - read;
        let copied = u32::try_from((read - self.round_start).saturating_sub(waiting)).unwrap_or(u32::MAX);
        if copied > self.read_in_round {
            self.enlarge(copied, ahead);
        }
        self.round_start = read;
        self.round_start_at = self.touched_at;
    }

    /// The buffer grows so that a sender in slow start can continue, from which `copied` bytes were read in an RTT.
    // Linux, tcp_rcvbuf_grow (6.18).
    fn enlarge(&mut self, copied: u32, ahead: u32) {
        // Twice the bytes read, since this is an RTT late; and more by twice the share by which that has grown, since
        // the sender doubles its window meanwhile.
        let base = 2 * u128::from(copied);
        let growth = base * u128::from(copied - self.read_in_round) / u128::from(self.read_in_round);
        let wanted = i64::try_from(base + 2 * growth + u128::from(ahead)).unwrap_or(i64::MAX);
        let memory = (wanted.saturating_mul(WHOLE) / self.share).min(self.most_memory);
        if memory > self.memory {
            self.memory = memory;
            self.clamp_to_memory();
        }
        self.read_in_round = copied;
    }
}

/// Shift that makes the largest receive buffer expressible in a window field.
// Linux, tcp_select_initial_window: of the buffer, which is twice the window that it holds.
pub(crate) fn shift(largest_window_bytes: u32) -> u8 {
    (2 * u64::from(largest_window_bytes)).ilog2().saturating_sub(15).min(14) as u8
}
