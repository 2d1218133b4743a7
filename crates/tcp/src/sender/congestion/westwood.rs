//! Westwood+: grows as Reno does; loss sets the threshold to the bandwidth-delay product that was measured, rather than
//! to half of what was in flight (Grieco and Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno and
//! Vegas TCP", 2004).
//!
//! The estimate is Linux's: one sample a round trip, at least 50 ms long, in bytes a millisecond, through two low-pass
//! filters of 7/8. As in the paper, the threshold is set when loss is noticed; Linux sets it at the end of fast
//! recovery, having halved on the way there.

use super::reno::Reno;
use super::{Acknowledged, CongestionControl, RoundTrip, Start, Window};
use crate::Nanos;
use crate::sequence::Position;

/// A clock tick, Linux's jiffy, in nanoseconds.
const TICK: Nanos = 1_000_000;
/// Samples last at least so many ticks.
const SHORTEST_SAMPLE: u64 = 50;

#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    reno: Reno,
    /// Bandwidth in bytes a tick: filtered once and twice; 0: no sample yet.
    filtered_once: u64,
    bandwidth: u64,
    /// The sample being taken: when it began, and the bytes acknowledged since; none before the first round trip.
    sample: Option<(u64, u64)>,
    una: Position,
    /// Latest round trip in ticks, rounded up.
    rtt: u64,
    /// Shortest round trip in ticks; none at first and after a timeout.
    min_rtt: Option<u64>,
}

impl Westwood {
    pub(super) fn new(start: &Start) -> Self {
        Self { reno: Reno::new(start), filtered_once: 0, bandwidth: 0, sample: None, una: 0, rtt: 0, min_rtt: None }
    }

    fn filter(&mut self, bandwidth: u64) {
        if self.filtered_once == 0 && self.bandwidth == 0 {
            self.filtered_once = bandwidth;
            self.bandwidth = bandwidth;
        } else {
            self.filtered_once = (7 * self.filtered_once + bandwidth) / 8;
            self.bandwidth = (7 * self.bandwidth + self.filtered_once) / 8;
        }
    }

    /// BWE * RTTmin in whole segments, at least two, in bytes.
    fn bandwidth_delay_product(&self, w: &Window) -> u32 {
        let mss = u64::from(w.mss);
        let segments = self.bandwidth * self.min_rtt.unwrap_or(self.rtt) / mss;
        u32::try_from(segments.max(2) * mss).unwrap_or(u32::MAX)
    }
}

impl CongestionControl for Westwood {
    fn on_round_trip(&mut self, _w: &mut Window, now: Nanos, sample: &RoundTrip) {
        let now = now / TICK;
        self.rtt = sample.rtt.div_ceil(TICK);
        self.min_rtt = Some(self.min_rtt.map_or(self.rtt, |shortest| shortest.min(self.rtt)));
        let (mut began, mut bytes) = self.sample.unwrap_or((now, 0));
        if now - began > self.rtt.max(SHORTEST_SAMPLE) {
            self.filter(bytes / (now - began));
            (began, bytes) = (now, 0);
        }
        // What the first of all acknowledgements covers was sent before the sample began.
        if self.sample.is_some() {
            bytes += sample.una - self.una;
        }
        self.una = sample.una;
        self.sample = Some((began, bytes));
    }

    fn on_ack(&mut self, w: &mut Window, now: Nanos, acknowledged: Acknowledged) {
        self.reno.on_ack(w, now, acknowledged);
    }

    // Grieco and Mascolo 2004, §2: after three duplicate acknowledgements ssthresh = max (2, BWE * RTTmin / seg_size)
    // and cwnd = ssthresh if it is above.
    fn on_congestion(&mut self, w: &mut Window, now: Nanos, flight_bytes: u32) {
        let window = w.cwnd;
        self.reno.on_congestion(w, now, flight_bytes);
        let product = self.bandwidth_delay_product(w);
        w.ssthresh = product;
        w.set_cwnd(window.min(product));
    }

    // The same after a timeout, with cwnd at the loss window; Linux then looks for the shortest round trip anew.
    fn on_timeout(&mut self, w: &mut Window, now: Nanos, flight_bytes: u32, first: bool) {
        self.reno.on_timeout(w, now, flight_bytes, first);
        if first {
            w.ssthresh = self.bandwidth_delay_product(w);
            self.min_rtt = None;
        }
    }
}
