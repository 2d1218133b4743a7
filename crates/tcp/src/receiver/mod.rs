//! The receiver with a memory: adaptive acknowledgements and a growing window.

use crate::connection::timestamps::{OPTION_BYTES, TimestampState};
pub(crate) mod ack;
mod payload;
pub(crate) mod reassembly;
pub(crate) mod window;

use crate::connection::{Endpoint, State, due, feature};
use crate::profile::{Profile, RttSamples};
use crate::receiver::ack::{AckPolicy, Arrival, Arrivals};
use crate::receiver::window::{Ahead, GrowingWindow, InOrder};
use crate::segment::{Flags, Segment};
use crate::sequence::Position;
use crate::{NEVER, Nanos};

/// What the receiver remembers; nothing of this is used with plain acknowledgements, a fixed window and no timestamps.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// With the adaptive acknowledgement policy.
    pub arrivals: Option<Arrivals>,
    /// With a growing window, from the peer's SYN on.
    pub window: Option<GrowingWindow>,
    /// Last.ACK.sent: RCV.NXT of the latest segment sent.
    pub last_ack_sent: Position,
    /// Every segment that ends before this position is acknowledged at once (`AckPolicy::Heartbeat`).
    acknowledge_each_before: Position,
    pub timestamps: TimestampState,
}

impl Memory {
    pub fn new(profile: &Profile, initial_sequence: u32) -> Self {
        let arrivals = match profile.ack {
            AckPolicy::Adaptive(rules) => Some(Arrivals::new(rules)),
            _ => None,
        };
        Self {
            arrivals,
            window: None,
            last_ack_sent: 0,
            acknowledge_each_before: 0,
            timestamps: TimestampState::new(initial_sequence),
        }
    }

    /// Whether a connection of this profile has a use for it.
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
    fn last_ack_sent(&self) -> Position {
        self.extras.memory().map_or(self.rcv_nxt, |memory| memory.last_ack_sent)
    }

    /// Window in force: what the latest acknowledgement announced.
    fn window_in_force(&self) -> u32 {
        u32::try_from(self.rcv_edge.saturating_sub(self.last_ack_sent())).unwrap_or(u32::MAX)
    }

    /// Payload of the largest segment that the peer may send [advmss].
    fn largest_segment_bytes(&self) -> u32 {
        let stamps = if self.features & feature::TIMESTAMPS == 0 { 0 } else { OPTION_BYTES };
        self.profile.mss_bytes.saturating_sub(stamps).max(1)
    }

    /// Data arrived in order, and RCV.NXT has moved.
    pub(crate) fn note_arrival(&mut self, now: Nanos, segment: &Segment) {
        let window_bytes = self.window_in_force();
        let largest_bytes = self.largest_segment_bytes();
        let rto = self.rtt.rto();
        if let Some(arrivals) = self.extras.arrivals_mut() {
            let ranges = segment.sack.as_slice().len() as u32;
            let arrival = Arrival {
                bytes: segment.payload_bytes,
                bytes_with_sack: segment.payload_bytes + if ranges == 0 { 0 } else { 4 + 8 * ranges },
                ends: segment.flags.intersects(Flags::PSH | Flags::FIN),
                largest_bytes,
                window_bytes,
                rto,
            };
            arrivals.on_data(now, &arrival);
        }
        // A segment may give up 40 bytes to options.
        let full = segment.payload_bytes + 40 >= largest_bytes;
        let echo_age = if full { self.echoed_age(now, segment) } else { None };
        if let Some(Memory { window: Some(window), arrivals, .. }) = self.extras.memory_mut() {
            let arrival = InOrder {
                bytes: segment.payload_bytes,
                mss_bytes: largest_bytes,
                received: self.rcv_nxt,
                read: self.read_next,
                window_bytes,
                echo_age,
            };
            if window.on_data(now, &arrival)
                && let Some(arrivals) = arrivals
            {
                arrivals.hurry_once();
            }
        }
    }

    /// Whether RCV.NXT is among the bytes of which every segment is acknowledged.
    pub(crate) fn wants_each_acknowledged(&self) -> bool {
        self.extras.memory().is_some_and(|memory| self.rcv_nxt < memory.acknowledge_each_before)
    }

    /// The bytes of which every segment is acknowledged begin at RCV.NXT: after the peer's SYN and after disorder.
    pub(crate) fn acknowledge_each_from_here(&mut self) {
        if let AckPolicy::Heartbeat { every_segment_bytes: Some(bytes), .. } = self.profile.ack
            && let Some(memory) = self.extras.memory_mut()
        {
            memory.acknowledge_each_before = self.rcv_nxt + u64::from(bytes);
        }
    }

    /// Data arrived ahead of a hole; `is_new`: not all of it was held already.
    // Linux, tcp_data_queue_ofo: without SACK the window stays, so that duplicates are known as such.
    pub(crate) fn note_gap(&mut self, bytes: u32, is_new: bool) {
        if self.features & feature::SACK == 0 {
            return;
        }
        let largest = self.profile.receive_window_bytes;
        let arrival = Ahead {
            bytes,
            is_new,
            mss_bytes: self.largest_segment_bytes(),
            taken: u32::try_from(self.buffered_bytes()).unwrap_or(u32::MAX).saturating_sub(bytes),
            distance: self.bytes_ahead(),
            window_bytes: self.window_in_force(),
        };
        if let Some(Memory { window: Some(window), arrivals, .. }) = self.extras.memory_mut()
            && window.on_gap(&arrival, largest)
            && let Some(arrivals) = arrivals
        {
            arrivals.hurry_once();
        }
    }

    /// Bytes of the receive buffer in use: not read yet, or ahead of a hole.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.rcv_nxt.saturating_sub(self.read_next) + self.reassembly.bytes()
    }

    /// Bytes from RCV.NXT to the end of what arrived ahead of a hole.
    fn bytes_ahead(&self) -> u32 {
        self.reassembly.end().map_or(0, |end| u32::try_from(end - self.rcv_nxt).unwrap_or(u32::MAX))
    }

    /// When to acknowledge what has arrived.
    // Linux, __tcp_ack_snd_check: more than one full segment, if the window does not shrink (it would if the application
    // does not read); or in quick mode; or because something already made it due; or after a delay.
    pub(crate) fn acknowledge_adaptively(&mut self, now: Nanos) {
        let Some(arrivals) = self.extras.arrivals() else { return };
        let waiting = self.rcv_nxt - self.last_ack_sent();
        let keeps_up = self.possible_edge() >= self.rcv_nxt + u64::from(self.window_in_force());
        let enough = waiting > u64::from(arrivals.segment_bytes) && keeps_up;
        let delay = arrivals.delay(self.srtt());
        // One that waits already leaves at once if its time is nearly over.
        let nearly_over = self.ack_deadline != NEVER && self.ack_deadline <= now.saturating_add(delay / 4);
        if enough || nearly_over || arrivals.is_quick() || self.due & due::ACK != 0 {
            self.acknowledge_first();
        } else {
            self.ack_deadline = self.ack_deadline.min(self.profile.expiry(now, now.saturating_add(delay)));
        }
    }

    /// An acknowledgement leaves ahead of any data: Linux sends it before the application hears of the arrival.
    fn acknowledge_first(&mut self) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.scheduled = true;
        }
        self.due |= due::ACK | due::ACK_FIRST;
    }

    /// The peer should hear at once of what happens, and for `most` acknowledgements more.
    pub(crate) fn hurry(&mut self, most: Option<u16>) {
        let window = self.window_in_force();
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.hurry(most, window);
        }
    }

    /// The peer closes, which our application is likely to answer: what it sends acknowledges the FIN.
    // Linux, tcp_fin: a FIN in ESTABLISHED is not acknowledged before the usual delay.
    pub(crate) fn hold_ack_of_fin(&mut self) {
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.interactive = true;
            arrivals.scheduled = true;
        }
    }

    /// The delay of an acknowledgement passed.
    pub(crate) fn on_ack_timeout(&mut self) {
        self.ack_deadline = NEVER;
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

    /// The application has read `taken` bytes: whether it is time to acknowledge them, and to grow the window.
    pub(crate) fn note_reading(&mut self, now: Nanos, taken: u64) {
        if taken == 0 {
            return;
        }
        let ahead = self.bytes_ahead();
        if let Some(Memory { window: Some(window), .. }) = self.extras.memory_mut() {
            window.on_read(now, self.read_next, ahead, self.profile.receive_window_bytes);
        }
        // Linux, tcp_cleanup_rbuf: the second segment, if its arrival was not acknowledged yet; and short segments, once
        // everything is read.
        let Some(arrivals) = self.extras.arrivals() else { return };
        let second = self.rcv_nxt - self.last_ack_sent() > u64::from(arrivals.segment_bytes);
        let emptied = self.readable_bytes() == 0 && arrivals.is_due_once_read();
        if arrivals.scheduled && (second || emptied) {
            self.acknowledge_first();
        }
    }

    /// Whether acknowledgements are sent at once or held back for data to ride on, from now until the policy changes its
    /// mind (`TCP_QUICKACK`). Without effect unless the policy is [`Adaptive`](crate::AckPolicy::Adaptive).
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
    pub(crate) fn begin_receiving(&mut self, now: Nanos) {
        // A SYN that has left counted in segments without options.
        let counted = if self.highest_sent > self.initial() { self.profile.mss_bytes } else { self.mss };
        let window = self.announced_at_first(counted);
        if let Some(memory) = self.extras.memory_mut() {
            memory.last_ack_sent = self.rcv_nxt;
            let growth = self.profile.receive_window_growth.as_ref();
            memory.window = growth.map(|rules| GrowingWindow::new(rules, self.mss, window, now, self.rcv_nxt));
        }
        self.rcv_edge = self.rcv_nxt + u64::from(window);
        self.acknowledge_each_from_here();
        if let Some(arrivals) = self.extras.arrivals_mut() {
            arrivals.begin(now, self.mss, window);
        }
    }

    /// Receive window at the start, before the window field cuts it.
    pub(crate) fn first_window_bytes(&self) -> u32 {
        self.announced_at_first(self.mss)
    }

    fn announced_at_first(&self, mss_bytes: u32) -> u32 {
        match &self.profile.receive_window_growth {
            Some(rules) => GrowingWindow::announced_at_first(rules, mss_bytes),
            None => self.profile.receive_window_bytes,
        }
    }
}
