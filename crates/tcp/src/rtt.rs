//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use crate::Nanos;
use crate::profile::RtoRules;

/// Smoothed round-trip time, its variation and the timeout that follows from them.
///
/// SRTT is kept times 8 and RTTVAR times 4, in nanoseconds or, with quantised samples, in clock ticks: the
/// arithmetic is Jacobson's, which rounds exactly as BSD and ns-2 do when a unit is a tick.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed_times_8: u64,
    variation_times_4: u64,
    rto: Nanos,
}

impl RttEstimator {
    pub(crate) fn new(rules: &RtoRules) -> Self {
        // RFC 6298 §2.1: until a measurement has been made, the RTO is a constant (1 second).
        Self { smoothed_times_8: 0, variation_times_4: 0, rto: rules.initial_ns }
    }

    /// The timeout in force, back-off included.
    #[inline]
    pub(crate) fn rto(&self) -> Nanos {
        self.rto
    }

    pub(crate) fn smoothed(&self, rules: &RtoRules) -> Option<Nanos> {
        (self.smoothed_times_8 != 0).then(|| self.smoothed_times_8 * rules.unit_ns() / 8)
    }

    /// Takes in one segment's round trip, sent at `sent` and acknowledged at `now`; ends any back-off.
    pub(crate) fn sample(&mut self, rules: &RtoRules, sent: Nanos, now: Nanos) {
        let unit = rules.unit_ns();
        let measured = if rules.quantised_samples {
            // BSD and ns-2 count the ticks of a free-running clock that fall within the round trip, at least one.
            (now / unit).saturating_sub(sent / unit)
        } else {
            now.saturating_sub(sent)
        }
        .max(1);
        if self.smoothed_times_8 == 0 {
            // RFC 6298 §2.2: SRTT <- R, RTTVAR <- R/2.
            self.smoothed_times_8 = measured * 8;
            self.variation_times_4 = measured * 2;
        } else {
            // RFC 6298 §2.3: RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R'|, then SRTT <- 7/8 SRTT + 1/8 R'.
            let smoothed = self.smoothed_times_8 >> 3;
            self.smoothed_times_8 = (self.smoothed_times_8 + measured - smoothed).max(1);
            let variation = self.variation_times_4 >> 2;
            self.variation_times_4 = (self.variation_times_4 + smoothed.abs_diff(measured) - variation).max(1);
        }
        // RFC 6298 §2.3: RTO <- SRTT + max (G, K*RTTVAR), K = 4; §2.4 and §2.5: a floor and a cap.
        let granularity = rules.granularity_ns;
        let variation = (self.variation_times_4 * unit).max(granularity);
        let rto = (self.smoothed_times_8 >> 3) * unit + variation;
        self.rto = rto.clamp(rules.minimum_ns, rules.maximum_ns);
    }

    /// The timer expired.
    // RFC 6298 §5.5: RTO <- RTO * 2 ("back off the timer"), up to the cap of §2.5.
    pub(crate) fn back_off(&mut self, rules: &RtoRules) {
        self.rto = self.rto.saturating_mul(u64::from(rules.backoff)).min(rules.maximum_ns);
    }

    /// Data begins after a SYN that had to be repeated.
    // RFC 6298 §5.7: if the timer expired awaiting the ACK of a SYN and the RTO is less than 3 seconds, the RTO MUST
    // be re-initialized to 3 seconds when data transmission begins.
    pub(crate) fn restart_after_syn_loss(&mut self, rules: &RtoRules) {
        if let Some(rto) = rules.after_syn_loss_ns {
            self.rto = rto;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const MS: Nanos = 1_000_000;

    #[test]
    fn the_estimator_follows_rfc_6298() {
        let rules = RtoRules { minimum_ns: MS, ..Profile::rfc().rto };
        let mut rtt = RttEstimator::new(&rules);
        assert_eq!(rtt.rto(), 1000 * MS);
        rtt.sample(&rules, 0, 100 * MS);
        assert_eq!(rtt.smoothed(&rules), Some(100 * MS));
        assert_eq!(rtt.rto(), 300 * MS);
        rtt.sample(&rules, 0, 180 * MS);
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5 ms, SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms.
        assert_eq!(rtt.smoothed(&rules), Some(110 * MS));
        assert_eq!(rtt.rto(), 340 * MS);
        rtt.back_off(&rules);
        assert_eq!(rtt.rto(), 680 * MS);
    }

    #[test]
    fn steady_samples_leave_the_granularity_above_the_round_trip() {
        let rules = RtoRules { minimum_ns: MS, granularity_ns: 10 * MS, ..Profile::rfc().rto };
        let mut rtt = RttEstimator::new(&rules);
        for _ in 0..200 {
            rtt.sample(&rules, 0, 100 * MS);
        }
        assert_eq!(rtt.rto(), 110 * MS);
    }

    #[test]
    fn quantised_samples_count_ticks_of_a_fixed_clock_and_at_least_one() {
        let rules = Profile::ns2_full_1998().rto;
        let mut rtt = RttEstimator::new(&rules);
        rtt.sample(&rules, 110 * MS, 190 * MS);
        assert_eq!(rtt.smoothed(&rules), Some(100 * MS));
        assert_eq!(rtt.rto(), 300 * MS);
        let mut rtt = RttEstimator::new(&rules);
        rtt.sample(&rules, 190 * MS, 310 * MS);
        assert_eq!(rtt.smoothed(&rules), Some(200 * MS));
        assert_eq!(rtt.rto(), 600 * MS);
    }
}
