//! Lateness of packets at their hand-over.

use firstflight_path::Nanos;
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

/// Two significant digits: a quantile is at most 1% off. Longer than a minute counts as a minute.
const DIGITS: u8 = 2;
const LONGEST: Nanos = 60_000_000_000;

/// Stalls kept between two takes.
const MOST_STALLS: usize = 4096;

/// A packet handed over later than this is listed among the stalls.
const STALL: Nanos = 1_000_000;

/// A packet that was handed over later than [`STALL`], or a time for which the box was not let run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Stall {
    /// When it was due, by the monotonic clock.
    pub(crate) due_ns: Nanos,
    pub(crate) late_ns: Nanos,
    /// Index of the port; none: nothing was due but to wake.
    pub(crate) port: Option<u16>,
}

/// Lateness since the last take.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    times: Histogram<u64>,
    max: Nanos,
    stalls: Vec<Stall>,
    /// Stalls beyond those listed.
    more_stalls: u64,
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        let times = Histogram::new_with_max(LONGEST, DIGITS).expect("bounds that a histogram can have");
        Lateness { times, max: 0, stalls: Vec::with_capacity(MOST_STALLS), more_stalls: 0 }
    }

    /// A packet due at `due` was handed over `late` after it.
    pub(crate) fn record(&mut self, due: Nanos, late: Nanos, port: u16) {
        self.times.saturating_record(late);
        self.max = self.max.max(late);
        if late > STALL {
            self.stalled(due, late, Some(port));
        }
    }

    /// The box was to wake at `due` and woke `late` after it.
    pub(crate) fn woke(&mut self, due: Nanos, late: Nanos) {
        if late > STALL {
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

    /// All of it in the form of an answer; then it begins again.
    pub(crate) fn take(&mut self) -> Value {
        let quantile = |share| self.times.value_at_quantile(share).min(self.max);
        let report = json!({
            "packets": self.times.len(),
            "p50_ns": quantile(0.5),
            "p99_ns": quantile(0.99),
            "max_ns": self.max,
            "stalls": self.stalls,
            "more_stalls": self.more_stalls,
        });
        self.times.clear();
        self.stalls.clear();
        (self.max, self.more_stalls) = (0, 0);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_maximum_and_stalls_are_those_since_the_last_take() {
        let mut lateness = Lateness::new();
        (1..=100).for_each(|late| lateness.record(7, late, 0));
        lateness.record(9, 5_000_000, 3);
        let report = lateness.take();
        assert_eq!(["p50_ns", "p99_ns", "max_ns"].map(|name| report[name].as_u64()), [51, 100, 5_000_000].map(Some));
        assert_eq!(report["stalls"], json!([{ "due_ns": 9, "late_ns": 5_000_000, "port": 3 }]));
        assert_eq!(lateness.take()["packets"], 0);
        lateness.record(9, u64::MAX, 3);
        assert_eq!(lateness.take()["max_ns"], u64::MAX);
    }
}
