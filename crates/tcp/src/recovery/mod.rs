//! Loss recovery: when duplicate acknowledgements mean a loss, and what acknowledgements do until it is repaired.
//!
//! Recovery holds the part of cwnd that belongs to the repair (RFC 5681's "inflation") apart from the congestion
//! controller's window: the window in force is their sum, and leaving recovery is dropping the inflation.
//! One file an algorithm; this one holds what they share.

mod new_reno;
mod reno;
mod tahoe;

use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};
use crate::sequence::Position;
use serde::{Deserialize, Serialize};

/// Loss recovery algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAlgorithm {
    /// Fast retransmit, then slow start from the hole.
    Tahoe,
    /// Fast retransmit and fast recovery (RFC 5681): the first new acknowledgement ends it.
    Reno,
    /// Fast retransmit and fast recovery with partial acknowledgements (RFC 6582).
    NewReno,
}

/// What the sender has outstanding when an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// First position not acknowledged.
    pub first: Position,
    /// One past the highest position ever sent.
    pub highest: Position,
    /// Bytes counted as in flight.
    pub flight_bytes: u32,
    pub mss_bytes: u32,
}

/// What to do after a duplicate acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDuplicate {
    Nothing,
    /// Send the first unacknowledged segment again.
    Retransmit,
    /// Send everything again from the first unacknowledged segment.
    GoBack,
}

/// What an acknowledgement of new data means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnAck {
    /// No repair was under way: the window may grow.
    Grow,
    /// The repair is over.
    Repaired,
    /// One hole is closed and the next begins at the first unacknowledged byte.
    Partial {
        /// Whether to restart the retransmission timer.
        restart_timer: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    /// Acknowledgements up to here belong to an episode already answered (RFC 6582's `recover`, plus one).
    recover: Position,
    /// Bytes added to the congestion window for the repair; negative after large partial acknowledgements.
    inflation: i64,
    duplicate_acks: u32,
    threshold: u32,
    algorithm: RecoveryAlgorithm,
    recovering: bool,
    partial_seen: bool,
}

impl Recovery {
    // RFC 6582 §3.2 step 1: recover is initially the initial send sequence number.
    pub(crate) fn new(algorithm: RecoveryAlgorithm, threshold: u32, initial: Position) -> Self {
        Self {
            recover: initial,
            inflation: 0,
            duplicate_acks: 0,
            threshold,
            algorithm,
            recovering: false,
            partial_seen: false,
        }
    }

    /// The window in force: the controller's, changed by the repair, and never below one segment.
    #[inline]
    pub(crate) fn window(&self, controller: &Controller, mss_bytes: u32) -> u32 {
        if self.recovering {
            let window = i64::from(controller.window()) + self.inflation;
            window.clamp(i64::from(mss_bytes), i64::from(u32::MAX)) as u32
        } else {
            controller.window()
        }
    }

    pub(crate) fn on_duplicate_ack(
        &mut self,
        now: Nanos,
        outstanding: &Outstanding,
        controller: &mut Controller,
    ) -> OnDuplicate {
        self.duplicate_acks += 1;
        if self.recovering {
            // RFC 5681 §3.2 step 4: for each additional duplicate ACK, cwnd MUST be incremented by SMSS.
            self.inflation += i64::from(outstanding.mss_bytes);
            return OnDuplicate::Nothing;
        }
        // RFC 6582 §3.2 step 2: enter only if the cumulative acknowledgment covers more than recover. A retransmission
        // timeout sets it for all; NewReno and Tahoe set it themselves as well.
        if self.duplicate_acks != self.threshold || outstanding.first <= self.recover {
            return OnDuplicate::Nothing;
        }
        match self.algorithm {
            RecoveryAlgorithm::Tahoe => tahoe::on_threshold(self, now, outstanding, controller),
            RecoveryAlgorithm::Reno => reno::on_threshold(self, now, outstanding, controller),
            RecoveryAlgorithm::NewReno => new_reno::on_threshold(self, now, outstanding, controller),
        }
    }

    /// `outstanding` is as it stands after the `bytes` newly acknowledged are gone.
    #[inline]
    pub(crate) fn on_ack(&mut self, bytes: u32, outstanding: &Outstanding, controller: &mut Controller) -> OnAck {
        self.duplicate_acks = 0;
        if !self.recovering {
            return OnAck::Grow;
        }
        if self.algorithm == RecoveryAlgorithm::NewReno {
            new_reno::on_ack(self, bytes, outstanding, controller)
        } else {
            reno::on_ack(self)
        }
    }

    /// The retransmission timer expired with `highest` one past the highest position sent.
    // RFC 6582 §3.2 step 4 ("retransmit timeouts"): record the highest sequence number transmitted in recover, and
    // exit fast recovery. It keeps duplicates of segments sent again from passing for a new loss, so all use it.
    pub(crate) fn on_timeout(&mut self, highest: Position) {
        self.recover = highest;
        self.duplicate_acks = 0;
        self.leave();
    }

    // RFC 5681 §3.2 steps 2 and 3: ssthresh = max (FlightSize/2, 2*SMSS); cwnd = ssthresh plus 3*SMSS, which stands
    // for the segments that have left the network and are buffered at the receiver.
    fn enter(&mut self, now: Nanos, outstanding: &Outstanding, controller: &mut Controller) -> OnDuplicate {
        controller.on_congestion(now, outstanding.flight_bytes);
        self.inflation = i64::from(self.threshold) * i64::from(outstanding.mss_bytes);
        self.recovering = true;
        self.partial_seen = false;
        OnDuplicate::Retransmit
    }

    fn leave(&mut self) {
        self.recovering = false;
        self.inflation = 0;
    }
}
