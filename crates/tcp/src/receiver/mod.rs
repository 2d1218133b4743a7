//! The receiver with a memory: adaptive acknowledgments and a growing window.

use crate::connection::handshake::LARGEST_FIELD;
use crate::connection::timestamps::{OPTION_BYTES, TimestampState};
pub(crate) mod ack;
mod payload;
pub(crate) mod reassembly;
mod round_trip;
mod segment_size;
pub(crate) mod sequence;
pub(crate) mod window;

use crate::connection::{Endpoint, State, due, feature};
use crate::profile::{Profile, RttSamples};
use crate::receiver::ack::{AckPolicy, Arrivals};
use crate::receiver::round_trip::RoundTrip;
use crate::receiver::segment_size::{Compared, SegmentSize};
use crate::receiver::window::{Arrived, Block, Blocks, GrowingWindow};
use crate::segment::{Flags, Segment};
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};

/// The receiver's state; none of it is used with plain acknowledgments, a fixed window and no timestamps.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// With the adaptive acknowledgment policy.
    pub arrivals: Option<Arrivals>,
    /// With a growing window, from the peer's SYN on.
    pub window: Option<GrowingWindow>,
    /// The right edge of that window need not be computed again: no data has arrived or been read since the latest segment
    /// left, at least half of the buffer is free, and the window is scaled.
    pub edge_is_current: bool,
    /// Room for the data of that window, until then.
    spare: Blocks,
    pub segment_size: SegmentSize,
    round_trip: RoundTrip,
    /// Last.ACK.sent: RCV.NXT of the latest segment sent.
    pub last_ack_sent: SeqNum,
    /// Every segment that ends before this position is acknowledged immediately (`AckPolicy::Heartbeat`).
    acknowledge_each_before: SeqNum,
    pub timestamps: TimestampState,
}

impl Memory {
    pub fn new(profile: &Profile, initial_sequence: u32, spare: Blocks) -> Self {
        let arrivals = match profile.ack {
            AckPolicy::Adaptive(rules) => Some(Arrivals::new(rules, profile.timer_tick.map(|tick| tick.period_ns))),
            _ => None,
        };
        Self {
            arrivals,
            window: None,
            edge_is_current: false,
            spare,
            segment_size: SegmentSize::new(profile.mss_bytes, u32::MAX),
            round_trip: RoundTrip::default(),
            last_ack_sent: 0,
            acknowledge_each_before: 0,
            timestamps: TimestampState::new(initial_sequence),
        }
    }

    /// Memory that a finished receiver leaves to the next one.
    pub fn take_spare(&mut self) -> Blocks {
        let spare = std::mem::take(&mut self.spare);
        self.window.take().map_or(spare, GrowingWindow::into_blocks).emptied()
    }

    /// True if a connection of this profile has a use for it.
    pub fn is_needed(profile: &Profile) -> bool {
        let counts_bytes = matches!(profile.ack, AckPolicy::Heartbeat { every_segment_bytes: Some(_), .. });
        Self::features(profile) != 0 || profile.timestamps || counts_bytes
    }

    /// The features of a connection of this profile that look into it whenever something arrives.
    pub fn features(profile: &Profile) -> u8 {
        let receiver = match profile.ack {
            AckPolicy::Adaptive(_) => feature::RECEIVER | feature::ADAPTIVE_ACK,
            _ if profile.receive_window_growth.is_some() => feature::RECEIVER,
            _ => 0,
        };
        receiver | if profile.rto.samples == RttSamples::AckOneWay { feature::ACK_ONE_WAY } else { 0 }
    }
}

impl Endpoint {
    /// Data or a FIN arrived: the next segment computes its window again.
    #[inline]
    pub(crate) fn renew_window(&mut self) {
        if self.features & feature::RECEIVER != 0 {
            if let Some(memory) = self.extras.memory_mut() {
                memory.edge_is_current = false;
            }
        }
    }

    pub(crate) fn last_ack_sent(&self) -> SeqNum {
        self.extras.memory().map_or(self.rcv.nxt, |memory| memory.last_ack_sent)
    }

    /// Advertised window: the one in the latest acknowledgment.
    fn window_in_force(&self) -> u32 {
        u32::try_from(self.rcv.edge.saturating_sub(self.last_ack_sent())).unwrap_or(u32::MAX)
    }

    /// Payload of the largest segment that the peer may send [advmss].
    fn largest_segment_bytes(&self) -> u32 {
        self.profile.mss_bytes.saturating_sub(self.stamp_bytes()).max(1)
    }

    /// Bytes of options that every segment has.
    fn stamp_bytes(&self) -> u32 {
        if self.features & feature::TIMESTAMPS == 0 { 0 } else { OPTION_BYTES }
    }

    /// A segment that echoes a timestamp may be a sample of the RTT that the receiver sees.
    pub(crate) fn note_echo(&mut self, now: Nanos, segment: &Segment) {
        let is_read = self.rcv.read_next == self.rcv.nxt;
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
    fn arrived(&mut self, now: Nanos, block: Block, segment: &Segment) -> Arrived {
        let window_bytes = self.window_in_force();
        let (stamp_bytes, most_bytes) = (self.stamp_bytes(), self.largest_segment_bytes());
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
    pub(crate) fn note_arrival(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        let block = Block::of(seq, segment.payload_bytes, segment.option_bytes()).accepted_up_to(self.rcv.nxt);
        self.make_room(&block, true);
        let arrived = self.arrived(now, block, segment);
        let (received, rto) = (self.rcv.nxt, self.rtt.rto());
        let Some(Memory { arrivals, window, round_trip, .. }) = self.extras.memory_mut() else { return };
        if let Some(arrivals) = arrivals {
            arrivals.on_data(now, arrived.segment_bytes, arrived.window_bytes, rto);
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
        self.extras.memory().is_some_and(|memory| self.rcv.nxt < memory.acknowledge_each_before)
    }

    /// The bytes of which every segment is acknowledged begin at RCV.NXT: after the peer's SYN and after disorder.
    pub(crate) fn acknowledge_each_from_here(&mut self) {
        if let AckPolicy::Heartbeat { every_segment_bytes: Some(bytes), .. } = self.profile.ack {
            if let Some(memory) = self.extras.memory_mut() {
                memory.acknowledge_each_before = self.rcv.nxt + u64::from(bytes);
            }
        }
    }

    /// Data arrived ahead of a hole and was accepted up to `end`.
    #[inline(never)]
    pub(crate) fn note_gap(&mut self, now: Nanos, seq: SeqNum, end: SeqNum, segment: &Segment) {
        let block = Block::of(seq, segment.payload_bytes, segment.option_bytes()).accepted_up_to(end);
        self.make_room(&block, false);
        let arrived = self.arrived(now, block, segment);
        let (distance, has_sack) = (self.bytes_ahead(), self.features & feature::SACK != 0);
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
        let next = self.rcv.nxt;
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
        self.rcv.reassembly.end().map_or(0, |end| u32::try_from(end - self.rcv.nxt).unwrap_or(u32::MAX))
    }

    /// True if acknowledgments of data ahead of a hole are merged: with SACK, since duplicates say nothing then.
    pub(crate) fn compresses(&self) -> bool {
        self.features & feature::SACK != 0 && self.extras.arrivals().is_some_and(Arrivals::compresses)
    }

    /// When to acknowledge arrived data.
    // Linux, __tcp_ack_snd_check: more than one full segment, if the window does not shrink (it would if the application
    // does not read); or in quick mode; or because something already made it due; or after a delay.
    #[inline(always)]
    pub(crate) fn acknowledge_adaptively(&mut self, now: Nanos) {
        let waiting = self.rcv.nxt - self.last_ack_sent();
        let in_force = u64::from(self.window_in_force());
        let two = self.extras.memory().is_some_and(|memory| waiting > u64::from(memory.segment_size.bytes));
        let enough = two && self.select_window() >= in_force;
        let srtt = self.srtt();
        // Linux: none counts as none at all, the sender's only if it is shorter.
        let seen = self.extras.memory().and_then(|memory| memory.round_trip.get());
        let rtt = seen.map_or(0, |rtt| rtt.min(srtt.unwrap_or(rtt)));
        let due = self.due & due::ACK != 0;
        let Some(arrivals) = self.extras.arrivals_mut() else { return };
        if enough || arrivals.is_quick() || due {
            return self.acknowledge_first();
        }
        if !self.rcv.reassembly.is_empty() {
            return match arrivals.compress(now, self.rcv.nxt, rtt) {
                None => self.acknowledge_first(),
                Some(end) => self.timers.ack = self.timers.ack.earliest(end),
            };
        }
        match arrivals.wait(now, srtt) {
            None => self.acknowledge_first(),
            Some(time) => {
                let expiry = self.timers.ack.earliest(self.profile.expiry(now, Deadline::at(time)));
                arrivals.set_timer(expiry);
                self.timers.ack = expiry;
            }
        }
    }

    /// An acknowledgment leaves ahead of any data: Linux sends it before the application hears of the arrival.
    fn acknowledge_first(&mut self) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.scheduled = true;
        }
        self.due |= due::ACK | due::ACK_FIRST;
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

    /// The delay of an acknowledgment passed.
    pub(crate) fn on_ack_timeout(&mut self) {
        self.timers.ack = Deadline::NEVER;
        self.due |= due::ACK;
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.on_expiry(self.rtt.rto());
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
    pub(crate) fn note_reading(&mut self, from: SeqNum) {
        if self.rcv.read_next == from {
            return;
        }
        let (read, received, ahead) = (self.rcv.read_next, self.rcv.nxt, self.bytes_ahead());
        if let Some(Memory { window: Some(window), edge_is_current, round_trip, .. }) = self.extras.memory_mut() {
            *edge_is_current = false;
            window.on_read(from, read, received, ahead, round_trip.get());
        }
        // Linux, tcp_cleanup_rbuf: the second segment, if its arrival was not acknowledged yet; and short segments, once
        // everything is read.
        let waiting = self.rcv.nxt - self.last_ack_sent();
        let emptied = self.readable_bytes() == 0;
        let Some(Memory { arrivals: Some(arrivals), segment_size, .. }) = self.extras.memory() else { return };
        let second = waiting > u64::from(segment_size.bytes);
        if arrivals.scheduled && (second || emptied && arrivals.is_due_once_read()) {
            self.acknowledge_first();
        }
    }

    /// Whether acknowledgments are sent immediately or delayed to be piggybacked on data, from now until the policy
    /// changes that (`TCP_QUICKACK`). Without effect unless the policy is [`Adaptive`](crate::AckPolicy::Adaptive).
    pub fn set_quick_ack(&mut self, quick: bool) {
        let Some(arrivals) = self.extras.arrivals_mut() else { return };
        arrivals.interactive = !quick;
        if quick && arrivals.scheduled && matches!(self.state, State::Established | State::CloseWait) {
            arrivals.push();
            if self.readable_bytes() == 0 {
                self.acknowledge_first();
            }
        }
    }

    /// The window that the handshake begins with.
    pub(crate) fn begin_receiving(&mut self) {
        // A SYN that has left counted in segments without options.
        let has_sent_syn = self.snd.max > self.snd.initial();
        let own_mss = self.largest_segment_bytes();
        let window = self.announced_at_first(if has_sent_syn { self.profile.mss_bytes } else { own_mss });
        if let Some(memory) = self.extras.memory_mut() {
            memory.last_ack_sent = self.rcv.nxt;
            let most = self.profile.receive_window_bytes;
            let growth = self.profile.receive_window_growth.as_ref();
            let blocks = std::mem::take(&mut memory.spare);
            memory.window = growth.map(|rules| GrowingWindow::new(rules, own_mss, window, most, self.rcv.nxt, blocks));
            memory.segment_size = SegmentSize::new(self.mss, window);
            memory.edge_is_current = false;
        }
        self.rcv.edge = self.rcv.nxt + u64::from(window);
        self.acknowledge_each_from_here();
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
    pub(crate) fn first_window_bytes(&self) -> u32 {
        self.announced_at_first(self.largest_segment_bytes())
    }

    fn announced_at_first(&self, mss_bytes: u32) -> u32 {
        match &self.profile.receive_window_growth {
            Some(rules) if self.scaling.is_on => GrowingWindow::announced_at_first(rules, mss_bytes),
            Some(rules) => GrowingWindow::announced_at_first(rules, mss_bytes).min(LARGEST_FIELD),
            None => self.profile.receive_window_bytes,
        }
    }
}
