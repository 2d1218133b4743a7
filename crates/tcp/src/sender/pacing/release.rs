//! The sender asks its pacer whether a segment may leave.

use super::flight::Rate;
use super::{PacedBy, Pacer};
use crate::connection::shared::Connection;
use crate::sender::Sender;
use crate::{Deadline, Nanos, SECOND};

impl Sender {
    /// Whether new data that is ready has to wait for its turn; `poll_timeout` then says how long.
    pub(crate) fn holds_back(&mut self, conn: &Connection, now: Nanos) -> bool {
        self.extras.may_hold_back() && self.is_held(conn, now)
    }

    /// The handshake is complete or an ACK was processed: the rate of the window from here on.
    // Linux, tcp_cong_control: a timeout or an idle period changes cwnd, not the pacing rate.
    pub(crate) fn pace_window(&mut self, conn: &Connection) {
        let Some(pacer) = self.extras.pacer_mut() else { return };
        if let PacedBy::Window(rules) = &pacer.by {
            let windows = (self.controller.cwnd(), self.controller.ssthresh());
            let (mss, outstanding) = (conn.handshake.mss(), self.snd.flight());
            let srtt = self.rtt.smoothed(&conn.profile.rto);
            pacer.set_rate(srtt.map(|srtt| rules.rate(windows, mss, outstanding, srtt)));
        }
    }

    #[inline(never)]
    fn is_held(&mut self, conn: &Connection, now: Nanos) -> bool {
        if self.snd.nxt >= self.snd.data_end {
            return false;
        }
        self.begin_startup(conn);
        self.is_paced(now)
    }

    /// True if retransmissions, too, have to wait for their turn: only a permanent pacer makes them wait.
    #[inline]
    pub(crate) fn holds_back_retransmissions(&mut self, now: Nanos) -> bool {
        match self.extras.pacer() {
            Some(pacer) => !matches!(pacer.by, PacedBy::Startup { .. }) && self.is_paced(now),
            None => false,
        }
    }

    #[inline(never)]
    fn is_paced(&mut self, now: Nanos) -> bool {
        let Some(pacer) = self.extras.pacer_mut() else { return false };
        if pacer.is_over(now, self.snd.nxt) {
            self.extras.end_pacing();
            return false;
        }
        if pacer.is_ahead(self.snd.nxt) {
            return false;
        }
        match &pacer.by {
            PacedBy::Controller => pacer.set_rate(self.controller.pacing_rate().map(|rate| Rate::new(rate, SECOND))),
            PacedBy::Window(_) => {}
            PacedBy::Startup { flight, .. } => pacer.set_rate(Some(flight.rate)),
        }
        if pacer.holds(now) {
            return true;
        }
        if !pacer.continues_burst(now) {
            if let Some(scoreboard) = self.recovery.scoreboard_mut() {
                scoreboard.train.end();
            }
        }
        false
    }

    /// `bytes` of payload leave.
    #[inline]
    pub(crate) fn pace(&mut self, now: Nanos, bytes: u32) {
        if self.extras.pacer().is_some() {
            self.pace_segment(now, bytes);
        }
    }

    fn pace_segment(&mut self, now: Nanos, bytes: u32) {
        let train = self.recovery.scoreboard().map_or(1, |scoreboard| scoreboard.train.left().max(1));
        let Some(pacer) = self.extras.pacer_mut().filter(|pacer| !pacer.is_ahead(self.snd.nxt)) else { return };
        if let PacedBy::Startup { began, .. } = &mut pacer.by {
            began.get_or_insert(now);
        }
        pacer.on_sent(now, bytes, train);
    }

    /// A segment without payload leaves.
    #[inline]
    pub(crate) fn on_bare_sent(&mut self, now: Nanos) {
        if let Some(pacer) = self.extras.pacer_mut() {
            pacer.on_bare_sent(now);
        }
    }

    /// When a segment that is held back may leave.
    pub(crate) fn pacing_deadline(&self) -> Deadline {
        self.extras.pacer().map_or(Deadline::NEVER, Pacer::deadline)
    }

    /// Ends the pacing of a start-up scheme: there was a loss.
    pub(crate) fn end_paced_flight(&mut self) {
        if self.extras.pacer().is_some_and(|pacer| matches!(pacer.by, PacedBy::Startup { .. })) {
            self.extras.end_pacing();
        }
    }
}
