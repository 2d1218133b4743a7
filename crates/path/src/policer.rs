//! A policer: a token bucket that drops packets beyond its rate, where a [shaper](crate::BucketSpec) would delay it.

use serde::{Deserialize, Serialize};

use crate::{Nanos, Rate, SpecError};

/// A policer as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Bits a second with which tokens come.
    pub rate_bps: u64,
    /// Tokens that a full bucket holds.
    pub bytes: u32,
}

/// A policer at work.
///
/// A packet passes if there are tokens for all of it, which it takes; otherwise it is dropped and takes none (`tcf_police_act`
/// in Linux's `act_police.c`, without a peak rate; RFC 2697 with an excess burst of 0). The bucket is full at first.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    rate: Rate,
    /// Time in which the rate fills it.
    depth: Nanos,
    full_at: Nanos,
}

impl Policer {
    /// A full bucket.
    ///
    /// # Errors
    /// A rate that cannot be, or no bytes.
    pub(crate) fn new(spec: &PolicerSpec) -> Result<Policer, SpecError> {
        if spec.bytes == 0 {
            return Err(SpecError::new("policer.bytes", 0, "give at least the bytes of one packet"));
        }
        let rate = Rate::from_bits_per_second(spec.rate_bps)?;
        Ok(Policer { rate, depth: rate.serialization(spec.bytes), full_at: 0 })
    }

    /// True if a packet that comes at `now` is dropped.
    pub(crate) fn drops(&mut self, now: Nanos, bytes: u32) -> bool {
        let full_at = self.full_at.max(now).saturating_add(self.rate.serialization(bytes));
        let exceeds = full_at - now > self.depth;
        if !exceeds {
            self.full_at = full_at;
        }
        exceeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// 1500 bytes a millisecond.
    fn policer(bytes: u32) -> Policer {
        Policer::new(&PolicerSpec { rate_bps: 12_000_000, bytes }).unwrap()
    }

    #[test]
    fn a_burst_passes_as_far_as_the_bucket_goes_and_what_is_dropped_takes_no_tokens() {
        let mut policer = policer(4000);
        let dropped: Vec<bool> = [1500, 1500, 1500, 1000, 1].map(|bytes| policer.drops(0, bytes)).into();
        assert_eq!(dropped, [false, false, true, false, true]);
        assert_eq!([policer.drops(MS, 1500), policer.drops(MS, 1500)], [false, true]);
    }

    #[test]
    fn a_rate_that_is_kept_passes_for_ever_and_twice_the_rate_loses_half() {
        let mut exact = policer(1500);
        assert!((0..1000).all(|at| !exact.drops(at * MS, 1500)));
        let mut twice = policer(15_000);
        let dropped = (0..10_000).filter(|at| twice.drops(at * MS / 2, 1500)).count();
        // Of 10,000 packets 5,000 come at the rate, and 10 find the full bucket.
        assert!((4_989..=4_991).contains(&dropped), "{dropped}");
    }

    #[test]
    fn silence_fills_the_bucket_up_to_its_size() {
        let mut policer = policer(3000);
        assert_eq!([1500; 3].map(|bytes| policer.drops(0, bytes)), [false, false, true]);
        assert_eq!([1500; 3].map(|bytes| policer.drops(1000 * MS, bytes)), [false, false, true]);
    }

    #[test]
    fn a_bucket_without_bytes_or_rate_is_refused() {
        assert!(Policer::new(&PolicerSpec { rate_bps: 1000, bytes: 0 }).is_err());
        assert!(Policer::new(&PolicerSpec { rate_bps: 0, bytes: 1 }).is_err());
    }
}
