//! Histograms of times in bins whose width grows with the time.
//!
//! Bin b holds the times above 1.01^(b - 1) ns, up to and with 1.01^b ns: whichever time of a bin is named, it is off by
//! at most 1 %, and the middle one by 0.5 %, which is then the error of a quantile. (C. Masson, J. Rim, H. Lee,
//! "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error Guarantees", VLDB 2019.)

use std::{ops::Range, sync::OnceLock};

use firstflight_path::Nanos;
use firstflight_records::GAMMA;

/// Bins up to the end of time.
const MOST: usize = 4460;

#[derive(Debug)]
pub(crate) struct Bins {
    /// The largest whole number of nanoseconds in each bin.
    last: Vec<Nanos>,
    /// For each number of leading zeros the first bin that such a time can fall into.
    first: [usize; 65],
}

impl Bins {
    /// Computed once: thousands of powers would take longer than a few hundred connections.
    pub(crate) fn get() -> &'static Bins {
        static BINS: OnceLock<Bins> = OnceLock::new();
        BINS.get_or_init(Bins::new)
    }

    fn new() -> Bins {
        let last: Vec<Nanos> = (0..MOST).map(|bin| libm::pow(GAMMA, bin as f64) as Nanos).collect();
        let first = std::array::from_fn(|zeros| {
            let least = if zeros == 64 { 0 } else { 1 << (63 - zeros) };
            last.partition_point(|&last| last < least)
        });
        Bins { last, first }
    }

    /// The bin of a time; at once is in bin 0, as is a nanosecond.
    #[inline]
    pub(crate) fn of(&self, time: Nanos) -> usize {
        let zeros = time.leading_zeros() as usize;
        let from = self.first[zeros];
        let to = if zeros == 0 { self.last.len() } else { self.first[zeros - 1] + 1 };
        let to = to.min(self.last.len());
        from + self.last[from..to].partition_point(|&last| last < time)
    }
}

/// Number of times in each bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    /// The bins that hold anything lie within these.
    in_use: Range<usize>,
}

impl Histogram {
    #[inline]
    pub(crate) fn count(&mut self, bin: usize) {
        if !self.in_use.contains(&bin) {
            self.reach(bin);
        }
        self.counts[bin] += 1;
    }

    #[cold]
    fn reach(&mut self, bin: usize) {
        if self.in_use.is_empty() {
            self.in_use = bin..bin + 1;
        } else {
            self.in_use = self.in_use.start.min(bin)..self.in_use.end.max(bin + 1);
        }
        if self.counts.len() < self.in_use.end {
            self.counts.resize(self.in_use.end, 0);
        }
    }

    /// The middle of the bin in which the value lies that a share `q` of all does not exceed, in nanoseconds; none of
    /// nothing.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let counts = || self.in_use.clone().map(|bin| (bin, self.counts[bin]));
        let total: u64 = counts().map(|(_, count)| count).sum();
        // As Python's `analysis.summary`: the first at or above the share.
        let wanted = q * total as f64;
        let mut so_far = 0;
        counts()
            .find(|(_, count)| {
                so_far += count;
                so_far > 0 && so_far as f64 >= wanted
            })
            .map(|(bin, _)| libm::pow(GAMMA, bin as f64 - 0.5))
    }

    /// The bins that hold anything with how much, in order; then they are empty.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let in_use = std::mem::take(&mut self.in_use);
        let counts = self.counts[in_use.clone()].iter_mut().zip(in_use);
        counts.filter(|(count, _)| **count > 0).map(|(count, bin)| (bin as i32, std::mem::take(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_bin_that_its_logarithm_names() {
        let bins = Bins::new();
        let mut time = 1.0f64;
        while time < 1.8e19 {
            for near in [time as Nanos, (time as Nanos).saturating_add(1), (time * 1.004) as Nanos] {
                let bin = bins.of(near);
                assert!(near <= bins.last[bin], "{near} is above bin {bin}");
                assert!(bin == 0 || near > bins.last[bin - 1], "{near} is not above the bin before {bin}");
                let logarithm = (near as f64).ln() / GAMMA.ln();
                assert!((bin as f64 - logarithm).abs() < 1.0 + 1e-6, "{near} in {bin}, not {logarithm}");
            }
            time *= 1.007;
        }
        assert_eq!((bins.of(0), bins.of(1), bins.of(2)), (0, 0, 70));
    }
}
