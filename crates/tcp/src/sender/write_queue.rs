//! The write queue of Linux's sender. The application's data is copied into sk_buffs, whose size is fixed when they are
//! filled; trains are cut off the first. How far the copy is ahead of the sender depends on the socket's buffer.

use crate::Nanos;
use crate::connection::{Endpoint, State};
use crate::sequence::SeqNum;
use std::collections::VecDeque;

/// The most that a packet carries: `sk_gso_max_size` of an interface that sets no limit, 64 KiB less room for headers.
pub(crate) const LONGEST_BYTES: u64 = 65_215;
/// `TCP_MSS_DEFAULT`.
const DEFAULT_MSS: u64 = 536;
/// The buffer of a new socket, `tcp_wmem[1]`. Linux's default of 16 KiB is below what `tcp_sndbuf_expand` makes of any
/// initial window; this is what the engine `emulate` sets.
const INITIAL_BUFFER: u64 = 256 << 10;
/// `tcp_sndbuf_expand`: two windows, ten segments at least, each with the memory that a segment takes in an sk_buff.
const BUFFER_WINDOWS: u64 = 2;
const LEAST_WINDOW: u64 = 10;
const HEADERS: u64 = 640;
const SK_BUFF: u64 = 256;

/// The sk_buffs that are not sent yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteQueue {
    /// End of the data in them.
    end: SeqNum,
    /// Where an sk_buff begins, and its size, which those behind it have as well. In order.
    sizes: VecDeque<(SeqNum, u64)>,
    /// When the application last wrote into the first sk_buff.
    pub first_filled_at: Option<Nanos>,
}

impl WriteQueue {
    /// The application's data up to `end` is copied; `next` is the next position to send. The last sk_buff is filled up
    /// first.
    // Linux, tcp_sendmsg_locked.
    fn copy(&mut self, now: Nanos, next: SeqNum, end: SeqNum, size: u64) {
        let last = self.sizes.back().map_or(0, |&(begin, size)| begin + self.end.saturating_sub(begin) / size * size);
        if last <= next {
            self.first_filled_at = Some(now);
            self.sizes.clear();
            self.sizes.push_back((next, size));
        } else if self.sizes.back().is_none_or(|&(_, known)| known != size) {
            self.sizes.push_back((last, size));
        }
        self.end = end;
    }

    /// Bytes from `next` to the end of the first sk_buff, if that is full.
    pub(crate) fn first_bytes(&mut self, next: SeqNum) -> u64 {
        while self.sizes.get(1).is_some_and(|&(begin, _)| begin <= next) {
            self.sizes.pop_front();
        }
        let Some(&(begin, size)) = self.sizes.front() else { return 0 };
        begin + (next.saturating_sub(begin) / size + 1) * size - next
    }

    /// The first sk_buff begins at `begin`: what was before it has left during a write, and it takes more of the write.
    // Linux, tcp_push_one.
    pub(crate) fn restart_first(&mut self, begin: SeqNum) {
        if let Some(first) = self.sizes.front_mut() {
            first.0 = begin;
        }
    }

    /// True if the application is told that it can write again.
    // Linux, sk_stream_write_space: a third of the buffer is free.
    fn has_room(&self, una: SeqNum, buffer: u64) -> bool {
        3 * self.end.saturating_sub(una) <= 2 * buffer
    }
}

/// Bytes of a full sk_buff.
// Linux, tcp_xmit_size_goal and tcp_bound_to_half_wnd: whole segments, and half of the largest window at most.
fn size_goal(mss: u32, largest_peer_window: u32) -> u64 {
    let (mss, largest) = (u64::from(mss.max(1)), u64::from(largest_peer_window));
    let bound = if largest > DEFAULT_MSS { largest / 2 } else { largest };
    (LONGEST_BYTES.min(bound) / mss).max(1) * mss
}

/// Bytes of the socket's buffer.
fn buffer(mss: u32, cwnd: u32) -> u64 {
    let mss = u64::from(mss.max(1));
    let segment = (mss + HEADERS).next_power_of_two() + SK_BUFF;
    INITIAL_BUFFER.max(BUFFER_WINDOWS * LEAST_WINDOW.max(u64::from(cwnd) / mss) * segment)
}

impl Endpoint {
    /// The application writes.
    #[inline]
    pub(crate) fn copy_write(&mut self, now: Nanos) {
        // Linux, tcp_sendmsg_locked: data written during the handshake is copied at its end.
        if self.state >= State::Established {
            self.copy_into_sk_buffs(now, |_, _, _| true);
        }
    }

    /// An application that has more to write does so if it has been told that there is room.
    #[inline]
    pub(crate) fn copy_more(&mut self, now: Nanos) {
        self.copy_into_sk_buffs(now, WriteQueue::has_room);
    }

    fn copy_into_sk_buffs(&mut self, now: Nanos, writes: impl Fn(&WriteQueue, SeqNum, u64) -> bool) {
        let (mss, una, next, data_end) = (self.mss, self.snd.una, self.snd.nxt, self.snd.data_end);
        let cwnd = self.controller.window();
        let Some(scoreboard) = self.recovery.scoreboard_mut() else { return };
        let queue = &mut scoreboard.train.queue;
        if queue.end >= data_end {
            return;
        }
        let buffer = buffer(mss, cwnd);
        let end = data_end.min(una + buffer);
        if end > queue.end && writes(queue, una, buffer) {
            queue.copy(now, next, end, size_goal(mss, self.peer_window.largest_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Linux, tcp_xmit_size_goal.
    #[test]
    fn a_full_sk_buff_has_whole_segments_and_half_of_the_window_at_most() {
        assert_eq!(size_goal(1_448, 1 << 20), 45 * 1_448);
        assert_eq!(size_goal(1_000, 65_535), 32_000);
        assert_eq!(size_goal(1_000, 500), 1_000, "a segment at least");
    }

    // Linux, tcp_sndbuf_expand: 4352 bytes a segment of 1448.
    #[test]
    fn the_buffer_grows_with_the_window() {
        assert_eq!(buffer(1_448, 10 * 1_448), 262_144);
        assert_eq!(buffer(1_448, 100 * 1_448), 870_400);
    }

    // Linux, tcp_sendmsg_locked, with sk_buffs of 60 segments.
    #[test]
    fn a_write_fills_the_last_sk_buff_of_the_queue_before_it_begins_another() {
        let mut queue = WriteQueue::default();
        queue.copy(1, 1_000, 101_000, 60_000);
        assert_eq!(queue.first_bytes(1_000), 60_000);
        assert_eq!(queue.first_bytes(60_000), 1_000);
        queue.copy(2, 3_000, 111_000, 60_000);
        assert_eq!((queue.first_bytes(3_000), queue.first_filled_at), (58_000, Some(1)), "the second one is filled");
        queue.copy(3, 63_000, 131_000, 60_000);
        assert_eq!(
            (queue.first_bytes(63_000), queue.first_filled_at),
            (60_000, Some(3)),
            "the second is the first now"
        );
        queue.copy(4, 131_000, 141_000, 60_000);
        assert_eq!((queue.first_bytes(131_000), queue.first_filled_at), (60_000, Some(4)), "all had been sent");
    }

    #[test]
    fn an_sk_buff_that_is_filled_keeps_its_size_and_the_last_one_takes_the_new_one() {
        let mut queue = WriteQueue::default();
        queue.copy(1, 1_000, 81_000, 30_000);
        queue.copy(2, 21_000, 201_000, 40_000);
        assert_eq!(queue.first_bytes(21_000), 10_000);
        assert_eq!(queue.first_bytes(31_000), 30_000);
        assert_eq!(queue.first_bytes(61_000), 40_000, "20,000 bytes were in it");
        assert_eq!(queue.first_bytes(101_000), 40_000);
    }

    // Linux, sk_stream_write_space.
    #[test]
    fn the_application_writes_again_when_a_third_of_the_buffer_is_free() {
        let mut queue = WriteQueue::default();
        queue.copy(1, 1_000, 91_000, 30_000);
        assert!(!queue.has_room(30_000, 90_000));
        assert!(queue.has_room(31_000, 90_000));
    }
}
