//! Congestion-window validation: which acknowledgments let the window grow, and what becomes of window that is not
//! used. One file per rule.
//!
//! The contract, for the sender: after each burst of transmissions, that is once `poll_transmit` has nothing more to
//! send or cwnd forbids it, call [`Validation::on_transmit`], with `limited` if cwnd, rather than the application or
//! the peer's window, ended the burst; then [`Validation::unused`], whose answer, if any, replaces window and threshold
//! (not for rate-based controllers; Linux's rule only with `app_limited_decay`). On an acknowledgment of new data
//! outside of recovery call [`Validation::on_ack`], then ask [`Validation::allows_growth`] before the controller's
//! `on_ack`. When the restart window applied, call [`Validation::on_restart`]. When a recovery begins, call
//! [`Validation::on_congestion`] after the controller's and let its answer, if any, replace window and threshold; when
//! it is over (and not undone), call [`Validation::on_recovered`] for the same. After a timeout call
//! [`Validation::on_timeout`]. All windows are in segments. With [`WindowValidation::Off`] there is no [`Validation`].

mod cwnd_limited;
mod rfc7661;

use crate::Nanos;
use crate::profile::WindowValidation;
use crate::sequence::SeqNum;
use cwnd_limited::CwndLimited;
use rfc7661::Rfc7661;

/// A burst of transmissions, as it leaves the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    /// cwnd kept the sender from sending more.
    pub limited: bool,
    /// Segments sent and not acknowledged cumulatively.
    pub outstanding_segments: u32,
    pub una: SeqNum,
    pub nxt: SeqNum,
    pub window_segments: u32,
    /// The window is below the threshold.
    pub in_slow_start: bool,
}

/// The data on which the unused window depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unused {
    pub window_segments: u32,
    pub initial_window_segments: u32,
    /// Retransmission timeout in force.
    pub rto: Nanos,
    /// Nothing was lost, reordered or marked of late.
    pub open: bool,
}

/// A smaller window, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shrunk {
    pub window_segments: u32,
    /// The threshold is to be at least this.
    pub least_ssthresh_segments: u32,
}

impl Shrunk {
    /// A window given up without congestion: the threshold remembers three quarters of it.
    // RFC 2861 §3.1, RFC 7661 §4.4.3: ssthresh = max(ssthresh, 3*cwnd/4); Linux's tcp_current_ssthresh.
    fn from(window_segments: u32, to: u32) -> Self {
        Self { window_segments: to, least_ssthresh_segments: window_segments / 2 + window_segments / 4 }
    }
}

/// The rule at work.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    rule: Rule,
    /// Retransmissions before the recovery that is in progress.
    retransmissions_before: u32,
}

#[derive(Clone, Debug)]
enum Rule {
    CwndLimited(CwndLimited),
    Rfc7661(Rfc7661),
}

impl Validation {
    pub(crate) fn new(rule: WindowValidation, mss_bytes: u32) -> Option<Self> {
        let rule = match rule {
            WindowValidation::Off => return None,
            WindowValidation::CwndLimited { .. } => Rule::CwndLimited(CwndLimited::default()),
            WindowValidation::Rfc7661 => Rule::Rfc7661(Rfc7661::new(mss_bytes)),
        };
        Some(Self { rule, retransmissions_before: 0 })
    }

    /// A burst was sent.
    #[inline]
    pub(crate) fn on_transmit(&mut self, now: Nanos, burst: &Burst) {
        if let Rule::CwndLimited(rule) = &mut self.rule {
            rule.on_transmit(now, burst);
        }
    }

    /// New data is acknowledged, outside of recovery.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Nanos, una: SeqNum, nxt: SeqNum, srtt: Nanos, window_segments: u32) {
        match &mut self.rule {
            Rule::CwndLimited(rule) => rule.on_ack(now),
            Rule::Rfc7661(rule) => rule.on_ack(now, una, nxt, srtt, window_segments),
        }
    }

    /// True if acknowledgments let the window grow now.
    #[inline]
    pub(crate) fn allows_growth(&self, window_segments: u32, in_slow_start: bool) -> bool {
        match &self.rule {
            Rule::CwndLimited(rule) => rule.allows_growth(window_segments, in_slow_start),
            Rule::Rfc7661(rule) => rule.is_validated(window_segments),
        }
    }

    /// The window that is left, if some was unused for too long.
    #[inline]
    pub(crate) fn unused(&mut self, now: Nanos, unused: &Unused) -> Option<Shrunk> {
        match &mut self.rule {
            Rule::CwndLimited(rule) => rule.unused(now, unused),
            Rule::Rfc7661(rule) => rule.unused(now, unused),
        }
    }

    /// The connection was idle for longer than the RTO, and the restart window applied.
    pub(crate) fn on_restart(&mut self, now: Nanos) {
        if let Rule::CwndLimited(rule) = &mut self.rule {
            rule.on_restart(now);
        }
    }

    /// A recovery begins, with this number of segments in flight and after this number of retransmissions in all: the
    /// window during it, if it is not the controller's.
    pub(crate) fn on_congestion(
        &mut self,
        flight_segments: u32,
        window_segments: u32,
        retransmissions: u32,
    ) -> Option<u32> {
        self.retransmissions_before = retransmissions;
        match &mut self.rule {
            Rule::CwndLimited(_) => None,
            Rule::Rfc7661(rule) => rule.on_congestion(flight_segments, window_segments),
        }
    }

    /// The recovery is over, after this number of retransmissions in all: cwnd and ssthresh after it, if they are not
    /// the controller's.
    pub(crate) fn on_recovered(&mut self, retransmissions: u32) -> Option<u32> {
        match &mut self.rule {
            Rule::CwndLimited(_) => None,
            Rule::Rfc7661(rule) => rule.on_recovered(retransmissions - self.retransmissions_before),
        }
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, now: Nanos) {
        match &mut self.rule {
            Rule::CwndLimited(rule) => rule.on_ack(now),
            Rule::Rfc7661(rule) => rule.forget(),
        }
    }
}
