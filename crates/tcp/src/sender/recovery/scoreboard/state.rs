//! The state of recovery, part by part.

use crate::Nanos;
use crate::sequence::SeqNum;

/// State of recovery, in the order of Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Something was delivered out of order, or a recovery may have been spurious.
    Disorder,
    /// cwnd is being reduced without a loss (an ECN mark, or a loss that a probe recovered).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// The amount that may be sent after an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Next {
    #[default]
    Nothing,
    /// Lost segments, as cwnd allows.
    Lost,
    /// New data, to detect a spurious timeout (F-RTO). If there is none, lost segments.
    New,
}

/// The uses of the one timer for outstanding data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Timer {
    #[default]
    Retransmission,
    /// RACK waits for segments that may only be reordered.
    Reordering,
    /// A tail loss probe is due.
    Probe,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Probe {
    /// TLP.end_seq: `nxt` when the probe left.
    pub(super) end: Option<SeqNum>,
    /// TLP.is_retrans: the probe was sent before.
    pub(super) is_repetition: bool,
}

impl Probe {
    /// True if a probe is outstanding that was sent before.
    pub fn is_repetition(&self) -> bool {
        self.end.is_some() && self.is_repetition
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FRto {
    /// The algorithm runs.
    pub(super) running: bool,
    /// New data has to leave now, even a small segment: only its acknowledgment ends the doubt.
    pub(super) offering: bool,
}

/// Evidence on whether an episode was spurious.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// SND.UNA when the episode began, while it may still prove spurious.
    pub(super) marker: Option<SeqNum>,
    /// Retransmissions of the episode that no DSACK has reported; none: nothing was retransmitted yet (Linux:
    /// `undo_retrans`).
    pub(super) undo_retrans: Option<u32>,
    /// When the first retransmission of the episode was sent; none once nothing that was retransmitted is in flight.
    pub(super) first_retransmission: Option<Nanos>,
}

impl Undo {
    /// True if an episode is in progress that may prove spurious.
    pub fn is_armed(&self) -> bool {
        self.marker.is_some()
    }

    /// An episode begins with this number of retransmissions in flight.
    pub fn begin_episode(&mut self, una: SeqNum, in_flight: u32) {
        self.marker = Some(una);
        self.undo_retrans = (in_flight > 0).then_some(in_flight);
    }

    pub fn on_retransmission(&mut self, now: Nanos) {
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
        self.first_retransmission.get_or_insert(now);
    }

    /// A DSACK that ends at `right` reports this number of segments.
    pub fn on_dsack(&mut self, right: SeqNum, segments: u32) {
        if self.marker.is_some_and(|marker| right > marker) {
            if let Some(undo_retrans) = &mut self.undo_retrans {
                *undo_retrans = undo_retrans.saturating_sub(segments);
            }
        }
    }
}
