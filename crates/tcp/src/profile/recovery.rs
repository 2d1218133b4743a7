//! Loss recovery as a profile chooses it, each algorithm with the rules that only it has.

use super::error::{LONGEST_TIMEOUT, ProfileError, within};
use super::sending::Trains;
use super::with_defaults;
use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Loss recovery algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAlgorithm {
    /// Fast retransmit, then slow start from the hole.
    Tahoe,
    /// Fast retransmit and fast recovery (RFC 5681): the first ACK of new data ends it.
    Reno(RenoRules),
    /// Fast retransmit and fast recovery with partial ACKs (RFC 6582).
    NewReno(NewRenoRules),
    /// A scoreboard of every segment in flight (RFC 6675), fed by SACK options where the peer sends them and by
    /// duplicate ACKs where it does not.
    Scoreboard(ScoreboardRules),
}

/// Rules of Reno.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RenoRules {
    /// cwnd when recovery ends.
    pub exit: RecoveryExit,
}

/// cwnd when fast recovery ends.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryExit {
    /// ssthresh (RFC 5681 §3.2 step 6).
    #[default]
    Ssthresh,
    /// Bytes in flight plus two segments, so that the ACK that ends recovery releases two (ns-2's BayFullTcp).
    FlightPlusTwo,
}

/// Rules of NewReno.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewRenoRules {
    /// Restart the retransmission timer on every partial ACK ("slow but steady") instead of only on the first
    /// ("impatient", RFC 6582 §4).
    pub slow_but_steady: bool,
    /// After a timeout, distinguish duplicate ACKs that mean a loss from those of spurious retransmissions by how far ACKs
    /// advance (RFC 6582 §4.1).
    pub ack_heuristic: bool,
}

with_defaults! {
    /// Rules of the scoreboard.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ScoreboardRules {
        /// Detect losses by time (RACK, RFC 8985) instead of by counting (RFC 6675). Needs `sack`.
        rack: bool = false,
        /// Tail loss probes (RFC 8985 §7); none: no probes. Needs `sack`.
        tail_loss_probe: Option<TailLossProbe> = None,
        /// Proportional rate reduction (RFC 9937) instead of an immediate reduction of cwnd.
        prr: bool = false,
        /// Detect spurious recoveries by timestamps (Eifel, RFC 3522).
        undo_by_timestamps: bool = false,
        /// Detect spurious recoveries by DSACKs (RFC 3708). Needs `sack`.
        undo_by_dsack: bool = false,
        /// Detect spurious timeouts by the ACKs that follow (RFC 5682).
        f_rto: bool = false,
        /// An ACK of new data restarts the retransmission timer (RFC 6298 §5.3); else the timer counts from when the
        /// first outstanding segment was sent (RFC 7765 §4, for any number of outstanding segments).
        timer_restart: bool = true,
        /// Trains of segments, paced or not, except in the first flight of a start-up scheme; none: each segment is
        /// sent as soon as the window allows.
        trains: Option<Trains> = None,
    }
}

/// Tail loss probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailLossProbe {
    /// Additional delay of a probe when a single segment is outstanding, whose ACK the peer may delay (RFC 8985's
    /// TLP.max_ack_delay).
    pub max_ack_delay_ns: Nanos,
}

impl RecoveryAlgorithm {
    /// RFC 5681's.
    pub const RENO: Self = Self::Reno(RenoRules { exit: RecoveryExit::Ssthresh });
    /// RFC 6582's, the impatient variant.
    pub const NEW_RENO: Self = Self::NewReno(NewRenoRules { slow_but_steady: false, ack_heuristic: false });
    /// RFC 6675's.
    pub const SCOREBOARD: Self = Self::Scoreboard(ScoreboardRules::DEFAULT);

    /// Rules of the scoreboard; of another algorithm those that refine nothing.
    #[inline]
    pub(crate) fn scoreboard(&self) -> &ScoreboardRules {
        match self {
            Self::Scoreboard(rules) => rules,
            _ => &ScoreboardRules::DEFAULT,
        }
    }

    /// True for a scoreboard.
    pub fn is_scoreboard(&self) -> bool {
        matches!(self, Self::Scoreboard(_))
    }

    /// Checks that every field is within its range.
    pub(super) fn validate(&self) -> Result<(), ProfileError> {
        let rules = self.scoreboard();
        if let Some(probe) = &rules.tail_loss_probe {
            let field = "recovery.scoreboard.tail_loss_probe.max_ack_delay_ns";
            within(field, probe.max_ack_delay_ns, 0..=LONGEST_TIMEOUT)?;
        }
        rules.trains.map_or(Ok(()), |trains| trains.validate())
    }
}
