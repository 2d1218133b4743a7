//! RACK: a segment is lost if one that left later was delivered and enough time has passed (RFC 8985 §6).

use super::board::{Judgement, NewlyLost, Sent};
use super::timer::Timer;
use super::{AckSummary, CwndRule, Facts, Flight, Scoreboard, SetTimer, State};
use crate::Nanos;
use crate::sequence::SeqNum;

/// Recoveries for which a widened reordering window lasts (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;

/// RACK's state of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of the segment that left last among those delivered.
    sent_at: Nanos,
    end: SeqNum,
    /// Its round trip.
    rtt: Nanos,
    /// Something was delivered since losses were looked for last.
    advanced: bool,
    /// RACK.reo_wnd_mult, less one.
    widened: u8,
    /// RACK.reo_wnd_persist.
    persist: u8,
    dsack_seen: bool,
    /// Segments delivered when the window was widened last: once a round trip is enough.
    widened_at: u32,
}

impl Rack {
    /// A segment was delivered.
    // RFC 8985 §6.2 step 2: a retransmission that is acknowledged earlier than the minimum round trip is taken for its
    // original.
    #[inline]
    pub fn advance(&mut self, now: Nanos, min_rtt: Option<Nanos>, sent: &Sent) {
        let rtt = now - sent.sent_at;
        if sent.is_repeated() && min_rtt.is_none_or(|shortest| rtt < shortest) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (sent.sent_at, sent.end()) > (self.sent_at, self.end) {
            self.sent_at = sent.sent_at;
            self.end = sent.end();
        }
    }

    /// Losses have to be looked for again, though nothing was delivered.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A DSACK shows that the reordering window was too narrow.
    pub fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// A spurious recovery was detected.
    pub fn keep_wide(&mut self) {
        self.persist = (self.persist + 1).min(PERSISTENCE);
    }

    /// A recovery ended that was not spurious.
    pub fn on_repaired(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Widens the reordering window, or lets it fall back.
    // RFC 8985 §6.2 step 4: once per round trip with DSACKs the window grows by min_RTT/4; it falls back after 16
    // recoveries without. `prior_delivered` shows the round trip in which the delivered segment left.
    #[inline]
    pub fn adapt(&mut self, delivered: u32, prior_delivered: Option<u32>) {
        let Some(prior_delivered) = prior_delivered else { return };
        if prior_delivered < self.widened_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.widened = self.widened.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = PERSISTENCE;
        } else if self.persist == 0 {
            self.widened = 0;
        }
    }

    /// True if so long after it left a segment of the head of the queue counts as recently sent.
    pub fn is_recent(&self, now: Nanos, sent: &Sent) -> bool {
        sent.sent_at + self.rtt > now
    }
}

impl Scoreboard {
    // RFC 8985 §6.2 step 4: while no reordering has been seen, the window is 0 in recovery or once DupThresh segments
    // are SACKed; else min (mult * min_RTT / 4, SRTT).
    fn reordering_window(&self, flight: &Flight<'_>) -> Nanos {
        if self.reordering_seen == 0 && (self.state >= State::Recovery || self.sacked() >= self.reordering) {
            return 0;
        }
        let srtt = flight.rtt.smoothed(&flight.profile.rto).unwrap_or(0);
        let Some(shortest) = self.shortest.get() else { return srtt };
        (shortest / 4).saturating_mul(u64::from(self.rack.widened) + 1).min(srtt)
    }

    /// Marks segments overtaken for too long; returns their number, and how long the last one that may still
    /// only be late has to be waited for.
    // RFC 8985 §6.2 step 5, RACK_detect_loss ().
    fn detect(&mut self, flight: &Flight<'_>) -> (NewlyLost, Nanos) {
        let window = self.reordering_window(flight);
        let rack = &self.rack;
        let (newest, rtt, now) = ((rack.sent_at, rack.end), rack.rtt, flight.now);
        let mut wait = 0;
        let lost = self.board.mark_losses(|sent| {
            if (sent.sent_at, sent.end()) >= newest {
                return Judgement::Stop;
            }
            let due = sent.sent_at + rtt + window;
            if due <= now {
                Judgement::Lost
            } else {
                wait = wait.max(due - now);
                Judgement::Wait
            }
        });
        (lost, wait)
    }

    /// Looks for losses after an acknowledgment, and sets a timer that waits for late segments.
    pub(super) fn detect_losses(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let (lost, wait) = self.detect(flight);
        facts.lose(lost.segments, flight.mss);
        summary.lost_again |= lost.retransmissions > 0;
        if wait == 0 {
            return;
        }
        let wait = wait + flight.profile.shortest_timer();
        facts.timer = SetTimer::At(flight.now + wait.min(flight.rtt.rto()));
        self.timer = Timer::Reordering;
        summary.set_timer = false;
    }

    /// The reordering timer expired.
    // RFC 8985 §6.3.
    pub(super) fn on_reordering_timeout(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        let (lost, _) = self.detect(flight);
        facts.lose(lost.segments, flight.mss);
        if lost.segments > 0 {
            if self.state != State::Recovery {
                self.enter_recovery(flight, facts);
                if self.rate.is_none() {
                    // Linux, tcp_rack_reo_timeout: as if one segment had been delivered.
                    facts.rule = CwndRule::Reduce { segments: 1 };
                }
            }
            self.repairing = true;
        }
        facts.timer = self.restart_timer(flight);
    }
}
