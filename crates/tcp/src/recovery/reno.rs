//! Reno: fast retransmit and fast recovery, ended by the first acknowledgement of new data (RFC 5681 §3.2).

use super::{OnAck, OnDuplicate, Outstanding, Recovery};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};
use crate::profile::{Profile, RecoveryExit};

/// The duplicate ACKs reached the threshold.
// RFC 5681 §3.2 asks no more than three duplicates, so several losses in one window halve cwnd several times; only
// duplicates that follow a retransmission timeout are held back (RFC 6582 §3.2 step 4; ns-2's `bugFix_`).
pub(super) fn on_threshold(
    recovery: &mut Recovery,
    now: Nanos,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnDuplicate {
    recovery.enter(now, outstanding, controller)
}

/// New data is acknowledged during fast recovery.
// RFC 5681 §3.2 step 6: set cwnd to ssthresh ("deflate" the window). ns-2's BayFullTcp: what is outstanding and two
// segments, if the window is inflated beyond ssthresh.
pub(super) fn on_ack(
    recovery: &mut Recovery,
    profile: &Profile,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnAck {
    if profile.recovery_exit == RecoveryExit::FlightPlusTwo && recovery.inflation > 0 {
        let mss = outstanding.mss_bytes;
        controller.set_window((outstanding.flight_bytes.div_ceil(mss) + 2) * mss);
    }
    recovery.leave();
    OnAck::Repaired
}
