//! New data leaves in trains, as Linux's sender releases it whether or not the interface has offloads: a train is as
//! long as a millisecond's worth of the pacing rate, and a shorter one waits for the next ACK if that is due. A train is
//! one burst to the [pacer](super::pacing), if there is one.

mod departure;
pub(crate) mod write_queue;

use crate::profile::Trains;
use crate::{MILLISECOND, Nanos};
use write_queue::{LONGEST_BYTES, WriteQueue};

/// Linux: `tcp_tso_rtt_log`.
const RTT_SHIFT: u32 = 9;
/// A millisecond is taken to be 1/1024 s (Linux: `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;

impl Trains {
    /// Segments of a full train.
    // Linux, tcp_tso_segs and tcp_tso_autosize: the data of a millisecond at the pacing rate, more on very short paths.
    fn full(&self, now: &Room) -> u32 {
        let Some(rate) = now.rate else { return (LONGEST_BYTES / u64::from(now.mss)) as u32 };
        let halvings = now.shortest_rtt.and_then(|rtt| u32::try_from((rtt / 1_000) >> RTT_SHIFT).ok());
        let short_path = halvings.and_then(|halvings| LONGEST_BYTES.checked_shr(halvings)).unwrap_or(0);
        let bytes = ((rate >> PACING_SHIFT) + short_path).min(LONGEST_BYTES);
        ((bytes / u64::from(now.mss)) as u32).max(now.min_segments.unwrap_or(self.min_segments))
    }

    // Linux, tcp_tso_should_defer (6.18): a short train waits only right after another, and only if the ACK of the first
    // segment outstanding is due within a millisecond or half a round trip.
    fn waits(&self, now: &Room, full: u32) -> bool {
        let mss = u64::from(now.mss);
        let room = now.room();
        let enough = (u64::from(now.window).min(now.peer_window)) / u64::from(self.window_divisor);
        let (Some(head_sent_at), Some(srtt)) = (now.head_sent_at, now.srtt) else { return false };
        now.last_sent_at.is_none_or(|sent_at| now.now.saturating_sub(sent_at) < MILLISECOND)
            && room < u64::from(full) * mss
            && room < enough
            && (head_sent_at + srtt).saturating_sub(now.now) <= (srtt / 2).min(MILLISECOND)
            && (room <= now.waiting || !now.closing)
    }
}

/// The inputs of the decision on a train.
#[derive(Clone, Copy)]
struct Room {
    now: Nanos,
    mss: u32,
    /// cwnd in bytes, and its free part in segments.
    window: u32,
    segments: u32,
    /// Bytes per second at which segments are paced, or would be (Linux: `sk_pacing_rate`); none before an RTT is known.
    rate: Option<u64>,
    /// Segments of a train at least, if the controller says so.
    min_segments: Option<u32>,
    /// The free part of the peer's window, and all of it, in bytes.
    peer_room: u64,
    peer_window: u64,
    /// Bytes of data to send; that is all that there will be.
    waiting: u64,
    closing: bool,
    /// Bytes of them that Nagle's algorithm lets leave, up to the end of a record.
    free: u64,
    srtt: Option<Nanos>,
    shortest_rtt: Option<Nanos>,
    /// When the last segment left or, if paced, when the next one may (Linux: `tcp_wstamp_ns`).
    last_sent_at: Option<Nanos>,
    /// When the first segment outstanding was sent.
    head_sent_at: Option<Nanos>,
}

impl Room {
    /// Bytes that cwnd and the peer's window have room for.
    fn room(&self) -> u64 {
        self.peer_room.min(u64::from(self.segments) * u64::from(self.mss))
    }

    /// True if all of the first sk_buff may leave, and another one follows: then it gets no more data.
    // Linux, tcp_tso_should_defer; one that is shorter than the train takes the rest from the next one (tcp_grow_skb).
    fn takes_first(&self, first_queued: u64, full: u32) -> bool {
        let first = first_queued.max(u64::from(self.length(full)) * u64::from(self.mss));
        first < self.waiting && first <= self.room()
    }

    /// Segments of the train that leaves now: no more than there is data, and room in the peer's window, which may cut
    /// off the last one behind a whole one unless that part is held, as by Nagle's algorithm or a cork.
    // Linux, tcp_snd_wnd_test and tcp_mss_split_point.
    fn departing(&self, full: u32, holds_part: bool) -> u32 {
        let mss = u64::from(self.mss);
        let cut = u64::from(!holds_part && self.peer_room % mss > 0);
        let most = (self.peer_room / mss + cut).min(self.free.div_ceil(mss));
        self.length(full).min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Segments that cwnd has room for in one train.
    // Linux, tcp_cwnd_test: half a window per burst at most.
    fn length(&self, full: u32) -> u32 {
        full.min(self.segments).min((self.window / self.mss / 2).max(1))
    }
}

/// The train that is leaving, and the queue that it comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Train {
    /// Segments of it that are still to leave.
    left: u32,
    /// It has more than one segment.
    several: bool,
    /// It waits, because the congestion window has no room for more.
    pub limited: bool,
    pub queue: WriteQueue,
}

impl Train {
    /// A segment of it left. True if it ends a train of several, which PSH shows.
    // Linux, __tcp_transmit_skb: PSH on every sk_buff of several segments; its last segment has it.
    #[inline]
    pub(crate) fn on_sent(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 && std::mem::take(&mut self.several)
    }

    /// True if the next segment is the last of several, which may be short.
    pub(crate) fn ends(&self) -> bool {
        self.left == 1 && self.several
    }

    /// Segments of it that are still to leave.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// An ACK arrived, or the pacer begins another burst: the next segments are another train.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.stop();
        self.limited = false;
    }

    /// The rest of it does not leave.
    pub(crate) fn stop(&mut self) {
        (self.left, self.several) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK of one segment of 1000 bytes, with a window of 100 segments at 1.2 MB/s, of which this number is free.
    fn room(segments: u32) -> Room {
        Room {
            now: 1_000 * MILLISECOND,
            mss: 1_000,
            window: 100_000,
            segments,
            rate: Some(1_200_000),
            min_segments: None,
            peer_room: 1 << 20,
            peer_window: 1 << 20,
            waiting: 1 << 20,
            closing: false,
            free: 1 << 20,
            srtt: Some(100 * MILLISECOND),
            shortest_rtt: Some(60 * MILLISECOND),
            last_sent_at: Some(999 * MILLISECOND + 400_000),
            head_sent_at: Some(899 * MILLISECOND),
        }
    }

    #[test]
    fn a_train_is_a_millisecond_long_and_two_segments_at_least() {
        assert_eq!(Trains::LINUX.full(&room(1)), 2, "1.2 MB/s");
        assert_eq!(Trains::LINUX.full(&Room { rate: Some(12_000_000), ..room(1) }), 11, "12 MB/s");
        assert_eq!(Trains::LINUX.full(&Room { min_segments: Some(1), ..room(1) }), 1, "the controller says so");
        assert_eq!(Trains::LINUX.full(&Room { shortest_rtt: Some(MILLISECOND), ..room(1) }), 33, "a very short path");
        assert_eq!(Trains::LINUX.full(&Room { rate: None, ..room(1) }), 65);
    }

    #[test]
    fn a_short_train_waits_for_the_next_acknowledgement_if_that_is_due() {
        let waits = |room: Room| Trains::LINUX.waits(&room, 2);
        assert!(waits(room(1)));
        assert!(!waits(room(2)), "a full train");
        assert!(!waits(Room { last_sent_at: Some(998 * MILLISECOND), ..room(1) }), "the last one left long ago");
        assert!(!waits(Room { head_sent_at: Some(902 * MILLISECOND), ..room(1) }), "no ACK is due");
        assert!(!waits(Room { head_sent_at: None, ..room(1) }), "none is outstanding");
        assert!(!waits(Room { window: 3_000, ..room(1) }), "a third of the window is free");
        assert!(!waits(Room { waiting: 500, closing: true, ..room(1) }), "there will be no more");
    }

    // Linux, tcp_tso_should_defer: "Middle in queue won't get any more data, full sendable already?"
    #[test]
    fn the_end_of_an_sk_buff_leaves_if_another_one_follows() {
        assert!(room(1).takes_first(1_000, 2));
        assert!(room(2).takes_first(1_000, 2), "the train takes a segment of the next sk_buff");
        assert!(!room(1).takes_first(2_000, 2), "another segment of the sk_buff would stay behind");
        assert!(!Room { waiting: 1_000, ..room(1) }.takes_first(1_000, 2), "the last sk_buff may get more data");
        assert!(
            !Room { peer_room: 1_500, ..room(2) }.takes_first(1_000, 2),
            "the peer's window has no room for the train"
        );
    }
}
