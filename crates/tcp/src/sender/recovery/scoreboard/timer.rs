//! The one timer of outstanding data, and what its expiry means: a timeout, RACK's end of waiting, or a tail loss probe.
//! When ACKs fail to come for two round trips, a probe leaves, so that a lost tail is recovered by ACKs rather than by the
//! timeout (RFC 8985 §7).

use super::Scoreboard;
use super::board::Sent;
use super::state::{CaState, Probe, Timer};
use crate::sender::recovery::facts::{AckSummary, CwndRule, Edges, Facts, FastRecovery, Flight, SetTimer};
use crate::sequence::SeqNum;
use crate::{Nanos, SECOND};

/// RFC 8985 §7.2: without a sample the probe waits a second.
const PROBE_WITHOUT_SAMPLE: Nanos = SECOND;

impl Scoreboard {
    /// The timer expired, whichever it was.
    pub fn on_timer(&mut self, flight: &Flight<'_>) -> Facts {
        let was_recovering = self.is_recovering();
        let mut facts = Facts::default();
        match self.timer {
            Timer::Reordering => self.on_reordering_timeout(flight, &mut facts),
            Timer::Probe => facts.timer = self.on_probe_timeout(flight),
            Timer::Retransmission => self.on_timeout(flight, &mut facts),
        }
        facts.flight = self.board.len().saturating_mul(flight.mss);
        facts.fast_recovery = FastRecovery::new(was_recovering, self.is_recovering());
        facts
    }

    /// The reordering timer expired.
    // RFC 8985 §6.3.
    fn on_reordering_timeout(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        let window = self.reordering_window(flight);
        let (lost, _) = self.rack.mark_losses(&mut self.board, flight.now, window);
        facts.lose(lost.segments, flight.mss);
        if lost.segments > 0 {
            if self.state != CaState::Recovery {
                self.enter_recovery(flight, facts);
                if self.rate.is_none() {
                    // Linux, tcp_rack_reo_timeout: as if one segment had been delivered.
                    facts.rule = CwndRule::Reduce { segments: 1 };
                }
            }
            self.retransmitting = true;
        }
        facts.timer = self.restart_timer(flight);
    }

    /// Restarts the retransmission timer, or stops it when nothing is outstanding.
    // RFC 6298 §5.1 to §5.3.
    pub(super) fn restart_timer(&mut self, flight: &Flight<'_>) -> SetTimer {
        let Some(front) = self.board.front() else {
            self.timer = Timer::Retransmission;
            self.probing = false;
            return SetTimer::Stop;
        };
        // RFC 8985 §7.3: a probe or a reordering timer must not push the timeout of the first segment into the future.
        let deadline = if self.timer == Timer::Retransmission {
            self.timeout_after_ack(flight)
        } else {
            front.sent_at.saturating_add(flight.rtt.rto()).max(flight.now + 1)
        };
        self.timer = Timer::Retransmission;
        SetTimer::At(deadline)
    }

    /// When the retransmission timer expires after an ACK of new data.
    // RFC 6298 §5.3: RTO from now. RFC 7765 §4: the time since the first outstanding segment was sent is part of it, unless
    // it is longer. A lost segment that waits to be retransmitted has no such time.
    fn timeout_after_ack(&self, flight: &Flight<'_>) -> Nanos {
        let rto = flight.rtt.rto();
        let restarted = flight.now.saturating_add(rto);
        if flight.profile.recovery.scoreboard().timer_restart {
            return restarted;
        }
        let front = self.board.front().filter(|front| !front.needs_retransmission());
        let counted = front.map(|front| front.sent_at.saturating_add(rto)).filter(|&deadline| deadline > flight.now);
        counted.unwrap_or(restarted)
    }

    /// True if the timer that runs is the retransmission timer.
    pub fn waits_for_timeout(&self) -> bool {
        self.timer == Timer::Retransmission
    }

    /// Sets the probe timer in place of the retransmission timer, if a probe may be sent.
    // RFC 8985 §7.2: schedule a PTO when new data is sent or acknowledged, unless in recovery.
    #[inline]
    pub(super) fn schedule_probe(&mut self, flight: &Flight<'_>, advanced: bool) -> SetTimer {
        let Some(rules) = &flight.profile.recovery.scoreboard().tail_loss_probe else { return SetTimer::Keep };
        let allowed = self.sack && matches!(self.state, CaState::Open | CaState::Reduced);
        let Some(first) = self.board.front().filter(|_| allowed) else { return SetTimer::Keep };
        let mut timeout = match flight.rtt.smoothed(&flight.profile.rto) {
            // RFC 8985 §7.2: PTO = 2 * SRTT, plus TLP.max_ack_delay if only one segment is in flight.
            Some(srtt) if self.board.len() == 1 => 2 * srtt + rules.max_ack_delay_ns,
            Some(srtt) => 2 * srtt + flight.profile.shortest_timer(),
            None => PROBE_WITHOUT_SAMPLE,
        };
        // RFC 8985 §7.2: not later than the retransmission timer would expire. Linux: unless that is overdue, which a
        // probe for one segment can make it.
        let rto = if advanced { self.timeout_after_ack(flight) } else { timeout_of_first(flight, first) };
        if rto > flight.now {
            timeout = timeout.min(rto - flight.now);
        }
        self.timer = Timer::Probe;
        SetTimer::At(flight.now + timeout)
    }

    /// The probe timer expired.
    // RFC 8985 §7.3, TLP_send_probe (): new data if there is any and the peer's window admits it, else the last segment.
    fn on_probe_timeout(&mut self, flight: &Flight<'_>) -> SetTimer {
        // RFC 8985 §7.3: at most one outstanding probe.
        self.probing = self.probe.end.is_none() && !self.board.is_empty();
        self.restart_timer(flight)
    }

    /// The probe was sent, as a retransmission of this segment or as new data; returns the action on the timer.
    pub fn on_probe_sent(&mut self, flight: &Flight<'_>, retransmitted: Option<u64>) -> SetTimer {
        if let Some(number) = retransmitted {
            self.retransmit(flight.now, number, false);
        }
        self.probe = Probe { end: Some(flight.snd.nxt), is_repetition: retransmitted.is_some() };
        self.probing = false;
        self.restart_timer(flight)
    }

    /// Decides whether the probe recovered a loss, which then has to be answered.
    // RFC 8985 §7.4, TLP_process_ack ().
    pub(super) fn on_probe_acknowledged(
        &mut self,
        flight: &Flight<'_>,
        ack: SeqNum,
        summary: &AckSummary,
        facts: &mut Facts,
    ) {
        let Some(end) = self.probe.end.filter(|&end| ack >= end) else { return };
        if !self.probe.is_repetition || summary.dsack_of_probe {
            // New data was acknowledged, or original and probe both arrived: nothing was lost.
            self.probe.end = None;
        } else if ack > end {
            // The tail was lost and the probe recovered it.
            facts.edges.insert(Edges::TAIL_LOSS);
            self.begin_reduction(flight);
            self.keep_open(flight);
        } else if !(summary.advanced || summary.acknowledged || summary.sacked) && summary.duplicate {
            self.probe.end = None;
        }
    }
}

/// When the first segment in flight would time out.
fn timeout_of_first(flight: &Flight<'_>, first: &Sent) -> Nanos {
    first.sent_at.saturating_add(flight.rtt.rto())
}
