//! A window spread over the RTT, as Linux's pacing and its `fq` queue do it: the rate follows cwnd and the smoothed RTT.

use crate::Nanos;
use crate::profile::error::{ProfileError, within};
use crate::sender::pacing::Rate;
use serde::{Deserialize, Serialize};

/// The pacing rate of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowPacing {
    /// Percentage of cwnd sent per SRTT while cwnd is below half of ssthresh, 1 to 1000 (Linux: `tcp_pacing_ss_ratio`,
    /// 200).
    pub slow_start_percent: u32,
    /// Percentage of cwnd sent per SRTT from there on (Linux: `tcp_pacing_ca_ratio`, 120).
    pub avoidance_percent: u32,
    /// Minimum burst, in segments, 1 to 64 (Linux: `tcp_min_tso_segs`, 2). With `trains` a longer train is also one
    /// burst.
    pub burst_segments: u32,
}

impl WindowPacing {
    /// Linux's.
    pub(crate) const LINUX: Self = Self { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };

    /// Checks that every field is within its range.
    pub(crate) fn validate(&self) -> Result<(), ProfileError> {
        within("pacing.slow_start_percent", self.slow_start_percent, 1..=1000)?;
        within("pacing.avoidance_percent", self.avoidance_percent, 1..=1000)?;
        within("pacing.burst_segments", self.burst_segments, 1..=64)
    }

    /// The rate for these windows, in bytes.
    // Linux, tcp_update_pacing_rate.
    pub(crate) fn rate(&self, window: u32, ssthresh: u32, srtt: Nanos) -> Rate {
        let percent = if window < ssthresh / 2 { self.slow_start_percent } else { self.avoidance_percent };
        Rate::new(u64::from(window) * u64::from(percent), srtt.saturating_mul(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_half_of_the_threshold_on_the_rate_is_the_lower_one() {
        let rate = |ssthresh| WindowPacing::LINUX.rate(10_000, ssthresh, 100_000_000).bytes_per_second();
        assert_eq!((rate(20_001), rate(20_002), rate(20_000)), (120_000, 200_000, 120_000));
    }
}
