//! The sender with a scoreboard (`recovery = sack`): what acknowledgements and timers tell it, and what it sends next.

use super::{Endpoint, OPEN, due, feature};
use crate::Nanos;
use crate::congestion::CongestionControl;
use crate::events::Events;
use crate::recovery::{Arrival, Selective, Sender};
use crate::restart_window::IdleCheck;
use crate::segment::{Flags, Segment};
use crate::sequence::{Position, near};

impl Endpoint {
    /// Runs recovery with what it needs of the endpoint.
    #[inline]
    fn recover<R>(&mut self, now: Nanos, act: impl FnOnce(&mut Selective, &mut Sender<'_>) -> R) -> Option<R> {
        let has_new_data = self.has_new_data();
        let Self { selective: Some(selective), controller, rtt, extras, stats, profile, retransmit_deadline, .. } =
            self
        else {
            return None;
        };
        let mut sender = Sender {
            now,
            una: self.una,
            nxt: self.nxt,
            mss: self.mss,
            has_new_data,
            retries: self.retries,
            profile,
            controller,
            rtt,
            launch: extras.launch_mut(),
            stats,
            deadline: retransmit_deadline,
        };
        let result = act(selective, &mut sender);
        self.retries = sender.retries;
        Some(result)
    }

    /// Whether the application and the peer's window would let a segment of new data leave.
    #[inline]
    pub(super) fn has_new_data(&self) -> bool {
        let room = (self.una + u64::from(self.send_window)).saturating_sub(self.nxt);
        let waiting = self.stream_end().saturating_sub(self.nxt);
        waiting > 0 && room >= waiting.min(u64::from(self.mss))
    }

    /// Processes the acknowledgement field; false if the segment is to be dropped.
    pub(super) fn on_selective_acknowledgement(&mut self, now: Nanos, seq: Position, segment: &Segment) -> bool {
        let ack = near(self.una, segment.ack);
        if ack > self.highest_sent {
            // RFC 9293 §3.10.7.4: if the ACK acks something not yet sent, send an ACK and drop the segment.
            self.due |= due::ACK;
            return false;
        }
        let prior_una = self.una;
        if ack > prior_una {
            self.una = ack;
            self.retries = 0;
            if self.burst == OPEN {
                self.end_burst();
            }
        } else if self.persisting {
            self.retries = 0;
        }
        let window = u32::from(segment.window) << self.snd_shift;
        let window_changed = ack >= prior_una && self.update_peer_window(seq, ack, window);
        if ack <= prior_una && segment.sack.is_empty() && self.has_nothing_to_recover() {
            return self.state != super::State::Closed;
        }
        let arrival = Arrival {
            ack,
            prior_una,
            not_a_duplicate: window_changed || segment.sequence_length() > 0,
            sack: &segment.sack,
            echo_age: self.echoed_age(now, segment),
            window_may_grow: self.window_may_grow(now, ack > prior_una),
            echoes_congestion: self.features & feature::ECN != 0 && segment.flags.contains(Flags::ECE),
        };
        if ack == prior_una && !arrival.not_a_duplicate && self.highest_sent > self.una {
            self.stats.duplicate_acks += 1;
        }
        let before = self.repair();
        self.watch_repair(|endpoint| {
            endpoint.recover(now, |selective, sender| selective.on_ack(sender, &arrival));
        });
        self.validate_repair(before);
        self.announce_reduction();
        self.note_acknowledged(prior_una, ack);
        self.state != super::State::Closed
    }

    /// Whether an acknowledgement of nothing new can tell recovery nothing: so it is with one that only receives.
    #[inline]
    fn has_nothing_to_recover(&self) -> bool {
        self.selective.as_ref().is_none_or(|selective| selective.is_idle())
            && self.features & feature::ECN == 0
            && self.extras.launch().is_none()
    }

    /// Events that follow from the cumulative acknowledgement.
    #[inline]
    pub(super) fn note_acknowledged(&mut self, before: Position, ack: Position) {
        if ack >= self.data_end && ack > before {
            if before < self.data_end {
                self.events |= Events::SENT;
            }
            if ack > self.data_end {
                self.on_fin_acknowledged();
            }
        }
    }

    /// The timer of outstanding data expired.
    pub(super) fn on_selective_timeout(&mut self, now: Nanos) {
        let Some(selective) = &self.selective else { return };
        if !selective.waits_for_timeout() {
            self.watch_repair(|endpoint| {
                endpoint.recover(now, |selective, sender| selective.on_short_timer(sender));
            });
        } else {
            if self.retries >= self.profile.max_retries {
                return self.finish(super::State::Closed, Events::TIMED_OUT);
            }
            self.stats.timeouts += 1;
            self.recover(now, |selective, sender| selective.enter_loss(sender));
            self.validate_timeout(now);
            self.launch_timed_out();
            self.rtt.back_off(&self.profile.rto);
            self.retries += 1;
            self.set_retransmit_timer(now, self.rtt.rto());
        }
        self.announce_reduction();
    }

    /// The next segment of the stream: a probe, a repair, or new data.
    pub(super) fn selective_segment(&mut self, now: Nanos, into: &mut Segment) -> bool {
        if self.holds_back_repairs(now) {
            return false;
        }
        if self.repair_segment(now, into) {
            return true;
        }
        if self.nxt >= self.stream_end() {
            return false;
        }
        if self.una == self.highest_sent {
            self.restart_if_idle(now);
        }
        let Some(selective) = &self.selective else { return false };
        let (probing, pushes) = (selective.is_probing(), selective.pushes() && self.has_new_data());
        if !probing && self.holds_back(now) {
            return false;
        }
        let Some(selective) = &self.selective else { return false };
        // The congestion window counts segments in flight here, whatever their size. A bare FIN takes no room in it.
        let bare_fin = self.nxt >= self.data_end;
        let taken = (selective.load(&self.profile) + 1).saturating_mul(self.mss);
        if !probing && !bare_fin && taken > self.controller.window() {
            return false;
        }
        let usable = (self.una + u64::from(self.send_window)).saturating_sub(self.nxt);
        let length = if pushes { Some(self.pushed_length(usable)) } else { self.new_data_length(now, usable) };
        let Some(length) = length else { return false };
        let start = self.nxt;
        self.transmit(now, start, length, into);
        let taken = (self.nxt - start) as u32;
        self.recover(now, |selective, sender| {
            selective.on_sent_new(sender, start, taken);
            if probing {
                selective.on_probe_sent(sender, None);
            }
        });
        true
    }

    /// How much new data leaves in one segment that Nagle's algorithm does not hold back.
    fn pushed_length(&mut self, usable: u64) -> u32 {
        let remaining = self.record_end(self.nxt).saturating_sub(self.nxt);
        let room = self.payload_room();
        let length = usable.min(remaining).min(u64::from(room)) as u32;
        if (1..room).contains(&length) {
            self.small_end = self.nxt + u64::from(length);
        }
        length
    }

    /// A probe of the tail, or a lost segment that the window lets leave again.
    fn repair_segment(&mut self, now: Nanos, into: &mut Segment) -> bool {
        if !self.selective.as_ref().is_some_and(|selective| selective.may_repeat()) {
            return false;
        }
        let next = self.recover(now, |selective, sender| selective.next_to_repeat(sender)).flatten();
        let Some((number, sent, as_probe)) = next else { return false };
        let length = (sent.end().min(self.data_end) - sent.start.min(self.data_end)) as u32;
        self.recover(now, |selective, sender| {
            if as_probe {
                selective.on_probe_sent(sender, Some(number));
            } else {
                selective.on_repaired(sender, number);
            }
        });
        self.note_loss_at(sent.start);
        self.transmit(now, sent.start, length, into);
        true
    }

    /// The application writes: if nothing was waiting and the window has room, it was the application that limited the
    /// rate until now.
    #[inline]
    pub(super) fn note_writing(&mut self, now: Nanos) {
        if self.una == self.highest_sent && self.profile.idle_check == IdleCheck::OnWrite {
            self.restart_after_idleness(now);
        }
        let idle = self.data_end.saturating_sub(self.nxt) < u64::from(self.mss);
        if let Some(selective) = &mut self.selective
            && idle
        {
            selective.limit_by_application(self.controller.window() / self.mss);
        }
    }

    /// Tells the peer of a reduced window with the next new data, or no longer.
    fn announce_reduction(&mut self) {
        if self.features & feature::ECN == 0 {
            return;
        }
        match self.selective.as_mut().and_then(|selective| selective.take_announcement()) {
            Some(true) => self.ecn.queue_cwr(),
            Some(false) => self.ecn.withdraw_cwr(),
            None => {}
        }
    }

    /// The handshake gave a round trip.
    pub(super) fn note_shortest_rtt(&mut self, now: Nanos, rtt: Nanos) {
        if let Some(selective) = &mut self.selective {
            selective.shortest.sample(now, rtt);
        }
    }

    /// Makes the connection's scoreboard ready once the handshake is over.
    pub(super) fn establish_selective(&mut self) {
        let sack = self.features & feature::SACK != 0;
        if let Some(selective) = &mut self.selective {
            selective.establish(sack, self.una, self.controller.is_rate_based());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_policy::AckPolicy;
    use crate::congestion::{CongestionAlgorithm, Controller, Other};
    use crate::profile::Profile;
    use std::sync::Arc;

    const MS: Nanos = 1_000_000;

    /// The shortest round trip that BBR goes by after 25 s of one segment of `bytes` every half a second, over a path of
    /// 100 ms to a receiver that holds its acknowledgements for 200 ms.
    fn min_rtt_after_lone_segments(bytes: u64) -> Option<Nanos> {
        let bbr = Profile { congestion_control: CongestionAlgorithm::Bbr, ..Profile::linux() };
        let late = Profile { ack: AckPolicy::Delayed { segments: 2, timer_ns: 200 * MS }, ..Profile::linux() };
        let mut ends = [Endpoint::client(Arc::new(bbr), 1), Endpoint::server(Arc::new(late), 2)];
        let mut under_way: Vec<(Nanos, usize, Segment)> = Vec::new();
        ends[0].connect(0);
        for tick in 0..25_000 {
            let now = tick * MS;
            if tick % 500 == 499 {
                ends[0].write(now, bytes);
            }
            for (side, end) in ends.iter_mut().enumerate() {
                end.handle_timeout(now);
                for (_, _, segment) in under_way.extract_if(.., |&mut (at, to, _)| at == now && to == side) {
                    end.handle_segment(now, &segment);
                }
                while let Some(segment) = end.poll_transmit(now) {
                    under_way.push((now + 50 * MS, 1 - side, segment));
                }
            }
        }
        match &ends[0].controller {
            Controller::Other(other) => match &**other {
                Other::Bbr(bbr) => bbr.min_rtt(),
                _ => None,
            },
            Controller::Reno(_) => None,
        }
    }

    #[test]
    fn an_acknowledgement_that_was_probably_held_back_does_not_lengthen_bbrs_shortest_round_trip() {
        assert_eq!(min_rtt_after_lone_segments(100), Some(100 * MS));
        assert_eq!(min_rtt_after_lone_segments(1448), Some(300 * MS), "a full segment is not told apart");
    }
}
