//! Tahoe: a loss, however noticed, starts slow start over from the first unacknowledged segment.

use super::{OnDuplicate, Outstanding, Recovery};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};

/// The duplicate ACKs reached the threshold.
// Jacobson 1988; ns-2's Agent/TCP: half the window into ssthresh, one segment into cwnd, sending resumes at the hole.
// As in ns-2 (`bugFix_`), duplicates of data sent before the last such event do not start another.
pub(super) fn on_threshold(
    recovery: &mut Recovery,
    now: Nanos,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnDuplicate {
    recovery.recover = outstanding.highest;
    let base = outstanding.ssthresh_base.bytes(outstanding.flight_bytes, controller.window());
    controller.on_timeout(now, base, true);
    OnDuplicate::GoBack
}
