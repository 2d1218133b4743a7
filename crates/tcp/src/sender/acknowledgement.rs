//! An ACK arrives: the acknowledged data, the peer's window, and the result for recovery.

use crate::Nanos;
use crate::connection::{Endpoint, Events, State, due, feature};
use crate::profile::LARGEST_WINDOW;
use crate::segment::{Flags, Segment, SentAt};
use crate::sender::apply::flight;
use crate::sender::initial_window::IdleCheck;
use crate::sender::recovery::{Ack, Facts, Recovery};
use crate::sequence::{SeqNum, near};

impl Endpoint {
    /// Processes the acknowledgment field; false if the segment is to be dropped.
    #[inline]
    pub(crate) fn on_acknowledgement(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) -> bool {
        let ack = near(self.snd.una, segment.ack);
        if ack > self.snd.max {
            // RFC 9293 §3.10.7.4: if the ACK acks something not yet sent, send an ACK and drop the segment.
            self.due |= due::ACK;
            return false;
        }
        let prior_una = self.snd.una;
        let prior_flight = self.flight_bytes();
        let advanced = ack > prior_una;
        let window = u32::from(segment.window) << self.scaling.snd_shift;
        // RFC 5681 §2: a duplicate acknowledgment: data outstanding, no payload, no SYN or FIN, the greatest
        // acknowledgment received, and the window as it was.
        let bare = ack == prior_una && self.snd.max > prior_una && segment.sequence_length() == 0;
        // The answers to probes of a closed window are none.
        let duplicate = bare && window == self.peer_window.bytes && seq >= self.rcv.nxt && !self.timers.persisting;
        if advanced {
            self.snd.una = ack;
            // After a timeout, segments that the peer already holds need not be retransmitted.
            self.snd.nxt = self.snd.nxt.max(ack);
            self.timers.retries = 0;
            self.due &= !due::RETRANSMIT;
            if self.bursts.is_unacknowledged() {
                self.bursts.end(self.snd.initial(), self.snd.max);
            }
        } else if self.timers.persisting || self.peer_window.bytes == 0 {
            // RFC 9293 §3.8.6.1: a closed window is no reason to give up as long as the peer acknowledges. Linux counts no
            // retransmissions that probe one (tcp_retransmit_timer).
            self.timers.retries = 0;
        }
        let window_changed = ack >= prior_una && self.update_peer_window(seq, ack, window, advanced);
        if !advanced && prior_flight == 0 && self.recovery.scoreboard().is_some() {
            self.on_ack_of_nothing(now, window_changed);
        }
        let marked = self.features & feature::ECN != 0 && segment.flags.contains(Flags::ECE);
        if !advanced && !marked && self.says_nothing_new(duplicate, segment) {
            return self.state != State::Closed;
        }
        let one_way = self.features & feature::ACK_ONE_WAY != 0;
        let arrived = Ack {
            ack,
            prior_una,
            prior_flight,
            data_bytes: self.snd.data_between(prior_una, ack),
            duplicate,
            carries_news: window_changed || segment.sequence_length() > 0,
            sack: &segment.sack,
            echo_age: self.echoed_age(now, segment),
            one_way_sent_at: segment.sent_at.filter(|_| one_way).map(SentAt::nanos),
            echoes_congestion: marked,
        };
        // Without a scoreboard a duplicate is one by RFC 5681, with one it is as in Linux.
        let counted = if self.recovery.scoreboard().is_some() { bare && !window_changed } else { duplicate };
        self.stats.duplicate_acks += u32::from(counted);
        self.recover(now, &arrived);
        self.note_acknowledged(now, prior_una, ack);
        self.state != State::Closed
    }

    /// An ACK arrives while nothing is outstanding, of a peer whose window may be closed.
    // Linux, tcp_ack_update_window: a window that changes while data waits ends idleness; and tcp_ack_probe: an ACK puts
    // off the next probe of a closed window.
    fn on_ack_of_nothing(&mut self, now: Nanos, window_changed: bool) {
        if window_changed && self.snd.unsent() > 0 && self.profile.idle_check == IdleCheck::OnWrite {
            self.restart_after_idleness(now);
        }
        if self.timers.persisting && self.peer_window.bytes == 0 {
            self.set_retransmit_timer(now, self.persist_interval());
        }
    }

    /// Asks recovery what an ACK means and draws the consequences.
    #[inline]
    fn recover(&mut self, now: Nanos, ack: &Ack<'_>) {
        let mut summary = self.recovery.measure(&flight!(self, now), ack);
        self.sample_rtt(now, summary.sample);
        let mut facts = Facts::default();
        self.recovery.on_ack(&flight!(self, now), ack, &mut summary, &mut facts);
        self.apply(now, &facts);
    }

    /// True if an ACK of nothing new cannot affect recovery. This holds for an endpoint that only receives.
    #[inline]
    fn says_nothing_new(&self, duplicate: bool, segment: &Segment) -> bool {
        match &self.recovery {
            Recovery::Counting(_) => !duplicate,
            Recovery::Scoreboard(scoreboard) => scoreboard.is_idle() && segment.sack.is_empty(),
        }
    }

    /// Takes over the window of an acknowledgment; true if it changed.
    #[inline]
    fn update_peer_window(&mut self, seq: SeqNum, ack: SeqNum, window: u32, advanced: bool) -> bool {
        let shrinks = window < self.peer_window.bytes && window > 0;
        let old_keeps = shrinks && !advanced && self.profile.ignore_shrinking_duplicates;
        let changed = self.snd.takes_window(seq, ack, old_keeps) && window != self.peer_window.bytes;
        if changed {
            self.peer_window.set(window, self.max_send_window());
        }
        changed
    }

    /// The profile's bound on the send window, bytes.
    pub(crate) fn max_send_window(&self) -> u32 {
        self.profile.max_send_window_segments.map_or(LARGEST_WINDOW, |n| n.saturating_mul(self.mss))
    }

    /// Events that follow from the cumulative acknowledgment.
    #[inline]
    fn note_acknowledged(&mut self, now: Nanos, before: SeqNum, ack: SeqNum) {
        if ack >= self.snd.data_end && ack > before {
            self.write_more(now);
            if before < self.snd.data_end && ack >= self.snd.data_end {
                self.events |= Events::SENT;
            }
            if ack > self.snd.data_end {
                self.on_fin_acknowledged();
            }
        }
    }
}
