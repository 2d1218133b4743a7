//! Vegas: once a round trip, compares the rate expected without queueing with the actual one, and keeps the difference,
//! in segments queued at the bottleneck, between alpha and beta (Brakmo and Peterson, "TCP Vegas: End to End Congestion
//! Avoidance on a Global Internet", 1995).
//!
//! As in Linux, loss is found and repaired as by any other sender; slow start doubles each round trip rather than each
//! other one; the actual rate is taken from the shortest round trip of a round; after a repair or an idle time a whole
//! round trip of acknowledgements is waited for.

use super::reno::Reno;
use super::{Acknowledged, CongestionControl, RoundTrip, Start, Window};
use crate::Nanos;
use crate::sequence::Position;

/// Fewer segments queued: the window grows.
const ALPHA: u64 = 2;
/// More segments queued: the window shrinks.
const BETA: u64 = 4;
/// More segments queued: slow start ends.
const GAMMA: u64 = 1;
/// With fewer round trips in a round, they may all come from delayed acknowledgements.
const LEAST_SAMPLES: u32 = 3;
/// No round trip was measured.
const INFINITE: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    reno: Reno,
    /// Decisions are made: no repair is under way.
    deciding: bool,
    /// The round ends when this position is passed.
    round_end: Position,
    samples: u32,
    /// Shortest round trip of the round, and of the connection since it was last idle, in microseconds.
    round_rtt_us: u64,
    base_rtt_us: u64,
    /// As of the latest round trip: first position not acknowledged, and next to send.
    una: Position,
    nxt: Position,
}

impl Vegas {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            reno: Reno::new(start),
            deciding: true,
            round_end: 0,
            samples: 0,
            round_rtt_us: INFINITE,
            base_rtt_us: INFINITE,
            una: 0,
            nxt: 0,
        }
    }

    fn begin_round(&mut self) {
        self.round_end = self.nxt;
        self.samples = 0;
        self.round_rtt_us = INFINITE;
    }

    /// The decision at the end of a round.
    fn decide(&mut self, w: &mut Window, bytes: u32) {
        let mss = w.mss;
        let window = u64::from(w.cwnd / mss);
        // Brakmo and Peterson, §3.2: Diff = Expected - Actual; here times BaseRTT, which makes it segments queued.
        let queued = window * (self.round_rtt_us - self.base_rtt_us) / self.base_rtt_us;
        let in_slow_start = w.cwnd < w.ssthresh;
        if in_slow_start && queued > GAMMA {
            // The window that the actual rate fills without queueing, and one for the rounding.
            let target = window * self.base_rtt_us / self.round_rtt_us + 1;
            Self::set_segments(w, window.min(target));
            Self::limit_ssthresh(w);
        } else if in_slow_start {
            Reno::slow_start_by_all(w, bytes);
        } else if queued > BETA {
            Self::set_segments(w, window - 1);
            Self::limit_ssthresh(w);
        } else if queued < ALPHA {
            Self::set_segments(w, window + 1);
        }
        w.set_cwnd(w.cwnd.max(2 * mss));
        // Linux: the threshold follows a window that has grown past it.
        let window = w.cwnd / mss;
        w.ssthresh = w.ssthresh.max((window / 2 + window / 4) * mss);
    }

    fn set_segments(w: &mut Window, segments: u64) {
        w.set_cwnd(u32::try_from(segments * u64::from(w.mss)).unwrap_or(u32::MAX));
    }

    fn limit_ssthresh(w: &mut Window) {
        w.ssthresh = w.ssthresh.min(w.cwnd);
    }
}

impl CongestionControl for Vegas {
    fn on_sent(&mut self, _w: &mut Window, _now: Nanos, _bytes: u32, flight_bytes: u32) {
        if flight_bytes == 0 {
            self.base_rtt_us = INFINITE;
            self.deciding = true;
            self.begin_round();
        }
    }

    fn on_round_trip(&mut self, _w: &mut Window, _now: Nanos, sample: &RoundTrip) {
        // Linux: one more, so that it is never zero.
        let rtt_us = sample.rtt / 1000 + 1;
        self.base_rtt_us = self.base_rtt_us.min(rtt_us);
        self.round_rtt_us = self.round_rtt_us.min(rtt_us);
        self.samples += 1;
        self.una = sample.una;
        self.nxt = sample.nxt;
    }

    fn on_ack(&mut self, w: &mut Window, now: Nanos, acknowledged: Acknowledged) {
        if !self.deciding {
            // Nothing is being repaired any more.
            self.deciding = true;
            self.begin_round();
        }
        if self.una > self.round_end {
            if self.samples < LEAST_SAMPLES {
                self.reno.on_ack(w, now, acknowledged);
            } else {
                self.decide(w, acknowledged.bytes);
            }
            self.begin_round();
        } else if w.cwnd < w.ssthresh {
            Reno::slow_start_by_all(w, acknowledged.bytes);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, now: Nanos, flight_bytes: u32) {
        self.reno.on_congestion(w, now, flight_bytes);
        self.deciding = false;
    }

    fn on_timeout(&mut self, w: &mut Window, now: Nanos, flight_bytes: u32, first: bool) {
        self.reno.on_timeout(w, now, flight_bytes, first);
        self.deciding = false;
    }
}
