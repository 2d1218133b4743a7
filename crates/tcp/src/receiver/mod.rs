//! The receiving half of an endpoint: what has arrived, what the application has read, and when to acknowledge.

pub(crate) mod ack;
pub(crate) mod memory;
pub(crate) mod payload;
pub(crate) mod reassembly;
mod round_trip;
mod segment_size;
pub(crate) mod window;

use crate::connection::handshake::{LARGEST_FIELD, State, feature};
use crate::connection::shared::{Connection, Reset, due};
use crate::connection::timestamps::TimestampState;
use crate::profile::{AckPolicy, Profile};
use crate::receiver::ack::Arrivals;
use crate::receiver::memory::{Memory, ReceiverExtras};
use crate::receiver::segment_size::{Compared, SegmentSize};
use crate::receiver::window::{Arrived, Block, GrowingWindow};
use crate::segment::{Flags, PathOption, Segment, TIMESTAMPS_BYTES};
use crate::sequence::{SeqNum, origin};
use crate::{Deadline, Nanos};
use reassembly::Reassembly;
use std::num::NonZeroU64;

/// Quick acknowledgments after a CE mark: the sender may be down to a window of one segment.
// Linux, tcp_data_ecn_check.
const QUICKACKS_AFTER_CE: u16 = 2;

/// The receiver of a connection. What it shares with the sender is handed to its methods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// RCV.NXT: next position expected.
    nxt: SeqNum,
    /// Next position that the application will read.
    read_next: SeqNum,
    /// Right edge of the window announced (BSD: `rcv_adv`).
    edge: SeqNum,
    /// Position of the peer's FIN, once it arrived. None is 0.
    fin: Option<NonZeroU64>,
    /// Data that arrived ahead of a hole.
    reassembly: Reassembly,
    /// IRS: sequence number of the peer's SYN, once `nxt` says that it arrived.
    irs: u32,
    /// Data segments received in order since the last acknowledgment.
    unacknowledged_segments: u32,
    /// Expiry of the timer of a delayed acknowledgment.
    ack_timer: Deadline,
    /// State that only some connections have.
    extras: ReceiverExtras,
}

impl Receiver {
    /// A receiver that has received nothing, in the memory of one whose connection is over if there is any.
    pub fn new_in(old: ReceiverExtras, profile: &Profile, initial_sequence: u32) -> Self {
        Self { extras: old.for_another(profile, initial_sequence), ..Self::default() }
    }

    /// Gives up the memory that another receiver can be built in.
    pub fn take_memory(&mut self) -> ReceiverExtras {
        std::mem::take(&mut self.extras)
    }

    /// The peer's SYN arrived.
    pub fn begin(&mut self, irs: u32) {
        self.irs = irs;
        self.nxt = origin(irs) + 1;
        self.read_next = self.nxt;
    }

    /// The peer's initial sequence number, once its SYN arrived.
    pub fn irs(&self) -> Option<u32> {
        (self.nxt > 0).then_some(self.irs)
    }

    /// Position of the first byte of the peer's stream, once its SYN arrived.
    pub fn first(&self) -> Option<SeqNum> {
        self.irs().map(|irs| origin(irs) + 1)
    }

    /// This position, or that of the peer's FIN if that comes before.
    pub fn up_to_fin(&self, position: SeqNum) -> SeqNum {
        self.fin.map_or(position, |fin| position.min(fin.get()))
    }

    /// RCV.NXT.
    pub fn next(&self) -> SeqNum {
        self.nxt
    }

    pub fn received_bytes(&self) -> u64 {
        self.first().map_or(0, |first| self.up_to_fin(self.nxt) - first)
    }

    pub fn arrived_until(&self, offset: u64) -> u64 {
        let Some(first) = self.first() else { return offset };
        let position = first + offset;
        let until = if position < self.nxt { self.nxt } else { self.reassembly.held_until(position) };
        until - first
    }

    pub fn ack_timer(&self) -> Deadline {
        self.ack_timer
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.ack_timer = Deadline::NEVER;
    }

    /// The application consumes up to `bytes`; returns how many it got.
    #[inline]
    pub fn read(&mut self, conn: &mut Connection, bytes: u64) -> u64 {
        let from = self.read_next;
        let taken = bytes.min(self.readable());
        self.read_next += taken;
        if conn.handshake.has(feature::RECEIVER) {
            self.note_reading(conn, from);
        }
        self.update_window_if_needed(conn);
        taken
    }

    pub fn check_invariants(&self, state: State) {
        debug_assert!(self.read_next <= self.nxt, "nothing is read before it arrives");
        debug_assert!(!self.ack_timer.is_set() || state >= State::Established);
    }

    /// Bytes received in order and not read yet.
    // The peer's FIN takes a position but is nothing to read.
    pub fn readable(&self) -> u64 {
        self.up_to_fin(self.nxt) - self.read_next
    }

    /// Bytes of the announced window that are left.
    pub fn window(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// Data or a FIN arrived: the next segment computes its window again.
    #[inline]
    pub(crate) fn renew_window(&mut self, conn: &Connection) {
        if conn.handshake.has(feature::RECEIVER) {
            if let Some(memory) = self.extras.memory_mut() {
                memory.edge_is_current = false;
            }
        }
    }

    /// Last.ACK.sent, which only timestamps and adaptive acknowledgments look at; RCV.NXT without a [`Memory`].
    // A duplicate that `loose_sequence_check` accepts differs from a refused one in its timestamp alone: both are
    // acknowledged.
    pub(crate) fn last_ack_sent(&self) -> SeqNum {
        self.extras.memory().map_or(self.nxt, |memory| memory.last_ack_sent)
    }

    /// Advertised window: the one in the latest acknowledgment.
    fn window_in_force(&self) -> u32 {
        u32::try_from(self.edge.saturating_sub(self.last_ack_sent())).unwrap_or(u32::MAX)
    }

    /// Payload of the largest segment that the peer may send [advmss].
    fn largest_segment_bytes(&self, conn: &Connection) -> u32 {
        conn.profile.mss_bytes.saturating_sub(self.stamp_bytes(conn)).max(1)
    }

    /// Bytes of options that every segment has.
    fn stamp_bytes(&self, conn: &Connection) -> u32 {
        if conn.handshake.has(feature::TIMESTAMPS) { TIMESTAMPS_BYTES } else { 0 }
    }

    /// The state of the timestamps option, if this receiver has a [`Memory`]; [`feature::TIMESTAMPS`] says whether the option
    /// is in use.
    pub fn timestamps(&self) -> Option<&TimestampState> {
        self.extras.memory().map(|memory| &memory.timestamps)
    }

    /// The peer's value for the echo, or our first SYN, is noted here.
    pub fn timestamps_mut(&mut self) -> Option<&mut TimestampState> {
        self.extras.memory_mut().map(|memory| &mut memory.timestamps)
    }

    /// Time since we sent the data that the segment acknowledges, by its timestamp: the only measure across a
    /// retransmission.
    // RFC 7323 §4.1: with Karn's ambiguity gone, each acknowledgment of new data may be a sample.
    pub fn echoed_age(&self, conn: &Connection, now: Nanos, segment: &Segment) -> Option<Nanos> {
        let theirs = segment.timestamps.filter(|_| conn.handshake.has(feature::TIMESTAMPS))?;
        self.timestamps()?.age(now, theirs.echo)
    }

    /// The memory, made if there is none yet.
    pub fn memory_or_new(&mut self, profile: &Profile, initial_sequence: u32) -> &mut Memory {
        self.extras.get_or_new(profile, initial_sequence)
    }

    pub fn reset(&self) -> Reset {
        self.extras.memory().map_or(Reset::default(), |memory| memory.reset)
    }

    /// The option that waits for the next segment.
    #[cold]
    pub fn take_path_option(&mut self, conn: &mut Connection) -> Option<PathOption> {
        conn.end_path_option();
        self.extras.memory_mut()?.path_option.take()
    }

    /// A segment that echoes a timestamp may be a sample of the RTT that the receiver sees.
    pub(crate) fn note_echo(&mut self, now: Nanos, segment: &Segment) {
        let is_read = self.read_next == self.nxt;
        let Some(theirs) = segment.timestamps else { return };
        if let Some(Memory { round_trip, segment_size, timestamps, .. }) = self.extras.memory_mut() {
            let is_full = segment.sequence_length() >= segment_size.bytes;
            let age = if is_full { timestamps.age(now, theirs.echo) } else { None };
            round_trip.on_echo(theirs.echo, age, is_read);
        }
    }

    /// The echo in the segment that ended the handshake does not count.
    pub(crate) fn forget_echo(&mut self) {
        if let Some(memory) = self.extras.memory_mut() {
            memory.round_trip.forget_echo();
        }
    }

    /// A segment with payload arrived, in order or ahead of a hole.
    #[inline(always)]
    fn arrived(&mut self, conn: &Connection, now: Nanos, block: Block, segment: &Segment) -> Arrived {
        let window_bytes = self.window_in_force();
        let (stamp_bytes, most_bytes) = (self.stamp_bytes(conn), self.largest_segment_bytes(conn));
        let pushes = segment.flags.contains(Flags::PSH);
        let mut arrived =
            Arrived { block, payload_bytes: segment.payload_bytes, is_longer: false, segment_bytes: 0, window_bytes };
        if let Some(Memory { arrivals, segment_size, window, .. }) = self.extras.memory_mut() {
            let compared = segment_size.learn(segment, stamp_bytes, most_bytes);
            arrived.is_longer = compared == Compared::Longer;
            arrived.segment_bytes = segment_size.bytes;
            if let Some(arrivals) = arrivals {
                arrivals.on_segment(compared, pushes);
            }
            if let Some(window) = window {
                window.touch(now);
            }
        }
        arrived
    }

    /// Data arrived in order, and RCV.NXT has moved; no hole that it filled counts yet.
    /// `enter_quickack`: as its CE mark or its missing ECT asks.
    // Linux, tcp_event_data_recv: the CE mark counts before the window grows, which makes one more acknowledgment quick.
    fn note_arrival(
        &mut self,
        conn: &Connection,
        now: Nanos,
        rto: Nanos,
        seq: SeqNum,
        segment: &Segment,
        enter_quickack: bool,
    ) {
        let block = Block::of(seq, segment.payload_bytes, segment.option_bytes()).accepted_up_to(self.nxt);
        self.make_room(&block, true);
        let arrived = self.arrived(conn, now, block, segment);
        let received = self.nxt;
        let Some(Memory { arrivals, window, round_trip, .. }) = self.extras.memory_mut() else { return };
        if let Some(arrivals) = arrivals {
            arrivals.on_data(now, arrived.segment_bytes, arrived.window_bytes, rto);
            if enter_quickack {
                arrivals.enter_quickack(Some(QUICKACKS_AFTER_CE), arrived.segment_bytes, arrived.window_bytes);
            }
        }
        round_trip.on_data(now, received, arrived.window_bytes);
        if let Some(window) = window {
            if window.on_data(&arrived) {
                if let Some(arrivals) = arrivals {
                    arrivals.quickack_once();
                }
            }
        }
    }

    /// True if RCV.NXT is among the bytes of which every segment is acknowledged.
    pub(crate) fn wants_each_acknowledged(&self) -> bool {
        self.extras.memory().is_some_and(|memory| self.nxt < memory.acknowledge_each_before)
    }

    /// The bytes of which every segment is acknowledged begin at RCV.NXT: after the peer's SYN and after disorder.
    pub(crate) fn acknowledge_each_from_here(&mut self, conn: &Connection) {
        if let AckPolicy::Heartbeat { every_segment_bytes: Some(bytes), .. } = conn.profile.ack {
            if let Some(memory) = self.extras.memory_mut() {
                memory.acknowledge_each_before = self.nxt + u64::from(bytes);
            }
        }
    }

    /// Data arrived ahead of a hole and was accepted up to `end`; `enter_quickack` as in `note_arrival`.
    #[inline(never)]
    pub(crate) fn note_gap(
        &mut self,
        conn: &Connection,
        now: Nanos,
        seq: SeqNum,
        end: SeqNum,
        segment: &Segment,
        enter_quickack: bool,
    ) {
        let block = Block::of(seq, segment.payload_bytes, segment.option_bytes()).accepted_up_to(end);
        self.make_room(&block, false);
        let arrived = self.arrived(conn, now, block, segment);
        if enter_quickack {
            self.enter_quickack(Some(QUICKACKS_AFTER_CE));
        }
        let (distance, has_sack) = (self.bytes_ahead(), conn.handshake.has(feature::SACK));
        if let Some(Memory { window: Some(window), arrivals, .. }) = self.extras.memory_mut() {
            if window.on_gap(&arrived, distance, has_sack) {
                if let Some(arrivals) = arrivals {
                    arrivals.quickack_once();
                }
            }
        }
    }

    /// RCV.NXT has moved on over data that lay ahead of a hole; `before`: up to where it was without.
    pub(crate) fn note_filled(&mut self, before: SeqNum) {
        let next = self.nxt;
        if let Some(Memory { window: Some(window), .. }) = self.extras.memory_mut() {
            window.on_filled(before, next);
        }
    }

    #[inline]
    fn make_room(&mut self, block: &Block, in_order: bool) {
        if let Some(Memory { window: Some(window), arrivals, .. }) = self.extras.memory_mut() {
            if window.make_room(block, in_order) {
                if let Some(arrivals) = arrivals {
                    arrivals.end_quick();
                }
            }
        }
    }

    /// Bytes from RCV.NXT to the end of the data ahead of a hole.
    fn bytes_ahead(&self) -> u32 {
        self.reassembly.end().map_or(0, |end| u32::try_from(end - self.nxt).unwrap_or(u32::MAX))
    }

    /// True if acknowledgments of data ahead of a hole are merged: with SACK, since duplicates say nothing then.
    pub(crate) fn compresses(&self, conn: &Connection) -> bool {
        conn.handshake.has(feature::SACK) && self.extras.arrivals().is_some_and(Arrivals::compresses)
    }

    /// When to acknowledge arrived data; `srtt`: the sender's.
    // Linux, __tcp_ack_snd_check: more than one full segment, if the window does not shrink (it would if the application
    // does not read); or in quick mode; or because something already made it due; or after a delay.
    #[inline(always)]
    pub(crate) fn acknowledge_adaptively(&mut self, conn: &mut Connection, now: Nanos, srtt: Option<Nanos>) {
        let waiting = self.nxt - self.last_ack_sent();
        let in_force = u64::from(self.window_in_force());
        let two = self.extras.memory().is_some_and(|memory| waiting > u64::from(memory.segment_size.bytes));
        let enough = two && self.select_window(conn) >= in_force;
        let due = conn.due & due::ACK != 0;
        let Some(Memory { arrivals: Some(arrivals), round_trip, .. }) = self.extras.memory_mut() else { return };
        if enough || arrivals.is_quick() || due {
            return self.acknowledge_first(conn);
        }
        if !self.reassembly.is_empty() {
            // Linux: none counts as none at all, the sender's only if it is shorter.
            let rtt = round_trip.get().map_or(0, |rtt| rtt.min(srtt.unwrap_or(rtt)));
            return match arrivals.compress(now, self.nxt, rtt) {
                None => self.acknowledge_first(conn),
                Some(end) => self.ack_timer = self.ack_timer.earliest(end),
            };
        }
        match arrivals.wait(now, srtt) {
            None => self.acknowledge_first(conn),
            Some(time) => {
                let expiry = self.ack_timer.earliest(conn.profile.expiry(now, Deadline::at(time)));
                arrivals.set_timer(expiry);
                self.ack_timer = expiry;
            }
        }
    }

    /// An acknowledgment leaves ahead of any data: Linux sends it before the application hears of the arrival.
    fn acknowledge_first(&mut self, conn: &mut Connection) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.scheduled = true;
        }
        conn.due |= due::ACK | due::ACK_FIRST;
    }

    /// The peer should be informed of events immediately, and for `most` acknowledgments more.
    pub(crate) fn enter_quickack(&mut self, most: Option<u16>) {
        let window = self.window_in_force();
        if let Some(Memory { arrivals: Some(arrivals), segment_size, .. }) = self.extras.memory_mut() {
            arrivals.enter_quickack(most, segment_size.bytes, window);
        }
    }

    /// A duplicate that ends here is to be acknowledged.
    // Linux: tcp_data_queue counts that as the acknowledgment of data, tcp_send_dupack, which answers segments that end
    // before the latest acknowledgment, does not.
    pub(crate) fn schedule_ack_of(&mut self, end: SeqNum) {
        if let Some(Memory { arrivals: Some(arrivals), last_ack_sent, .. }) = self.extras.memory_mut() {
            arrivals.scheduled |= end >= *last_ack_sent;
        }
    }

    /// The peer closes, which our application is likely to answer: its data acknowledges the FIN.
    // Linux, tcp_fin: a FIN in ESTABLISHED is not acknowledged before the usual delay.
    pub(crate) fn hold_ack_of_fin(&mut self) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.interactive = true;
            arrivals.scheduled = true;
        }
    }

    /// The delay of an acknowledgment may have passed; `rto`: the sender's.
    pub fn on_time(&mut self, conn: &mut Connection, now: Nanos, rto: Nanos) {
        if !self.ack_timer.is_due(now) {
            return;
        }
        self.ack_timer = Deadline::NEVER;
        conn.due |= due::ACK;
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.on_expiry(rto);
        }
    }

    /// A segment leaves, with or without data.
    pub(crate) fn note_departure(&mut self, now: Nanos, has_data: bool) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.on_ack_sent();
            if has_data {
                arrivals.on_data_sent(now);
            }
        }
    }

    /// The application has read from this position on: whether it is time to acknowledge it, and to grow the window.
    pub(crate) fn note_reading(&mut self, conn: &mut Connection, from: SeqNum) {
        if self.read_next == from {
            return;
        }
        let (read, received, ahead) = (self.read_next, self.nxt, self.bytes_ahead());
        if let Some(Memory { window: Some(window), edge_is_current, round_trip, .. }) = self.extras.memory_mut() {
            *edge_is_current = false;
            window.on_read(from, read, received, ahead, round_trip.get());
        }
        // Linux, tcp_cleanup_rbuf: the second segment, if its arrival was not acknowledged yet; and short segments, once
        // everything is read.
        let waiting = self.nxt - self.last_ack_sent();
        let emptied = self.readable() == 0;
        let Some(Memory { arrivals: Some(arrivals), segment_size, .. }) = self.extras.memory() else { return };
        let second = waiting > u64::from(segment_size.bytes);
        if arrivals.scheduled && (second || emptied && arrivals.is_due_once_read()) {
            self.acknowledge_first(conn);
        }
    }

    pub fn set_quick_ack(&mut self, conn: &mut Connection, quick: bool) {
        let Some(arrivals) = self.extras.arrivals_mut() else { return };
        arrivals.interactive = !quick;
        if quick && arrivals.scheduled && matches!(conn.handshake.state(), State::Established | State::CloseWait) {
            arrivals.push();
            if self.readable() == 0 {
                self.acknowledge_first(conn);
            }
        }
    }

    /// The window that the handshake begins with.
    pub fn begin_receiving(&mut self, conn: &Connection, has_sent_syn: bool) {
        // A SYN that has left counted in segments without options.
        let own_mss = self.largest_segment_bytes(conn);
        let window = self.announced_at_first(conn, if has_sent_syn { conn.profile.mss_bytes } else { own_mss });
        if let Some(memory) = self.extras.memory_mut() {
            memory.last_ack_sent = self.nxt;
            let most = conn.profile.receive_window_bytes;
            let growth = conn.profile.receive_window_growth.as_ref();
            let blocks = std::mem::take(&mut memory.spare);
            memory.window = growth.map(|rules| GrowingWindow::new(rules, own_mss, window, most, self.nxt, blocks));
            memory.segment_size = SegmentSize::new(conn.handshake.mss(), window);
            memory.edge_is_current = false;
        }
        self.edge = self.nxt + u64::from(window);
        self.acknowledge_each_from_here(conn);
    }

    /// The handshake is over, and the clocks of the receiver run.
    pub(crate) fn begin_clocks(&mut self, now: Nanos) {
        let Some(Memory { arrivals, window, .. }) = self.extras.memory_mut() else { return };
        if let Some(arrivals) = arrivals {
            arrivals.begin(now);
        }
        if let Some(window) = window {
            window.begin(now);
        }
    }

    /// Receive window at the start, before the window field cuts it.
    pub(crate) fn first_window_bytes(&self, conn: &Connection) -> u32 {
        self.announced_at_first(conn, self.largest_segment_bytes(conn))
    }

    fn announced_at_first(&self, conn: &Connection, mss_bytes: u32) -> u32 {
        match &conn.profile.receive_window_growth {
            Some(rules) if conn.handshake.scaling().is_on => GrowingWindow::announced_at_first(rules, mss_bytes),
            Some(rules) => GrowingWindow::announced_at_first(rules, mss_bytes).min(LARGEST_FIELD),
            None => conn.profile.receive_window_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_fin_takes_a_position_but_is_nothing_to_read() {
        let mut rcv = Receiver::default();
        assert_eq!((rcv.irs(), rcv.first(), rcv.readable()), (None, None, 0));
        rcv.begin(7);
        let first = rcv.first().unwrap();
        assert_eq!((rcv.irs(), rcv.readable()), (Some(7), 0));
        rcv.edge = first + 100;
        rcv.fin = NonZeroU64::new(first + 30);
        rcv.nxt = first + 31;
        assert_eq!((rcv.readable(), rcv.window()), (30, 69));
    }
}
