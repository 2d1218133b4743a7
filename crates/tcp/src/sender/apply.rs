//! The consequences of recovery's findings.

use crate::Nanos;
use crate::amounts::Bytes;
use crate::connection::{Endpoint, due, feature};
use crate::sender::congestion::{Acknowledged, RoundTrip, Start};
use crate::sender::recovery::{CwndRule, Edges, Facts, NextCwnd, Recovery, RttSample};
use std::num::NonZeroU16;

/// The sender as recovery sees it: borrows the profile and the RTT estimator alone, so that recovery can be asked.
macro_rules! flight {
    ($endpoint:ident, $now:ident) => {{
        let has_new_data = $endpoint.has_new_data();
        $crate::sender::recovery::Flight {
            now: $now,
            una: $endpoint.snd.una,
            nxt: $endpoint.snd.nxt,
            highest: $endpoint.snd.max,
            data_end: $endpoint.snd.data_end,
            mss: $endpoint.mss,
            cwnd: $endpoint.controller.window(),
            has_new_data,
            retries: $endpoint.timers.retries,
            retransmissions: $endpoint.stats.retransmissions,
            profile: &$endpoint.profile,
            rtt: &$endpoint.rtt,
        }
    }};
}
pub(crate) use flight;

impl Endpoint {
    /// Takes in a sample of the RTT estimator.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, now: Nanos, sample: RttSample) {
        let rules = &self.profile.rto;
        match sample {
            RttSample::None => {}
            RttSample::Timed { sent_at } => self.rtt.sample(rules, sent_at, now),
            RttSample::Each { rtt } => self.rtt.sample_duration(rules, rtt, self.snd.una, self.snd.nxt),
            RttSample::OneWay { sent_at, ends_backoff: true } => self.rtt.sample(rules, sent_at, now),
            RttSample::OneWay { sent_at, ends_backoff: false } => {
                self.rtt.sample_keeping_backoff(rules, sent_at, now);
            }
        }
    }

    /// Draws all consequences of an ACK or a timeout, in this order:
    ///
    /// 1. RTT: the controller and the start-up scheme get the sample. (The estimator took it before, because loss
    ///    detection depends on it.)
    /// 2. Validation: cwnd may have been used up to here.
    /// 3. Congestion control: the edges, each in the order of [`Edges`]; then cwnd is reduced, or grows by the start-up
    ///    scheme's or the controller's law if validation allows it, or follows the delivery rate.
    /// 4. Start-up: the effect of the edges on the scheme, which may replace cwnd and ssthresh.
    /// 5. What is rare: ECN (a smaller cwnd is signaled to the peer by CWR), statistics, retransmissions, the back-off.
    /// 6. The timer.
    #[inline(always)]
    pub(crate) fn apply(&mut self, now: Nanos, facts: &Facts) {
        if let Some(rtt) = facts.rtt {
            self.on_rtt(now, rtt);
        }
        self.validate_acknowledged(now, facts);
        if facts.edges != Edges::NONE {
            self.apply_edges(now, facts);
        }
        match (&facts.delivery, facts.rule) {
            (Some(delivery), _) => self.controller.on_delivery(now, delivery),
            (None, CwndRule::Grow) => self.grow(now, facts.delivered),
            (None, CwndRule::Reduce { segments }) => self.reduce(facts, segments),
            (None, CwndRule::Keep) => {}
        }
        self.apply_to_startup(now, facts);
        if facts.edges != Edges::NONE || facts.retransmit {
            self.apply_rest(now, facts);
        }
        self.set_timer(now, facts.timer);
    }

    /// The handshake is complete: data may be sent. `rtt_sample`: of the handshake; `lost`: SYNs retransmitted.
    #[cold]
    pub(crate) fn begin_sending(&mut self, now: Nanos, rtt_sample: Option<Nanos>, lost: u32) {
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

    /// Step 1.
    #[inline]
    fn on_rtt(&mut self, now: Nanos, rtt: Nanos) {
        let sample = RoundTrip { rtt, una: self.snd.una, nxt: self.snd.nxt };
        self.controller.on_round_trip(now, &sample);
        self.tell_startup_rtt(now, rtt);
    }

    /// Step 3, the edges.
    #[cold]
    fn apply_edges(&mut self, now: Nanos, facts: &Facts) {
        let edges = facts.edges;
        if facts.marked {
            self.forbid_cwnd_restore();
        }
        if edges.has(Edges::TAIL_LOSS) {
            self.begin_reduction(now, facts);
            self.set_next_cwnd(NextCwnd::Ssthresh);
        }
        if edges.has(Edges::LEFT) {
            self.set_next_cwnd(facts.next_cwnd);
        }
        if edges.has(Edges::UNDONE) {
            self.undo(now);
        }
        if edges.has(Edges::ENTERED) {
            if facts.reducing {
                self.forbid_cwnd_restore();
            } else {
                self.save_cwnd(false);
                if facts.marked {
                    self.forbid_cwnd_restore();
                }
                self.begin_reduction(now, facts);
            }
        }
        if edges.has(Edges::REDUCED) {
            self.begin_reduction(now, facts);
        }
        if edges.has(Edges::RESTARTED) {
            self.controller.on_timeout(now, self.congestion_base(facts), true);
        }
        if edges.has(Edges::TIMED_OUT) {
            if facts.first {
                self.save_cwnd(facts.reducing);
            }
            self.controller.on_timeout(now, self.congestion_base(facts), facts.first);
            self.set_next_cwnd(facts.next_cwnd);
        }
    }

    /// Congestion: the controller sets a new ssthresh, towards which cwnd moves immediately or gradually.
    fn begin_reduction(&mut self, now: Nanos, facts: &Facts) {
        self.settle_startup(now);
        let cwnd = self.controller.window();
        self.controller.on_congestion(now, self.congestion_base(facts));
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.begin(cwnd / self.mss);
            if self.profile.recovery.scoreboard().prr && !self.controller.is_rate_based() {
                self.controller.set_window(cwnd);
            }
        }
    }

    /// The base of ssthresh on congestion, bytes.
    fn congestion_base(&self, facts: &Facts) -> u32 {
        self.profile.ssthresh.base.bytes(facts.flight, self.controller.window())
    }

    fn save_cwnd(&mut self, reducing: bool) {
        let (cwnd, ssthresh) = (self.controller.window(), self.controller.ssthresh());
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.save_cwnd(cwnd, ssthresh, reducing);
        }
    }

    fn forbid_cwnd_restore(&mut self) {
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.forbid_cwnd_restore();
        }
    }

    /// The latest congestion was none.
    fn undo(&mut self, now: Nanos) {
        if let Some((cwnd, ssthresh)) = self.recovery.scoreboard().and_then(|scoreboard| scoreboard.reduction.prior()) {
            self.controller.on_undo(now, cwnd, ssthresh);
        }
    }

    fn set_next_cwnd(&mut self, next: NextCwnd) {
        if self.controller.is_rate_based() {
            return;
        }
        let bytes = match next {
            NextCwnd::Unchanged => None,
            NextCwnd::Bytes(bytes) => Some(bytes),
            NextCwnd::Ssthresh => self.ssthresh_bytes(),
            NextCwnd::SsthreshUpTo(most) => Some(self.controller.ssthresh().min(most)),
        };
        if let Some(bytes) = bytes {
            self.controller.set_window(bytes);
        }
    }

    /// Step 3: proportional rate reduction.
    fn reduce(&mut self, facts: &Facts, segments: u32) {
        let ssthresh = self.controller.ssthresh() / self.mss;
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            if self.profile.recovery.scoreboard().prr {
                let (in_flight, safe) = (scoreboard.in_flight(), facts.advanced && facts.lost == 0);
                if let Some(cwnd) = scoreboard.reduction.cwnd(ssthresh, in_flight, segments, safe) {
                    self.controller.set_window(cwnd.saturating_mul(self.mss));
                }
            }
        }
    }

    /// Step 3: growth by the delivered data, if validation allows it.
    #[inline]
    fn grow(&mut self, now: Nanos, bytes: u32) {
        let allowed = self.cwnd_may_grow();
        if !self.grow_by_startup(now, bytes, allowed) && allowed {
            self.controller.on_ack(now, Acknowledged { bytes: Bytes(bytes) });
        }
    }

    /// Step 5, as far as anything out of the ordinary happened.
    #[cold]
    fn apply_rest(&mut self, now: Nanos, facts: &Facts) {
        let edges = facts.edges;
        if edges.has(Edges::TIMED_OUT) {
            if let Some(validation) = self.extras.validation_mut() {
                validation.begin_period(now);
            }
        }
        if self.features & feature::ECN != 0 {
            self.apply_to_ecn(facts);
        }
        let stats = &mut self.stats;
        stats.timeouts += u32::from(edges.has(Edges::TIMED_OUT));
        stats.fast_retransmits += u32::from(edges.has(Edges::ENTERED) || edges.has(Edges::RESTARTED));
        stats.early_retransmits += u32::from(facts.early);
        stats.ecn_cwnd_reductions += u32::from(edges.has(Edges::REDUCED));
        stats.spurious_recoveries_undone += u32::from(edges.has(Edges::UNDONE));
        // A closed window is probed when the timer expires.
        if facts.retransmit && self.peer_window.bytes > 0 {
            self.due |= due::RETRANSMIT;
        }
        if facts.go_back {
            self.snd.nxt = self.snd.una;
        }
        let rules = &self.profile.rto;
        if edges.has(Edges::UNDONE) && facts.undone_timeout {
            self.timers.retries = 0;
        }
        if edges.has(Edges::TIMED_OUT) {
            self.rtt.back_off(rules);
            self.timers.retries += 1;
        } else if facts.retransmit && edges.has(Edges::ENTERED) && rules.backoff_at_fast_retransmit {
            self.rtt.back_off(rules);
        }
    }

    /// Step 5: ECN.
    // RFC 3168 §6.1.2: CWR signals to the peer that cwnd was reduced, unless that was undone.
    fn apply_to_ecn(&mut self, facts: &Facts) {
        let edges = facts.edges;
        if edges.has(Edges::TAIL_LOSS) {
            self.ecn.queue_cwr();
        }
        if edges.has(Edges::UNDONE) && self.recovery.scoreboard().is_some_and(|own| own.reduction.prior().is_some()) {
            self.ecn.withdraw_cwr();
        }
        let reduced = edges.has(Edges::REDUCED) || edges.has(Edges::RESTARTED) || edges.has(Edges::TIMED_OUT);
        if reduced || edges.has(Edges::ENTERED) && !facts.reducing {
            self.ecn.queue_cwr();
        }
    }
}
