//! From closed to established.

use super::Endpoint;
use super::handshake::{DEFAULT_MSS, LARGEST_FIELD, State, feature};
use super::shared::{Events, due};
use crate::Nanos;
use crate::receiver::window;
use crate::segment::{Ecn, Flags, Segment, TIMESTAMPS_BYTES};
use crate::sender::trains::write_queue::half_window;
use crate::sequence::{near, wire};
use std::num::NonZeroU16;

impl Endpoint {
    /// Opens the connection: a SYN is due. Without effect unless the endpoint is a client not opened before.
    pub fn connect(&mut self, _now: Nanos) {
        if self.conn.handshake.state == State::Closed && !self.sender.snd().has_sent() {
            self.conn.handshake.state = State::SynSent;
            self.conn.due |= due::SYN;
        }
    }

    /// A segment arrived before the connection is established.
    pub(crate) fn on_handshake_segment(&mut self, now: Nanos, segment: &Segment) {
        self.note_path_option(segment);
        match self.conn.handshake.state {
            State::Listen => self.on_listening(now, segment),
            State::SynSent => self.on_syn_sent(now, segment),
            State::SynReceived => self.on_syn_received(now, segment),
            _ => self.refuse(segment),
        }
    }

    // RFC 9293 §3.10.7.2.
    fn on_listening(&mut self, now: Nanos, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.refuse(segment);
        } else if segment.flags.contains(Flags::SYN) {
            self.learn_peer(now, segment);
            self.conn.handshake.state = State::SynReceived;
            self.conn.due |= due::SYN;
        }
    }

    // RFC 9293 §3.10.7.3.
    fn on_syn_sent(&mut self, now: Nanos, segment: &Segment) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && !(self.sender.snd().has_sent() && self.sender.is_ack_of_syn(segment.ack)) {
            self.sender.on_stale_syn_ack(&self.conn, now);
            return self.refuse(segment);
        }
        if acknowledges && self.conn.profile.retry_stale_syn_ack && !self.may_be_echo(now, segment) {
            return self.refuse(segment);
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.finish(State::Closed, Events::RESET);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.learn_peer(now, segment);
        if acknowledges {
            if segment.ecn == Ecn::Congestion {
                self.sender.note_marked_syn_ack();
            }
            self.establish(now, segment);
            self.conn.due |= due::ACK;
            if !self.conn.profile.data_on_handshake_ack {
                self.conn.due |= due::ACK_FIRST;
            }
        } else {
            // Simultaneous open: our SYN goes out again, with the ACK.
            self.conn.handshake.state = State::SynReceived;
            self.sender.begin_again(&mut self.conn);
        }
    }

    // RFC 9293 §3.10.7.4, as far as it concerns SYN-RECEIVED.
    fn on_syn_received(&mut self, now: Nanos, segment: &Segment) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        let ours = acknowledges && self.sender.is_ack_of_syn(segment.ack);
        let seq = near(self.receiver.next(), segment.seq);
        if segment.flags.contains(Flags::RST) {
            // One endpoint is one connection, so it does not return to LISTEN: that is its owner's affair.
            return self.on_reset(now, seq);
        }
        if segment.flags.contains(Flags::SYN) {
            if seq + 1 != self.receiver.next() {
                self.conn.due |= due::ACK;
            } else if ours {
                self.establish(now, segment);
                self.conn.due |= due::ACK;
            } else if !acknowledges {
                // The peer's SYN again: our SYN-ACK was lost, or is late.
                self.sender.repeat_syn(&mut self.conn);
                self.sender.restart_timer(&self.conn, now);
            }
            return;
        }
        if !self.receiver.is_acceptable(&self.conn, seq, segment.sequence_length()) {
            self.conn.due |= due::ACK;
        } else if ours {
            self.establish(now, segment);
            self.on_synchronized(now, segment);
            self.receiver.forget_echo();
        } else if acknowledges {
            self.refuse(segment);
        }
    }

    /// Takes over what the peer's SYN says.
    fn learn_peer(&mut self, now: Nanos, segment: &Segment) {
        self.receiver.begin(segment.seq);
        // RFC 9293 §3.7.1: the effective MSS is bounded by the size that the peer is willing to receive.
        let offered = segment.mss.map_or(DEFAULT_MSS, |mss| mss.get().into()).max(self.conn.profile.min_mss_bytes);
        self.negotiate(now, segment, self.conn.profile.mss_bytes.min(offered));
        // RFC 7323 §2.2 and §2.3: scaling is on only if both SYNs carry the option; a shift above 14 counts as 14.
        if let Some(shift) = segment.window_scale.filter(|_| self.conn.profile.window_scaling) {
            self.conn.handshake.scaling.is_on = true;
            self.conn.handshake.scaling.snd_shift = shift.min(14);
            self.conn.handshake.scaling.rcv_shift = self.own_shift();
        }
        // A SYN can announce no more than 65535 bytes; our first segment after it announces the rest of a scaled
        // window.
        // Counting that as announced already keeps it from passing for a window that reading has opened.
        self.receiver.begin_receiving(&self.conn, self.sender.snd().has_sent());
        self.sender.learn_peer(&self.conn, segment);
    }

    /// Our SYN is acknowledged and the peer's is known.
    fn establish(&mut self, now: Nanos, segment: &Segment) {
        self.conn.handshake.state = State::Established;
        self.conn.due &= !due::SYN;
        self.conn.events |= Events::CONNECTED;
        if self.conn.profile.mss_within_half_window {
            self.bound_to_half_window(segment);
        }
        self.receiver.begin_clocks(now);
        let repeated = self.conn.stats.syn_retransmissions;
        // RFC 7323 §4.1: the echo shows which of several copies was acknowledged.
        let age = if repeated > 0 { self.receiver.echoed_age(&self.conn, now, segment) } else { None };
        let lost = if self.was_syn_retransmission_spurious(segment) { 0 } else { repeated };
        self.sender.establish(&mut self.conn, now, segment, age, lost);
        self.prepare_path_report();
    }

    /// The window that `segment`, the last one of the handshake, announces is the first that bounds what is sent, and the
    /// MSS leaves room for two segments in it.
    // Linux, tcp_create_openreq_child: the window of a SYN does not count [max_window].
    fn bound_to_half_window(&mut self, segment: &Segment) {
        let conn = &mut self.conn;
        // RFC 7323 §2.2: the window of a SYN is not scaled.
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { conn.handshake.scaling.snd_shift };
        let options = if conn.handshake.has(feature::TIMESTAMPS) { TIMESTAMPS_BYTES } else { 0 };
        let window = u32::from(segment.window) << shift;
        self.sender.restart_largest_window(window);
        // Linux, tcp_bound_to_half_wnd: 68 bytes less the headers at least.
        if window > 0 {
            conn.handshake.set_mss(conn.handshake.mss().min(half_window(window).max(48 - options)));
        }
    }

    /// Our SYN or SYN-ACK.
    pub(crate) fn syn_segment(&mut self, now: Nanos) -> Segment {
        let answering = self.conn.handshake.state == State::SynReceived;
        if !self.sender.snd().has_sent() {
            if let Some(timestamps) = self.receiver.timestamps_mut() {
                timestamps.note_first_syn(now);
            }
        }
        self.sender.on_syn_sent(&self.conn, now);
        self.conn.stats.segments_sent += 1;
        let offers_scaling = self.conn.profile.window_scaling && (!answering || self.conn.handshake.scaling.is_on);
        let mut segment = Segment {
            seq: self.sender.snd().iss,
            ack: if answering { wire(self.receiver.next()) } else { 0 },
            payload_bytes: 0,
            window: self.receiver.first_window_bytes(&self.conn).min(LARGEST_FIELD) as u16,
            mss: NonZeroU16::new(self.conn.profile.mss_bytes as u16),
            window_scale: offers_scaling.then(|| self.own_shift()),
            flags: if answering { Flags::SYN | Flags::ACK } else { Flags::SYN },
            retransmission: self.conn.stats.syn_retransmissions > 0,
            ..Segment::EMPTY
        };
        self.offer(now, answering, &mut segment);
        self.add_path_request(&mut segment);
        segment
    }

    /// Shift that makes the receive window expressible in a window field.
    fn own_shift(&self) -> u8 {
        let largest = self.conn.profile.receive_window_bytes;
        match self.conn.profile.receive_window_growth {
            Some(growth) if growth.initial_bytes < largest => window::shift(largest),
            _ => (0..14).find(|&shift| largest >> shift <= LARGEST_FIELD).unwrap_or(14),
        }
    }
}
