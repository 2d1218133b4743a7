//! The sending half of an endpoint: which segments may be sent and when, and the effect of acknowledgments and silence.

pub(crate) mod acknowledgement;
pub(crate) mod congestion;
mod extras;
pub(crate) mod initial_window;
pub(crate) mod nagle;
pub(crate) mod pacing;
mod publish;
pub(crate) mod recovery;
mod reduction;
mod rtt;
mod sequence;
pub(crate) mod starting_point;
pub(crate) mod startup;
mod timers;
pub(crate) mod trains;
pub(crate) mod transmit;
pub(crate) mod window_validation;

use crate::connection::handshake::State;
use crate::connection::info::Info;
use crate::connection::shared::Connection;
use crate::profile::Profile;
use crate::segment::SentAt;
use crate::sequence::{SeqNum, near};
use crate::{Deadline, Nanos};
use congestion::controller::Controller;
use extras::SenderExtras;
use initial_window::Sharing;
use initial_window::bursts::Bursts;
use nagle::SmallSegments;
use pacing::Pacer;
use recovery::Recovery;
use rtt::RttEstimator;
use sequence::{PeerWindow, SendSequence};

/// The sender of a connection. What it shares with the receiver is handed to its methods.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Our stream: SND.UNA, SND.NXT, how far the application wrote, and Nagle's algorithm.
    snd: SendSequence,
    /// The window that the peer announces: SND.WND.
    peer_window: PeerWindow,
    /// The retransmission or persist timer.
    timers: Timers,
    /// When payload was last sent; during the handshake, when our SYN or SYN-ACK was sent, unless it was sent twice.
    last_sent_at: Option<SentAt>,
    /// cwnd and ssthresh.
    controller: Controller,
    recovery: Recovery,
    /// SRTT and RTO.
    rtt: RttEstimator,
    /// The first flight, and the data after an idle time.
    bursts: Bursts,
    /// What later connections learn from this one.
    sharing: Sharing,
    /// State that only some senders have.
    extras: SenderExtras,
}

/// The timer of outstanding data or of a closed window: when it expires, and how often it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// Expiry of the retransmission timer or, if `persisting`, of the persist timer.
    pub retransmit: Deadline,
    /// Consecutive expiries of the retransmission timer, or probes without an answer.
    pub retries: u32,
    /// Nothing is outstanding, and the peer's window or a cork holds back data: the persist timer runs.
    pub persisting: bool,
    /// Probes by which the interval between them has grown.
    pub persist_backoff: u8,
}

impl Timers {
    /// Data leaves, so the persist timer is a retransmission timer again.
    #[inline]
    pub fn end_persisting(&mut self) {
        if self.persisting {
            // Probes counted, not retransmissions.
            self.retries = 0;
        }
        self.persisting = false;
        self.persist_backoff = 0;
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.retransmit = Deadline::NEVER;
        self.persisting = false;
    }
}

impl Sender {
    pub fn snd(&self) -> &SendSequence {
        &self.snd
    }

    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// True if the data byte with this sequence number belongs to the first flight.
    #[inline]
    pub fn in_first_flight(&self, seq: u32) -> bool {
        let position = near(self.snd.nxt, seq);
        let sent = self.snd.max.min(self.snd.data_end);
        let end = self.bursts.first_flight_end(self.snd.initial(), sent);
        position > self.snd.initial() && position < end
    }

    /// An ACK with this acknowledgment and window repeats what is known.
    pub fn knows(&self, ack: u32, window: u32) -> bool {
        near(self.snd.una, ack) == self.snd.una && window == self.peer_window.bytes
    }

    /// cwnd in force, bytes.
    pub fn cwnd_bytes(&self, conn: &Connection) -> u32 {
        self.recovery.cwnd(self.controller.cwnd(), conn.handshake.mss())
    }

    /// ssthresh in bytes, if anything has set it.
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        self.controller.known_ssthresh()
    }

    pub fn srtt(&self, profile: &Profile) -> Option<Nanos> {
        self.rtt.smoothed(&profile.rto)
    }

    /// When the retransmission or persist timer expires, or a segment that is held back may leave.
    pub fn deadline(&self) -> Deadline {
        self.timers.retransmit.earliest(self.pacing_deadline())
    }

    /// What holds back a last segment that is not full.
    pub fn small_segments(&mut self) -> &mut SmallSegments {
        &mut self.snd.small
    }

    /// The application will write no more.
    pub fn close(&mut self) {
        self.snd.closing = self.snd.unwritten == 0;
        self.snd.closes_later = true;
    }

    /// The application has closed, whether or not our FIN can be sent yet.
    pub fn is_closing(&self) -> bool {
        self.snd.closing || self.snd.closes_later
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.timers.stop();
        self.extras.end_departures();
        self.snd.closing = true;
    }

    /// A record ends after the data written so far.
    pub fn end_record(&mut self, conn: &Connection) {
        let end = self.snd.wanted_end();
        self.extras.get_or_new(&conn.profile).record_ends.push(end);
    }

    /// Last possible end of a segment that begins at `position`: the end of its record, or of the data.
    #[inline]
    fn record_end(&self, position: SeqNum) -> SeqNum {
        match self.extras.record_ends() {
            None => self.snd.data_end,
            Some(ends) => ends.after(position).map_or(self.snd.data_end, |end| end.min(self.snd.data_end)),
        }
    }

    /// Fills in the values of the sender.
    pub fn describe(&self, conn: &Connection, info: &mut Info) {
        let mss = conn.handshake.mss().max(1);
        info.cwnd_segments = self.cwnd_bytes(conn) / mss;
        info.ssthresh_segments = self.controller.known_ssthresh().map(|ssthresh| ssthresh / mss);
        info.unacked = self.snd.flight().div_ceil(mss);
        info.retries = self.timers.retries;
        info.backoff = if self.timers.persisting { self.timers.persist_backoff.into() } else { self.rtt.backoffs() };
        info.srtt_ns = self.srtt(&conn.profile).unwrap_or(0);
        info.rttvar_ns = self.rtt.variation(&conn.profile.rto);
        info.rto_ns = self.rtt.rto();
        info.pacing_rate = self.extras.pacer().and_then(Pacer::rate);
        info.not_sent_bytes = self.snd.data_end.saturating_sub(self.snd.nxt);
        match &self.recovery {
            Recovery::Counting(counting) => info.recovery_state = counting.state(self.snd.una),
            Recovery::Scoreboard(scoreboard) => {
                info.scoreboard = true;
                scoreboard.describe(info);
            }
        }
    }

    pub fn check_invariants(&self, conn: &Connection) {
        debug_assert!(
            self.snd.una <= self.snd.nxt && self.snd.nxt <= self.snd.max,
            "in flight is at most what was sent"
        );
        debug_assert!(self.snd.max <= self.snd.end(), "nothing is sent before written");
        debug_assert!(
            self.cwnd_bytes(conn) >= conn.handshake.mss(),
            "the congestion window holds at least one segment"
        );
        let is_over = matches!(conn.handshake.state(), State::Closed | State::Listen | State::TimeWait);
        debug_assert!(!self.timers.retransmit.is_set() || !is_over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_a_closed_window_do_not_count_as_retransmissions() {
        let mut timers = Timers { retries: 2, persist_backoff: 2, persisting: true, ..Timers::default() };
        timers.end_persisting();
        assert_eq!((timers.retries, timers.persist_backoff, timers.persisting), (0, 0, false));
        timers.retries = 3;
        timers.end_persisting();
        assert_eq!(timers.retries, 3, "those of the retransmission timer stay");
    }
}
