//! CUBIC (RFC 9438) in the arithmetic of Linux: windows in whole segments, time in jiffies of a millisecond, the curve
//! in units of 1/1024 s, fractions of 1024.
//!
//! Where the RFC and Linux differ, Linux is followed: a reduction starts from cwnd rather than from FlightSize (§4.6),
//! a timeout forgets W_max (§4.8), Reno's estimate keeps its own alpha (§4.3), and until a first loss sets W_max the
//! window grows by at least a twentieth a round trip.

use super::hystart::Progress;
use super::interface::{Acknowledged, CongestionControl, RoundTrip};
use super::slow_start_exit::{Hystart, SlowStartExit};
use super::start::Start;
use super::window::Window;
use crate::amounts::{Bytes, Segments};
use crate::event::Trigger;
use crate::{MILLISECOND, Nanos, SECOND};
use std::num::NonZeroU32;

/// A fraction of one is in units of 1/1024.
const SCALE: u32 = 1024;
/// Multiplicative decrease factor beta, 0.7.
const BETA: u32 = 717;
/// The constant C, 0.4 segments/s³.
const C: u64 = 410;
/// Time on the curve is in units of 2^-10 s.
const CURVE_SHIFT: u32 = 10;
/// 1/C in the curve's units cubed: K³ of one segment.
const CUBE_OF_ONE_SEGMENT: u64 = (1 << (10 + 3 * CURVE_SHIFT)) / C;
/// Segments acknowledged for one of growth of Reno's estimate, in eighths of the window: 1/alpha of RFC 9438 §4.3,
/// (1 + beta) / (3 (1 - beta)), rounded down from 15.1.
const RENO_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Until W_max is known, one segment of growth for at most this number of acknowledged segments.
const SLOWEST_WITHOUT_LOSS: u32 = 20;
/// One segment of growth for at least this number acknowledged: 1.5 windows a round trip, as RFC 9438 §4.4 bounds it.
const FASTEST: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    loss_window: Bytes,
    /// Acknowledged bytes that do not make a full segment yet.
    partial_segment: Bytes,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    counted: u32,
    /// W_max in segments, set by a loss.
    w_max: Option<NonZeroU32>,
    /// The epoch of growth; none from a reduction to the next ACK that lets cwnd grow.
    epoch: Option<Epoch>,
    /// Growth rate of the window, once computed.
    growth: Option<Growth>,
    /// Shortest round trip in microseconds.
    min_rtt_us: Option<u64>,
    exit: SlowStartExit,
    clock: Clock,
}

/// Growth along one curve.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Jiffy in which it began, moved on by idle times.
    began: u64,
    /// Height of the curve's plateau, in segments.
    origin: u32,
    /// K: time from the epoch's start to the plateau, in 1/1024 s.
    k: u64,
    /// Segments acknowledged in the epoch and not yet spent on Reno's estimate.
    acknowledged: u32,
    /// Reno's estimate W_est, in segments.
    reno: u32,
}

/// Growth rate of the window.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// Segments to be acknowledged for one of growth.
    per_growth: u32,
    /// For which window, in segments, and in which jiffy that was computed.
    window: u32,
    at: u64,
}

/// The jiffies in which time is counted.
// Most profiles count milliseconds: a division by a constant is a multiplication.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Milliseconds,
    Ticks { tick: Nanos, hz: u64 },
}

impl Clock {
    fn new(tick: Nanos) -> Self {
        if tick == MILLISECOND { Self::Milliseconds } else { Self::Ticks { tick, hz: SECOND / tick } }
    }

    #[inline]
    fn hz(self) -> u64 {
        match self {
            Self::Milliseconds => SECOND / MILLISECOND,
            Self::Ticks { hz, .. } => hz,
        }
    }

    #[inline]
    fn jiffies(self, time: Nanos) -> u64 {
        match self {
            Self::Milliseconds => time / MILLISECOND,
            Self::Ticks { tick, .. } => time / tick,
        }
    }

    /// The jiffies that hold this time.
    #[inline]
    fn round_up(self, time: Nanos) -> u64 {
        match self {
            Self::Milliseconds => time.div_ceil(MILLISECOND),
            Self::Ticks { tick, .. } => time.div_ceil(tick),
        }
    }

    /// So many jiffies in seconds, rounded down.
    #[inline]
    fn seconds(self, jiffies: u64) -> u64 {
        match self {
            Self::Milliseconds => jiffies / (SECOND / MILLISECOND),
            Self::Ticks { hz, .. } => jiffies / hz,
        }
    }
}

impl Cubic {
    pub(super) fn new(start: &Start, hystart: Hystart) -> Self {
        Self {
            loss_window: Bytes(start.loss_window_bytes),
            partial_segment: Bytes::ZERO,
            counted: 0,
            w_max: None,
            epoch: None,
            growth: None,
            min_rtt_us: None,
            exit: SlowStartExit::new(hystart, start.settings.cubic.paced),
            clock: Clock::new(start.settings.cubic.tick_ns),
        }
    }

    /// Jiffies passed by now.
    fn jiffies(&self, now: Nanos) -> u64 {
        self.clock.jiffies(now)
    }

    /// Jiffies of a second.
    fn hz(&self) -> u64 {
        self.clock.hz()
    }

    /// Slow start up to the threshold; the rest counts towards congestion avoidance.
    fn slow_start(w: &mut Window, segments: u32) -> u32 {
        let Segments(room) = (w.ssthresh - w.cwnd()).segments_rounded_up(w.mss);
        let taken = segments.min(room);
        w.set_cwnd(w.cwnd().saturating_add(Segments(taken).bytes(w.mss)).min(w.ssthresh));
        segments - taken
    }

    /// Congestion avoidance: one segment for each `per_growth` acknowledged.
    fn avoid(&mut self, w: &mut Window, segments: u32, per_growth: u32) {
        // Credit from a time when growth was slower buys one segment, not many.
        if self.counted >= per_growth {
            self.counted = 0;
            w.grow_segments(Segments(1));
        }
        self.counted += segments;
        let growth = self.counted / per_growth;
        self.counted -= growth * per_growth;
        w.grow_segments(Segments(growth));
    }

    /// Segments to be acknowledged for one of growth, after this number of acknowledged segments.
    fn per_growth(&mut self, w: &Window, now: u64, segments: u32) -> u32 {
        let window = w.segments().0.max(1);
        if let Some(epoch) = &mut self.epoch {
            epoch.acknowledged = epoch.acknowledged.saturating_add(segments);
        }
        // Linux: for the same window, at most once in 1/32 s.
        if let Some(growth) = self.growth.filter(|growth| growth.window == window) {
            if now - growth.at <= self.hz() / 32 {
                return growth.per_growth;
            }
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now, window, segments));
        // Linux: the curve at most once a jiffy.
        let mut growth = match self.growth.filter(|growth| self.epoch.is_some() && growth.at == now) {
            Some(growth) => growth,
            None => Growth { per_growth: self.growth_towards(self.target(&epoch, now), window), window, at: now },
        };
        growth.per_growth = epoch.keep_up_with_reno(growth.per_growth, window).max(FASTEST);
        self.epoch = Some(epoch);
        self.growth = Some(growth);
        growth.per_growth
    }

    // RFC 9438 §4.2: K = cbrt((W_max - cwnd_epoch) / C).
    fn begin_epoch(&self, now: u64, window: u32, segments: u32) -> Epoch {
        let origin = self.w_max.map_or(window, |w_max| w_max.get().max(window));
        let k = cube_root(CUBE_OF_ONE_SEGMENT * u64::from(origin - window));
        Epoch { began: now, origin, k, acknowledged: segments, reno: window }
    }

    /// The window in segments that the curve asks for a round trip from now.
    // RFC 9438 §4.2 and §4.4: W_cubic(t + RTT) = C*(t + RTT - K)^3 + W_max; Linux takes the shortest round trip.
    fn target(&self, epoch: &Epoch, now: u64) -> u32 {
        let min_rtt = self.clock.round_up(1000 * self.min_rtt_us.unwrap_or(0));
        let t = self.clock.seconds((now - epoch.began + min_rtt) << CURVE_SHIFT);
        // The window is beyond all bounds long before.
        let distance = u128::from(t.abs_diff(epoch.k).min(1 << 32));
        let delta = (u128::from(C) * distance.pow(3)) >> (10 + 3 * CURVE_SHIFT);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if t < epoch.k { epoch.origin.saturating_sub(delta) } else { epoch.origin.saturating_add(delta) }
    }

    // RFC 9438 §4.4 and §4.5: cwnd grows by (target - cwnd)/cwnd for each segment acknowledged.
    fn growth_towards(&self, target: u32, window: u32) -> u32 {
        let per_growth = if target > window { window / (target - window) } else { window.saturating_mul(100) };
        if self.w_max.is_none() { per_growth.min(SLOWEST_WITHOUT_LOSS) } else { per_growth }
    }

    /// Congestion ends the epoch and sets W_max; returns the new ssthresh.
    fn reduce(&mut self, w: &Window) -> Bytes {
        let Segments(window) = w.segments();
        self.epoch = None;
        // RFC 9438 §4.7, fast convergence: W_max = cwnd * (1 + beta) / 2 if the window has not come up to W_max again.
        let rises = self.w_max.is_none_or(|w_max| window >= w_max.get());
        self.w_max = NonZeroU32::new(if rises { window } else { scaled(window, SCALE + BETA) / 2 });
        // RFC 9438 §4.6: at least two segments.
        Segments(scaled(window, BETA).max(2)).bytes(w.mss)
    }
}

impl Epoch {
    /// As many segments for one of growth, or fewer if Reno's estimate asks for that.
    // RFC 9438 §4.3: in the Reno-friendly region, cwnd is not below Reno's.
    fn keep_up_with_reno(&mut self, per_growth: u32, window: u32) -> u32 {
        let per_segment = ((u64::from(window) * u64::from(RENO_EIGHTHS)) >> 3) as u32;
        if self.acknowledged > per_segment {
            // As long as more than `per_segment` is left.
            let steps = (self.acknowledged - 1) / per_segment;
            self.acknowledged -= steps * per_segment;
            self.reno += steps;
        }
        if self.reno > window { per_growth.min(window / (self.reno - window)) } else { per_growth }
    }
}

/// So many 1024ths of `segments`, rounded down.
fn scaled(segments: u32, fraction: u32) -> u32 {
    (u64::from(segments) * u64::from(fraction) / u64::from(SCALE)) as u32
}

/// Cube root, rounded down.
// Linux's own is a table and one step of Newton's method, which gives K up to 0.15 % longer or 0.1 % shorter.
fn cube_root(cube: u64) -> u64 {
    let mut root = 0u64;
    for bit in (0..21).rev() {
        let candidate = root | 1 << bit;
        if candidate.pow(3) <= cube {
            root = candidate;
        }
    }
    root
}

impl CongestionControl for Cubic {
    // RFC 9438 §4.2 and §5.8: time without data to send is not time on the curve.
    fn on_start(&mut self, _w: &mut Window, now: Nanos, last_sent_at: Option<Nanos>) {
        if let (Some(epoch), Some(last)) = (&mut self.epoch, last_sent_at) {
            let jiffies = self.clock.jiffies(now);
            epoch.began = (epoch.began + (jiffies - self.clock.jiffies(last))).min(jiffies);
        }
    }

    fn on_round_trip(&mut self, w: &mut Window, now: Nanos, sample: &RoundTrip) {
        // Linux: no samples of delay in the first second of an epoch, that is right after a recovery.
        if self.epoch.is_some_and(|epoch| self.jiffies(now) - epoch.began < self.hz()) {
            return;
        }
        let rtt_us = (sample.rtt / 1000).max(1);
        let min_rtt_us = self.min_rtt_us.map_or(rtt_us, |min| min.min(rtt_us));
        self.min_rtt_us = Some(min_rtt_us);
        if w.cwnd() < w.ssthresh {
            let progress = Progress { window: w.cwnd(), mss: w.mss, min_rtt_us };
            if self.exit.on_round_trip(now, sample, &progress) {
                w.ssthresh = w.cwnd();
            }
        }
    }

    fn on_ack(&mut self, w: &mut Window, now: Nanos, acknowledged: Acknowledged) {
        if w.cwnd() < w.ssthresh {
            if let Some(growth) = self.exit.growth(acknowledged.bytes, w.mss) {
                w.set_cwnd(w.cwnd().saturating_add(growth).min(w.ssthresh));
                return;
            }
        }
        let bytes = self.partial_segment + acknowledged.bytes;
        let Segments(mut segments) = bytes.full_segments(w.mss);
        self.partial_segment = Bytes(bytes.0 % w.mss.0);
        let slow_start = w.cwnd() < w.ssthresh;
        if slow_start {
            segments = Self::slow_start(w, segments);
        }
        // Linux, cubictcp_cong_avoid: in congestion avoidance also an ACK whose data was all SACKed before. One that ends a
        // recovery begins the epoch.
        if segments > 0 || (acknowledged.bytes == Bytes::ZERO && !slow_start) {
            let per_growth = self.per_growth(w, self.jiffies(now), segments);
            self.avoid(w, segments, per_growth);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Nanos, _flight: Bytes) {
        w.ssthresh = self.reduce(w);
        w.set_cwnd(w.ssthresh);
        self.counted = 0;
        self.exit.on_congestion();
    }

    // RFC 9438 §4.8 reduces as for other congestion and sets K = 0; Linux forgets all that it knew of the path.
    fn on_timeout(&mut self, w: &mut Window, now: Nanos, _flight: Bytes, first: bool) {
        if first {
            w.ssthresh = self.reduce(w);
        }
        w.set_cwnd(self.loss_window);
        self.counted = 0;
        self.epoch = None;
        self.growth = None;
        self.w_max = None;
        self.min_rtt_us = None;
        self.exit.on_timeout(now);
    }

    fn slow_start_end(&self) -> Option<Trigger> {
        self.exit.found()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::congestion::CongestionAlgorithm;
    use crate::sender::congestion::controller::Controller;

    const MSS: u32 = 1000;

    fn cubic(window: u32) -> Controller {
        Controller::new_in(None, CongestionAlgorithm::Cubic { hystart: Hystart::Off }, &Start::of(window))
    }

    /// `count` acknowledgments of a segment each, a millisecond apart.
    fn acknowledge(cubic: &mut Controller, from: Nanos, count: u64) -> Nanos {
        for sent in 0..count {
            cubic.on_ack(from + sent * MILLISECOND, Acknowledged { bytes: Bytes(MSS) });
        }
        from + count * MILLISECOND
    }

    #[test]
    fn idle_time_is_not_time_on_the_curve() {
        let window_after = |idle: Nanos| {
            let mut cubic = cubic(100);
            cubic.on_congestion(0, 100 * MSS);
            let mut now = acknowledge(&mut cubic, 0, 2000);
            if idle > 0 {
                let last_sent_at = now - MILLISECOND;
                now += idle;
                // A millisecond has passed since the last departure in either case.
                cubic.on_start(now - MILLISECOND, Some(last_sent_at));
            }
            acknowledge(&mut cubic, now, 2000);
            cubic.cwnd()
        };
        assert_eq!(window_after(0), window_after(20_000 * MILLISECOND));
    }

    #[test]
    fn a_timeout_forgets_w_max_so_that_the_window_grows_by_a_twentieth() {
        let mut cubic = cubic(100);
        cubic.on_timeout(0, 100 * MSS, true);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (MSS, 70 * MSS));
        let now = acknowledge(&mut cubic, 0, 69);
        assert_eq!(cubic.cwnd(), 70 * MSS);
        let now = acknowledge(&mut cubic, now, 19);
        assert_eq!(cubic.cwnd(), 70 * MSS);
        let now = acknowledge(&mut cubic, now, 1);
        assert_eq!(cubic.cwnd(), 71 * MSS);
        acknowledge(&mut cubic, now, 20);
        assert_eq!(cubic.cwnd(), 72 * MSS);
    }

    #[test]
    fn a_second_timeout_of_a_segment_keeps_the_threshold() {
        let mut cubic = cubic(100);
        cubic.on_timeout(0, 100 * MSS, true);
        cubic.on_timeout(0, MSS, false);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (MSS, 70 * MSS));
    }

    #[test]
    fn the_window_grows_by_at_most_half_in_a_round_trip() {
        let mut cubic = cubic(100);
        cubic.on_congestion(0, 100 * MSS);
        let mut now = acknowledge(&mut cubic, 0, 1);
        now += 100_000 * MILLISECOND;
        let before = cubic.cwnd();
        acknowledge(&mut cubic, now, 70);
        assert!(cubic.cwnd() <= before + 36 * MSS, "{}", cubic.cwnd());
    }

    #[test]
    fn the_epoch_begins_with_the_ack_that_ends_a_recovery_though_it_delivers_nothing_more() {
        let window_after = |first: Option<u32>| {
            let mut cubic = cubic(100);
            cubic.on_congestion(0, 100 * MSS);
            if let Some(bytes) = first {
                cubic.on_ack(0, Acknowledged { bytes: Bytes(bytes) });
            }
            acknowledge(&mut cubic, 2000 * MILLISECOND, 70);
            cubic.cwnd()
        };
        assert_eq!(window_after(Some(0)), window_after(Some(MSS)));
        assert!(window_after(Some(0)) > window_after(None));
    }

    #[test]
    fn parts_of_segments_add_up() {
        let mut cubic = cubic(10);
        for _ in 0..4 {
            cubic.on_ack(0, Acknowledged { bytes: Bytes(MSS / 4) });
        }
        assert_eq!(cubic.cwnd(), 11 * MSS);
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [0, 1, 2, 3, 1023, 1_000_000, (1 << 21) - 1] {
            let cube = u64::pow(root, 3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 3 * root), root);
            assert!(root == 0 || cube_root(cube - 1) == root - 1);
        }
    }
}
