//! A rate that changes at given times, once or over and over.

use crate::{Nanos, SpecError, spec::spec};

spec! {
    /// A rate that changes at given times: `[["0s", "10Mbit"], ["5s", "2Mbit"]]`, and with `repeat` over and over.
    ///
    /// Nothing is sent at "0bit". Without `repeat` the last rate stays; it is the mean of all time.
    pub struct StepsSpec {
        /// time and rate of each step
        steps: Vec<(Nanos, u64)>,
        /// time after which the steps begin again; default: the last one stays
        repeat_ns: Option<Nanos> = None,
    }
}

/// A second's worth of bits at 1 bit/s, in units of bits times nanoseconds per second.
const UNITS_PER_BIT: u128 = 1_000_000_000;

/// The steps at work.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    steps: Vec<(Nanos, u64)>,
    period: Option<Period>,
}

#[derive(Clone, Copy, Debug)]
struct Period {
    length: Nanos,
    /// The bits that all steps together send, times [`UNITS_PER_BIT`].
    units: u128,
}

impl Steps {
    /// Checks the steps.
    pub(super) fn new(spec: &StepsSpec) -> Result<Steps, SpecError> {
        let StepsSpec { steps, repeat_ns } = spec;
        if steps.first().map(|&(at, _)| at) != Some(0) || !steps.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(SpecError::new("steps", "not sorted", "begin at \"0s\", in the order of time"));
        }
        for &(_, rate) in steps.iter().filter(|&&(_, rate)| rate > 0) {
            super::Rate::from_bits_per_second(rate)?;
        }
        let last = steps[steps.len() - 1];
        let Some(length) = *repeat_ns else {
            return match last {
                (at, 0) => {
                    let found = format!("0 for ever from {at} ns on");
                    Err(SpecError::new("rate", found, "give the last step a rate, or repeat"))
                }
                _ => Ok(Steps { steps: steps.clone(), period: None }),
            };
        };
        if length <= last.0 {
            return Err(SpecError::new("repeat_ns", length, "it must be after the last step"));
        }
        let ends = steps[1..].iter().map(|&(at, _)| at).chain([length]);
        let units = steps.iter().zip(ends).map(|(&(at, rate), end)| u128::from(end - at) * u128::from(rate)).sum();
        if units == 0 {
            return Err(SpecError::new("rate", "0 for ever", "give a step a rate"));
        }
        Ok(Steps { steps: steps.clone(), period: Some(Period { length, units }) })
    }

    /// Over a period; without one the last rate.
    pub(super) fn mean_bps(&self) -> u64 {
        self.period
            .map_or(self.steps[self.steps.len() - 1].1, |Period { length, units }| (units / u128::from(length)) as u64)
    }

    /// The rate at `time`, and when it ends.
    fn at(&self, time: Nanos) -> (u64, Nanos) {
        let begun = self.period.map_or(0, |period| time - time % period.length);
        let next = self.steps.partition_point(|&(at, _)| at <= time - begun);
        let end = self.steps.get(next).map(|&(at, _)| at).or(self.period.map(|period| period.length));
        (self.steps[next - 1].1, end.map_or(Nanos::MAX, |end| begun.saturating_add(end)))
    }

    /// At the end of the last transmission, or as soon as there is a rate.
    pub(super) fn start(&mut self, now: Nanos, free_at: Nanos) -> Nanos {
        self.following(free_at.max(now))
    }

    pub(super) fn following(&mut self, free_at: Nanos) -> Nanos {
        let mut start = free_at;
        // A period has a step with a rate, and so has the time after the last step.
        while let (0, end) = self.at(start) {
            start = end;
        }
        start
    }

    pub(super) fn send(&mut self, start: Nanos, bytes: u32) -> Nanos {
        let mut left = 8 * u128::from(bytes) * UNITS_PER_BIT;
        let mut time = start;
        if let Some(Period { length, units }) = self.period {
            // At least something is left for the last period, whose end need not be that of the transmission.
            let whole = left.saturating_sub(1) / units;
            left -= whole * units;
            time = time.saturating_add((whole * u128::from(length)).min(u128::from(Nanos::MAX)) as Nanos);
        }
        while time < Nanos::MAX {
            let (rate, end) = self.at(time);
            let rate = u128::from(rate);
            let units = rate * u128::from(end - time);
            if left <= units {
                return time.saturating_add(((left + rate / 2) / rate.max(1)) as Nanos);
            }
            left -= units;
            time = end;
        }
        time
    }

    pub(super) fn busy(&self, start: Nanos, end: Nanos, _serialization: Nanos) -> Nanos {
        end - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn steps(steps: &[(Nanos, u64)], repeat_ns: Option<Nanos>) -> Result<Steps, SpecError> {
        Steps::new(&StepsSpec { steps: steps.to_vec(), repeat_ns })
    }

    #[test]
    fn a_transmission_goes_on_at_the_next_rate() {
        // 12 Mbit/s: 1500 bytes take 1 ms; at 1.2 Mbit/s they take 10 ms.
        let mut rate = steps(&[(0, 12_000_000), (10 * MS, 1_200_000)], None).unwrap();
        assert_eq!(rate.send(0, 1500), MS);
        // Half of it before the step.
        assert_eq!(rate.send(9 * MS + MS / 2, 1500), 15 * MS);
        assert_eq!(rate.send(20 * MS, 1500), 30 * MS);
    }

    #[test]
    fn steps_begin_again_after_their_period() {
        let mut rate = steps(&[(0, 12_000_000), (10 * MS, 1_200_000)], Some(20 * MS)).unwrap();
        assert_eq!(rate.send(20 * MS, 1500), 21 * MS);
        assert_eq!(rate.send(30 * MS, 1500), 40 * MS);
        // Half at the low rate, half at the high one.
        assert_eq!(rate.send(35 * MS, 1500), 40 * MS + MS / 2);
    }

    #[test]
    fn a_packet_that_takes_many_periods_ends_as_if_each_were_counted() {
        let mut rate = steps(&[(0, 1000), (MS, 0)], Some(2 * MS)).unwrap();
        // One bit for each period, in its first half.
        assert_eq!(rate.send(0, 1500), 12_000 * 2 * MS - MS);
        assert_eq!(rate.send(MS / 2, 1500), 12_000 * 2 * MS + MS / 2);
    }

    #[test]
    fn nothing_begins_while_the_rate_is_zero() {
        let mut rate = steps(&[(0, 12_000_000), (10 * MS, 0), (50 * MS, 12_000_000)], None).unwrap();
        assert_eq!(rate.start(20 * MS, 5 * MS), 50 * MS);
        assert_eq!(rate.start(5 * MS, 8 * MS), 8 * MS);
        assert_eq!(rate.send(9 * MS + MS / 2, 1500), 50 * MS + MS / 2);
    }

    #[test]
    fn steps_that_cannot_be_are_refused() {
        let refusal = |given: &[(Nanos, u64)], repeat| steps(given, repeat).unwrap_err().to_string();
        assert!(refusal(&[], None).contains("begin at"));
        assert!(refusal(&[(1, 10)], None).contains("begin at"));
        assert!(refusal(&[(0, 10), (0, 20)], None).contains("order of time"));
        assert!(refusal(&[(0, 10), (5, 0)], None).contains("0 for ever from 5 ns on"));
        assert!(refusal(&[(0, 0)], Some(5)).contains("0 for ever"));
        assert!(refusal(&[(0, 10), (5, 20)], Some(5)).contains("repeat_ns is 5"));
        assert!(refusal(&[(0, 1)], None).contains("1 bit/s"));
    }
}
