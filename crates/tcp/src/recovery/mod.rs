//! Loss recovery: when duplicate acknowledgements mean a loss, and what acknowledgements do until it is repaired.
//!
//! Recovery holds the part of cwnd that belongs to the repair (RFC 5681's "inflation") apart from the congestion
//! controller's window: the window in force is their sum, and leaving recovery is dropping the inflation.
//! One file an algorithm; this one holds what they share.

mod congestion_mark;
mod duplicates;
mod early_retransmit;
mod episodes;
mod f_rto;
mod growth;
mod limited_transmit;
mod new_reno;
mod prr;
mod rack;
mod reno;
mod rtt_sample;
mod sack;
mod scoreboard;
mod selective;
mod tahoe;
mod tail_loss_probe;
mod timer;
mod undo;

pub(crate) use growth::Progress;
pub(crate) use selective::{Arrival, Selective, Sender};

use crate::Nanos;
use crate::congestion::{CongestionControl, Controller, SsthreshBase};
use crate::profile::Profile;
use crate::sequence::Position;
use limited_transmit::LimitedTransmit;
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
    /// A scoreboard of every segment in flight (RFC 6675), fed by selective acknowledgements where the peer sends them
    /// and by duplicate acknowledgements where it does not; `rack`, `tail_loss_probe`, `proportional_rate_reduction`
    /// and the undo rules refine it.
    Sack,
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
    /// Of these, bytes of data: a FIN that rides along is none.
    pub data_bytes: u32,
    pub mss_bytes: u32,
    /// New data could leave if the congestion window allowed it.
    pub has_new_data: bool,
    pub ssthresh_base: SsthreshBase,
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

/// What an acknowledgement of new data means for the repair under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnAck {
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
    /// Congestion was answered for data sent before this position.
    answered: Position,
    limited: LimitedTransmit,
    /// Bytes added to the congestion window for the repair; negative after large partial acknowledgements.
    inflation: i32,
    duplicate_acks: u32,
    /// Bytes by which the latest acknowledgement advanced.
    advance: u32,
    recovering: bool,
    /// `inflation` counts.
    inflated: bool,
    partial_seen: bool,
}

impl Recovery {
    // RFC 6582 §3.2 step 1: recover is initially the initial send sequence number.
    pub(crate) fn new(initial: Position) -> Self {
        Self {
            recover: initial,
            answered: initial,
            limited: LimitedTransmit::default(),
            inflation: 0,
            duplicate_acks: 0,
            advance: 0,
            recovering: false,
            inflated: false,
            partial_seen: false,
        }
    }

    /// The window in force: the controller's, changed by the repair, and never below one segment.
    #[inline]
    pub(crate) fn window(&self, controller: &Controller, mss_bytes: u32) -> u32 {
        if self.inflated {
            let window = i64::from(controller.window()) + i64::from(self.inflation);
            window.clamp(i64::from(mss_bytes), i64::from(u32::MAX)) as u32
        } else {
            controller.window()
        }
    }

    /// Whether a loss is being repaired.
    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering
    }

    pub(crate) fn on_duplicate_ack(
        &mut self,
        now: Nanos,
        profile: &Profile,
        outstanding: &Outstanding,
        controller: &mut Controller,
    ) -> OnDuplicate {
        self.duplicate_acks += 1;
        if self.recovering {
            // RFC 5681 §3.2 step 4: for each additional duplicate ACK, cwnd MUST be incremented by SMSS.
            self.inflation = self.inflation.saturating_add_unsigned(outstanding.mss_bytes);
            return OnDuplicate::Nothing;
        }
        // RFC 6582 §3.2 step 2: enter only if the cumulative acknowledgment covers more than recover. A retransmission
        // timeout sets it for all; NewReno and Tahoe set it themselves as well.
        let after_timeout = outstanding.first <= self.recover;
        if after_timeout && !new_reno::heuristic_says_lost(self, profile, outstanding, controller) {
            return OnDuplicate::Nothing;
        }
        let segments = outstanding.data_bytes.div_ceil(outstanding.mss_bytes);
        let ordinary = profile.duplicate_ack_threshold;
        let threshold =
            early_retransmit::threshold(profile.early_retransmit, segments, outstanding.has_new_data, ordinary);
        if self.duplicate_acks != threshold {
            if self.duplicate_acks < threshold && profile.limited_transmit {
                self.inflation = self.limited.on_duplicate(self.duplicate_acks, outstanding);
                self.inflated = true;
            }
            return OnDuplicate::Nothing;
        }
        match profile.recovery {
            RecoveryAlgorithm::Tahoe => tahoe::on_threshold(self, now, outstanding, controller),
            RecoveryAlgorithm::Reno => reno::on_threshold(self, now, outstanding, controller),
            RecoveryAlgorithm::NewReno | RecoveryAlgorithm::Sack => {
                new_reno::on_threshold(self, now, outstanding, controller)
            }
        }
    }

    /// New data is acknowledged, `bytes` of it. True if a loss is being repaired: [`on_ack`](Self::on_ack) then says what
    /// that means; else the window may grow.
    #[inline]
    pub(crate) fn note_ack(&mut self, bytes: u32) -> bool {
        self.duplicate_acks = 0;
        self.advance = bytes;
        if self.inflated && !self.recovering {
            self.leave();
        }
        self.recovering
    }

    /// `outstanding` is as it stands after the `bytes` newly acknowledged are gone.
    pub(crate) fn on_ack(
        &mut self,
        bytes: u32,
        profile: &Profile,
        outstanding: &Outstanding,
        controller: &mut Controller,
    ) -> OnAck {
        if profile.recovery == RecoveryAlgorithm::NewReno {
            new_reno::on_ack(self, bytes, profile, outstanding, controller)
        } else {
            reno::on_ack(self, profile, outstanding, controller)
        }
    }

    /// Whether the duplicates that have just begun a repair were fewer than is ordinary.
    pub(crate) fn began_early(&self, profile: &Profile) -> bool {
        self.duplicate_acks < profile.duplicate_ack_threshold
    }

    /// What is under way, as `tcpi_ca_state` tells it: 0 nothing, 1 duplicate acknowledgements, 3 fast recovery, 4 sending
    /// again what was outstanding at a timeout (or, with Tahoe, at a fast retransmit).
    pub(crate) fn state(&self, first: Position) -> u8 {
        if self.recovering {
            3
        } else if first < self.recover {
            4
        } else {
            u8::from(self.duplicate_acks > 0)
        }
    }

    /// The retransmission timer expired with `highest` one past the highest position sent.
    // RFC 6582 §3.2 step 4 ("retransmit timeouts"): record the highest sequence number transmitted in recover, and
    // exit fast recovery. It keeps duplicates of segments sent again from passing for a new loss, so all use it.
    pub(crate) fn on_timeout(&mut self, highest: Position) {
        self.recover = highest;
        self.answered = highest;
        self.duplicate_acks = 0;
        self.leave();
    }

    // RFC 5681 §3.2 steps 2 and 3: ssthresh = max (FlightSize/2, 2*SMSS); cwnd = ssthresh plus 3*SMSS, which stands
    // for the segments that have left the network and are buffered at the receiver.
    fn enter(&mut self, now: Nanos, outstanding: &Outstanding, controller: &mut Controller) -> OnDuplicate {
        let limited = self.limited.sent_bytes(outstanding);
        let flight = outstanding.flight_bytes.saturating_sub(limited);
        controller.on_congestion(now, outstanding.ssthresh_base.bytes(flight, controller.window()));
        self.answered = outstanding.highest;
        self.inflation = 0i32.saturating_add_unsigned(self.duplicate_acks.saturating_mul(outstanding.mss_bytes));
        self.recovering = true;
        self.inflated = true;
        self.partial_seen = false;
        OnDuplicate::Retransmit
    }

    fn leave(&mut self) {
        self.recovering = false;
        self.inflated = false;
        self.inflation = 0;
        self.limited.forget();
    }
}
