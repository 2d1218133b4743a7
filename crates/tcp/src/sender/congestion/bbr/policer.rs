//! Policers: if two intervals in a row lose much and deliver at the same rate, a token bucket is at work, and that
//! rate is the bandwidth for the next 48 rounds (Flach et al., "An Internet-Wide Analysis of Traffic Policing", 2016).

use crate::Nanos;

/// Rounds that an interval lasts at least, and at most.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 16;
/// An interval is lossy if this number of 256ths of the delivered data was lost.
const LOSSY: u64 = 50;
/// Two rates are the same if they differ by an eighth or by this number of bytes a second.
const SAME_RATE: u64 = 500;
/// Rounds for which the rate is believed.
const BELIEVED_ROUNDS: u32 = 48;

/// Updates from an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub now: Nanos,
    /// Bytes delivered, and lost, over the connection so far.
    pub delivered: u64,
    pub lost: u64,
    /// Something was lost just now.
    pub loses: bool,
    pub app_limited: bool,
    pub round_start: bool,
    /// The mode is PROBE_BW.
    pub probing: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// The rate in bytes a second; 0: no interval ended yet.
    rate: u64,
    believed: bool,
    sampling: bool,
    rounds: u32,
    /// State at the beginning of the interval.
    began: Nanos,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The policed rate in bytes a second, if there is a policer.
    #[inline]
    pub fn rate(&self) -> Option<u64> {
        self.believed.then_some(self.rate)
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn begin(&mut self, seen: &Observation) {
        self.began = seen.now;
        self.delivered = seen.delivered;
        self.lost = seen.lost;
        self.rounds = 0;
    }

    /// True: the rate is believed no longer, and probing is to begin again.
    pub fn observe(&mut self, seen: &Observation) -> bool {
        if self.believed {
            self.rounds += u32::from(seen.probing && seen.round_start);
            let over = self.rounds >= BELIEVED_ROUNDS;
            if over {
                self.reset();
            }
            return over;
        }
        // The first loss shows that the bucket is empty; earlier samples overestimate the rate.
        if !self.sampling {
            if !seen.loses {
                return false;
            }
            self.begin(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds > MOST_ROUNDS {
            self.reset();
        } else if self.rounds >= LEAST_ROUNDS && seen.loses {
            // An interval ends with a loss too: the bucket is empty again.
            self.end_interval(seen);
        }
        false
    }

    fn end_interval(&mut self, seen: &Observation) {
        let (delivered, lost) = (seen.delivered - self.delivered, seen.lost - self.lost);
        let time = seen.now - self.began;
        if delivered == 0 || lost * 256 < LOSSY * delivered || time < 1_000_000 {
            return;
        }
        let rate = (u128::from(delivered) * 1_000_000_000 / u128::from(time)) as u64;
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0 && (difference * 8 <= self.rate || difference <= SAME_RATE) {
            self.rate = u64::midpoint(rate, self.rate);
            self.believed = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// A second a round, `delivered` bytes each, of which `lost` more are lost.
    fn round(policer: &mut Policer, number: u64, delivered: u64, lost: u64) -> bool {
        policer.observe(&Observation {
            now: number * SECOND,
            delivered: number * delivered,
            lost: number * lost,
            loses: lost > 0,
            app_limited: false,
            round_start: true,
            probing: true,
        })
    }

    #[test]
    fn two_lossy_intervals_at_one_rate_reveal_a_policer_which_is_believed_for_48_rounds() {
        let mut policer = Policer::default();
        let found = (1..).find(|&number| {
            round(&mut policer, number, 100_000, 25_000);
            policer.rate().is_some()
        });
        // The first round, the one that begins the first interval included, and two intervals of four.
        assert_eq!((found, policer.rate()), (Some(8), Some(100_000)));
        let over = (9..).find(|&number| round(&mut policer, number, 100_000, 25_000));
        assert_eq!((over, policer.rate()), (Some(8 + 48), None));
    }

    #[test]
    fn a_little_loss_is_no_policer() {
        let mut policer = Policer::default();
        for number in 1..100 {
            round(&mut policer, number, 100_000, 10_000);
            assert_eq!(policer.rate(), None);
        }
    }
}
