//! NewReno: fast recovery that lasts until everything sent before it is acknowledged (RFC 6582).

use super::{OnAck, OnDuplicate, Outstanding, Recovery};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};

/// The duplicate ACKs reached the threshold.
pub(super) fn on_threshold(
    recovery: &mut Recovery,
    now: Nanos,
    outstanding: &Outstanding,
    controller: &mut Controller,
) -> OnDuplicate {
    // RFC 6582 §3.2 step 2. The optional heuristics of §4, which would tell some later losses from duplicates, are
    // left out.
    recovery.recover = outstanding.highest;
    recovery.enter(now, outstanding, controller)
}

/// New data is acknowledged during fast recovery.
pub(super) fn on_ack(
    recovery: &mut Recovery,
    bytes: u32,
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
    recovery.inflation -= i64::from(bytes);
    if bytes >= mss {
        recovery.inflation += i64::from(mss);
    }
    let restart_timer = !recovery.partial_seen;
    recovery.partial_seen = true;
    OnAck::Partial { restart_timer }
}
