//! Round trips over the scoreboard: what an acknowledgement says of them, retransmissions and SACKs considered (Linux's
//! `tcp_ack_update_rtt`).

use super::scoreboard::Sent;
use super::selective::{Meaning, Sender};
use crate::Nanos;
use crate::rtt::ShortestRtt;
use crate::timestamps;

/// Send times from which an acknowledgement gives a round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RttSample {
    first_acknowledged: Option<Nanos>,
    last_acknowledged: Option<Nanos>,
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
    /// Segments that had been delivered when the segment left that left last of those delivered now.
    pub prior_delivered: Option<u32>,
}

impl RttSample {
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

    /// Feeds the estimator and the controller; returns the round trip of the segment delivered last.
    // RFC 6298 §3 (Karn): never from a segment sent twice, unless a timestamp tells the transmissions apart.
    pub fn apply(
        &self,
        sender: &mut Sender<'_>,
        shortest: &mut ShortestRtt,
        meaning: &Meaning,
        echo_age: Option<Nanos>,
    ) -> Option<Nanos> {
        let now = sender.now;
        let ago = |sent_at: Option<Nanos>| sent_at.map(|sent_at| now - sent_at);
        let unambiguous = !meaning.repeated_acknowledged;
        let round_trip = ago(self.first_acknowledged)
            .filter(|_| unambiguous)
            .or(ago(self.first_sacked))
            .or(echo_age.filter(|_| meaning.acknowledged).map(timestamps::round_trip))?;
        let latest =
            ago(self.last_sacked).or(ago(self.last_acknowledged).filter(|_| unambiguous)).unwrap_or(round_trip);
        shortest.sample(now, latest);
        sender.rtt.sample_duration(&sender.profile.rto, round_trip, sender.una, sender.nxt);
        Some(latest)
    }
}
