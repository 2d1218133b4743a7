//! An ACK arrives, from top to bottom: the acknowledged data and the peer's window; recovery's findings; and their
//! consequences in one order, which a timeout shares.

use crate::Nanos;
use crate::amounts::{Bytes, LARGEST_WINDOW};
use crate::connection::handshake::feature;
use crate::connection::shared::{Connection, Events, due};
use crate::profile::IdleCheck;
use crate::segment::{Flags, Segment, SentAt};
use crate::sender::Sender;
use crate::sender::congestion::{Acknowledged, RoundTrip};
use crate::sender::recovery::{Ack, AckSummary, CwndRule, Edges, Facts, Flight, NextCwnd, Recovery, RttSample};
use crate::sequence::{SeqNum, near};

/// What an acknowledgment field acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Something that was never sent: the segment is to be dropped.
    Refused,
    Taken,
    /// All of our stream and our FIN.
    OfFin,
}

impl Sender {
    /// Processes the acknowledgment field of a segment at `seq`, where the receiver waits for `expected`; `echo_age`: the time
    /// since we sent what it acknowledges, by its timestamp.
    #[inline]
    pub(crate) fn on_acknowledgement(
        &mut self,
        conn: &mut Connection,
        now: Nanos,
        (seq, expected): (SeqNum, SeqNum),
        segment: &Segment,
        echo_age: impl Fn(&Connection) -> Option<Nanos>,
    ) -> Answer {
        let ack = near(self.snd.una, segment.ack);
        let prior_una = self.snd.una;
        // RFC 9293 §3.10.7.4: if the ACK acks something not yet sent, send an ACK and drop the segment. RFC 5961 §5.2: also
        // if it lies below SND.UNA by more than the largest window.
        if ack > self.snd.max || ack + u64::from(self.peer_window.largest_bytes) < prior_una {
            return Answer::Refused;
        }
        let prior_flight = self.snd.flight();
        let advanced = ack > prior_una;
        let window = u32::from(segment.window) << conn.handshake.scaling().snd_shift;
        // RFC 5681 §2: a duplicate acknowledgment: data outstanding, no payload, no SYN or FIN, the greatest
        // acknowledgment received, and the window as it was.
        let bare = ack == prior_una && self.snd.max > prior_una && segment.sequence_length() == 0;
        // The answers to probes of a closed window are none.
        let duplicate = bare && window == self.peer_window.bytes && seq >= expected && !self.timers.persisting;
        if advanced {
            self.snd.una = ack;
            // After a timeout, segments that the peer already holds need not be retransmitted.
            self.snd.nxt = self.snd.nxt.max(ack);
            self.timers.retries = 0;
            conn.due &= !due::RETRANSMIT;
            if self.bursts.is_unacknowledged() {
                self.bursts.end(self.snd.initial(), self.snd.max);
            }
        } else if self.timers.persisting || self.peer_window.bytes == 0 {
            // RFC 9293 §3.8.6.1: a closed window is no reason to give up as long as the peer acknowledges. Linux counts no
            // retransmissions that probe one (tcp_retransmit_timer).
            self.timers.retries = 0;
        }
        // Linux, FLAG_WIN_UPDATE: neither a closed window nor a later sequence number makes a duplicate.
        let updates = !advanced && conn.profile.ignore_shrinking_duplicates && self.snd.may_update_window(seq, window);
        let window_changed = ack >= prior_una && self.update_peer_window(conn, seq, ack, window, advanced);
        if !advanced && prior_flight == 0 && self.recovery.scoreboard().is_some() {
            self.on_ack_of_nothing(conn, now, window_changed);
        }
        let marked = conn.handshake.has(feature::ECN) && segment.flags.contains(Flags::ECE);
        if !advanced && !marked && self.says_nothing_new(duplicate, segment) {
            return Answer::Taken;
        }
        let one_way = conn.handshake.has(feature::ACK_ONE_WAY);
        let arrived = Ack {
            ack,
            prior_una,
            prior_flight,
            data_bytes: self.snd.data_between(prior_una, ack),
            duplicate,
            carries_news: window_changed || updates || segment.sequence_length() > 0,
            sack: &segment.sack,
            echo_age: echo_age(conn),
            one_way_sent_at: segment.sent_at.filter(|_| one_way).map(SentAt::nanos),
            echoes_congestion: marked,
        };
        // Without a scoreboard a duplicate is one by RFC 5681, with one it is as in Linux.
        let counted = if self.recovery.scoreboard().is_some() { bare && !arrived.carries_news } else { duplicate };
        conn.stats.duplicate_acks += u32::from(counted);
        self.recover(conn, now, &arrived);
        self.note_acknowledged(conn, now, prior_una, ack)
    }

    /// An ACK arrives while nothing is outstanding, of a peer whose window may be too small for what waits.
    // Linux, tcp_ack_update_window: a window that changes while data waits ends idleness; and tcp_ack_probe: an ACK puts
    // off the next probe of a window that is too small.
    fn on_ack_of_nothing(&mut self, conn: &mut Connection, now: Nanos, window_changed: bool) {
        if window_changed && self.snd.unsent() > 0 && conn.profile.idle_check == IdleCheck::OnWrite {
            self.restart_after_idleness(conn, now);
        }
        if self.timers.persisting {
            self.set_retransmit_timer(conn, now, self.persist_interval(conn));
        }
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
    fn update_peer_window(&mut self, conn: &Connection, seq: SeqNum, ack: SeqNum, window: u32, advanced: bool) -> bool {
        let shrinks = window < self.peer_window.bytes && window > 0;
        let old_keeps = shrinks && !advanced && conn.profile.ignore_shrinking_duplicates;
        let changed = self.snd.takes_window(seq, ack, old_keeps) && window != self.peer_window.bytes;
        if changed {
            self.peer_window.set(window, self.max_send_window(conn));
        }
        changed
    }

    /// The profile's bound on the send window, bytes.
    pub(crate) fn max_send_window(&self, conn: &Connection) -> u32 {
        conn.profile.max_send_window_segments.map_or(LARGEST_WINDOW, |n| n.saturating_mul(conn.handshake.mss()))
    }

    /// Events that follow from the cumulative acknowledgment.
    #[inline]
    fn note_acknowledged(&mut self, conn: &mut Connection, now: Nanos, before: SeqNum, ack: SeqNum) -> Answer {
        if ack >= self.snd.data_end && ack > before {
            self.write_more(conn, now);
            if before < self.snd.data_end && ack >= self.snd.data_end {
                conn.events |= Events::SENT;
            }
            if ack > self.snd.data_end {
                return Answer::OfFin;
            }
        }
        Answer::Taken
    }

    /// Asks recovery what an ACK means and draws the consequences.
    #[inline]
    fn recover(&mut self, conn: &mut Connection, now: Nanos, ack: &Ack<'_>) {
        // What it delivers. The estimator takes the sample before losses are looked for, since RACK's reordering window
        // follows from it.
        let mut summary = AckSummary::default();
        let (recovery, flight) = self.recovery_at(conn, now);
        recovery.measure(&flight, ack, &mut summary);
        self.sample_rtt(conn, now, summary.sample);
        // What it means for the data in flight: losses, and the ends of recoveries.
        let mut facts = Facts::default();
        let (recovery, flight) = self.recovery_at(conn, now);
        recovery.on_ack(&flight, ack, &mut summary, &mut facts);
        self.apply(conn, now, &facts);
    }

    /// Recovery, and the sender as it sees it.
    #[inline]
    pub(super) fn recovery_at<'a>(&'a mut self, conn: &'a Connection, now: Nanos) -> (&'a mut Recovery, Flight<'a>) {
        let flight = Flight {
            now,
            snd: &self.snd,
            peer_window: &self.peer_window,
            mss: conn.handshake.mss(),
            cwnd: self.controller.cwnd(),
            retries: self.timers.retries,
            retransmissions: conn.stats.retransmissions,
            profile: &conn.profile,
            rtt: &self.rtt,
        };
        (&mut self.recovery, flight)
    }

    /// Takes in a sample of the RTT estimator.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, conn: &Connection, now: Nanos, sample: RttSample) {
        let rules = &conn.profile.rto;
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
    /// 1. RTT: the controller and the start-up scheme get the sample that the estimator has taken.
    /// 2. Validation: cwnd may have been used up to here.
    /// 3. Congestion control: the edges, each in the order of [`Edges`]; then cwnd is reduced, or grows by the start-up
    ///    scheme's or the controller's algorithm if validation allows it, or follows the delivery rate.
    /// 4. Start-up: the effect of the edges on the scheme, which may replace cwnd and ssthresh.
    /// 5. What is rare: ECN (a smaller cwnd is signaled to the peer by CWR), statistics, retransmissions, the back-off.
    /// 6. The timer.
    /// 7. The events are published, if anybody listens.
    #[inline(always)]
    pub(crate) fn apply(&mut self, conn: &mut Connection, now: Nanos, facts: &Facts) {
        if let Some(rtt) = facts.rtt {
            self.on_rtt(conn, now, rtt);
        }
        self.validate_acknowledged(now, facts);
        if !facts.edges.is_empty() {
            self.apply_edges(conn, now, facts);
        }
        match (&facts.delivery, facts.rule) {
            (Some(delivery), _) => self.controller.on_delivery(now, delivery),
            (None, CwndRule::Grow) => self.grow(conn, now, facts.delivered),
            (None, CwndRule::Reduce { segments }) => self.reduce(conn, facts, segments),
            (None, CwndRule::Keep) => {}
        }
        self.apply_to_startup(conn, now, facts);
        if !facts.edges.is_empty() || facts.retransmit {
            self.apply_rest(conn, now, facts);
        }
        self.set_timer(conn, now, facts.timer);
        if conn.handshake.has(feature::LISTENER) {
            self.publish_consequences(conn, now, facts);
        }
    }

    /// Step 1.
    #[inline]
    fn on_rtt(&mut self, conn: &Connection, now: Nanos, rtt: Nanos) {
        let sample = RoundTrip { rtt, una: self.snd.una, nxt: self.snd.nxt };
        self.controller.on_round_trip(now, &sample);
        self.tell_startup_rtt(conn, now, rtt);
    }

    /// Step 3, the edges.
    #[cold]
    fn apply_edges(&mut self, conn: &Connection, now: Nanos, facts: &Facts) {
        let edges = facts.edges;
        if facts.marked {
            self.forbid_cwnd_restore();
        }
        if edges.intersects(Edges::TAIL_LOSS) {
            self.begin_reduction(conn, now, facts);
            self.set_next_cwnd(NextCwnd::Ssthresh);
        }
        if edges.intersects(Edges::LEFT) {
            self.set_next_cwnd(facts.next_cwnd);
        }
        if edges.intersects(Edges::UNDONE) {
            self.undo(now);
        }
        if edges.intersects(Edges::ENTERED) {
            if facts.reducing {
                self.forbid_cwnd_restore();
            } else {
                self.save_cwnd(false);
                if facts.marked {
                    self.forbid_cwnd_restore();
                }
                self.begin_reduction(conn, now, facts);
            }
        }
        if edges.intersects(Edges::REDUCED) {
            self.begin_reduction(conn, now, facts);
        }
        if edges.intersects(Edges::RESTARTED) {
            self.controller.on_timeout(now, self.congestion_base(conn, facts), true);
        }
        if edges.intersects(Edges::TIMED_OUT) {
            if facts.first {
                self.save_cwnd(facts.reducing);
            }
            self.controller.on_timeout(now, self.congestion_base(conn, facts), facts.first);
            self.set_next_cwnd(facts.next_cwnd);
        }
    }

    /// Congestion: the controller sets a new ssthresh, towards which cwnd moves immediately or gradually.
    fn begin_reduction(&mut self, conn: &Connection, now: Nanos, facts: &Facts) {
        self.settle_startup(conn, now);
        let cwnd = self.controller.cwnd();
        self.controller.on_congestion(now, self.congestion_base(conn, facts));
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.begin(cwnd / conn.handshake.mss());
            if conn.profile.recovery.scoreboard().prr && !self.controller.is_rate_based() {
                self.controller.set_cwnd(cwnd);
            }
        }
    }

    /// The base of ssthresh on congestion, bytes.
    fn congestion_base(&self, conn: &Connection, facts: &Facts) -> u32 {
        conn.profile.ssthresh.base.bytes(facts.flight, self.controller.cwnd())
    }

    fn save_cwnd(&mut self, reducing: bool) {
        let (cwnd, ssthresh) = (self.controller.cwnd(), self.controller.current_ssthresh(reducing));
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.save_cwnd(cwnd, ssthresh);
        }
    }

    fn forbid_cwnd_restore(&mut self) {
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            scoreboard.reduction.forbid_cwnd_restore();
        }
    }

    /// The latest reduction was spurious: restores cwnd and ssthresh.
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
            NextCwnd::Ssthresh => self.controller.known_ssthresh(),
            NextCwnd::SsthreshUpTo(most) => Some(self.controller.ssthresh().min(most)),
        };
        if let Some(bytes) = bytes {
            self.controller.set_cwnd(bytes);
        }
    }

    /// Step 3: proportional rate reduction.
    fn reduce(&mut self, conn: &Connection, facts: &Facts, segments: u32) {
        let ssthresh = self.controller.ssthresh() / conn.handshake.mss();
        if let Some(scoreboard) = self.recovery.scoreboard_mut() {
            if conn.profile.recovery.scoreboard().prr {
                let (in_flight, safe) = (scoreboard.in_flight(), facts.advanced && facts.lost == 0);
                if let Some(cwnd) = scoreboard.reduction.cwnd(ssthresh, in_flight, segments, safe) {
                    self.controller.set_cwnd(cwnd.saturating_mul(conn.handshake.mss()));
                }
            }
        }
    }

    /// Step 3: growth by the delivered data, if validation allows it.
    #[inline]
    fn grow(&mut self, conn: &Connection, now: Nanos, bytes: u32) {
        let allowed = self.cwnd_may_grow(conn);
        if !self.grow_by_startup(conn, now, bytes, allowed) && allowed {
            self.controller.on_ack(now, Acknowledged { bytes: Bytes(bytes) });
        }
    }

    /// Step 5, as far as anything out of the ordinary happened.
    #[cold]
    fn apply_rest(&mut self, conn: &mut Connection, now: Nanos, facts: &Facts) {
        let edges = facts.edges;
        if edges.intersects(Edges::TIMED_OUT) {
            if let Some(validation) = self.extras.validation_mut() {
                validation.begin_period(now);
            }
        }
        if conn.handshake.has(feature::ECN) {
            self.apply_to_ecn(conn, facts);
        }
        let stats = &mut conn.stats;
        stats.timeouts += u32::from(edges.intersects(Edges::TIMED_OUT));
        stats.fast_retransmits += u32::from(edges.intersects(Edges::ENTERED | Edges::RESTARTED));
        stats.early_retransmits += u32::from(facts.early);
        stats.ecn_cwnd_reductions += u32::from(edges.intersects(Edges::REDUCED));
        stats.spurious_recoveries_undone += u32::from(edges.intersects(Edges::UNDONE));
        // A closed window is probed when the timer expires.
        if facts.retransmit && self.peer_window.bytes > 0 {
            conn.due |= due::RETRANSMIT;
        }
        if facts.go_back {
            self.snd.nxt = self.snd.una;
        }
        let rules = &conn.profile.rto;
        if edges.intersects(Edges::UNDONE) && facts.undone_timeout {
            self.timers.retries = 0;
        }
        if edges.intersects(Edges::TIMED_OUT) {
            self.rtt.back_off(rules);
            self.timers.retries += 1;
        } else if facts.retransmit && edges.intersects(Edges::ENTERED) && rules.backoff_at_fast_retransmit {
            self.rtt.back_off(rules);
        }
    }

    /// Step 5: ECN.
    // RFC 3168 §6.1.2: CWR signals to the peer that cwnd was reduced, unless that was undone.
    fn apply_to_ecn(&self, conn: &mut Connection, facts: &Facts) {
        let edges = facts.edges;
        if edges.intersects(Edges::TAIL_LOSS) {
            conn.ecn.queue_cwr();
        }
        if edges.intersects(Edges::UNDONE)
            && self.recovery.scoreboard().is_some_and(|own| own.reduction.prior().is_some())
        {
            conn.ecn.withdraw_cwr();
        }
        if edges.intersects(Edges::REDUCED | Edges::RESTARTED | Edges::TIMED_OUT)
            || edges.intersects(Edges::ENTERED) && !facts.reducing
        {
            conn.ecn.queue_cwr();
        }
    }
}
