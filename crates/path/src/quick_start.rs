//! The router before a link and its answers to Quick-Start requests (RFC 4782).

use firstflight_segment::QuickStart;
use serde::{Deserialize, Serialize};

use crate::{Nanos, SpecError};

/// A router's policy. One without a policy does not know the option and forwards requests as they are, which makes them
/// void (RFC 4782 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum QuickStartSpec {
    /// Grants the rate left below a limit, given the link's use and earlier grants (RFC 4782 appendix D, "target").
    Grant {
        /// The limit in bits a second, `qs_thresh * bandwidth`; none: the link's rate.
        limit_bps: Option<u64>,
    },
    /// Lowers each request to at most this rate, whatever the link's use.
    Lower {
        /// Bits a second.
        rate_bps: u64,
    },
    /// Terminates each request.
    Refuse {},
}

impl QuickStartSpec {
    /// Checks the rates.
    ///
    /// # Errors
    /// The parameter that is wrong.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            Self::Grant { limit_bps: Some(0) } | Self::Lower { rate_bps: 0 } => {
                Err(SpecError::new("quick_start", "a rate of 0", "write policy = \"refuse\""))
            }
            _ => Ok(()),
        }
    }
}

// RFC 4782 appendix D: intervals of 150 msec, both of the utilization and of the approved requests.
const INTERVAL: Nanos = 150_000_000;
/// Intervals whose use counts, the highest of them: the N of "peak utilization", at the lower end of the 3 to 20 that RFC
/// 4782 appendix D reports.
const INTERVALS: usize = 3;

/// State of a router: the link's traffic and the granted rates, per interval.
#[derive(Clone, Debug)]
pub(crate) struct QuickStartRouter {
    spec: QuickStartSpec,
    /// None: the link is infinitely fast.
    limit_bps: Option<u64>,
    /// Number of the interval in progress.
    interval: u64,
    /// Bits accepted in the interval in progress and those before it.
    bits: [u64; INTERVALS + 1],
    /// Bits a second granted in the interval in progress and the one before.
    granted: [u64; 2],
}

impl QuickStartRouter {
    pub(crate) fn new(spec: QuickStartSpec, link_bps: Option<u64>) -> Self {
        let limit_bps = match spec {
            QuickStartSpec::Grant { limit_bps } => limit_bps.or(link_bps),
            _ => None,
        };
        Self { spec, limit_bps, interval: 0, bits: [0; INTERVALS + 1], granted: [0; 2] }
    }

    fn advance(&mut self, now: Nanos) {
        while self.interval < now / INTERVAL {
            // After a pause longer than the memory there is nothing to keep.
            if now / INTERVAL - self.interval > self.bits.len() as u64 {
                self.interval = now / INTERVAL - self.bits.len() as u64;
            }
            self.interval += 1;
            self.bits.rotate_right(1);
            self.bits[0] = 0;
            self.granted = [0, self.granted[0]];
        }
    }

    /// The link accepted a packet.
    pub(crate) fn on_accepted(&mut self, now: Nanos, bytes: u32) {
        if matches!(self.spec, QuickStartSpec::Grant { .. }) {
            self.advance(now);
            self.bits[0] += 8 * u64::from(bytes);
        }
    }

    /// The rate code that is granted of the one requested.
    pub(crate) fn answer(&mut self, now: Nanos, requested: u8) -> u8 {
        match self.spec {
            QuickStartSpec::Refuse {} => 0,
            QuickStartSpec::Lower { rate_bps } => requested.min(QuickStart::code_within(rate_bps)),
            QuickStartSpec::Grant { .. } => {
                self.advance(now);
                // RFC 4782 appendix D: util_bw = bandwidth * utilization + recent_qs_approvals; approved =
                // qs_thresh * bandwidth - util_bw, at most the requested rate, rounded down.
                let used = self.bits[1..].iter().map(|bits| bits * 1_000_000_000 / INTERVAL).max().unwrap_or(0);
                let promised = self.granted[0] + self.granted[1];
                let left = self.limit_bps.map_or(u64::MAX, |limit| limit.saturating_sub(used.saturating_add(promised)));
                let approved = requested.min(QuickStart::code_within(left));
                self.granted[0] = self.granted[0].saturating_add(QuickStart::bits_per_second(approved));
                approved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn granting(limit_bps: u64) -> QuickStartRouter {
        QuickStartRouter::new(QuickStartSpec::Grant { limit_bps: Some(limit_bps) }, Some(100 * MBIT))
    }

    #[test]
    fn an_idle_link_grants_up_to_its_limit() {
        let mut router = granting(QuickStart::bits_per_second(6) + QuickStart::bits_per_second(5));
        assert_eq!([6, 9, 9].map(|asked| router.answer(0, asked)), [6, 5, 0]);
    }

    #[test]
    fn earlier_grants_count_for_two_intervals() {
        let mut router = granting(QuickStart::bits_per_second(8));
        assert_eq!([0, INTERVAL, 2 * INTERVAL].map(|now| router.answer(now, 8)), [8, 0, 8]);
    }

    #[test]
    fn the_busiest_of_the_last_intervals_counts() {
        let mut router = granting(10 * MBIT);
        // 150 kB in the first 150 ms are 8 Mbit/s; afterwards there is silence. Code 5 is 1.28 Mbit/s, and 7 is 5.12.
        router.on_accepted(0, 150_000);
        assert_eq!([INTERVAL, 3 * INTERVAL, 6 * INTERVAL].map(|now| router.answer(now, 7)), [5, 5, 7]);
    }

    #[test]
    fn use_and_grants_are_forgotten_after_a_pause_of_any_length_and_count_anew_after_it() {
        for pause in [6, 7, 8, 1000] {
            let mut router = granting(10 * MBIT);
            router.on_accepted(0, 150_000);
            assert_eq!(router.answer(0, 4), 4);
            assert_eq!(router.answer(pause * INTERVAL, 7), 7, "{pause} intervals");
            router.on_accepted(pause * INTERVAL, 150_000);
            assert_eq!(router.answer((pause + 2) * INTERVAL, 7), 5, "{pause} intervals");
        }
    }

    #[test]
    fn the_interval_under_way_does_not_count_yet() {
        let mut router = granting(10 * MBIT);
        router.on_accepted(0, 150_000);
        assert_eq!(router.answer(1, 7), 7);
    }

    #[test]
    fn a_grant_is_rounded_down_and_only_that_is_promised() {
        let mut router = granting(10 * MBIT);
        assert_eq!([8; 4].map(|asked| router.answer(0, asked)), [7, 6, 5, 4]);
    }

    #[test]
    fn the_other_policies_look_at_nothing() {
        let mut lowering = QuickStartRouter::new(QuickStartSpec::Lower { rate_bps: MBIT }, None);
        assert_eq!([7, 7, 3].map(|asked| lowering.answer(0, asked)), [4, 4, 3]);
        let mut refusing = QuickStartRouter::new(QuickStartSpec::Refuse {}, None);
        assert_eq!(refusing.answer(0, 7), 0);
    }

    #[test]
    fn an_infinitely_fast_link_grants_everything() {
        let mut router = QuickStartRouter::new(QuickStartSpec::Grant { limit_bps: None }, None);
        assert_eq!(router.answer(0, 15), 15);
    }
}
