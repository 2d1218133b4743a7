//! Loss recovery by counting duplicate ACKs: Tahoe, Reno and NewReno.
//!
//! Recovery holds the part of cwnd that belongs to it (RFC 5681's "inflation") apart from the controller's: cwnd in
//! force is their sum, and leaving recovery drops the inflation.

use crate::Nanos;
use crate::profile::{RecoveryAlgorithm, RecoveryExit, RenoRules};
use crate::sender::recovery::facts::{
    Ack, AckSummary, CwndRule, Edges, Facts, FastRecovery, Flight, NextCwnd, RttSample, SetTimer, loss_threshold,
};
use crate::sequence::SeqNum;
use std::num::NonZeroU64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Counting {
    /// ACKs up to here belong to an episode already answered (RFC 6582's `recover`, plus one).
    recover: SeqNum,
    /// Congestion was answered for data sent before this position.
    answered: SeqNum,
    /// The segment that is timed: when it was sent, and the position that acknowledges it.
    timed: Option<Timed>,
    /// One past the highest position sent when the latest run of duplicates began, with limited transmit.
    limited_from: Option<NonZeroU64>,
    /// Bytes added to the controller's cwnd; negative after large partial ACKs.
    inflation: i32,
    duplicate_acks: u32,
    /// Bytes by which the latest ACK advanced.
    advance: u32,
    recovering: bool,
    /// `inflation` counts.
    inflated: bool,
    partial_seen: bool,
}

/// Segments that limited transmit may send beyond cwnd, so that a small cwnd still brings enough duplicates for a fast
/// retransmit (RFC 3042).
// §2: the amount of outstanding data must stay at or below cwnd plus two segments.
const MOST_SEGMENTS: u32 = 2;

/// RFC 6298 section 4: one segment is timed at a time.
#[derive(Clone, Copy, Debug)]
struct Timed {
    sent_at: Nanos,
    /// No position of a stream is 0.
    end: NonZeroU64,
}

impl Counting {
    // RFC 6582 §3.2 step 1: recover is initially the initial send sequence number.
    pub fn new(initial: SeqNum) -> Self {
        Self { recover: initial, answered: initial, ..Self::default() }
    }

    /// cwnd in force: the controller's, changed by recovery, and never below one segment.
    #[inline]
    pub fn cwnd(&self, controller_bytes: u32, mss: u32) -> u32 {
        if self.inflated {
            let window = i64::from(controller_bytes) + i64::from(self.inflation);
            window.clamp(i64::from(mss), i64::from(u32::MAX)) as u32
        } else {
            controller_bytes
        }
    }

    /// The state in the terms of `tcpi_ca_state`: 0 open, 1 duplicate ACKs, 3 fast recovery, 4 retransmitting the data
    /// that was outstanding at a timeout (or, with Tahoe, at a fast retransmit).
    pub fn state(&self, una: SeqNum) -> u8 {
        if self.recovering {
            3
        } else if una < self.recover {
            4
        } else {
            u8::from(self.duplicate_acks > 0)
        }
    }

    /// Data is outstanding that was so at a loss, a CE mark or a timeout.
    pub fn is_recovering(&self, una: SeqNum) -> bool {
        self.state(una) > 1 || una < self.answered
    }

    /// Times segments sent for the first time, one after the other.
    // RFC 6298 §3: Karn's algorithm, no sample from a segment sent twice; nor, as in BSD, from a segment that waits
    // behind one sent twice.
    #[inline]
    pub fn time_segment(&mut self, now: Nanos, start: SeqNum, end: SeqNum, retransmission: bool) {
        match self.timed {
            None if !retransmission => self.timed = NonZeroU64::new(end).map(|end| Timed { sent_at: now, end }),
            Some(timed) if retransmission && start < timed.end.get() => self.timed = None,
            _ => {}
        }
    }

    #[inline]
    pub fn measure(&mut self, now: Nanos, ack: &Ack<'_>, summary: &mut AckSummary) {
        let timed = self.timed.filter(|timed| ack.ack > ack.prior_una && ack.ack >= timed.end.get());
        if let Some(timed) = timed {
            self.timed = None;
            summary.rtt = Some(now - timed.sent_at);
            summary.sample = RttSample::Timed { sent_at: timed.sent_at };
        }
        // ns-2's BayFullTcp, newack().
        if let Some(sent_at) = ack.one_way_sent_at.filter(|_| ack.ack > ack.prior_una) {
            summary.sample = RttSample::OneWay { sent_at, ends_backoff: timed.is_some() };
        }
    }

    #[inline]
    pub fn on_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &AckSummary, facts: &mut Facts) {
        let was_recovering = self.recovering;
        facts.rtt = summary.rtt;
        facts.advanced = ack.ack > ack.prior_una;
        if ack.echoes_congestion {
            self.on_mark(flight, ack, facts);
        }
        if facts.advanced {
            self.on_new_ack(flight, ack, facts);
        } else if ack.duplicate {
            self.on_duplicate_ack(flight, facts);
        }
        facts.fast_recovery = FastRecovery::new(was_recovering, self.recovering);
    }

    #[inline]
    fn on_new_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) {
        self.duplicate_acks = 0;
        self.advance = ack.data_bytes;
        if self.inflated && !self.recovering {
            self.leave();
        }
        // RFC 6298 §5.2 and §5.3: stop the timer when all is acknowledged, restart it when new data is.
        facts.timer = if flight.snd.una == flight.snd.nxt { SetTimer::Stop } else { SetTimer::Rto };
        if self.recovering {
            self.on_ack_in_recovery(flight, ack, facts);
        } else {
            facts.delivered = ack.data_bytes;
            facts.rule = CwndRule::Grow;
        }
    }

    #[cold]
    fn on_ack_in_recovery(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) {
        let RecoveryAlgorithm::NewReno(rules) = flight.profile.recovery else {
            // RFC 5681 §3.2 step 6: set cwnd to ssthresh ("deflate" the window). ns-2's BayFullTcp: the outstanding
            // data and two segments, if cwnd is inflated beyond ssthresh.
            let plus_two = RecoveryAlgorithm::Reno(RenoRules { exit: RecoveryExit::FlightPlusTwo });
            if flight.profile.recovery == plus_two && self.inflation > 0 {
                facts.next_cwnd = NextCwnd::Bytes((flight.snd.flight().div_ceil(flight.mss) + 2) * flight.mss);
            }
            facts.edges.insert(Edges::LEFT);
            return self.leave();
        };
        if flight.snd.una >= self.recover {
            // RFC 6582 §3.2 step 3, full acknowledgment, option (1): cwnd = min (ssthresh, max (FlightSize, SMSS) +
            // SMSS), which avoids a burst.
            facts.next_cwnd = NextCwnd::SsthreshUpTo(flight.snd.flight().max(flight.mss) + flight.mss);
            facts.edges.insert(Edges::LEFT);
            return self.leave();
        }
        // RFC 6582 §3.2 step 3, partial acknowledgment: deflate cwnd by the amount of new data acknowledged; if that is
        // at least one SMSS, add back SMSS bytes. Reset the timer for the first partial ACK only.
        self.inflation = self.inflation.saturating_sub_unsigned(ack.data_bytes);
        if ack.data_bytes >= flight.mss {
            self.inflation = self.inflation.saturating_add_unsigned(flight.mss);
        }
        // RFC 6582 §4: the impatient variant; the slow but steady one resets it for each.
        if self.partial_seen && !rules.slow_but_steady && facts.timer == SetTimer::Rto {
            facts.timer = SetTimer::Keep;
        }
        self.partial_seen = true;
        retransmit_first(flight, facts);
    }

    #[cold]
    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        self.duplicate_acks += 1;
        if self.recovering {
            // RFC 5681 §3.2 step 4: for each additional duplicate ACK, cwnd MUST be incremented by SMSS.
            self.inflation = self.inflation.saturating_add_unsigned(flight.mss);
            facts.delivered = flight.mss;
            return;
        }
        // RFC 6582 §3.2 step 2: enter only if the cumulative acknowledgment covers more than recover. A retransmission
        // timeout sets it for all; NewReno and Tahoe set it themselves as well.
        if flight.snd.una <= self.recover && !self.heuristic_says_lost(flight) {
            return;
        }
        let profile = flight.profile;
        let segments = flight.data_bytes().div_ceil(flight.mss);
        let ordinary = profile.duplicate_ack_threshold;
        let threshold = loss_threshold(profile.early_retransmit, segments, flight.has_new_data(), ordinary);
        if self.duplicate_acks != threshold {
            if self.duplicate_acks < threshold && profile.limited_transmit {
                if self.duplicate_acks == 1 {
                    self.limited_from = NonZeroU64::new(flight.snd.max);
                }
                self.inflation = (self.duplicate_acks.min(MOST_SEGMENTS) * flight.mss) as i32;
                self.inflated = true;
            }
            return;
        }
        facts.early = self.duplicate_acks < ordinary;
        match profile.recovery {
            RecoveryAlgorithm::Tahoe => {
                // Jacobson 1988; ns-2's Agent/TCP: half of cwnd into ssthresh, one segment into cwnd, sending resumes at
                // the hole. As in ns-2 (`bugFix_`), duplicates of data sent before the last such event do not start
                // another.
                self.recover = flight.snd.max;
                facts.flight = flight.snd.flight();
                facts.edges.insert(Edges::RESTARTED);
                facts.go_back = true;
            }
            // RFC 5681 §3.2 asks no more than three duplicates, so several losses in one window halve cwnd several times;
            // only duplicates that follow a retransmission timeout are held back (RFC 6582 §3.2 step 4; ns-2's
            // `bugFix_`).
            RecoveryAlgorithm::Reno(_) => self.enter(flight, facts),
            RecoveryAlgorithm::NewReno(_) | RecoveryAlgorithm::Scoreboard(_) => {
                // RFC 6582 §3.2 step 2.
                self.recover = flight.snd.max;
                self.enter(flight, facts);
            }
        }
        // BSD, Linux and ns-2 restart the timer with a fast retransmit, RFC 6298 leaves it running; with a short RTO
        // a timer that kept running would expire before the retransmission can be acknowledged.
        facts.timer = SetTimer::Rto;
    }

    /// True if duplicates of something that the timer retransmitted mean a loss all the same.
    // RFC 6582 §4.1: if cwnd is greater than SMSS and the difference between highest_ack and prev_highest_ack is at most
    // 4*SMSS, duplicate ACKs indicate a lost segment; else they likely come from spurious retransmissions.
    fn heuristic_says_lost(&self, flight: &Flight<'_>) -> bool {
        matches!(flight.profile.recovery, RecoveryAlgorithm::NewReno(rules) if rules.ack_heuristic)
            && flight.cwnd > flight.mss
            && self.advance <= 4 * flight.mss
    }

    /// The peer echoes a CE mark.
    // RFC 3168 §6.1.2: the TCP source SHOULD NOT react to congestion indications more than once every window of data, be
    // they marks or losses.
    #[cold]
    fn on_mark(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) {
        if !self.recovering && ack.prior_una >= self.answered && ack.prior_flight > 0 {
            self.answered = flight.snd.max;
            facts.flight = ack.prior_flight;
            facts.edges.insert(Edges::REDUCED);
        }
    }

    /// The retransmission timer expired.
    // RFC 6582 §3.2 step 4 ("retransmit timeouts"): record the highest sequence number transmitted in recover, and
    // exit fast recovery. It keeps duplicates of retransmitted segments from passing for a new loss, so all use it.
    // Go back N: everything outstanding is retransmitted as cwnd allows; the cumulative acknowledgment skips the
    // data that the peer already holds.
    pub fn on_timeout(&mut self, flight: &Flight<'_>) -> Facts {
        self.recover = flight.snd.max;
        self.answered = flight.snd.max;
        self.duplicate_acks = 0;
        self.leave();
        let mut facts = Facts { first: flight.retries == 0, go_back: true, ..Facts::default() };
        facts.flight = flight.snd.flight();
        facts.edges.insert(Edges::TIMED_OUT);
        facts
    }

    // RFC 5681 §3.2 steps 2 and 3: ssthresh = max (FlightSize/2, 2*SMSS); cwnd = ssthresh plus 3*SMSS, which stands
    // for the segments that have left the network and are buffered at the receiver.
    fn enter(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        // Without the bytes that limited transmit sent, says step 2.
        let limited = self.limited_from.map_or(0, |from| (flight.snd.max - from.get()) as u32);
        facts.flight = flight.snd.flight().saturating_sub(limited);
        facts.edges.insert(Edges::ENTERED);
        self.answered = flight.snd.max;
        self.inflation = 0i32.saturating_add_unsigned(self.duplicate_acks.saturating_mul(flight.mss));
        self.recovering = true;
        self.inflated = true;
        self.partial_seen = false;
        retransmit_first(flight, facts);
    }

    fn leave(&mut self) {
        self.recovering = false;
        self.inflated = false;
        self.inflation = 0;
        self.limited_from = None;
    }
}

/// The first unacknowledged segment is lost.
fn retransmit_first(flight: &Flight<'_>, facts: &mut Facts) {
    facts.lost = (flight.snd.max - flight.snd.una).min(u64::from(flight.mss)) as u32;
    facts.retransmit = true;
}
