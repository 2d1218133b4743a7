//! The data that an ACK delivers, by its cumulative acknowledgment and SACK blocks, and the resulting RTT sample.

use super::board::Sent;
use super::undo::answers_earlier;
use super::{Ack, Flight, Scoreboard};
use crate::Nanos;
use crate::connection::timestamps;
use crate::sender::recovery::RttSample;
use crate::sequence::SeqNum;

/// The part of an ACK that counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Kind {
    #[default]
    Nothing,
    /// It is below SND.UNA.
    Old,
    NothingOutstanding,
    Whole,
}

/// The result of an ACK.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckSummary {
    pub(super) kind: Kind,
    /// Sample for the RTT estimator.
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
    pub(super) repeated_acknowledged: bool,
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

/// Send times from which an acknowledgment gives a round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct SendTimes {
    first_acknowledged: Option<Nanos>,
    last_acknowledged: Option<Nanos>,
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
    /// Segments that had been delivered when the segment left that left last of those delivered now.
    pub prior_delivered: Option<u32>,
}

impl SendTimes {
    #[inline]
    pub fn on_acknowledged(&mut self, sent_at: Nanos) {
        self.first_acknowledged.get_or_insert(sent_at);
        self.last_acknowledged = Some(sent_at);
    }

    #[inline]
    pub fn on_sacked(&mut self, sent_at: Nanos) {
        self.first_sacked.get_or_insert(sent_at);
        self.last_sacked = Some(sent_at);
    }

    #[inline]
    pub fn on_delivered(&mut self, sent: &Sent) {
        self.prior_delivered = self.prior_delivered.max(Some(sent.delivered));
    }

    pub fn sacked_rtt(&self, now: Nanos) -> Option<Nanos> {
        self.first_sacked.map(|sent_at| now - sent_at)
    }

    /// The sample for the estimator, and the RTT of the segment delivered last.
    // RFC 6298 §3 (Karn): never from a segment sent twice, unless a timestamp distinguishes the transmissions.
    fn rtt(&self, now: Nanos, summary: &AckSummary, echo_age: Option<Nanos>) -> Option<(Nanos, Nanos)> {
        let ago = |sent_at: Option<Nanos>| sent_at.map(|sent_at| now - sent_at);
        let unambiguous = !summary.repeated_acknowledged;
        let rtt = ago(self.first_acknowledged)
            .filter(|_| unambiguous)
            .or(ago(self.first_sacked))
            .or(echo_age.filter(|_| summary.acknowledged).map(timestamps::round_trip))?;
        let latest = ago(self.last_sacked).or(ago(self.last_acknowledged).filter(|_| unambiguous)).unwrap_or(rtt);
        Some((rtt, latest))
    }
}

impl Scoreboard {
    /// Records the data that an ACK delivers.
    pub fn measure(&mut self, flight: &Flight<'_>, ack: &Ack<'_>) -> AckSummary {
        self.train.end();
        let old = ack.ack < ack.prior_una;
        let mut summary = AckSummary {
            advanced: ack.ack > ack.prior_una,
            echoes_congestion: ack.echoes_congestion && !old,
            prior_in_flight: self.in_flight(),
            ..AckSummary::default()
        };
        let mut sample = SendTimes::default();
        let has_sack = self.sack && !ack.sack.is_empty();
        if old && (!has_sack || self.board.is_empty()) {
            return summary;
        }
        let highest_sacked = self.board.highest_sacked();
        if has_sack {
            self.tag(flight, ack, &mut summary, &mut sample);
        }
        summary.duplicate = !(summary.advanced || ack.carries_news || summary.dsack || old);
        summary.kind = if old {
            Kind::Old
        } else if self.board.is_empty() {
            Kind::NothingOutstanding
        } else {
            self.take_acknowledged(flight, ack, highest_sacked, &mut summary, &mut sample);
            Kind::Whole
        };
        let echo_age = ack.echo_age.filter(|_| !old);
        if let Some((rtt, latest)) = sample.rtt(flight.now, &summary, echo_age) {
            self.shortest.sample(flight.now, latest);
            summary.sample = RttSample::Each { rtt };
            summary.rtt = Some(latest);
        }
        summary.prior_delivered = sample.prior_delivered;
        summary
    }

    /// Removes cumulatively acknowledged segments.
    fn take_acknowledged(
        &mut self,
        flight: &Flight<'_>,
        ack: &Ack<'_>,
        highest_sacked: SeqNum,
        summary: &mut AckSummary,
        sample: &mut SendTimes,
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
            .or_else(|| self.board.trim_acknowledged(flight.una, flight.mss, flight.data_end, before.as_ref()))
        {
            taken += 1;
            before = Some(sent);
            if sent.is_repeated() {
                summary.repeated_acknowledged = true;
            } else if !sent.is_sacked() {
                sample.on_acknowledged(sent.sent_at);
                lowest_original = lowest_original.min(sent.start);
                summary.original_delivered |= sent.end() <= self.high;
            }
            if !sent.is_sacked() {
                sample.on_delivered(&sent);
            }
            if let Some(rate) = &mut self.rate {
                rate.on_delivered(self.board.numbers().start - 1, sent.end());
                rate.pop();
            }
            if !sent.is_sacked() && self.sack {
                self.deliver(summary, 1);
                // RFC 8985 §6.2 step 2: an acknowledgment that answers a timestamp from before the retransmission is for
                // the original. Not so of SACKs, as in Linux: they echo the timestamp of the last segment in order.
                let needless = sent.is_repeated()
                    && ack.echo_age.is_some_and(|age| answers_earlier(flight.now, age, sent.sent_at));
                if !needless {
                    self.rack.advance(flight.now, self.shortest.get(), &sent);
                }
            }
        }
        if taken == 0 {
            // A retransmitted head whose follower was sacked: the timer of the head begins with its retransmission.
            if let (Some(rtt), Some(front)) = (sample.sacked_rtt(flight.now), self.board.front()) {
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
                let highest = self.board.highest_sacked().max(flight.una);
                self.note_reordering(flight.mss, lowest_original, highest);
            }
        } else {
            self.take_duplicates(taken, summary);
            // Without SACK an acknowledgment does not distinguish an original from its retransmission.
            summary.original_delivered &= !summary.repeated_acknowledged;
        }
    }
}
