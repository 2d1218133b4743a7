//! From closed to established.

use super::{Endpoint, State, due, feature};
use crate::connection::Events;
use crate::connection::timestamps::round_trip;
use crate::receiver::window;
use crate::segment::{Ecn, Flags, Segment, SentAt};
use crate::sender::congestion::Start;
use crate::sender::recovery::{Recovery, RttSample};
use crate::sequence::{near, origin, wire};
use crate::{Deadline, Nanos};
use std::num::NonZeroU16;

/// Largest window field of a SYN, and of any segment without scaling.
pub(crate) const LARGEST_FIELD: u32 = 65535;

/// Segment size towards a peer that announced none.
// RFC 9293 §3.7.1: if an MSS option is not received, assume 536 for IPv4.
const DEFAULT_MSS: u32 = 536;

impl Endpoint {
    /// Opens the connection: a SYN is due. Without effect unless the endpoint is a client not opened before.
    pub fn connect(&mut self, _now: Nanos) {
        if self.state == State::Closed && self.snd.max == self.snd.initial() {
            self.state = State::SynSent;
            self.due |= due::SYN;
        }
    }

    /// A segment arrived before the connection is established.
    pub(crate) fn on_handshake_segment(&mut self, now: Nanos, segment: &Segment) {
        self.note_path_option(segment);
        match self.state {
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
            self.state = State::SynReceived;
            self.due |= due::SYN;
        }
    }

    // RFC 9293 §3.10.7.3.
    fn on_syn_sent(&mut self, now: Nanos, segment: &Segment) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        let ours_was_sent = self.snd.max > self.snd.initial();
        if acknowledges && !(ours_was_sent && near(self.snd.una, segment.ack) == self.snd.initial() + 1) {
            if self.profile.retry_stale_syn_ack && ours_was_sent && self.timers.retries == 0 {
                self.set_retransmit_timer(now, self.profile.timeout_after_stale_syn_ack());
            }
            return self.refuse(segment);
        }
        if acknowledges && self.profile.retry_stale_syn_ack && !self.may_be_echo(now, segment) {
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
            // RFC 9040 §C.3 step 3: a SYN-ACK that is marked counts as an initial window that is too large.
            self.sharing.initial_window_failed |= segment.ecn == Ecn::Congestion;
            self.establish(now, segment);
            self.due |= due::ACK;
            if !self.profile.data_on_handshake_ack {
                self.due |= due::ACK_FIRST;
            }
        } else {
            // Simultaneous open: our SYN goes out again, with the ACK.
            self.state = State::SynReceived;
            self.last_sent_at = None;
            self.due |= due::SYN;
        }
    }

    // RFC 9293 §3.10.7.4, as far as it concerns SYN-RECEIVED.
    fn on_syn_received(&mut self, now: Nanos, segment: &Segment) {
        let acknowledged = segment.flags.contains(Flags::ACK).then(|| near(self.snd.una, segment.ack));
        let ours = acknowledged == Some(self.snd.initial() + 1);
        let seq = near(self.rcv.nxt, segment.seq);
        if segment.flags.contains(Flags::RST) {
            // One endpoint is one connection, so it does not return to LISTEN: that is its owner's affair.
            return self.on_reset(seq);
        }
        if segment.flags.contains(Flags::SYN) {
            if seq + 1 != self.rcv.nxt {
                self.due |= due::ACK;
            } else if ours {
                self.establish(now, segment);
                self.due |= due::ACK;
            } else if acknowledged.is_none() {
                // The peer's SYN again: our SYN-ACK was lost, or is late.
                self.repeat_syn();
                self.set_retransmit_timer(now, self.rtt.rto());
            }
            return;
        }
        if !self.is_acceptable(seq, segment.sequence_length()) {
            self.due |= due::ACK;
        } else if ours {
            self.establish(now, segment);
            self.on_synchronised(now, segment);
            self.forget_echo();
        } else if acknowledged.is_some() {
            self.refuse(segment);
        }
    }

    /// Takes over what the peer's SYN says.
    fn learn_peer(&mut self, now: Nanos, segment: &Segment) {
        self.rcv.begin(segment.seq);
        // RFC 9293 §3.7.1: the effective MSS is bounded by the size that the peer is willing to receive.
        let offered = segment.mss.map_or(DEFAULT_MSS, |mss| mss.get().into()).max(self.profile.min_mss_bytes);
        self.negotiate(now, segment, self.profile.mss_bytes.min(offered));
        // RFC 7323 §2.2 and §2.3: scaling is on only if both SYNs carry the option; a shift above 14 counts as 14.
        if let Some(shift) = segment.window_scale.filter(|_| self.profile.window_scaling) {
            self.scaling.is_on = true;
            self.scaling.snd_shift = shift.min(14);
            self.scaling.rcv_shift = self.own_shift();
        }
        // A SYN can announce no more than 65535 bytes; our first segment after it announces the rest of a scaled
        // window.
        // Counting that as announced already keeps it from passing for a window that reading has opened.
        self.begin_receiving();
        self.peer_window.set(u32::from(segment.window), self.max_send_window());
        self.snd.begin_window(origin(segment.seq), self.snd.una);
        // The controller must not hold a window in segments of the old size; its law begins when the handshake is complete.
        let window = self.initial_window_bytes();
        self.controller.restart_window(&Self::start(&self.profile, self.snd.initial(), self.mss, window));
    }

    /// Our SYN is acknowledged and the peer's is known.
    fn establish(&mut self, now: Nanos, segment: &Segment) {
        self.snd.una = self.snd.initial() + 1;
        self.snd.nxt = self.snd.una;
        self.state = State::Established;
        self.timers.retries = 0;
        self.timers.retransmit = Deadline::NEVER;
        self.due &= !due::SYN;
        self.events |= Events::CONNECTED;
        self.begin_clocks(now);
        self.queue_write(now, 0);
        let (sample, rtt) = self.handshake_rtt(now, segment);
        let timed = self.last_sent_at.is_some() || self.features & feature::ACK_ONE_WAY != 0;
        self.last_sent_at = None;
        self.sample_rtt(now, sample);
        if !timed && self.stats.syn_retransmissions > 0 {
            self.rtt.restart_after_syn_loss(&self.profile.rto);
        }
        let lost = if self.was_syn_repeated_needlessly(segment) { 0 } else { self.stats.syn_retransmissions };
        self.begin_sending(now, rtt, lost);
    }

    /// The handshake is complete: data may be sent. `rtt_sample`: of the handshake; `lost`: SYNs retransmitted.
    #[cold]
    fn begin_sending(&mut self, now: Nanos, rtt_sample: Option<Nanos>, lost: u32) {
        let profile = &self.profile;
        let window = profile.syn_loss_response.window_bytes(lost, self.initial_window_bytes(), self.mss);
        let rtt = self.rtt.smoothed(&profile.rto);
        self.controller.restart(&Start {
            rtt,
            established_at: Some(now),
            ..Self::start(profile, self.snd.initial(), self.mss, window)
        });
        self.sharing.initial_segments = NonZeroU16::new(u16::try_from(window / self.mss).unwrap_or(u16::MAX));
        if let Some(segments) = self.sharing.ssthresh {
            self.controller.set_ssthresh(u32::from(segments.get()).saturating_mul(self.mss));
        }
        let (sack, rate_based) = (self.features & feature::SACK != 0, self.controller.is_rate_based());
        if let Recovery::Scoreboard(scoreboard) = &mut self.recovery {
            scoreboard.establish(now, self.snd.una, sack, rate_based, rtt_sample);
        }
        self.prepare_pacing();
        self.prepare_path_report();
    }

    /// The handshake's RTT: the sample for the estimator, and the first candidate for the shortest RTT.
    fn handshake_rtt(&self, now: Nanos, segment: &Segment) -> (RttSample, Option<Nanos>) {
        if self.features & feature::ACK_ONE_WAY != 0 {
            let ends_backoff = self.last_sent_at.is_some();
            let sample = segment.sent_at.map(SentAt::nanos).map(|sent_at| RttSample::OneWay { sent_at, ends_backoff });
            (sample.unwrap_or_default(), None)
        } else if let Some(sent_at) = self.last_sent_at.map(SentAt::nanos) {
            (RttSample::Timed { sent_at }, Some(now - sent_at))
        } else {
            // RFC 7323 §4.1: the echo shows which of several copies was acknowledged.
            let age = self.echoed_age(now, segment).filter(|_| self.stats.syn_retransmissions > 0);
            let rtt = age.map(round_trip);
            (rtt.map_or(RttSample::None, |rtt| RttSample::Timed { sent_at: now.saturating_sub(rtt) }), rtt)
        }
    }

    /// Whether the segment that completes the handshake shows that the first copy of our SYN or SYN-ACK arrived.
    // Linux, tcp_try_undo_spurious_syn: the echo is the timestamp of the first copy.
    fn was_syn_repeated_needlessly(&self, segment: &Segment) -> bool {
        let echo = segment.timestamps.filter(|_| self.features & feature::TIMESTAMPS != 0).map(|theirs| theirs.echo);
        self.profile.undo_spurious_syn
            && self.stats.syn_retransmissions > 0
            && echo.zip(self.extras.memory()).is_some_and(|(echo, memory)| memory.timestamps.echoes_first_syn(echo))
    }

    /// False if the segment echoes a timestamp that none of our SYNs had.
    fn may_be_echo(&self, now: Nanos, segment: &Segment) -> bool {
        let theirs = segment.timestamps.filter(|theirs| self.profile.timestamps && theirs.echo != 0);
        theirs.zip(self.extras.memory()).is_none_or(|(theirs, memory)| memory.timestamps.may_echo(now, theirs.echo))
    }

    /// Our SYN or SYN-ACK is due again.
    pub(crate) fn repeat_syn(&mut self) {
        self.stats.syn_retransmissions += 1;
        // RFC 6298 §3: Karn's algorithm, no sample from a segment sent twice.
        self.last_sent_at = None;
        self.due |= due::SYN;
    }

    /// Our SYN or SYN-ACK.
    pub(crate) fn syn_segment(&mut self, now: Nanos) -> Segment {
        let answering = self.state == State::SynReceived;
        if self.snd.max == self.snd.initial() {
            self.last_sent_at = Some(SentAt::new(now));
            if let Some(memory) = self.extras.memory_mut() {
                memory.timestamps.note_first_syn(now);
            }
        }
        self.snd.nxt = self.snd.initial() + 1;
        self.snd.max = self.snd.nxt;
        if !self.timers.retransmit.is_set() {
            self.set_retransmit_timer(now, self.rtt.rto());
        }
        self.stats.segments_sent += 1;
        let offers_scaling = self.profile.window_scaling && (!answering || self.scaling.is_on);
        let mut segment = Segment {
            seq: self.snd.iss,
            ack: if answering { wire(self.rcv.nxt) } else { 0 },
            payload_bytes: 0,
            window: self.first_window_bytes().min(LARGEST_FIELD) as u16,
            mss: NonZeroU16::new(self.profile.mss_bytes as u16),
            window_scale: offers_scaling.then(|| self.own_shift()),
            flags: if answering { Flags::SYN | Flags::ACK } else { Flags::SYN },
            retransmission: self.stats.syn_retransmissions > 0,
            ..Segment::EMPTY
        };
        self.offer(now, answering, &mut segment);
        self.add_path_request(&mut segment);
        segment
    }

    /// Shift that makes the receive window expressible in a window field.
    fn own_shift(&self) -> u8 {
        let largest = self.profile.receive_window_bytes;
        match self.profile.receive_window_growth {
            Some(growth) if growth.initial_bytes < largest => window::shift(largest),
            _ => (0..14).find(|&shift| largest >> shift <= LARGEST_FIELD).unwrap_or(14),
        }
    }
}
