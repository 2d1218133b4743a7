//! What an acknowledgement tells the sender: data that arrived, duplicates, the peer's window.

use super::{Endpoint, OPEN, State, due, feature};
use crate::congestion::{CongestionControl, RoundTrip};
use crate::profile::LARGEST_WINDOW;
use crate::recovery::{OnAck, OnDuplicate, Outstanding};
use crate::segment::{Flags, Segment};
use crate::sequence::{Position, near};
use crate::{NEVER, Nanos};

impl Endpoint {
    /// Processes the acknowledgement field; false if the segment is to be dropped.
    #[inline]
    pub(super) fn on_acknowledgement(&mut self, now: Nanos, seq: Position, segment: &Segment) -> bool {
        let ack = near(self.una, segment.ack);
        if ack > self.highest_sent {
            // RFC 9293 §3.10.7.4: if the ACK acks something not yet sent, send an ACK and drop the segment.
            self.due |= due::ACK;
            return false;
        }
        if self.features & feature::ECN != 0 && segment.flags.contains(Flags::ECE) {
            self.on_congestion_mark(now);
        }
        let window = u32::from(segment.window) << self.snd_shift;
        if ack > self.una {
            if self.features & feature::ACK_ONE_WAY != 0 {
                let ends_backoff = self.timed_at != NEVER && ack >= self.timed_end;
                self.sample_ack_one_way(now, segment, ends_backoff);
            }
            self.on_new_ack(now, ack);
            if self.state == State::Closed {
                return false;
            }
        } else if ack == self.una {
            if self.persisting {
                // RFC 9293 §3.8.6.1: a closed window is no reason to give up as long as the peer acknowledges.
                self.retries = 0;
            }
            // RFC 5681 §2: a duplicate acknowledgement: data outstanding, no payload, no SYN or FIN, the greatest
            // acknowledgement received, and the window as it was.
            if self.highest_sent > self.una
                && segment.sequence_length() == 0
                && window == self.peer_window
                && seq >= self.rcv_nxt
            {
                self.on_duplicate_ack(now);
            }
        }
        if ack >= self.una {
            self.update_peer_window(seq, ack, window);
        }
        true
    }

    /// Takes over the window of an acknowledgement; true if it changed.
    // RFC 9293 §3.10.7.4: SND.WL1 and SND.WL2 keep old segments from updating the window.
    #[inline]
    pub(super) fn update_peer_window(&mut self, seq: Position, ack: Position, window: u32) -> bool {
        let newer = seq > self.window_seq || seq == self.window_seq && ack >= self.window_ack;
        if newer {
            self.window_seq = seq;
            self.window_ack = ack;
        }
        let changed = newer && window != self.peer_window;
        if changed {
            self.set_peer_window(window);
        }
        changed
    }

    pub(super) fn set_peer_window(&mut self, window: u32) {
        self.peer_window = window;
        self.send_window = window.min(self.max_send_window());
        self.largest_peer_window = self.largest_peer_window.max(window);
    }

    /// The profile's bound on the send window, bytes.
    fn max_send_window(&self) -> u32 {
        self.profile.max_send_window_segments.map_or(LARGEST_WINDOW, |n| n.saturating_mul(self.mss))
    }

    fn outstanding(&self) -> Outstanding {
        Outstanding {
            first: self.una,
            highest: self.highest_sent,
            flight_bytes: self.flight_bytes(),
            data_bytes: (self.nxt.min(self.data_end) - self.una.min(self.data_end)) as u32,
            mss_bytes: self.mss,
            has_new_data: self.has_new_data(),
            ssthresh_base: self.profile.ssthresh_base,
        }
    }

    fn on_new_ack(&mut self, now: Nanos, ack: Position) {
        let acknowledged_data = ack.min(self.data_end) - self.una.min(self.data_end);
        let mut round_trip = None;
        if self.timed_at != NEVER && ack >= self.timed_end {
            if self.features & feature::ACK_ONE_WAY == 0 {
                self.rtt.sample(&self.profile.rto, self.timed_at, now);
            }
            round_trip = Some(now - self.timed_at);
            self.timed_at = NEVER;
        }
        let before = self.una;
        self.una = ack;
        // After a timeout, segments that the peer already holds need not be sent again.
        self.nxt = self.nxt.max(ack);
        self.retries = 0;
        self.due &= !due::RETRANSMIT;
        if self.burst == OPEN {
            self.end_burst();
        }
        if let Some(rtt) = round_trip {
            let sample = RoundTrip { rtt, una: self.una, nxt: self.nxt };
            self.controller.on_round_trip(now, &sample);
            self.note_round_trip(rtt);
        }
        let mut restart_timer = true;
        if self.recovery.note_ack(acknowledged_data as u32) {
            restart_timer = self.on_ack_in_repair(acknowledged_data as u32);
        } else {
            let allowed = self.window_may_grow(now, true);
            self.grow(now, acknowledged_data as u32, allowed);
        }
        // RFC 6298 §5.2 and §5.3: stop the timer when all is acknowledged, restart it when new data is.
        if self.una == self.nxt {
            self.retransmit_deadline = NEVER;
        } else if restart_timer {
            self.set_retransmit_timer(now, self.rtt.rto());
        }
        self.note_acknowledged(before, ack);
    }

    /// New data is acknowledged while a loss is being repaired; answers whether to restart the timer.
    #[cold]
    fn on_ack_in_repair(&mut self, acknowledged_data: u32) -> bool {
        let repair = self.repair();
        let outstanding = self.outstanding();
        let restart_timer =
            match self.recovery.on_ack(acknowledged_data, &self.profile, &outstanding, &mut self.controller) {
                OnAck::Repaired => {
                    self.launch_repaired();
                    true
                }
                OnAck::Partial { restart_timer } => {
                    self.due |= due::RETRANSMIT;
                    self.note_loss();
                    restart_timer
                }
            };
        self.validate_repair(repair);
        restart_timer
    }

    /// The sample that an ACK of new data gives by the time at which it was sent, with `rto.samples = ack_one_way`.
    // ns-2's BayFullTcp, newack().
    #[cold]
    pub(super) fn sample_ack_one_way(&mut self, now: Nanos, segment: &Segment, ends_backoff: bool) {
        let Some(sent_at) = segment.sent_at else { return };
        if ends_backoff {
            self.rtt.sample(&self.profile.rto, sent_at, now);
        } else {
            self.rtt.sample_keeping_backoff(&self.profile.rto, sent_at, now);
        }
    }

    /// The first acknowledgement since a first flight or restart: what has been sent by now is that burst.
    #[cold]
    pub(super) fn end_burst(&mut self) {
        self.burst = (self.highest_sent - self.burst_start) as u32;
        if self.first_flight == OPEN {
            self.first_flight = (self.highest_sent - self.initial()) as u32;
        }
    }

    /// The peer echoes a congestion mark.
    #[cold]
    fn on_congestion_mark(&mut self, now: Nanos) {
        let outstanding = self.outstanding();
        if self.recovery.on_mark(now, &outstanding, &mut self.controller) {
            self.stats.congestion_marks += 1;
            self.ecn.queue_cwr();
        }
    }

    #[cold]
    fn on_duplicate_ack(&mut self, now: Nanos) {
        self.stats.duplicate_acks += 1;
        if self.recovery.is_recovering() {
            self.launch_delivered(self.mss, 0);
        }
        let repair = self.repair();
        let outstanding = self.outstanding();
        match self.recovery.on_duplicate_ack(now, &self.profile, &outstanding, &mut self.controller) {
            OnDuplicate::Nothing => return,
            OnDuplicate::Retransmit => {
                self.due |= due::RETRANSMIT;
                if self.profile.rto.backoff_at_fast_retransmit {
                    self.rtt.back_off(&self.profile.rto);
                }
            }
            OnDuplicate::GoBack => self.nxt = self.una,
        }
        self.ecn.queue_cwr();
        self.stats.fast_retransmits += 1;
        self.stats.early_retransmits += u32::from(self.recovery.began_early(&self.profile));
        self.validate_repair(repair);
        self.note_loss();
        if self.recovery.is_recovering() {
            self.launch_lost();
        } else {
            self.launch_timed_out();
        }
        // BSD, Linux and ns-2 restart the timer with a fast retransmit, RFC 6298 leaves it running; with a short RTO
        // a timer that kept running would expire before the retransmission can be acknowledged.
        self.set_retransmit_timer(now, self.rtt.rto());
    }
}
