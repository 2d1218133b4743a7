//! BBR, version 1 as Linux ships it: the sending rate follows the largest bandwidth of the last ten rounds, the window
//! the product of that and the shortest round trip of the last ten seconds; losses change neither (Cardwell, Cheng,
//! Gunn, Hassas Yeganeh and Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue, 2016).
//!
//! STARTUP doubles the rate each round until the bandwidth has stopped growing, DRAIN empties the queue that this
//! made, PROBE_BW sends a little faster and slower in turn, PROBE_RTT makes room for a look at the round trip of the
//! empty path every ten seconds.
//!
//! Linux begins PROBE_BW in a random phase of its cycle; here a generator seeded with the initial sequence number
//! takes its place, so that a run repeats itself. Linux also discounts segments that its queueing discipline holds back
//! for pacing; here a segment is not in flight before it has left. Its detection of policers (`lt_bw`) is not built.
//!
//! Version 3 is not built. The additions of its Internet-Draft (draft-ietf-ccwg-bbr) in outline: bounds on data in
//! flight, short-term and long-term, that shrink by 0.7 and by 15 % of headroom when a round loses more than 2 % or is
//! marked; a cycle of four phases (down, cruise, refill, up) at intervals of two to three seconds; PROBE_RTT every five
//! seconds at half a bandwidth-delay product. But the draft still changes, and mainline Linux has no version to check
//! against.

mod aggregation;
mod modes;
#[cfg(test)]
mod tests;
mod window;

use super::interface::{Acknowledged, CongestionControl, Delivery, RoundTrip};
use super::max_filter::MaxFilter;
use super::start::Start;
use super::window::Window;
use crate::amounts::{Bytes, Segments};
use crate::event::Trigger;
use crate::{MILLISECOND, Nanos, SECOND};
use aggregation::Aggregation;

/// Bandwidths are in segments per microsecond, times 2^24; Linux's (`BW_SCALE`) and rounded down as its are, which shows when
/// a few segments are delivered in a second.
const BANDWIDTH_SHIFT: u32 = 24;
const MICROSECOND: Nanos = 1_000;
/// Gains are in units of 1/256.
const UNIT: u32 = 256;
/// 2/ln 2: the smallest gain that lets the rate double each round.
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Its inverse, which drains the queue of STARTUP in one round.
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
/// Of the window in PROBE_BW: leaves room for delayed acknowledgments.
const WINDOW_GAIN: u32 = UNIT * 2;
/// Of the rate in PROBE_BW, phase by phase, each a shortest round trip long.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds over which the largest bandwidth counts.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Time over which the shortest round trip counts.
const MIN_RTT_TIME: Nanos = 10 * SECOND;
/// PROBE_RTT lasts at least so long.
const PROBE_RTT_TIME: Nanos = SECOND / 5;
/// The window is at least so large, and no larger in PROBE_RTT.
const LEAST: Segments = Segments(4);
/// The pipe is full when the bandwidth did not grow by a quarter in three rounds.
const FULL_GROWTH: u64 = (UNIT * 5 / 4) as u64;
const FULL_ROUNDS: u32 = 3;
/// The rate stays this percentage below the bandwidth.
const MARGIN_PERCENT: u64 = 1;
/// Linux's aggregates: a millisecond's worth (2^-10 s), at most this number of bytes and segments; two segments from
/// 1.2 Mbit/s.
const AGGREGATE_SHIFT: u32 = 10;
const AGGREGATE_BYTES: u64 = 65_215;
const AGGREGATE_SEGMENTS: u64 = 127;
const AGGREGATE_RATE: u64 = 1_200_000 / 8;
/// Round trip assumed for the first rate, before there is one.
const NOMINAL_RTT: Nanos = MILLISECOND;
const INITIAL: Segments = Segments(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// The state of recovery at the last acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum LossRecovery {
    #[default]
    None,
    Recovery,
    Loss,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Bbr {
    mss: Bytes,
    loss_window: Bytes,
    mode: Mode,
    /// In bytes a second.
    pacing_rate: u64,
    /// The rate is based on a measured round trip.
    has_seen_rtt: bool,
    pacing_gain: u32,
    window_gain: u32,
    /// See [`BANDWIDTH_SHIFT`].
    bandwidth: MaxFilter,
    rounds: u64,
    /// The round ends with the data sent when this amount was delivered.
    round_end: u64,
    round_start: bool,
    min_rtt: Option<Nanos>,
    /// When the shortest round trip was seen, at first when the handshake was over; none before.
    min_rtt_at: Option<Nanos>,
    /// When PROBE_RTT may end; none before the flight is small enough.
    probe_rtt_end: Option<Nanos>,
    probe_rtt_round_done: bool,
    /// Samples of data sent when this amount was delivered do not measure the bandwidth: PROBE_RTT limited the sender.
    limited: (u64, u64),
    /// The bandwidth that the pipe must beat not to count as full, and the rounds in which it did not.
    full_bandwidth: u64,
    full_rounds: u32,
    pipe_is_full: bool,
    phase: usize,
    phase_start: Nanos,
    /// State of the generator of first phases.
    seed: u32,
    /// Sending has begun after an idle time, and nothing is delivered yet.
    restarting: bool,
    /// Window to come back to after a recovery or PROBE_RTT.
    prior_window: Bytes,
    recovery: LossRecovery,
    /// In the first round of recovery, as much is sent as is delivered.
    conserving: bool,
    aggregation: Aggregation,
}

impl Bbr {
    pub(super) fn new(start: &Start) -> Self {
        let mut bbr = Self {
            mss: Bytes(start.mss_bytes),
            loss_window: Bytes(start.loss_window_bytes),
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            // Linux, bbr_init.
            min_rtt_at: start.established_at,
            limited: (1, 0),
            seed: start.settings.bbr_seed,
            ..Self::default()
        };
        // Linux, bbr_init and bbr_init_pacing_rate_from_rtt: the handshake's round trip, if there is one.
        match start.rtt {
            Some(rtt) => bbr.hear_first_rtt(Bytes(start.window_bytes), rtt),
            None => bbr.pace_window_over(Bytes(start.window_bytes), NOMINAL_RTT),
        }
        bbr
    }

    /// The rate for a bandwidth and a gain, in bytes a second.
    // Linux, bbr_rate_bytes_per_sec.
    fn rate(&self, bandwidth: u64, gain: u32) -> u64 {
        let rate = u128::from(bandwidth) * u128::from(self.mss.0) * u128::from(gain) / u128::from(UNIT);
        let percent = u128::from(SECOND / MICROSECOND / 100);
        ((rate * percent * u128::from(100 - MARGIN_PERCENT)) >> BANDWIDTH_SHIFT) as u64
    }

    /// The first rate: the window over a round trip, with the gain of STARTUP.
    fn pace_window_over(&mut self, cwnd: Bytes, rtt: Nanos) {
        self.pacing_rate = self.rate(bandwidth(cwnd.full_segments(self.mss).0.into(), rtt), HIGH_GAIN);
    }

    fn hear_first_rtt(&mut self, cwnd: Bytes, rtt: Nanos) {
        self.min_rtt.get_or_insert(rtt);
        if !self.has_seen_rtt {
            self.has_seen_rtt = true;
            self.pace_window_over(cwnd, rtt);
        }
    }

    /// Until the pipe is full the rate never falls.
    fn set_rate(&mut self, gain: u32) {
        let rate = self.rate(self.bandwidth.get(), gain);
        if self.pipe_is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn update_bandwidth(&mut self, delivery: &Delivery, app_limited: bool) {
        self.round_start = false;
        if delivery.interval_ns == 0 {
            return;
        }
        if delivery.prior_delivered_bytes >= self.round_end {
            self.round_end = delivery.delivered_bytes;
            self.rounds += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let bandwidth = bandwidth(delivery.sample_bytes / u64::from(self.mss), delivery.interval_ns);
        // A sender without data cannot measure the bandwidth, unless it is larger than the estimate.
        if !app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds, bandwidth);
        }
    }
}

impl CongestionControl for Bbr {
    fn on_start(&mut self, w: &mut Window, now: Nanos, _last_sent_at: Option<Nanos>) {
        if self.recovery == LossRecovery::Loss {
            return;
        }
        self.restarting = true;
        self.aggregation.restart(now);
        // No need to be faster than the path after an idle time.
        if self.mode == Mode::ProbeBandwidth {
            self.set_rate(UNIT);
        } else if self.mode == Mode::ProbeRtt && self.probe_rtt_end.is_some_and(|end| now > end) {
            self.leave_probe_rtt(w, now);
        }
    }

    fn on_round_trip(&mut self, w: &mut Window, _now: Nanos, sample: &RoundTrip) {
        self.hear_first_rtt(w.cwnd(), sample.rtt);
    }

    fn on_ack(&mut self, _w: &mut Window, _now: Nanos, _acknowledged: Acknowledged) {}

    fn on_delivery(&mut self, w: &mut Window, now: Nanos, delivery: &Delivery) {
        let within_probe = (self.limited.0..=self.limited.1).contains(&delivery.prior_delivered_bytes);
        let app_limited = delivery.app_limited || within_probe;
        self.update_bandwidth(delivery, app_limited);
        if delivery.interval_ns > 0 && delivery.newly_delivered_bytes > 0 {
            let segments = |bytes: Bytes| bytes.full_segments(self.mss).0;
            let (delivered, window) = (segments(Bytes(delivery.newly_delivered_bytes)), segments(w.cwnd()));
            self.aggregation.on_delivery(now, delivered, self.round_start, self.bandwidth.get(), window);
        }
        self.update_phase(now, delivery);
        self.check_full_pipe(app_limited);
        self.check_drain(w, now, Bytes(delivery.flight_bytes));
        self.update_min_rtt(w, now, delivery);
        self.update_gains();
        self.set_rate(self.pacing_gain);
        self.update_window(w, delivery);
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Nanos, _flight: Bytes) {
        self.save_window(w);
    }

    // Linux: a timeout counts as the end of a round and as a loss, and the pipe is to be filled again.
    fn on_timeout(&mut self, w: &mut Window, _now: Nanos, _flight: Bytes, first: bool) {
        if first {
            self.save_window(w);
        }
        w.set_cwnd(self.loss_window);
        self.recovery = LossRecovery::Loss;
        self.full_bandwidth = 0;
        self.round_start = true;
    }

    // The window comes back when recovery ends; conclusions from the slow-down are withdrawn.
    fn on_undo(&mut self, _w: &mut Window, _now: Nanos, _window: Bytes, _ssthresh: Bytes) {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }

    // Linux, bbr_min_tso_segs.
    fn min_train_segments(&self) -> Option<u32> {
        Some(if self.pacing_rate < AGGREGATE_RATE { 1 } else { 2 })
    }

    fn in_slow_start(&self, _w: &Window) -> bool {
        !self.pipe_is_full
    }

    fn slow_start_end(&self) -> Option<Trigger> {
        Some(Trigger::FullPipe)
    }

    fn is_rate_based(&self) -> bool {
        true
    }
}

/// The bandwidth of `segments` in a time.
fn bandwidth(segments: u64, time: Nanos) -> u64 {
    (segments << BANDWIDTH_SHIFT) / (time / MICROSECOND).max(1)
}

/// Segments that a bandwidth delivers in a time, rounded down, times 2^[`BANDWIDTH_SHIFT`].
fn scaled_product(bandwidth: u64, time: Nanos) -> u128 {
    u128::from(bandwidth) * u128::from(time / MICROSECOND)
}
