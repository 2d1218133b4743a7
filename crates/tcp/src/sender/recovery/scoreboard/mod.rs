//! Loss recovery over a scoreboard: the meaning of ACKs, from the first sign of a loss to the end of recovery.
//!
//! The states and their transitions are Linux's (`tcp_fastretrans_alert`), which follow RFC 6675, RFC 8985, RFC 5682
//! and RFC 9937 and serve peers with and without SACK. `ack` is one ACK from top to bottom, over the segments in flight
//! (`board`), with RACK's state (`rack`) and what a SACK option reports (`sack`). Beside it: peers without SACK
//! (`duplicates`), the timer with its probe of a silent tail (`timer`), recovery after a timeout (`timeout`), and how a
//! spurious recovery is noticed and undone (`undo`). The parts of the state are in `state`. Here: the whole, and what may
//! be sent. Segments are counted, bytes in [`Facts`](super::facts::Facts).

mod ack;
mod board;
mod duplicates;
mod rack;
mod sack;
mod state;
mod timeout;
mod timer;
mod undo;

use crate::Nanos;
use crate::connection::info::Info;
use crate::profile::Profile;
use crate::sender::congestion::{Delivery, DeliveryRate};
use crate::sender::recovery::facts::{AckSummary, Flight, SetTimer, loss_threshold};
use crate::sender::reduction::Reduction;
use crate::sender::rtt::ShortestRtt;
use crate::sender::trains::Train;
use crate::sequence::SeqNum;
use board::{Board, Sent};
use rack::Rack;
use sack::SackHistory;
use state::{CaState, FRto, Probe, Timer, Undo};

/// Loss recovery of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    board: Board,
    state: CaState,
    /// One past the highest position sent when the state was entered.
    high: SeqNum,
    /// The peer sends SACKs.
    sack: bool,
    /// Segments by which the network is known to reorder.
    reordering: u32,
    /// Times that reordering was noticed.
    reordering_seen: u32,
    /// Segments delivered so far.
    delivered: u32,
    /// Of these, acknowledged with an echo of a CE mark.
    delivered_marked: u32,
    history: SackHistory,
    /// Duplicate acknowledgments that stand for segments delivered.
    duplicates: u32,
    /// As the handshake and the scoreboard measured it.
    shortest: ShortestRtt,
    rack: Rack,
    probe: Probe,
    undo: Undo,
    f_rto: FRto,
    /// SND.UNA at the latest timeout while the window was open (Linux counts those in `icsk_retransmits`).
    timed_out_at: Option<SeqNum>,
    timer: Timer,
    /// Kept only for a rate-based controller.
    rate: Option<DeliveryRate>,
    pub train: Train,
    /// Lost segments may be sent as cwnd allows.
    retransmitting: bool,
    /// A tail loss probe is due, independent of cwnd.
    probing: bool,
    /// The sender's, which recovery does not touch. It lies here because only a sender with a scoreboard has a use for
    /// it.
    pub reduction: Reduction,
}

impl Scoreboard {
    /// For a new connection, in the memory of one that is over if there is any.
    pub fn new_in(old: Option<Box<Self>>, profile: &Profile, initial: SeqNum) -> Box<Self> {
        let Some(mut scoreboard) = old else { return Box::new(Self::new(profile, initial, Board::default())) };
        let board = std::mem::take(&mut scoreboard.board).emptied();
        let queue = std::mem::take(&mut scoreboard.train.queue).emptied();
        *scoreboard = Self::new(profile, initial, board);
        scoreboard.train.queue = queue;
        scoreboard
    }

    fn new(profile: &Profile, initial: SeqNum, board: Board) -> Self {
        Self { board, high: initial, reordering: profile.duplicate_ack_threshold, ..Self::default() }
    }

    /// Fills in the values of the scoreboard.
    pub fn describe(&self, info: &mut Info) {
        info.recovery_state = self.state as u8;
        info.unacked = self.board.len();
        info.min_rtt_ns = self.shortest_rtt();
        info.sacked = self.sacked();
        info.lost = self.board.lost();
        info.retransmitted = self.board.retrans_out();
        info.reordering = self.reordering;
        info.reordering_seen = self.reordering_seen;
        info.delivered = self.delivered;
        info.delivered_marked = self.delivered_marked;
        info.dsack_duplicates = self.history.duplicates;
    }

    /// The handshake is complete, with this RTT if it gave one.
    // Linux, tcp_synack_rtt_meas: the handshake is the first candidate for the shortest RTT.
    pub fn establish(&mut self, now: Nanos, una: SeqNum, sack: bool, rate_based: bool, rtt: Option<Nanos>) {
        self.sack = sack;
        self.high = una;
        self.rate = rate_based.then(DeliveryRate::default);
        if let Some(rtt) = rtt {
            self.shortest.sample(now, rtt);
        }
    }

    /// Fast recovery is in progress.
    pub fn is_recovering(&self) -> bool {
        self.state == CaState::Recovery
    }

    /// Segments delivered out of order, or counted so.
    pub fn sacked(&self) -> u32 {
        self.board.sacked() + self.duplicates
    }

    /// Segments sent and not acknowledged cumulatively.
    pub fn outstanding(&self) -> u32 {
        self.board.len()
    }

    /// sk_buffs in flight.
    pub fn sk_buffs(&self) -> u32 {
        self.board.sk_buffs()
    }

    /// Nothing is out of the ordinary.
    pub fn is_open(&self) -> bool {
        self.state == CaState::Open
    }

    /// cwnd is or was reduced, and what was outstanding then still is.
    pub fn is_reduced(&self) -> bool {
        self.state >= CaState::Reduced
    }

    /// Fast recovery, or the recovery after a timeout.
    pub fn is_in_recovery_or_loss(&self) -> bool {
        self.state >= CaState::Recovery
    }

    /// When the first segment outstanding was sent.
    pub fn head_sent_at(&self) -> Option<Nanos> {
        self.board.front().map(|sent| sent.sent_at)
    }

    /// Shortest RTT measured, once there is one.
    pub fn shortest_rtt(&self) -> Option<Nanos> {
        self.shortest.get()
    }

    /// Segments in flight.
    // RFC 6675 §4, SetPipe, as Linux counts it: sent, less delivered, less lost, plus retransmitted.
    pub fn in_flight(&self) -> u32 {
        self.board.len() + self.board.retrans_out() - (self.sacked() + self.board.lost()).min(self.board.len())
    }

    /// Segments that count against cwnd when new data is to be sent.
    // RFC 3042: the first duplicates make room for new data, and so do SACKs (RFC 6675 §5 step 3); without limited
    // transmit only recovery does.
    pub fn load(&self, profile: &Profile) -> u32 {
        if self.state == CaState::Disorder && !profile.limited_transmit { self.board.len() } else { self.in_flight() }
    }

    /// Duplicates, or segments SACKed, that mean a loss.
    fn threshold(&self, flight: &Flight<'_>) -> u32 {
        let (enabled, outstanding) = (flight.profile.early_retransmit, self.board.len());
        loss_threshold(enabled, outstanding, flight.has_new_data(), self.reordering)
    }

    /// cwnd is being reduced bit by bit.
    pub fn is_reducing(&self) -> bool {
        matches!(self.state, CaState::Reduced | CaState::Recovery)
    }

    /// New data was sent; returns the action on the timer.
    #[inline]
    pub fn on_sent_new(&mut self, flight: &Flight<'_>, start: SeqNum, length: u32) -> SetTimer {
        let first = self.board.is_empty();
        if let Some(rate) = &mut self.rate {
            rate.on_sent(flight.now, self.delivered, first);
        }
        self.board.push(flight.now, start, length, self.delivered, self.train.left() > 0);
        self.f_rto.offering = false;
        let timer = if self.probing { SetTimer::Keep } else { self.schedule_probe(flight, false) };
        if timer == SetTimer::Keep && (first || self.timer == Timer::Probe) {
            return self.restart_timer(flight);
        }
        timer
    }

    /// The delivery rate from an ACK that marks `lost` bytes lost, for a rate-based controller.
    fn rate_sample(&mut self, flight: &Flight<'_>, summary: &AckSummary, lost: u32) -> Option<Delivery> {
        let rate = self.rate.as_mut()?;
        let sample = rate.sample(flight.now, self.delivered, summary.delivered, self.shortest.get());
        let bytes = |segments: u32| u64::from(segments) * u64::from(flight.mss);
        let prior_delivered = sample.map_or(self.delivered, |sample| sample.prior_delivered);
        Some(Delivery {
            delivered_bytes: bytes(self.delivered),
            prior_delivered_bytes: bytes(prior_delivered),
            sample_bytes: bytes(self.delivered - prior_delivered),
            interval_ns: sample.map_or(0, |sample| sample.interval),
            app_limited: sample.is_some_and(|sample| sample.app_limited),
            newly_delivered_bytes: bytes(summary.delivered) as u32,
            newly_lost_bytes: lost,
            rtt: summary.rtt,
            prior_flight_bytes: bytes(summary.prior_in_flight) as u32,
            flight_bytes: bytes(self.in_flight()) as u32,
            ack_delayed: summary.delayed,
            in_recovery: self.state == CaState::Recovery,
            in_loss: self.state == CaState::Loss,
        })
    }

    /// Nothing is outstanding, and no probe waits for its answer.
    pub fn is_idle(&self) -> bool {
        self.board.is_empty() && self.probe.end.is_none()
    }

    /// True if something may have to be retransmitted.
    pub fn may_retransmit(&self) -> bool {
        self.probing || self.retransmitting
    }

    /// The next segment that may be retransmitted now: its number, its state, and whether it is a probe of the tail.
    /// Nothing from `edge` on has room in the peer's window.
    pub fn next_to_retransmit(&mut self, flight: &Flight<'_>, edge: SeqNum) -> Option<(u64, Sent, bool)> {
        self.board.cut_acknowledged(flight.snd.una);
        if self.probing && !flight.has_new_data() {
            let last = self.board.numbers().end.checked_sub(1).filter(|_| !self.board.is_empty())?;
            self.probing = false;
            let last = self.fit(flight, edge, last)?;
            return Some((last, *self.board.get(last), true));
        }
        if !self.retransmitting {
            return None;
        }
        // RFC 6675 §5 step 4.3: the first segment presumed lost leaves when recovery begins, whatever the window says
        // (which with PRR has room for it).
        let first = self.state == CaState::Recovery && !self.reduction.has_sent();
        let next = if first || self.in_flight() < flight.cwnd / flight.mss { self.next_of_holes(flight) } else { None };
        let next = next.and_then(|number| self.fit(flight, edge, number));
        self.retransmitting = next.is_some();
        next.map(|number| (number, *self.board.get(number), false))
    }

    /// Cuts a segment at the edge of a window that has shrunk; none if all of it is beyond.
    // Linux, __tcp_retransmit_skb; the first segment leaves whole if the window is closed, as a probe of it.
    fn fit(&mut self, flight: &Flight<'_>, edge: SeqNum, number: u64) -> Option<u64> {
        let sent = self.board.get(number);
        if sent.start >= edge {
            return (sent.start == flight.snd.una).then_some(number);
        }
        if sent.end().min(flight.snd.data_end) > edge {
            self.board.split(number, edge);
            if let Some(rate) = &mut self.rate {
                rate.split(number);
            }
        }
        Some(number)
    }

    // RFC 6675 §4, NextSeg (): (1) the first segment that is marked lost; (2) new data; (3) without any, a segment that
    // was not retransmitted yet below a SACK. RACK has its timer for those.
    fn next_of_holes(&mut self, flight: &Flight<'_>) -> Option<u64> {
        let lost = self.board.next_lost();
        if lost.is_some()
            || self.state != CaState::Recovery
            || flight.profile.recovery.scoreboard().rack
            || flight.has_new_data()
        {
            return lost;
        }
        self.board.next_hole()
    }

    /// True if a tail loss probe must be sent, independent of cwnd.
    pub fn is_probing(&self) -> bool {
        self.probing
    }

    /// Whether new data must not wait for more of it: a probe, or data that detects a spurious timeout.
    // Linux sends both with Nagle's algorithm off (tcp_send_loss_probe, tcp_xmit_recovery).
    pub fn pushes(&self) -> bool {
        self.probing || self.f_rto.offering
    }

    /// A segment leaves again, as a retransmission or as a probe.
    fn retransmit(&mut self, now: Nanos, number: u64, of_lost: bool) {
        self.board.retransmit(now, number, self.delivered, of_lost);
        if let Some(rate) = &mut self.rate {
            rate.on_retransmitted(now, number, self.delivered);
        }
    }

    /// The application has nothing to send though the window would let it.
    // draft-cheng-iccrg-delivery-rate-estimation §3.4, with Linux's conditions.
    pub fn limit_by_application(&mut self, window_segments: u32) {
        let (delivered, in_flight) = (self.delivered, self.in_flight());
        if let Some(rate) = &mut self.rate {
            if in_flight < window_segments && self.board.lost() <= self.board.retrans_out() {
                rate.limit_by_application(delivered, in_flight);
            }
        }
    }

    /// A lost segment was retransmitted; returns the action on the timer.
    pub fn on_retransmitted(&mut self, flight: &Flight<'_>, number: u64) -> SetTimer {
        let is_first = number == self.board.numbers().start;
        self.retransmit(flight.now, number, true);
        self.undo.on_retransmission(flight.now);
        if !is_first || self.timer == Timer::Reordering {
            return SetTimer::Keep;
        }
        self.timer = Timer::Retransmission;
        SetTimer::Rto
    }
}
