//! Loss recovery over a scoreboard: what an acknowledgement means, from first doubt to the end of the repair.
//!
//! The states and their transitions are Linux's (`tcp_fastretrans_alert`), which follow RFC 6675, RFC 8985, RFC 5682
//! and RFC 9937 and serve peers with and without SACK. Each rule has its file: how SACK blocks become marks (`sack`),
//! how duplicate acknowledgements stand in for them (`duplicates`), what counts as lost (`rack`, or counting in
//! `sack`), the probe of a silent tail (`tail_loss_probe`), how fast the window shrinks (`prr`), how a needless repair
//! is noticed and taken back (`undo`, `f_rto`). Windows are counted in segments here.

use super::duplicates::Duplicates;
use super::early_retransmit;
use super::f_rto::FRto;
use super::prr::Reduction;
use super::rack::Rack;
use super::rtt_sample::RttSample;
use super::sack::SackHistory;
use super::scoreboard::{Scoreboard, Sent};
use super::tail_loss_probe::Probe;
use super::timer::Timer;
use super::undo::{Undo, answers_earlier};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller, Delivery, RoundTrip};
use crate::delivery_rate::DeliveryRate;
use crate::endpoint::Info;
use crate::profile::Profile;
use crate::rtt::{RttEstimator, ShortestRtt};
use crate::segment::SackBlocks;
use crate::sequence::Position;
use crate::startup::Launch;
use crate::stats::Stats;

/// State of the repair, in the order of Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum State {
    /// Nothing unusual.
    #[default]
    Open,
    /// Something was delivered out of order, or a repair may have been needless.
    Disorder,
    /// The window is being reduced without a loss (an ECN mark, or a loss that a probe repaired).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Repair after a timeout.
    Loss,
}

/// The sender's side of a connection, as far as recovery needs it.
pub(crate) struct Sender<'a> {
    pub now: Nanos,
    /// First position not acknowledged.
    pub una: Position,
    /// Next position to send.
    pub nxt: Position,
    pub mss: u32,
    /// New data could leave if the congestion window allowed it.
    pub has_new_data: bool,
    /// Consecutive expiries of the retransmission timer.
    pub retries: u32,
    pub profile: &'a Profile,
    pub controller: &'a mut Controller,
    pub rtt: &'a mut RttEstimator,
    pub launch: Option<&'a mut Launch>,
    pub stats: &'a mut Stats,
    /// Expiry of the timer.
    pub deadline: &'a mut Nanos,
}

impl Sender<'_> {
    /// Congestion window in segments.
    #[inline]
    pub fn window(&self) -> u32 {
        self.controller.window() / self.mss
    }

    /// Sets the timer for this time.
    #[inline]
    pub fn set_timer(&mut self, deadline: Nanos) {
        *self.deadline = self.profile.expiry(self.now, deadline);
    }

    pub fn set_window(&mut self, segments: u32) {
        self.controller.set_window(segments.saturating_mul(self.mss));
    }

    /// Slow start threshold in segments.
    #[inline]
    pub fn ssthresh(&self) -> u32 {
        self.controller.ssthresh() / self.mss
    }
}

/// An acknowledgement that arrived.
pub(crate) struct Arrival<'a> {
    /// Its cumulative acknowledgement.
    pub ack: Position,
    /// The value of `una` before it.
    pub prior_una: Position,
    /// It carries data, or changes the peer's window.
    pub not_a_duplicate: bool,
    pub sack: &'a SackBlocks,
    /// Time since the segment that it echoes was sent, by its timestamp.
    pub echo_age: Option<Nanos>,
    /// Congestion was experienced on the way (ECE).
    pub echoes_congestion: bool,
    /// Window validation lets the window grow.
    pub window_may_grow: bool,
}

/// What an acknowledgement turned out to say.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Meaning {
    /// The cumulative acknowledgement advanced.
    pub advanced: bool,
    /// It is of data.
    pub acknowledged: bool,
    /// A segment was acknowledged cumulatively or selectively that was never sent twice and left before the episode.
    pub original_delivered: bool,
    /// A segment that was sent twice was acknowledged cumulatively.
    pub repeated_acknowledged: bool,
    /// Something was newly acknowledged selectively.
    pub sacked: bool,
    /// A DSACK tells of a needless retransmission.
    pub dsack: bool,
    /// That retransmission was the tail loss probe.
    pub dsack_of_probe: bool,
    /// The peer echoes a congestion mark.
    pub echoes_congestion: bool,
    /// The retransmission timer has to be set anew.
    pub set_timer: bool,
    /// A retransmission was found lost.
    pub lost_again: bool,
    /// Neither an advance, nor data, nor a window update, nor a DSACK.
    pub duplicate: bool,
}

/// What may leave after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Next {
    #[default]
    Nothing,
    /// Lost segments, as the window allows.
    Lost,
    /// New data, to tell a needless timeout (F-RTO); lost segments only if there is none.
    New,
}

/// Loss recovery of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Selective {
    pub(super) board: Scoreboard,
    pub(super) state: State,
    /// One past the highest position sent when the state was entered.
    pub(super) high: Position,
    /// The peer sends SACKs.
    pub(super) sack: bool,
    /// Segments by which the network is known to reorder.
    pub(super) reordering: u32,
    /// Times that reordering was noticed.
    pub(super) reordering_seen: u32,
    /// Segments delivered so far.
    pub(super) delivered: u32,
    /// Of these, acknowledged with an echo of a congestion mark.
    pub(super) delivered_marked: u32,
    /// Segments called lost so far.
    pub(super) lost: u32,
    pub(super) history: SackHistory,
    pub(super) duplicates: Duplicates,
    /// As the handshake and the scoreboard measured it.
    pub(crate) shortest: ShortestRtt,
    pub(super) rack: Rack,
    pub(super) probe: Probe,
    pub(super) reduction: Reduction,
    pub(super) undo: Undo,
    pub(super) f_rto: FRto,
    pub(super) timer: Timer,
    /// Kept only for a rate-based controller.
    pub(super) rate: Option<DeliveryRate>,
    /// Lost segments may leave as the window allows.
    pub(super) repairing: bool,
    /// A tail loss probe has to leave, whatever the congestion window says.
    pub(super) probing: bool,
    /// RFC 3168 §6.1.2: tell the peer that the window was reduced; or not to, after an undo.
    pub(super) announcement: Option<bool>,
}

impl Selective {
    /// For a new connection, in the memory of one that is over if there is any.
    pub(crate) fn new_in(old: Option<Box<Self>>, profile: &Profile, initial: Position) -> Box<Self> {
        let Some(mut selective) = old else { return Box::new(Self::new(profile, initial, Scoreboard::default())) };
        let board = std::mem::take(&mut selective.board).emptied();
        *selective = Self::new(profile, initial, board);
        selective
    }

    fn new(profile: &Profile, initial: Position, board: Scoreboard) -> Self {
        Self {
            board,
            state: State::Open,
            high: initial,
            sack: false,
            reordering: profile.duplicate_ack_threshold,
            reordering_seen: 0,
            delivered: 0,
            delivered_marked: 0,
            lost: 0,
            history: SackHistory::default(),
            duplicates: Duplicates::default(),
            shortest: ShortestRtt::default(),
            rack: Rack::default(),
            probe: Probe::default(),
            reduction: Reduction::default(),
            undo: Undo::default(),
            f_rto: FRto::default(),
            timer: Timer::default(),
            rate: None,
            repairing: false,
            probing: false,
            announcement: None,
        }
    }

    /// Fills in the figures of the scoreboard.
    pub(crate) fn describe(&self, info: &mut Info) {
        info.recovery_state = self.state as u8;
        info.unacked = self.board.len();
        info.min_rtt_ns = self.shortest.get();
        info.sacked = self.sacked();
        info.lost = self.board.lost();
        info.retransmitted = self.board.in_repair();
        info.reordering = self.reordering;
        info.reordering_seen = self.reordering_seen;
        info.delivered = self.delivered;
        info.delivered_marked = self.delivered_marked;
        info.dsack_duplicates = self.history.duplicates;
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, sack: bool, una: Position, rate_based: bool) {
        self.sack = sack;
        self.high = una;
        self.rate = rate_based.then(DeliveryRate::default);
    }

    /// Segments delivered out of order, or counted so.
    #[inline]
    pub(crate) fn sacked(&self) -> u32 {
        self.board.sacked() + self.duplicates.count()
    }

    /// Segments sent and not acknowledged cumulatively.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.board.len()
    }

    /// Nothing is out of the ordinary.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Segments in flight.
    // RFC 6675 §4, SetPipe, as Linux counts it: sent, less delivered, less lost, plus retransmitted.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.len() + self.board.in_repair() - (self.sacked() + self.board.lost()).min(self.board.len())
    }

    /// Segments that count against the window when new data wants to leave.
    // RFC 3042: the first duplicates make room for new data, and so do SACKs (RFC 6675 §5 step 3); without limited
    // transmit only recovery does.
    #[inline]
    pub(crate) fn load(&self, profile: &Profile) -> u32 {
        if self.state == State::Disorder && !profile.limited_transmit { self.board.len() } else { self.in_flight() }
    }

    /// Duplicates, or segments SACKed, that mean a loss.
    pub(super) fn threshold(&self, sender: &Sender<'_>) -> u32 {
        let (enabled, outstanding) = (sender.profile.early_retransmit, self.board.len());
        early_retransmit::threshold(enabled, outstanding, sender.has_new_data, self.reordering)
    }

    /// Whether the window is being reduced bit by bit.
    #[inline]
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.state, State::Reduced | State::Recovery)
    }

    /// New data left.
    #[inline]
    pub(crate) fn on_sent_new(&mut self, sender: &mut Sender<'_>, start: Position, length: u32) {
        let first = self.board.is_empty();
        if let Some(rate) = &mut self.rate {
            rate.on_sent(sender.now, self.delivered, first);
        }
        self.board.push(sender.now, start, length, self.delivered);
        self.f_rto.on_sent_new();
        if self.is_reducing() {
            self.reduction.on_sent();
        }
        if first || self.timer == Timer::Probe {
            self.restart_timer(sender);
        }
        if !self.probing {
            self.schedule_probe(sender, false);
        }
    }

    /// An acknowledgement arrived.
    pub(crate) fn on_ack(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>) {
        if arrival.ack < arrival.prior_una {
            return self.on_old_ack(sender, arrival);
        }
        let mut meaning = Meaning {
            advanced: arrival.ack > arrival.prior_una,
            echoes_congestion: arrival.echoes_congestion,
            ..Meaning::default()
        };
        let (delivered, lost, prior_flight) = (self.delivered, self.lost, self.in_flight());
        let prior_sacked = self.sacked();
        let highest_sacked = self.board.highest_sacked();
        let mut sample = RttSample::default();
        if self.sack && !arrival.sack.is_empty() {
            self.tag(sender, arrival, &mut meaning, &mut sample);
        }
        meaning.duplicate = !(meaning.advanced || arrival.not_a_duplicate || meaning.dsack);
        if self.board.is_empty() {
            if meaning.dsack {
                self.judge(sender, arrival, &mut meaning);
            }
            self.on_probe_acknowledged(sender, arrival.ack, &meaning);
            return;
        }
        self.take_acknowledged(sender, arrival, highest_sacked, &mut meaning, &mut sample);
        let round_trip = sample.apply(sender, &mut self.shortest, &meaning, arrival.echo_age);
        if let Some(rtt) = round_trip {
            let sample = RoundTrip { rtt, una: sender.una, nxt: sender.nxt };
            sender.controller.on_round_trip(sender.now, &sample);
            sender.note_round_trip(rtt);
        }
        if sender.profile.rack {
            self.rack.adapt(self.delivered, sample.prior_delivered);
        }
        self.on_probe_acknowledged(sender, arrival.ack, &meaning);
        let unremarkable = (meaning.acknowledged || arrival.not_a_duplicate)
            && !(meaning.sacked || meaning.echoes_congestion || meaning.dsack)
            && self.state == State::Open;
        let mut next = Next::Nothing;
        if !unremarkable {
            next = self.judge(sender, arrival, &mut meaning);
        }
        if meaning.set_timer && !self.schedule_probe(sender, true) {
            self.restart_timer(sender);
        }
        let delivered = self.delivered - delivered;
        if meaning.echoes_congestion {
            // Linux, tcp_count_delivered.
            self.delivered_marked += delivered;
        }
        let lost = self.lost - lost;
        // Linux, FLAG_ACK_MAYBE_DELAYED: typically of a lone segment that is not full, with nothing else delivered since it
        // was sent.
        let ack_delayed = delivered == 1
            && meaning.acknowledged
            && !(meaning.repeated_acknowledged || meaning.sacked || meaning.dsack || meaning.echoes_congestion)
            && prior_sacked == 0
            && arrival.ack - arrival.prior_una < u64::from(sender.mss)
            && sample.prior_delivered == Some(self.delivered - 1);
        self.control_window(sender, arrival, &meaning, delivered, lost);
        self.tell_delivery(sender, delivered, lost, prior_flight, round_trip, ack_delayed);
        self.allow(sender, next);
    }

    /// Tells a rate-based controller what the acknowledgement says of the rate.
    fn tell_delivery(
        &mut self,
        sender: &mut Sender<'_>,
        delivered: u32,
        lost: u32,
        prior_flight: u32,
        rtt: Option<Nanos>,
        ack_delayed: bool,
    ) {
        let Some(rate) = &mut self.rate else { return };
        let sample = rate.sample(sender.now, self.delivered, delivered, self.shortest.get());
        let bytes = |segments: u32| u64::from(segments) * u64::from(sender.mss);
        let prior_delivered = sample.map_or(self.delivered, |sample| sample.prior_delivered);
        let delivery = Delivery {
            delivered_bytes: bytes(self.delivered),
            prior_delivered_bytes: bytes(prior_delivered),
            sample_bytes: bytes(self.delivered - prior_delivered),
            interval_ns: sample.map_or(0, |sample| sample.interval),
            app_limited: sample.is_some_and(|sample| sample.app_limited),
            newly_delivered_bytes: bytes(delivered) as u32,
            newly_lost_bytes: bytes(lost) as u32,
            rtt,
            prior_flight_bytes: bytes(prior_flight) as u32,
            flight_bytes: bytes(self.in_flight()) as u32,
            ack_delayed,
            in_recovery: self.state == State::Recovery,
            in_loss: self.state == State::Loss,
        };
        sender.controller.on_delivery(sender.now, &delivery);
    }

    /// An acknowledgement below `una`: only its SACK blocks count.
    fn on_old_ack(&mut self, sender: &mut Sender<'_>, arrival: &Arrival<'_>) {
        if !self.sack || arrival.sack.is_empty() || self.board.is_empty() {
            return;
        }
        let mut meaning = Meaning::default();
        let mut sample = RttSample::default();
        self.tag(sender, arrival, &mut meaning, &mut sample);
        sample.apply(sender, &mut self.shortest, &meaning, None);
        let next = self.judge(sender, arrival, &mut meaning);
        self.allow(sender, next);
    }

    /// Removes what is acknowledged cumulatively.
    fn take_acknowledged(
        &mut self,
        sender: &mut Sender<'_>,
        arrival: &Arrival<'_>,
        highest_sacked: Position,
        meaning: &mut Meaning,
        sample: &mut RttSample,
    ) {
        let mut taken = 0;
        // A segment that was acknowledged in part begins below: Linux takes the rest of it for a hole that was filled.
        let highest_delivered = highest_sacked.max(arrival.prior_una);
        let mut lowest_original = highest_delivered;
        while let Some(sent) = self.board.pop_acknowledged(arrival.ack) {
            taken += 1;
            if sent.is_repeated() {
                meaning.repeated_acknowledged = true;
            } else if !sent.is_sacked() {
                sample.on_acknowledged(sent.sent_at);
                lowest_original = lowest_original.min(sent.start);
                meaning.original_delivered |= sent.end() <= self.high;
            }
            if !sent.is_sacked() {
                sample.on_delivered(&sent);
            }
            if let Some(rate) = &mut self.rate {
                rate.on_delivered(self.board.numbers().start - 1, sent.end());
                rate.pop();
            }
            if !sent.is_sacked() && self.sack {
                self.delivered += 1;
                // RFC 8985 §6.2 step 2: an acknowledgement that answers a timestamp from before the retransmission is for
                // the original. Not so of SACKs, as in Linux: they answer the timestamp of what arrived in order last.
                let needless = sent.is_repeated()
                    && arrival.echo_age.is_some_and(|age| answers_earlier(sender.now, age, sent.sent_at));
                if !needless {
                    self.rack.advance(sender.now, self.shortest.get(), &sent);
                }
            }
        }
        if taken == 0 {
            // A retransmitted head whose follower was sacked: the timer of the head begins with its retransmission.
            if let (Some(rtt), Some(front)) = (sample.sacked_rtt(sender.now), self.board.front())
                && rtt > sender.now - front.sent_at
            {
                meaning.set_timer = true;
            }
            return;
        }
        meaning.acknowledged = true;
        meaning.set_timer = true;
        if self.sack {
            // A hole that was never retransmitted got filled: that was reordering.
            if lowest_original < highest_delivered {
                let highest = self.board.highest_sacked().max(sender.una);
                self.note_reordering(sender.mss, lowest_original, highest);
            }
        } else {
            self.take_duplicates(taken);
            // Without SACK an acknowledgement cannot tell an original from its repetition.
            meaning.original_delivered &= !meaning.repeated_acknowledged;
        }
    }

    /// Sets the window: reduced bit by bit in recovery, grown by the controller otherwise.
    fn control_window(
        &mut self,
        sender: &mut Sender<'_>,
        arrival: &Arrival<'_>,
        meaning: &Meaning,
        delivered: u32,
        lost: u32,
    ) {
        if self.rate.is_some() {
            return;
        }
        if self.is_reducing() {
            self.reduce_window(sender, delivered, lost, meaning.advanced);
        } else if self.may_grow(sender, meaning) {
            sender.grow(delivered.saturating_mul(sender.mss), arrival.window_may_grow);
        }
    }

    // Linux's tcp_may_raise_cwnd: with strong reordering, progress by SACK counts as well.
    fn may_grow(&self, sender: &Sender<'_>, meaning: &Meaning) -> bool {
        if self.reordering > sender.profile.duplicate_ack_threshold {
            meaning.acknowledged || meaning.sacked
        } else {
            meaning.acknowledged
        }
    }

    /// Notes what may leave from now on.
    fn allow(&mut self, sender: &Sender<'_>, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Lost => self.repairing = true,
            // RFC 5682 §2.1 step 2.b; without new data the algorithm ends and lost segments are sent.
            Next::New if sender.has_new_data => self.f_rto.offer(),
            Next::New => {
                self.f_rto.stop();
                self.repairing = true;
            }
        }
    }

    /// Nothing is outstanding, and no probe waits for its answer.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.board.is_empty() && !self.probe.is_outstanding()
    }

    /// Whether something may have to be sent again.
    #[inline]
    pub(crate) fn may_repeat(&self) -> bool {
        self.probing || self.repairing
    }

    /// The next segment that may be sent again now: its number, what it was, and whether it is a probe of the tail.
    pub(crate) fn next_to_repeat(&mut self, sender: &Sender<'_>) -> Option<(u64, Sent, bool)> {
        self.board.cut_acknowledged(sender.una);
        if self.probing && !sender.has_new_data {
            let last = self.board.numbers().end.checked_sub(1).filter(|_| !self.board.is_empty())?;
            return Some((last, *self.board.get(last), true));
        }
        if !self.repairing {
            return None;
        }
        // RFC 6675 §5 step 4.3: the first segment presumed lost leaves when recovery begins, whatever the window says
        // (which with PRR has room for it).
        let first = self.state == State::Recovery && !self.reduction.has_sent();
        let next = if first || self.in_flight() < sender.window() { self.next_of_holes(sender) } else { None };
        self.repairing = next.is_some();
        next.map(|number| (number, *self.board.get(number), false))
    }

    // RFC 6675 §4, NextSeg (): (1) the first segment that counts as lost; (2) new data; (3) without any, what was not sent
    // again yet below a SACK. RACK has its timer for those.
    fn next_of_holes(&mut self, sender: &Sender<'_>) -> Option<u64> {
        let lost = self.board.next_lost();
        if lost.is_some() || self.state != State::Recovery || sender.profile.rack || sender.has_new_data {
            return lost;
        }
        self.board.next_hole()
    }

    /// Whether a tail loss probe has to leave, whatever the congestion window says.
    #[inline]
    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    /// Whether new data must not wait for more of it: a probe, or what tells a needless timeout.
    // Linux sends both with Nagle's algorithm off (tcp_send_loss_probe, tcp_xmit_recovery).
    #[inline]
    pub(crate) fn pushes(&self) -> bool {
        self.probing || self.f_rto.is_offering()
    }

    /// Whether the peer has to be told that the window was reduced (or not to be told any more), which this call settles.
    pub(crate) fn take_announcement(&mut self) -> Option<bool> {
        self.announcement.take()
    }

    /// A segment leaves again, as a repair or as a probe.
    pub(super) fn repeat(&mut self, now: Nanos, number: u64, as_repair: bool) {
        self.board.repeat(now, number, self.delivered, as_repair);
        if let Some(rate) = &mut self.rate {
            rate.on_repeated(now, number, self.delivered);
        }
    }

    /// The application has nothing to send though the window would let it.
    // draft-cheng-iccrg-delivery-rate-estimation §3.4, with Linux's conditions.
    pub(crate) fn limit_by_application(&mut self, window_segments: u32) {
        let (delivered, in_flight) = (self.delivered, self.in_flight());
        if let Some(rate) = &mut self.rate
            && in_flight < window_segments
            && self.board.lost() <= self.board.in_repair()
        {
            rate.limit_by_application(delivered, in_flight);
        }
    }

    /// A lost segment leaves again.
    pub(crate) fn on_repaired(&mut self, sender: &mut Sender<'_>, number: u64) {
        let is_first = number == self.board.numbers().start;
        self.repeat(sender.now, number, true);
        self.undo.on_retransmission(sender.now);
        if self.is_reducing() {
            self.reduction.on_sent();
        }
        if is_first && self.timer != Timer::Reordering {
            sender.set_timer(sender.now.saturating_add(sender.rtt.rto()));
            self.timer = Timer::Retransmission;
        }
    }
}
