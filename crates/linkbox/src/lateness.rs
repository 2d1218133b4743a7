//! Lateness of packets at their hand-over.

use firstflight_path::Nanos;
use serde::Serialize;

/// Each power of two is split into this number of classes, so a class is at most 1 / 16 wide.
const SPLIT_BITS: u32 = 4;
const CLASSES: usize = (64 - SPLIT_BITS as usize + 1) << SPLIT_BITS;

/// Stalls kept between two takes.
const MOST_STALLS: usize = 4096;

/// A packet that was handed over later than the plan's `stall_ns`, or a time for which the box was not let run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stall {
    /// When it was due, by the monotonic clock.
    pub(crate) due_ns: Nanos,
    /// Its delay.
    pub(crate) late_ns: Nanos,
    /// Index of the port; none: nothing was due but to wake.
    pub(crate) port: Option<u16>,
}

/// Lateness since the last take.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    classes: Box<[u64; CLASSES]>,
    packets: u64,
    max: Nanos,
    max_at: Nanos,
    stall: Nanos,
    stalls: Vec<Stall>,
    more_stalls: u64,
}

/// Its form in an answer. Quantiles are upper borders of classes: too high by 1 / 16 at most.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    packets: u64,
    p50_ns: Nanos,
    p99_ns: Nanos,
    max_ns: Nanos,
    /// When the packet that was latest was due, by the monotonic clock.
    max_at_ns: Nanos,
    /// Upper border of a class and its packets, of the classes that have any.
    histogram: Vec<(Nanos, u64)>,
    stalls: Vec<Stall>,
    /// Stalls beyond those listed.
    more_stalls: u64,
}

impl Lateness {
    /// `stall`: later packets are listed.
    pub(crate) fn new(stall: Nanos) -> Lateness {
        let stalls = Vec::with_capacity(MOST_STALLS);
        Lateness { classes: Box::new([0; CLASSES]), packets: 0, max: 0, max_at: 0, stall, stalls, more_stalls: 0 }
    }

    /// A packet due at `due` was handed over `late` after it.
    #[inline]
    pub(crate) fn record(&mut self, due: Nanos, late: Nanos, port: u16) {
        self.classes[class(late)] += 1;
        self.packets += 1;
        if late > self.max {
            self.max = late;
            self.max_at = due;
        }
        if late > self.stall {
            self.stalled(due, late, Some(port));
        }
    }

    /// The box was to wake at `due` and woke `late` after it.
    #[inline]
    pub(crate) fn woke(&mut self, due: Nanos, late: Nanos) {
        if late > self.stall {
            self.stalled(due, late, None);
        }
    }

    #[cold]
    fn stalled(&mut self, due_ns: Nanos, late_ns: Nanos, port: Option<u16>) {
        if self.stalls.len() < MOST_STALLS {
            self.stalls.push(Stall { due_ns, late_ns, port });
        } else {
            self.more_stalls += 1;
        }
    }

    /// The list, which is then cleared.
    pub(crate) fn take(&mut self) -> Report {
        let used = self.classes.iter().enumerate().filter(|&(_, &packets)| packets > 0);
        let report = Report {
            packets: self.packets,
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max,
            max_at_ns: self.max_at,
            histogram: used.map(|(class, &packets)| (upper(class), packets)).collect(),
            stalls: self.stalls.clone(),
            more_stalls: self.more_stalls,
        };
        self.classes.fill(0);
        self.stalls.clear();
        (self.packets, self.max, self.max_at, self.more_stalls) = (0, 0, 0, 0);
        report
    }

    fn quantile(&self, percent: u64) -> Nanos {
        let mut left = (self.packets * percent).div_ceil(100);
        for (class, &packets) in self.classes.iter().enumerate() {
            left = left.saturating_sub(packets);
            if left == 0 && packets > 0 {
                return upper(class).min(self.max);
            }
        }
        self.max
    }
}

/// The class of a value: its leading bits.
#[inline]
fn class(value: Nanos) -> usize {
    let length = 64 - value.leading_zeros();
    let shift = length.saturating_sub(SPLIT_BITS + 1);
    ((shift as usize) << SPLIT_BITS) + (value >> shift) as usize
}

/// The largest value of a class.
fn upper(class: usize) -> Nanos {
    let shift = (class >> SPLIT_BITS).saturating_sub(1);
    let leading = (class - (shift << SPLIT_BITS)) as u128;
    (((leading + 1) << shift) - 1) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_at_most_a_sixteenth_wide() {
        for value in (0..100_000).chain([u64::MAX - 1, u64::MAX, 1 << 40]) {
            let upper = upper(class(value));
            assert!(value <= upper && upper - value <= value / 16, "{value} is in a class up to {upper}");
            assert!(class(value) <= class(value.saturating_add(1)) && class(value) < CLASSES);
        }
    }

    #[test]
    fn quantiles_maximum_and_stalls_are_those_since_the_last_take() {
        let mut lateness = Lateness::new(1000);
        (1..=100).for_each(|late| lateness.record(7, late, 0));
        lateness.record(9, 5000, 3);
        let report = lateness.take();
        assert!((51..=54).contains(&report.p50_ns) && (100..=106).contains(&report.p99_ns), "{report:?}");
        assert_eq!((report.max_ns, report.max_at_ns), (5000, 9));
        assert_eq!(report.stalls, [Stall { due_ns: 9, late_ns: 5000, port: Some(3) }]);
        assert_eq!(lateness.take().packets, 0);
    }
}
