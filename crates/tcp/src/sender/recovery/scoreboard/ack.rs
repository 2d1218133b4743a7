//! One ACK, from its SACK blocks to the facts that the sender acts on: what it delivers
//! ([`measure`](Scoreboard::measure)), then what that means ([`on_ack`](Scoreboard::on_ack)).
//!
//! To be read from top to bottom. What it asks other files is answered by a name: [`Board`](super::board::Board) marks
//! segments, [`Rack`](super::rack::Rack) compares send times, `state` holds what can show that a recovery
//! was spurious, and `undo` and `timeout` decide whether it was.

use super::board::NewlyLost;
use super::state::{CaState, FRto, Next, Timer};
use super::undo::answers_earlier;
use super::{Scoreboard, sack};
use crate::Nanos;
use crate::connection::timestamps;
use crate::sender::recovery::facts::{
    Ack, AckSummary, CwndRule, Edges, Facts, FastRecovery, Flight, NextCwnd, Part, RttSample, SetTimer,
};
use crate::sender::rtt::SendTimes;
use crate::sequence::SeqNum;

/// Shortest wait before SACKs are held to be void.
const RENEGING_DELAY: Nanos = 10_000_000;

impl Scoreboard {
    /// Records the data that an ACK delivers, in a summary that begins empty.
    pub fn measure(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary) {
        self.train.end();
        let old = ack.ack < ack.prior_una;
        summary.advanced = ack.ack > ack.prior_una;
        summary.echoes_congestion = ack.echoes_congestion && !old;
        summary.prior_in_flight = self.in_flight();
        let mut times = SendTimes::default();
        let has_sack = self.sack && !ack.sack.is_empty();
        if old && (!has_sack || self.board.is_empty()) {
            return;
        }
        let highest_sacked = self.board.highest_sacked();
        if has_sack {
            self.tag(flight, ack, summary, &mut times);
        }
        summary.duplicate = !(summary.advanced || ack.carries_news || summary.dsack || old);
        summary.part = if old {
            Part::Old
        } else if self.board.is_empty() {
            Part::NothingOutstanding
        } else {
            self.take_acknowledged(flight, ack, highest_sacked, summary, &mut times);
            Part::Whole
        };
        let echoed = ack.echo_age.filter(|_| summary.acknowledged).map(timestamps::round_trip);
        if let Some((rtt, latest)) = times.rtt(flight.now, !summary.retransmission_acknowledged, echoed) {
            self.shortest.sample(flight.now, latest);
            summary.sample = RttSample::Each { rtt };
            summary.rtt = Some(latest);
        }
        summary.prior_delivered = times.prior_delivered;
    }

    /// Marks the segments that an acknowledgment's SACK blocks cover.
    fn tag(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, times: &mut SendTimes) {
        let reported = sack::Reported::new(flight, ack);
        if let Some(block) = reported.duplicate {
            self.on_dsack(flight, ack, block, summary);
        }
        let highest_sacked = self.board.highest_sacked();
        let mut lowest_original = highest_sacked;
        // Marks go on in the order of the stream, so that of several segments the last one is RACK's newest.
        for &(left, right) in reported.blocks() {
            let (known_left, known_right) = self.history.known(left, right);
            for part in [(left, known_left), (known_right, right)] {
                self.tag_range(flight, (left, right), part, summary, times, &mut lowest_original);
            }
        }
        self.history.replace(&reported);
        let in_loss = self.state == CaState::Loss && !self.undo.is_armed();
        if lowest_original < highest_sacked && !in_loss {
            // Linux, tcp_check_sack_reordering: the distance is from the highest one so far.
            self.note_reordering(flight.mss, lowest_original, self.board.highest_sacked());
        }
    }

    /// Marks the segments that a SACK block, `(left, right)`, covers and that overlap its new part, `(from, to)`.
    fn tag_range(
        &mut self,
        flight: &Flight<'_>,
        (left, right): (SeqNum, SeqNum),
        (from, to): (SeqNum, SeqNum),
        summary: &mut AckSummary,
        times: &mut SendTimes,
        lowest_original: &mut SeqNum,
    ) {
        if from >= to {
            return;
        }
        let mut number = self.board.number_after(from);
        let last = self.board.numbers().end;
        while number < last {
            let sent = *self.board.get(number);
            // A segment counts as delivered only if all of it is.
            if sent.start >= to || sent.end() > right {
                break;
            }
            if sent.start >= left && !sent.is_sacked() {
                if !sent.was_retransmitted() {
                    // Delivered out of order without having been retransmitted.
                    *lowest_original = (*lowest_original).min(sent.start);
                    summary.original_delivered |= sent.end() <= self.high;
                    times.on_sacked(sent.sent_at);
                }
                times.on_delivered(sent.delivered);
                self.rack.advance(flight.now, self.shortest.get(), &sent);
                self.board.mark_sacked(number);
                if let Some(rate) = &mut self.rate {
                    rate.on_delivered(number, sent.end());
                }
                self.deliver(summary, 1);
                summary.sacked = true;
            }
            number += 1;
        }
    }

    /// The first block of an acknowledgment reports a duplicate.
    fn on_dsack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, block: (SeqNum, SeqNum), summary: &mut AckSummary) {
        let (left, right) = block;
        let length = (right - left) as u32;
        let duplicates = length.div_ceil(flight.mss);
        let of_probe = duplicates == 1 && self.probe.end == Some(right);
        self.history.duplicates += duplicates;
        // More than we ever retransmitted: the network duplicates, which shows nothing about our retransmissions.
        if self.history.duplicates > flight.retransmissions {
            return;
        }
        if self.reordering_seen > 0 && !of_probe {
            self.rack.on_dsack();
        }
        summary.dsack = true;
        summary.dsack_of_probe |= of_probe;
        self.deliver(summary, duplicates);
        if right <= ack.prior_una {
            self.undo.on_dsack(right, duplicates);
        } else {
            let mut number = self.board.number_after(left);
            while number < self.board.numbers().end && self.board.get(number).end() <= right {
                if self.board.get(number).was_retransmitted() {
                    self.undo.on_dsack(right, 1);
                }
                self.board.end_retransmission(number);
                number += 1;
            }
        }
    }

    /// A segment from `lowest` on was delivered after one that ends at `highest`: the network reorders.
    pub(super) fn note_reordering(&mut self, mss: u32, lowest: SeqNum, highest: SeqNum) {
        let distance = (highest - lowest) as u32;
        if distance > self.reordering.saturating_mul(mss) {
            self.reordering = distance.div_ceil(mss).min(sack::MOST_REORDERING);
        }
        self.reordering_seen += 1;
    }

    /// Removes cumulatively acknowledged segments.
    fn take_acknowledged(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        highest_sacked: SeqNum,
        summary: &mut AckSummary,
        times: &mut SendTimes,
    ) {
        let mut taken = 0;
        // A segment with an sk_buff of its own that was acknowledged in part begins below: Linux takes the rest of it for
        // a hole that was filled.
        let highest_delivered = highest_sacked.max(ack.prior_una);
        let mut lowest_original = highest_delivered;
        let mut before = None;
        while let Some(sent) = self
            .board
            .pop_acknowledged(ack.ack)
            .or_else(|| self.board.trim_acknowledged(flight.snd.una, flight.mss, flight.snd.data_end, before.as_ref()))
        {
            taken += 1;
            before = Some(sent);
            if sent.was_retransmitted() {
                summary.retransmission_acknowledged = true;
            } else if !sent.is_sacked() {
                times.on_acknowledged(sent.sent_at);
                lowest_original = lowest_original.min(sent.start);
                summary.original_delivered |= sent.end() <= self.high;
            }
            if !sent.is_sacked() {
                times.on_delivered(sent.delivered);
            }
            if let Some(rate) = &mut self.rate {
                rate.on_delivered(self.board.numbers().start - 1, sent.end());
                rate.pop();
            }
            if !sent.is_sacked() && self.sack {
                self.deliver(summary, 1);
                // RFC 8985 §6.2 step 2: an acknowledgment that answers a timestamp from before the retransmission is for
                // the original. Not so of SACKs, as in Linux: they echo the timestamp of the last segment in order.
                let is_spurious = sent.was_retransmitted()
                    && ack.echo_age.is_some_and(|age| answers_earlier(flight.now, age, sent.sent_at));
                if !is_spurious {
                    self.rack.advance(flight.now, self.shortest.get(), &sent);
                }
            }
        }
        if taken == 0 {
            // A retransmitted head whose follower was sacked: the timer of the head begins with its retransmission.
            if let (Some(rtt), Some(front)) = (times.sacked_rtt(flight.now), self.board.front()) {
                if rtt > flight.now - front.sent_at {
                    summary.set_timer = true;
                }
            }
            return;
        }
        summary.acknowledged = true;
        summary.set_timer = true;
        if self.sack {
            // A hole that was never retransmitted got filled: that was reordering.
            if lowest_original < highest_delivered {
                let highest = self.board.highest_sacked().max(flight.snd.una);
                self.note_reordering(flight.mss, lowest_original, highest);
            }
        } else {
            self.take_duplicates(taken, summary);
            // Without SACK an acknowledgment does not distinguish an original from its retransmission.
            summary.original_delivered &= !summary.retransmission_acknowledged;
        }
    }

    /// The meaning of a measured ACK.
    pub fn on_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        let was_recovering = self.is_recovering();
        facts.advanced = summary.advanced;
        if summary.part == Part::Whole {
            self.on_whole_ack(flight, ack, summary, facts);
        } else {
            self.on_other_ack(flight, ack, summary, facts);
        }
        let bytes = |segments: u32| segments.saturating_mul(flight.mss);
        facts.delivered = bytes(summary.delivered);
        facts.flight = bytes(self.board.len());
        facts.fast_recovery = FastRecovery::new(was_recovering, self.is_recovering());
    }

    /// An ACK of which only a part counts.
    #[cold]
    fn on_other_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        match summary.part {
            // Only the SACK blocks of an ACK below SND.UNA count.
            Part::Old => {
                let next = self.alert(flight, ack, summary, facts);
                self.allow(flight, next);
            }
            Part::NothingOutstanding => {
                if summary.dsack {
                    self.alert(flight, ack, summary, facts);
                }
                self.on_probe_acknowledged(flight, ack.ack, summary, facts);
            }
            Part::Nothing => {}
            Part::Whole => debug_assert!(false, "the caller deals with it"),
        }
    }

    fn on_whole_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        facts.rtt = summary.rtt;
        if flight.profile.recovery.scoreboard().rack {
            self.rack.adapt(self.delivered, summary.prior_delivered);
        }
        self.on_probe_acknowledged(flight, ack.ack, summary, facts);
        // Linux, FLAG_WIN_UPDATE: an ACK of a part of a segment is no duplicate, though it acknowledges none.
        let unremarkable = (summary.advanced || ack.carries_news)
            && !(summary.sacked || summary.echoes_congestion || summary.dsack)
            && self.state == CaState::Open;
        let mut next = Next::Nothing;
        if !unremarkable {
            next = self.alert(flight, ack, summary, facts);
        }
        if summary.set_timer {
            let timer = match self.schedule_probe(flight, true) {
                SetTimer::Keep => self.restart_timer(flight),
                probe => probe,
            };
            facts.timer = facts.timer.then(timer);
        }
        if summary.echoes_congestion {
            // Linux, tcp_count_delivered.
            self.delivered_marked += summary.delivered;
        }
        facts.rule = if self.is_reducing() {
            CwndRule::Reduce { segments: summary.delivered }
        } else if self.may_grow(flight, summary) {
            CwndRule::Grow
        } else {
            CwndRule::Keep
        };
        // Linux, FLAG_ACK_MAYBE_DELAYED: typically of a lone segment that is not full, with nothing else delivered since
        // it was sent.
        summary.delayed = summary.delivered == 1
            && summary.acknowledged
            && !(summary.retransmission_acknowledged || summary.sacked || summary.dsack || summary.echoes_congestion)
            && ack.ack - ack.prior_una < u64::from(flight.mss)
            && summary.prior_delivered == Some(self.delivered - 1);
        facts.delivery = self.rate_sample(flight, summary, facts.lost);
        self.allow(flight, next);
    }

    /// Draws the consequences of an acknowledgment that is out of the ordinary; returns the amount that may be sent.
    fn alert(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, facts: &mut Facts) -> Next {
        if self.board.is_empty() {
            self.duplicates = 0;
        }
        facts.marked = summary.echoes_congestion;
        if self.check_reneging(flight, summary, facts) {
            return Next::Nothing;
        }
        if self.state == CaState::Open {
            self.undo.first_retransmission = None;
        } else if flight.snd.una >= self.high && self.leave(flight, ack, facts) {
            return Next::Nothing;
        }
        match self.state {
            CaState::Recovery => {
                if !summary.advanced {
                    self.count_duplicate(summary);
                } else if self.undo_partial(flight, ack, facts) {
                    return Next::Nothing;
                }
                if self.undo_by_dsack(flight, facts) {
                    self.try_to_open(flight, summary, facts);
                }
                self.identify_losses(flight, summary, facts);
                if self.state != CaState::Recovery {
                    if self.board.lost() == 0 {
                        return Next::Nothing;
                    }
                    self.enter_recovery(flight, facts);
                }
                return Next::Lost;
            }
            CaState::Loss => {
                let next = self.after_timeout(flight, ack, summary, facts);
                self.identify_losses(flight, summary, facts);
                if !(self.state == CaState::Open || summary.lost_again) {
                    return next;
                }
            }
            _ => {}
        }
        if !self.sack && summary.advanced {
            self.duplicates = 0;
        }
        self.count_duplicate(summary);
        if self.state <= CaState::Disorder {
            self.undo_by_dsack(flight, facts);
        }
        self.identify_losses(flight, summary, facts);
        if self.board.lost() == 0 {
            self.try_to_open(flight, summary, facts);
            return Next::Nothing;
        }
        self.enter_recovery(flight, facts);
        Next::Lost
    }

    /// The first segment in flight is marked as delivered, but not acknowledged: the peer has discarded it. Linux waits
    /// a little for an acknowledgment that may be late, and lets the timer begin afresh.
    fn check_reneging(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) -> bool {
        if !(summary.acknowledged && self.board.front().is_some_and(|front| front.is_sacked())) {
            return false;
        }
        let srtt = flight.rtt.smoothed(&flight.profile.rto).unwrap_or(0);
        facts.timer = SetTimer::At(flight.now + (srtt / 2).max(RENEGING_DELAY));
        self.timer = Timer::Retransmission;
        summary.set_timer = false;
        true
    }

    /// Everything that was outstanding when the episode began is acknowledged. True if nothing else is to be done.
    fn leave(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, facts: &mut Facts) -> bool {
        match self.state {
            // The reduction ends with something sent after its beginning, so that it lasts a full round trip.
            CaState::Reduced if flight.snd.una != self.high => {
                reduction_is_complete(facts);
                self.state = CaState::Open;
            }
            CaState::Recovery => {
                self.duplicates = 0;
                if self.undo_recovery(flight, ack, facts) {
                    return true;
                }
                if self.undo.is_armed() {
                    reduction_is_complete(facts);
                }
            }
            _ => {}
        }
        false
    }

    fn count_duplicate(&mut self, summary: &mut AckSummary) {
        if !self.sack && summary.duplicate {
            self.on_duplicate(summary);
        }
    }

    /// Looks for losses by the rule in force.
    fn identify_losses(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        if self.board.is_empty() {
            return;
        }
        let lost = if !self.sack {
            self.count_duplicates(flight, summary.advanced)
        } else if flight.profile.recovery.scoreboard().rack {
            self.detect_losses(flight, summary, facts)
        } else {
            let threshold = self.threshold(flight);
            sack::count_losses(&mut self.board, threshold, flight.mss, self.state < CaState::Recovery)
        };
        facts.lose(lost.segments, flight.mss);
    }

    /// Looks for losses by time, and sets a timer that waits for late segments.
    fn detect_losses(&mut self, flight: &Flight<'_>, summary: &mut AckSummary, facts: &mut Facts) -> NewlyLost {
        if !self.rack.takes_news() {
            return NewlyLost::NONE;
        }
        let window = self.reordering_window(flight);
        let (lost, wait) = self.rack.mark_losses(&mut self.board, flight.now, window);
        summary.lost_again |= lost.retransmissions > 0;
        if wait > 0 {
            let wait = wait + flight.profile.shortest_timer();
            facts.timer = SetTimer::At(flight.now + wait.min(flight.rtt.rto()));
            self.timer = Timer::Reordering;
            summary.set_timer = false;
        }
        lost
    }

    // RFC 8985 §6.2 step 4: while no reordering has been seen, the window is 0 in recovery or once DupThresh segments
    // are SACKed; else min (mult * min_RTT / 4, SRTT).
    pub(super) fn reordering_window(&self, flight: &Flight<'_>) -> Nanos {
        if self.reordering_seen == 0 && (self.state >= CaState::Recovery || self.sacked() >= self.reordering) {
            return 0;
        }
        let srtt = flight.rtt.smoothed(&flight.profile.rto).unwrap_or(0);
        let Some(shortest) = self.shortest.get() else { return srtt };
        (shortest / 4).saturating_mul(self.rack.window_multiplier()).min(srtt)
    }

    /// Fast recovery begins.
    // RFC 5681 §3.2, RFC 6675 §5: ssthresh = cwnd = FlightSize / 2, or the controller's own rule.
    pub(super) fn enter_recovery(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        self.begin_episode(flight);
        facts.reducing = self.is_reducing();
        facts.early = self.sacked() < flight.profile.duplicate_ack_threshold;
        facts.edges.insert(Edges::ENTERED);
        if !facts.reducing {
            self.begin_reduction(flight);
        }
        self.state = CaState::Recovery;
    }

    /// Congestion: from here on cwnd moves towards a new ssthresh.
    pub(super) fn begin_reduction(&mut self, flight: &Flight<'_>) {
        self.high = flight.snd.nxt;
        self.probe.end = None;
        self.probing = false;
    }

    fn try_to_open(&mut self, flight: &Flight<'_>, summary: &AckSummary, facts: &mut Facts) {
        if !self.any_retransmitted() {
            self.undo.first_retransmission = None;
        }
        if summary.echoes_congestion {
            self.enter_reduced(flight, facts);
        }
        if self.state != CaState::Reduced {
            self.keep_open(flight);
        }
    }

    /// cwnd is reduced without a loss (RFC 3168 §6.1.2).
    fn enter_reduced(&mut self, flight: &Flight<'_>, facts: &mut Facts) {
        if self.state < CaState::Reduced {
            self.undo.marker = None;
            self.begin_reduction(flight);
            self.state = CaState::Reduced;
            facts.edges.insert(Edges::REDUCED);
        }
    }

    /// Open, or in disorder as long as something is delivered out of order or repeated.
    pub(super) fn keep_open(&mut self, flight: &Flight<'_>) {
        let disorder = self.sacked() + self.board.lost() > 0 || self.any_retransmitted();
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if self.state != state {
            self.state = state;
            self.high = flight.snd.nxt;
        }
    }

    // Linux's tcp_may_raise_cwnd: with strong reordering, progress by SACK counts as well.
    fn may_grow(&self, flight: &Flight<'_>, summary: &AckSummary) -> bool {
        if self.reordering > flight.profile.duplicate_ack_threshold {
            summary.acknowledged || summary.sacked
        } else {
            summary.acknowledged
        }
    }

    /// Stores the amount that may be sent from now on.
    fn allow(&mut self, flight: &Flight<'_>, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Lost => self.retransmitting = true,
            // RFC 5682 §2.1 step 2.b; without new data the algorithm ends and lost segments are sent.
            Next::New if flight.has_new_data() => self.f_rto.offering = true,
            Next::New => {
                self.f_rto = FRto::default();
                self.retransmitting = true;
            }
        }
    }

    /// These segments are delivered by an ACK.
    #[inline]
    pub(super) fn deliver(&mut self, summary: &mut AckSummary, segments: u32) {
        self.delivered += segments;
        summary.delivered += segments;
    }
}

/// cwnd comes to ssthresh.
// RFC 9937 §6: upon exiting recovery, cwnd = ssthresh.
pub(super) fn reduction_is_complete(facts: &mut Facts) {
    facts.edges.insert(Edges::LEFT);
    facts.next_cwnd = NextCwnd::Ssthresh;
}
