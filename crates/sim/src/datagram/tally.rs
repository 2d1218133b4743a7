//! The counts of a stream's receiver.

use firstflight_path::Nanos;

use crate::{
    histogram::{Bins, Histogram},
    packet::Datagram,
    plan::datagram::{Call, Play},
    records::{StreamReport, seconds},
};

use super::e_model;

/// The account of a stream at its receiver.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    play: Play,
    first_delay: Option<Nanos>,
    arrived: Bits,
    /// Those that came in time.
    played: Bits,
    /// Datagrams that a link lost.
    pub(crate) lost: u32,
    received: u32,
    /// Of these, those that came too late to be of use.
    late: u32,
    /// Those whose number is below one that arrived before (RFC 4737 section 3).
    reordered: u32,
    /// One above the highest number that has arrived.
    next: u32,
    delay_sum: u128,
    least_delay: Nanos,
    most_delay: Nanos,
    delays: Histogram,
    jitter: Jitter,
}

impl Tally {
    pub(crate) fn new(play: Play) -> Tally {
        Tally { play, least_delay: Nanos::MAX, ..Tally::default() }
    }

    /// A datagram arrived at `now`; a second arrival does not count.
    pub(crate) fn arrived(&mut self, now: Nanos, datagram: &Datagram) {
        if !self.arrived.set(datagram.number) {
            return;
        }
        let delay = now - datagram.sent_at;
        self.first_delay.get_or_insert(delay);
        self.received += 1;
        self.reordered += u32::from(datagram.number < self.next);
        self.next = self.next.max(datagram.number + 1);
        if self.longest_in_time().is_some_and(|longest| delay > longest) {
            self.late += 1;
        } else {
            self.played.set(datagram.number);
        }
        self.delay_sum += u128::from(delay);
        self.least_delay = self.least_delay.min(delay);
        self.most_delay = self.most_delay.max(delay);
        self.delays.count(Bins::get().of(delay));
        self.jitter.arrived(delay);
    }

    /// The longest delay with which a datagram is not late; none: none is.
    fn longest_in_time(&self) -> Option<Nanos> {
        match self.play {
            Play::Always => None,
            Play::AfterSending(time) => Some(time),
            Play::AfterFirst(time) => self.first_delay.map(|first| first.saturating_add(time)),
        }
    }

    /// Mean number of datagrams in a row that were lost or late, over that of independent losses of the same share
    /// (G.107's BurstR); 1 without losses.
    fn burst_ratio(&self) -> f64 {
        let (mut missing, mut bursts, mut in_burst) = (0u32, 0u32, false);
        for number in 0..self.next {
            let misses = !self.played.has(number);
            missing += u32::from(misses);
            bursts += u32::from(misses && !in_burst);
            in_burst = misses;
        }
        if bursts == 0 || missing == self.next {
            return 1.0;
        }
        let share = f64::from(missing) / f64::from(self.next);
        (f64::from(missing) / f64::from(bursts) * (1.0 - share)).max(1.0)
    }

    /// Delay from mouth to ear in seconds, rating and score of a call; NaN for a stream without listener or without
    /// rating.
    fn quality(&self, call: Option<Call>, lost: u32) -> [f64; 3] {
        let (Some(call), Some(longest)) = (call, self.longest_in_time()) else { return [f64::NAN; 3] };
        let delay = seconds(call.coding_delay.saturating_add(longest));
        let Some(impairment) = call.impairment else { return [delay, f64::NAN, f64::NAN] };
        let missing = 100.0 * f64::from(lost + self.late) / f64::from(lost + self.received);
        let rating = impairment.rating(1e3 * delay, missing, self.burst_ratio());
        [delay, rating, e_model::mos(rating)]
    }

    pub(crate) fn row(&self, sent: StreamReport, call: Option<Call>) -> StreamReport {
        // A duplicated datagram of which one copy was lost has arrived once.
        let lost = self.lost.min(sent.packets_sent - self.received);
        let [mouth_to_ear_s, rating, mos] = self.quality(call, lost);
        let any = self.received > 0;
        let of_any = |value: f64| if any { value } else { f64::NAN };
        // A bin's middle may lie beyond the observed values.
        let quantile = |q: f64| {
            let middle = self.delays.quantile(q).unwrap_or(f64::NAN) / 1e9;
            if any { middle.clamp(seconds(self.least_delay), seconds(self.most_delay)) } else { f64::NAN }
        };
        StreamReport {
            packets_received: self.received,
            packets_lost: lost,
            packets_late: self.late,
            packets_reordered: self.reordered,
            delay_mean_s: of_any(self.delay_sum as f64 / f64::from(self.received) / 1e9),
            delay_min_s: of_any(seconds(self.least_delay)),
            delay_p50_s: quantile(0.5),
            delay_p95_s: quantile(0.95),
            delay_p99_s: quantile(0.99),
            delay_max_s: of_any(seconds(self.most_delay)),
            jitter_mean_s: of_any(self.jitter.mean() / 1e9),
            jitter_max_s: of_any(self.jitter.most / 1e9),
            burst_ratio: of_any(self.burst_ratio()),
            mouth_to_ear_s,
            rating,
            mos,
            ..sent
        }
    }
}

/// A set of numbers.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number; false if it was there.
    fn set(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// The interarrival jitter of RFC 3550 section 6.4.1, in nanoseconds: the estimate after each arrival.
#[derive(Debug, Default)]
struct Jitter {
    last_delay: Option<Nanos>,
    estimate: f64,
    sum: f64,
    arrivals: u32,
    most: f64,
}

impl Jitter {
    /// The next datagram in the order of arrival took so long.
    fn arrived(&mut self, delay: Nanos) {
        // The RFC's D(i-1, i) is the difference of two relative transit times.
        if let Some(last) = self.last_delay.replace(delay) {
            self.estimate += (delay.abs_diff(last) as f64 - self.estimate) / 16.0;
        }
        self.sum += self.estimate;
        self.arrivals += 1;
        self.most = self.most.max(self.estimate);
    }

    /// Mean of the estimates after all arrivals.
    fn mean(&self) -> f64 {
        self.sum / f64::from(self.arrivals)
    }
}
