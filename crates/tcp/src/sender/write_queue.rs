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
const MIN_WINDOW: u64 = 10;
const HEADERS: u64 = 640;
const SK_BUFF: u64 = 256;

/// The sk_buffs that are not sent yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteQueue {
    /// End of the data in them.
    end: SeqNum,
    /// Bytes that the socket's buffer holds, sent and not acknowledged ones as well.
    buffer: u64,
    /// (begin, size): sk_buffs of `size` bytes from `begin` up to the next entry.
    sizes: VecDeque<(SeqNum, u64)>,
    /// When the application last wrote into the first sk_buff.
    pub first_filled_at: Option<Nanos>,
}

impl WriteQueue {
    /// The queue of a new connection, in the memory of this one.
    pub(crate) fn emptied(mut self) -> Self {
        self.sizes.clear();
        Self { sizes: self.sizes, ..Self::default() }
    }

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

    /// Bytes from `next` to the end of the first sk_buff, counted as full.
    pub(crate) fn first_bytes(&mut self, next: SeqNum) -> u64 {
        while self.sizes.get(1).is_some_and(|&(begin, _)| begin <= next) {
            self.sizes.pop_front();
        }
        let Some(&(begin, size)) = self.sizes.front() else { return 0 };
        begin + (next.saturating_sub(begin) / size + 1) * size - next
    }

    /// What was before `begin` leaves during a write; the rest of the first sk_buff is filled up again by the same write.
    // Linux, tcp_push_one.
    pub(crate) fn restart_first(&mut self, begin: SeqNum) {
        if let Some(first) = self.sizes.front_mut() {
            first.0 = begin;
        }
    }

    /// True if the kernel wakes the application to write more.
    // Linux, sk_stream_write_space: a third of the buffer is free.
    fn wakes_writer(&self, una: SeqNum) -> bool {
        3 * self.end.saturating_sub(una) <= 2 * self.buffer
    }
}

/// Bytes of a full sk_buff.
// Linux, tcp_xmit_size_goal and tcp_bound_to_half_wnd: whole segments, and half of the largest window at most.
pub(crate) fn size_goal(mss: u32, largest_peer_window: u32) -> u64 {
    let (mss, largest) = (u64::from(mss.max(1)), u64::from(largest_peer_window));
    let bound = if largest > DEFAULT_MSS { largest / 2 } else { largest };
    (LONGEST_BYTES.min(bound) / mss).max(1) * mss
}

/// Bytes of a socket's buffer that is sized for a window of `cwnd` bytes.
fn buffer(mss: u32, cwnd: u32) -> u64 {
    let mss = u64::from(mss.max(1));
    let segment = (mss + HEADERS).next_power_of_two() + SK_BUFF;
    INITIAL_BUFFER.max(BUFFER_WINDOWS * MIN_WINDOW.max(u64::from(cwnd) / mss) * segment)
}

impl Endpoint {
    /// The application writes, or the connection is established.
    #[inline]
    pub(crate) fn copy_write(&mut self, now: Nanos) {
        // Linux, tcp_sendmsg_locked: data written during the handshake is copied at its end.
        if self.state >= State::Established {
            self.copy(now, true);
        }
    }

    /// An application that has more to write does so if the kernel wakes it.
    #[inline]
    pub(crate) fn copy_more(&mut self, now: Nanos) {
        self.copy(now, false);
    }

    fn copy(&mut self, now: Nanos, writing: bool) {
        let (mss, una, next, data_end) = (self.mss, self.snd.una, self.snd.nxt, self.snd.data_end);
        let cwnd = self.controller.window();
        let Some(scoreboard) = self.recovery.scoreboard_mut() else { return };
        if self.profile.recovery.scoreboard().trains.is_none() {
            return;
        }
        let queue = &mut scoreboard.train.queue;
        if data_end <= queue.end.max(next) {
            return;
        }
        // Linux, tcp_should_expand_sndbuf: the buffer does not grow while it is cwnd that limits the sender.
        if queue.buffer == 0 || queue.end <= next {
            queue.buffer = queue.buffer.max(buffer(mss, cwnd));
        }
        let end = data_end.min(una + queue.buffer);
        if end > queue.end && (writing || queue.wakes_writer(una)) {
            queue.copy(now, next, end, size_goal(mss, self.peer_window.largest_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Events;
    use crate::profile::Profile;
    use crate::segment::Segment;
    use std::sync::Arc;

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
        let mut queue = WriteQueue { buffer: 90_000, ..WriteQueue::default() };
        queue.copy(1, 1_000, 91_000, 30_000);
        assert!(!queue.wakes_writer(30_000));
        assert!(queue.wakes_writer(31_000));
    }

    /// A server 10 ms from its client, with 1 MB to send, of which this many bytes are acknowledged.
    fn sending(acknowledged: u64) -> Endpoint {
        const DELAY: Nanos = 10_000_000;
        let profile = Arc::new(Profile::linux());
        let mut ends = [Endpoint::client(profile.clone(), 1), Endpoint::server(profile, 2)];
        let mut under_way = VecDeque::new();
        ends[0].connect(0);
        let mut now = 0;
        while ends[1].acknowledged_bytes() < acknowledged {
            if ends[1].poll_events().contains(Events::CONNECTED) {
                ends[1].write(now, 1_000_000);
            }
            for (side, end) in ends.iter_mut().enumerate() {
                while let Some(segment) = end.poll_transmit(now) {
                    under_way.push_back((now + DELAY, 1 - side, segment));
                }
            }
            let (at, to, segment): (Nanos, usize, Segment) = under_way.pop_front().expect("a segment is on its way");
            now = at;
            ends[to].handle_segment(now, &segment);
            ends[to].read(u64::MAX);
        }
        let [_, server] = ends;
        server
    }

    #[test]
    fn what_follows_the_first_buffer_is_copied_once_a_third_of_it_is_acknowledged_in_sk_buffs_of_the_window_then() {
        let queue = |server: &Endpoint| {
            let queue = &server.recovery.scoreboard().expect("profile linux has one").train.queue;
            (queue.end - server.snd.initial() - 1, queue.sizes.back().expect("data is queued").1 / 1_448)
        };
        assert_eq!(queue(&sending(1)), (256 << 10, 22), "half of a window of 64,256 bytes");
        assert_eq!(queue(&sending(80_000)), (256 << 10, 22));
        let (copied, segments) = queue(&sending(140_000));
        assert!(copied > 340_000 && segments > 30, "{copied} bytes in sk_buffs of {segments} segments");
    }
}
