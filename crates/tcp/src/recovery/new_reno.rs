//! NewReno: fast recovery that lasts until everything sent before it is acknowledged (RFC 6582).

use super::{OnAck, OnDuplicate, Outstanding, Recovery};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};
use crate::profile::Profile;

/// The duplicate ACKs reached the threshold.
pub(super) fn on_threshold(
    recovery: &mut Recovery,
    now: Nanos,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnDuplicate {
    // RFC 6582 §3.2 step 2.
    recovery.recover = outstanding.highest;
    recovery.enter(now, outstanding, controller)
}

/// Whether duplicates of something that the timer sent again mean a loss all the same.
// RFC 6582 §4.1: if cwnd is greater than SMSS and the difference between highest_ack and prev_highest_ack is at most
// 4*SMSS, duplicate ACKs indicate a lost segment; else they likely come from needless retransmissions.
pub(super) fn heuristic_says_lost(
    recovery: &Recovery,
    profile: &Profile,
    outstanding: &Outstanding,
    controller: &Controller,
) -> bool {
    profile.acknowledgement_heuristic
        && controller.window() > outstanding.mss_bytes
        && recovery.advance <= 4 * outstanding.mss_bytes
}

/// New data is acknowledged during fast recovery.
pub(super) fn on_ack(
    recovery: &mut Recovery,
    bytes: u32,
    profile: &Profile,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnAck {
    let mss = outstanding.mss_bytes;
    if outstanding.first >= recovery.recover {
        // RFC 6582 §3.2 step 3, full acknowledgment, option (1): cwnd = min (ssthresh, max (FlightSize, SMSS) + SMSS),
        // which avoids a burst.
        let window = outstanding.flight_bytes.max(mss) + mss;
        controller.set_window(controller.ssthresh().min(window));
        recovery.leave();
        return OnAck::Repaired;
    }
    // RFC 6582 §3.2 step 3, partial acknowledgment: deflate cwnd by the amount of new data acknowledged; if that is
    // at least one SMSS, add back SMSS bytes. Reset the timer for the first partial ACK only.
    recovery.inflation = recovery.inflation.saturating_sub_unsigned(bytes);
    if bytes >= mss {
        recovery.inflation = recovery.inflation.saturating_add_unsigned(mss);
    }
    // RFC 6582 §4: the impatient variant; the slow but steady one resets it for each.
    let restart_timer = !recovery.partial_seen || profile.slow_but_steady;
    recovery.partial_seen = true;
    OnAck::Partial { restart_timer }
}
