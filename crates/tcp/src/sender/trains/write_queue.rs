//! The write queue of Linux's sender. The application's data is copied into sk_buffs, whose size is fixed when they are
//! filled; trains are cut off the first. The socket's buffer bounds what is copied, and with it what is sent.

use crate::Nanos;
use crate::connection::handshake::DEFAULT_MSS;
use crate::profile::SendBuffer;
use crate::sequence::SeqNum;
use std::collections::VecDeque;

/// The most that a packet carries: `sk_gso_max_size` of an interface that sets no limit, 64 KiB less room for headers.
pub(crate) const LONGEST_BYTES: u64 = 65_215;
/// `tcp_sndbuf_expand`: two windows, with BBR three, and ten segments at least, each with the memory that a segment takes
/// in an sk_buff.
pub(super) const BUFFER_WINDOWS: u64 = 2;
pub(super) const BUFFER_WINDOWS_BBR: u64 = 3;
const MIN_WINDOW: u64 = 10;
/// `MAX_TCP_HEADER` and `skb_shared_info`, of a kernel with drivers for wireless interfaces; without, 64 bytes less.
pub(super) const HEADERS: u64 = 640;
pub(super) const SK_BUFF: u64 = 256;

impl SendBuffer {
    /// Bytes of a buffer that is sized for a window of `cwnd` bytes.
    pub(super) fn bytes(&self, mss: u32, cwnd: u32, windows: u64) -> u32 {
        let mss = u64::from(mss.max(1));
        let segment = (mss + HEADERS).next_power_of_two() + SK_BUFF;
        let wanted = windows * MIN_WINDOW.max(u64::from(cwnd) / mss) * segment;
        wanted.clamp(self.initial_bytes.into(), self.maximum_bytes.into()) as u32
    }
}

/// The sk_buffs that are not sent yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteQueue {
    /// (begin, size): sk_buffs of `size` bytes from `begin` up to the next entry.
    sizes: VecDeque<(SeqNum, u64)>,
    /// When the application last wrote into the first sk_buff.
    pub first_filled_at: Option<Nanos>,
    /// The end of what the application has asked to be sent [pushed_seq]: of its last write but this one, or of an sk_buff of
    /// this one.
    pushed: SeqNum,
    /// Where the rest of an sk_buff begins that had to leave during the write that filled it, which goes on with it; 0: none.
    pub rest: SeqNum,
}

/// How an sk_buff leaves during the write that fills it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Push {
    /// As outside of a write.
    None,
    /// A train of any length, and the rest takes more of the write.
    One,
    /// All of it, and nothing follows it yet: more than half of the peer's largest window was written since the last push.
    Forced,
}

impl WriteQueue {
    /// The queue of a new connection, in the memory of this one.
    pub(crate) fn emptied(mut self) -> Self {
        self.sizes.clear();
        Self { sizes: self.sizes, ..Self::default() }
    }

    /// The application's data after `end` is copied; `next` is the next position to send. The last sk_buff is filled up
    /// first.
    // Linux, tcp_sendmsg_locked.
    pub(super) fn copy(&mut self, now: Nanos, next: SeqNum, end: SeqNum, size: u64) {
        self.pushed = self.pushed.max(end);
        let last = self.sizes.back().map_or(0, |&(begin, size)| begin + end.saturating_sub(begin) / size * size);
        if last <= next {
            self.first_filled_at = Some(now);
            self.sizes.clear();
            self.sizes.push_back((next, size));
        } else if self.sizes.back().is_none_or(|&(_, known)| known != size) {
            self.sizes.push_back((last, size));
        }
    }

    /// Bytes from `next` to the end of the first sk_buff, counted as full.
    pub(crate) fn first_bytes(&mut self, now: Nanos, next: SeqNum) -> u64 {
        if self.rest > 0 && self.first_filled_at.is_some_and(|at| at < now) {
            let rest = std::mem::take(&mut self.rest);
            self.restart_first(rest);
        }
        while self.sizes.get(1).is_some_and(|&(begin, _)| begin <= next) {
            self.sizes.pop_front();
        }
        let Some(&(begin, size)) = self.sizes.front() else { return 0 };
        begin + (next.saturating_sub(begin) / size + 1) * size - next
    }

    /// How the first sk_buff leaves, of which `first` bytes are left, while the write at `now` fills it and goes on; `half`
    /// of the peer's largest window.
    // Linux, tcp_sendmsg_locked: forced_push, else tcp_push_one.
    pub(crate) fn push(&mut self, now: Nanos, next: SeqNum, first: u64, half: u64) -> Push {
        let end = next + first;
        if self.first_filled_at != Some(now) {
            return Push::None;
        }
        if end > self.pushed && end <= self.pushed + half {
            return Push::One;
        }
        self.pushed = end;
        Push::Forced
    }

    /// What was before `begin` leaves during a write; the rest of the first sk_buff is filled up again by the same write.
    // Linux, tcp_push_one.
    pub(crate) fn restart_first(&mut self, begin: SeqNum) {
        if let Some(first) = self.sizes.front_mut() {
            first.0 = begin;
        }
    }
}

/// Bytes of a full sk_buff.
// Linux, tcp_xmit_size_goal: whole segments, and half of the largest window at most.
pub(crate) fn size_goal(mss: u32, largest_peer_window: u32) -> u64 {
    let mss = u64::from(mss.max(1));
    (LONGEST_BYTES.min(half_window(largest_peer_window).into()) / mss).max(1) * mss
}

/// The longest packet that leaves room for a second one in the peer's window; a window of at most 536 bytes holds one.
// Linux, tcp_bound_to_half_wnd.
pub(crate) fn half_window(largest_peer_window: u32) -> u32 {
    if largest_peer_window > DEFAULT_MSS { largest_peer_window / 2 } else { largest_peer_window }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Endpoint;
    use crate::connection::shared::Events;
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
        let bytes = |segments: u32| SendBuffer::LINUX.bytes(1_448, segments * 1_448, 2);
        assert_eq!((bytes(1), bytes(10), bytes(100), bytes(1_000)), (87_040, 87_040, 870_400, 4 << 20));
    }

    // Linux, tcp_sendmsg_locked, with sk_buffs of 60 segments.
    #[test]
    fn a_write_fills_the_last_sk_buff_of_the_queue_before_it_begins_another() {
        let mut queue = WriteQueue::default();
        queue.copy(1, 1_000, 1_000, 60_000);
        assert_eq!(queue.first_bytes(1, 1_000), 60_000);
        assert_eq!(queue.first_bytes(1, 60_000), 1_000);
        queue.copy(2, 3_000, 101_000, 60_000);
        assert_eq!((queue.first_bytes(2, 3_000), queue.first_filled_at), (58_000, Some(1)), "the second one is filled");
        queue.copy(3, 63_000, 111_000, 60_000);
        assert_eq!(
            (queue.first_bytes(3, 63_000), queue.first_filled_at),
            (60_000, Some(3)),
            "the second is the first now"
        );
        queue.copy(4, 131_000, 131_000, 60_000);
        assert_eq!((queue.first_bytes(4, 131_000), queue.first_filled_at), (60_000, Some(4)), "all had been sent");
    }

    #[test]
    fn an_sk_buff_that_is_filled_keeps_its_size_and_the_last_one_takes_the_new_one() {
        let mut queue = WriteQueue::default();
        queue.copy(1, 1_000, 1_000, 30_000);
        queue.copy(2, 21_000, 81_000, 40_000);
        assert_eq!(queue.first_bytes(2, 21_000), 10_000);
        assert_eq!(queue.first_bytes(2, 31_000), 30_000);
        assert_eq!(queue.first_bytes(2, 61_000), 40_000, "20,000 bytes were in it");
        assert_eq!(queue.first_bytes(2, 101_000), 40_000);
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
    fn what_follows_the_first_buffer_is_copied_once_a_third_of_it_is_free_in_sk_buffs_of_the_window_then() {
        let queue = |server: &Endpoint| {
            let server = server.sender();
            let queue = &server.recovery.scoreboard().expect("profile linux has one").train.queue;
            let copied = server.snd.data_end - server.snd.initial() - 1;
            (copied, server.snd.unwritten, queue.sizes.back().expect("data is queued").1 / 1_448)
        };
        let first = (10 + 3 * 22) * 1_448;
        assert_eq!(
            queue(&sending(1)),
            (first, 1_000_000 - first, 22),
            "three sk_buffs of half a window of 64,256 bytes"
        );
        let (copied, unwritten, segments) = queue(&sending(140_000));
        assert_eq!((copied, copied + unwritten, segments), (295 * 1_448, 1_000_000, 31));
    }
}
