//! The inputs and results of recovery.

use crate::Nanos;
use crate::profile::Profile;
use crate::segment::SackBlocks;
use crate::sender::congestion::Delivery;
use crate::sender::rtt::RttEstimator;
use crate::sender::sequence::{PeerWindow, SendSequence};
use crate::sequence::SeqNum;
use bitflags::bitflags;

/// The sender as recovery sees it, with the ACK that is being processed already taken over.
#[derive(Clone, Copy)]
pub(crate) struct Flight<'a> {
    pub now: Nanos,
    pub snd: &'a SendSequence,
    pub peer_window: &'a PeerWindow,
    pub mss: u32,
    /// The congestion controller's cwnd, bytes.
    pub cwnd: u32,
    /// Consecutive expiries of the retransmission timer.
    pub retries: u32,
    /// Retransmitted segments so far.
    pub retransmissions: u32,
    pub profile: &'a Profile,
    pub rtt: &'a RttEstimator,
}

impl Flight<'_> {
    /// Of the bytes in flight, those of data.
    pub fn data_bytes(&self) -> u32 {
        let data_end = self.snd.data_end;
        (self.snd.nxt.min(data_end) - self.snd.una.min(data_end)) as u32
    }

    /// New data could be sent if cwnd allowed it.
    pub fn has_new_data(&self) -> bool {
        self.snd.has_new_data(self.peer_window, self.mss)
    }
}

pub(crate) struct Ack<'a> {
    /// Its cumulative acknowledgment.
    pub ack: SeqNum,
    /// SND.UNA before it.
    pub prior_una: SeqNum,
    /// Bytes in flight before it.
    pub prior_flight: u32,
    /// Bytes of data that it acknowledges cumulatively.
    pub data_bytes: u32,
    /// A duplicate ACK by RFC 5681 section 2.
    pub duplicate: bool,
    /// It carries data or updates the peer's window.
    pub carries_news: bool,
    pub sack: &'a SackBlocks,
    /// Time since the segment was sent whose timestamp it echoes.
    pub echo_age: Option<Nanos>,
    /// Time at which the peer sent it, with `rto.samples = ack_one_way`.
    pub one_way_sent_at: Option<Nanos>,
    /// It echoes a CE mark (ECE).
    pub echoes_congestion: bool,
}

/// A sample for the RTT estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RttSample {
    #[default]
    None,
    /// Of the one segment that is timed, sent at this time.
    Timed { sent_at: Nanos },
    /// Of any segment.
    Each { rtt: Nanos },
    /// From the sending of the ACK to its arrival; without `ends_backoff` a retransmission may have had a part in it.
    OneWay { sent_at: Nanos, ends_backoff: bool },
}

/// The part of an ACK that counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Part {
    #[default]
    Nothing,
    /// It is below SND.UNA.
    Old,
    NothingOutstanding,
    Whole,
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckSummary {
    pub(super) part: Part,
    pub sample: RttSample,
    /// RTT of the segment that was delivered last.
    pub rtt: Option<Nanos>,
    /// The cumulative acknowledgment advanced.
    pub(super) advanced: bool,
    /// It is of data.
    pub(super) acknowledged: bool,
    /// A segment was acknowledged cumulatively or selectively that was never sent twice, before the episode.
    pub(super) original_delivered: bool,
    /// A segment that was sent twice was acknowledged cumulatively.
    pub(super) retransmission_acknowledged: bool,
    /// Something was newly acknowledged selectively.
    pub(super) sacked: bool,
    /// A DSACK reports a spurious retransmission.
    pub(super) dsack: bool,
    /// That retransmission was the tail loss probe.
    pub(super) dsack_of_probe: bool,
    /// The peer echoes a CE mark.
    pub(super) echoes_congestion: bool,
    /// The retransmission timer has to be restarted.
    pub(super) set_timer: bool,
    /// A retransmission was found lost.
    pub(super) lost_again: bool,
    /// Neither an advance, nor data, nor a window update, nor a DSACK.
    pub(super) duplicate: bool,
    /// The ACK probably waited for the receiver's timer.
    pub(super) delayed: bool,
    /// Segments that had been delivered when the segment was sent that was sent last of those delivered now.
    pub(super) prior_delivered: Option<u32>,
    /// Segments delivered, or counted so.
    pub(super) delivered: u32,
    /// Segments in flight before this ACK.
    pub(super) prior_in_flight: u32,
}

bitflags! {
    /// Events of a flight. Several may come with one ACK; the sender draws their consequences in this order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct Edges: u8 {
        /// A tail loss probe recovered a loss: a whole recovery in one ACK.
        const TAIL_LOSS = 1;
        /// A recovery or reduction is complete; `Facts::next_cwnd` says with which window.
        const LEFT = 2;
        /// The latest recovery was spurious.
        const UNDONE = 4;
        /// Fast recovery begins.
        const ENTERED = 8;
        /// cwnd is reduced without a loss: the peer echoes a CE mark.
        const REDUCED = 16;
        /// Everything outstanding is retransmitted after duplicate ACKs (Tahoe).
        const RESTARTED = 32;
        /// The retransmission timer expired.
        const TIMED_OUT = 64;
    }
}

/// Fast recovery as an ACK or a timeout found it and left it. An ACK that ends one and begins the next has it go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FastRecovery {
    #[default]
    Off,
    Began,
    Ended,
    GoesOn,
}

impl FastRecovery {
    #[inline]
    pub fn new(was_on: bool, is_on: bool) -> Self {
        match (was_on, is_on) {
            (false, false) => Self::Off,
            (false, true) => Self::Began,
            (true, false) => Self::Ended,
            (true, true) => Self::GoesOn,
        }
    }

    /// It was in progress before.
    pub fn was_on(self) -> bool {
        matches!(self, Self::GoesOn | Self::Ended)
    }
}

/// cwnd when a recovery is over or a timeout has been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum NextCwnd {
    /// As the controller says.
    #[default]
    Unchanged,
    /// These bytes.
    Bytes(u32),
    /// ssthresh, if it has been set.
    Ssthresh,
    /// ssthresh, and not more than these bytes.
    SsthreshUpTo(u32),
}

/// The effect of an ACK on cwnd apart from its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CwndRule {
    #[default]
    Keep,
    /// It grows by the controller's algorithm for the delivered data.
    Grow,
    /// It moves towards ssthresh as these segments are delivered (proportional rate reduction).
    Reduce { segments: u32 },
}

/// The one timer of outstanding data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SetTimer {
    #[default]
    Keep,
    Stop,
    /// One retransmission timeout from now.
    Rto,
    At(Nanos),
}

impl SetTimer {
    /// This and then `later`.
    pub fn then(self, later: Self) -> Self {
        if later == Self::Keep { self } else { later }
    }
}

/// The findings from an ACK or a timeout. [`Sender::apply`](crate::sender::Sender::apply) draws all consequences.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// Bytes newly delivered. Duplicate ACKs without a scoreboard count as one segment each during recovery.
    pub delivered: u32,
    /// Bytes newly marked lost.
    pub lost: u32,
    /// RTT of the segment that was delivered last.
    pub rtt: Option<Nanos>,
    pub edges: Edges,
    pub fast_recovery: FastRecovery,
    /// The cumulative acknowledgment advanced.
    pub advanced: bool,
    /// The peer echoes a CE mark, so that congestion is certain.
    pub marked: bool,
    /// With ENTERED or TIMED_OUT: cwnd is being reduced already.
    pub reducing: bool,
    /// With ENTERED: after fewer duplicates or SACKed segments than is ordinary.
    pub early: bool,
    /// With TIMED_OUT: not for a segment that the timer has retransmitted before.
    pub first: bool,
    /// With UNDONE: it was a timeout.
    pub undone_timeout: bool,
    /// With ENTERED, REDUCED or TIMED_OUT: FlightSize for ssthresh, bytes.
    pub flight: u32,
    pub next_cwnd: NextCwnd,
    pub rule: CwndRule,
    /// The first unacknowledged segment is to be retransmitted.
    pub retransmit: bool,
    /// Everything outstanding is to be retransmitted.
    pub go_back: bool,
    pub timer: SetTimer,
    /// For a rate-based controller, which this ACK informs instead of `rule`.
    pub delivery: Option<Delivery>,
}

impl Facts {
    /// These segments are newly marked lost.
    pub fn lose(&mut self, segments: u32, mss: u32) {
        self.lost = self.lost.saturating_add(segments.saturating_mul(mss));
    }
}

/// Duplicate acknowledgments, or segments SACKed, that mean a loss. Early retransmit: with few segments outstanding and
/// nothing new to send, fewer have to suffice.
// RFC 5827 §3.1 and §3.2: if fewer than four segments are outstanding and no unsent data is ready, the threshold is the
// number outstanding less one; with only one segment outstanding there is nothing to detect a loss by.
#[inline]
pub(crate) fn loss_threshold(
    early_retransmit: bool,
    outstanding_segments: u32,
    has_new_data: bool,
    ordinary: u32,
) -> u32 {
    if early_retransmit && !has_new_data && (2..4).contains(&outstanding_segments) {
        ordinary.min(outstanding_segments - 1)
    } else {
        ordinary
    }
}

#[cfg(test)]
mod tests {
    use super::loss_threshold;

    #[test]
    fn three_outstanding_segments_need_two_duplicates_and_two_need_one() {
        assert_eq!(loss_threshold(true, 4, false, 3), 3);
        assert_eq!(loss_threshold(true, 3, false, 3), 2);
        assert_eq!(loss_threshold(true, 2, false, 3), 1);
        assert_eq!(loss_threshold(true, 1, false, 3), 3);
        assert_eq!(loss_threshold(true, 3, true, 3), 3);
        assert_eq!(loss_threshold(false, 3, false, 3), 3);
    }
}
