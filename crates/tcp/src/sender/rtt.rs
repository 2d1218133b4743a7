//! Round-trip time estimation and the retransmission timeout: RFC 6298's and Linux's.

use crate::Nanos;
use crate::profile::{AfterSynLoss, Profile, RtoEstimator, RtoRules};
use crate::sequence::SeqNum;

/// Smoothed round-trip time, its variation and the timeout that follows from them.
///
/// SRTT is kept times 8 and RTTVAR times 4, in nanoseconds or, with quantised samples, in clock ticks: the
/// arithmetic is Jacobson's, which rounds exactly as BSD and ns-2 do when a unit is a tick.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed_times_8: u64,
    variation_times_4: u64,
    rto: Nanos,
    /// Timeouts are a multiple of this, which is a second at most.
    tick: u32,
    /// Times that the timeout was lengthened since the latest sample.
    backoffs: u32,
    /// With Linux's estimator, in place of `variation_times_4`.
    linux: Option<Box<LinuxVariation>>,
}

/// Linux's estimate of the variation (tcp_rtt_estimator): up immediately, down slowly and once per RTT, and never below
/// the floor, which therefore comes on top of the round trip.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinuxVariation {
    /// Smoothed deviation, times 4 [mdev_us].
    deviation_times_4: u64,
    /// Its maximum in this round, the floor at least [mdev_max_us].
    maximum: u64,
    /// The term added to the RTT [rttvar_us].
    variation: u64,
    /// The round ends when this is acknowledged [rtt_seq].
    round_end: SeqNum,
}

impl LinuxVariation {
    /// The timeout after one more sample.
    fn sample(&mut self, rules: &RtoRules, smoothed_times_8: &mut u64, rtt: u64, una: SeqNum, nxt: SeqNum) -> Nanos {
        let floor = rules.minimum_ns;
        if *smoothed_times_8 == 0 {
            *smoothed_times_8 = rtt * 8;
            self.deviation_times_4 = rtt * 2;
            self.variation = self.deviation_times_4.max(floor);
            self.maximum = self.variation;
            self.round_end = nxt;
        } else {
            let smoothed = *smoothed_times_8 >> 3;
            *smoothed_times_8 = (*smoothed_times_8 + rtt - smoothed).max(1);
            let (error, deviation) = (smoothed.abs_diff(rtt), self.deviation_times_4 >> 2);
            self.deviation_times_4 += error;
            self.deviation_times_4 -= if rtt < smoothed && error > deviation {
                // A shorter round trip says little of the longest to come: an eighth of the usual gain.
                error - ((error - deviation) >> 3)
            } else {
                deviation
            };
            if self.deviation_times_4 > self.maximum {
                self.maximum = self.deviation_times_4;
                self.variation = self.variation.max(self.maximum);
            }
            if una > self.round_end {
                if self.maximum < self.variation {
                    self.variation -= (self.variation - self.maximum) >> 2;
                }
                self.round_end = nxt;
                self.maximum = floor;
            }
        }
        ((*smoothed_times_8 >> 3) + self.variation).min(rules.maximum_ns)
    }
}

impl RttEstimator {
    /// Gives up the memory that another estimator can be built in.
    pub(crate) fn take_memory(&mut self) -> Option<Box<LinuxVariation>> {
        self.linux.take()
    }

    /// A new estimator, in the memory of an old one if there is one.
    pub(crate) fn new_in(old: Option<Box<LinuxVariation>>, profile: &Profile) -> Self {
        let rules = &profile.rto;
        let variation = |old: Option<Box<LinuxVariation>>| {
            let mut variation = old.unwrap_or_default();
            *variation = LinuxVariation::default();
            variation
        };
        // RFC 6298 §2.1: until a measurement has been made, the RTO is a constant (1 second).
        Self {
            smoothed_times_8: 0,
            variation_times_4: 0,
            rto: profile.whole_ticks(rules.initial_ns),
            tick: profile.timer_tick.map_or(1, |tick| tick.period_ns) as u32,
            backoffs: 0,
            linux: (rules.estimator == RtoEstimator::Linux).then(|| variation(old)),
        }
    }

    /// The timeout in force, back-off included.
    pub(crate) fn rto(&self) -> Nanos {
        self.rto
    }

    /// Times that the timeout was lengthened since the latest sample.
    pub(crate) fn backoffs(&self) -> u32 {
        self.backoffs
    }

    pub(crate) fn smoothed(&self, rules: &RtoRules) -> Option<Nanos> {
        (self.smoothed_times_8 != 0).then(|| self.smoothed_times_8 * rules.unit_ns() / 8)
    }

    /// Takes in one segment's round trip, sent at `sent` and acknowledged at `now`; ends any back-off. For senders that
    /// time one segment at a time, so that every sample ends a round.
    pub(crate) fn sample(&mut self, rules: &RtoRules, sent: Nanos, now: Nanos) {
        self.backoffs = 0;
        if let Some(variation) = &mut self.linux {
            let round = now.saturating_sub(sent).max(1);
            let rto = variation.sample(rules, &mut self.smoothed_times_8, round, SeqNum::MAX, 0);
            return self.set(rto);
        }
        let unit = rules.unit_ns();
        let measured = if rules.estimator == (RtoEstimator::Rfc6298 { quantized_rtt: true }) {
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
        let rto = self.without_backoff(rules);
        self.set(rto);
    }

    /// Sets the timeout, in whole ticks.
    #[inline]
    fn set(&mut self, rto: Nanos) {
        let tick = Nanos::from(self.tick);
        self.rto = if tick > 1 { rto.div_ceil(tick).saturating_mul(tick) } else { rto };
    }

    /// RFC 6298's timeout before any back-off.
    // RFC 6298 §2.3: RTO <- SRTT + max (G, K*RTTVAR), K = 4; §2.4 and §2.5: a floor and a cap.
    #[inline]
    fn without_backoff(&self, rules: &RtoRules) -> Nanos {
        if self.smoothed_times_8 == 0 {
            return rules.initial_ns;
        }
        let unit = rules.unit_ns();
        let variation = (self.variation_times_4 * unit).max(rules.granularity_ns);
        let rto = (self.smoothed_times_8 >> 3) * unit + variation;
        rto.clamp(rules.minimum_ns, rules.maximum_ns)
    }

    /// As [`sample`](Self::sample), but the back-off stays: for samples that a retransmission may have had a part in.
    pub(crate) fn sample_keeping_backoff(&mut self, rules: &RtoRules, sent: Nanos, now: Nanos) {
        let backoffs = self.backoffs;
        self.sample(rules, sent, now);
        self.backoffs = backoffs;
        let factor = u64::from(rules.backoff).saturating_pow(backoffs);
        self.rto = self.rto.saturating_mul(factor).min(rules.maximum_ns);
    }

    /// Adds an RTT sample that ended now; `una` and `nxt` distinguish rounds.
    pub(crate) fn sample_duration(&mut self, rules: &RtoRules, rtt: Nanos, una: SeqNum, nxt: SeqNum) {
        self.backoffs = 0;
        match &mut self.linux {
            Some(variation) => {
                let rto = variation.sample(rules, &mut self.smoothed_times_8, rtt.max(1), una, nxt);
                self.set(rto);
            }
            None => self.sample(rules, 0, rtt),
        }
    }

    /// Smoothed variation of the round trip, 0 without a sample.
    pub(crate) fn variation(&self, rules: &RtoRules) -> Nanos {
        match &self.linux {
            Some(variation) => variation.deviation_times_4 / 4,
            None => self.variation_times_4 * rules.unit_ns() / 4,
        }
    }

    /// The timer expired.
    // RFC 6298 §5.5: RTO <- RTO * 2 ("back off the timer"), up to the cap of §2.5.
    pub(crate) fn back_off(&mut self, rules: &RtoRules) {
        self.backoffs += 1;
        self.rto = self.rto.saturating_mul(u64::from(rules.backoff)).min(rules.maximum_ns);
    }

    /// Data begins after a SYN that had to be repeated.
    // RFC 6298 §5.7: if the timer expired awaiting the ACK of a SYN and the RTO is less than 3 seconds, the RTO MUST
    // be re-initialized to 3 seconds when data transmission begins.
    pub(crate) fn restart_after_syn_loss(&mut self, rules: &RtoRules) {
        let known = |after: &AfterSynLoss| after.unless_sampled && self.smoothed_times_8 != 0;
        if let Some(after) = rules.after_syn_loss.filter(|after| !known(after)) {
            self.set(after.timeout_ns);
        }
    }
}

/// Send times from which an acknowledgment gives a round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SendTimes {
    first_acknowledged: Option<Nanos>,
    last_acknowledged: Option<Nanos>,
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
    /// Segments that had been delivered when the segment left that left last of those delivered now.
    pub prior_delivered: Option<u32>,
}

impl SendTimes {
    #[inline]
    pub fn on_acknowledged(&mut self, sent_at: Nanos) {
        self.first_acknowledged.get_or_insert(sent_at);
        self.last_acknowledged = Some(sent_at);
    }

    #[inline]
    pub fn on_sacked(&mut self, sent_at: Nanos) {
        self.first_sacked.get_or_insert(sent_at);
        self.last_sacked = Some(sent_at);
    }

    pub fn on_delivered(&mut self, prior_delivered: u32) {
        self.prior_delivered = self.prior_delivered.max(Some(prior_delivered));
    }

    pub fn sacked_rtt(&self, now: Nanos) -> Option<Nanos> {
        self.first_sacked.map(|sent_at| now - sent_at)
    }

    /// The sample for the estimator, and the RTT of the segment delivered last. `unambiguous`: no segment acknowledged
    /// cumulatively was sent twice; `echoed`: the RTT by timestamps, if data was.
    // RFC 6298 §3 (Karn): never from a segment sent twice, unless a timestamp distinguishes the transmissions.
    pub fn rtt(&self, now: Nanos, unambiguous: bool, echoed: Option<Nanos>) -> Option<(Nanos, Nanos)> {
        let ago = |sent_at: Option<Nanos>| sent_at.map(|sent_at| now - sent_at);
        let acknowledged = ago(self.first_acknowledged).filter(|_| unambiguous);
        let rtt = acknowledged.or(ago(self.first_sacked)).or(echoed)?;
        let latest = ago(self.last_sacked).or(ago(self.last_acknowledged).filter(|_| unambiguous)).unwrap_or(rtt);
        Some((rtt, latest))
    }
}

/// Validity of a minimum RTT.
const SHORTEST_VALID: Nanos = 300_000_000_000;

/// The shortest round trip of late.
// Linux, tcp_update_rtt_min: a filter of five minutes (tcp_min_rtt_wlen), here without its second and third choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortestRtt {
    rtt: Option<Nanos>,
    at: Nanos,
}

impl ShortestRtt {
    /// Takes in a round trip that ended now.
    pub(crate) fn sample(&mut self, now: Nanos, rtt: Nanos) {
        if self.rtt.is_none_or(|shortest| rtt <= shortest) || now.saturating_sub(self.at) > SHORTEST_VALID {
            self.rtt = Some(rtt);
            self.at = now;
        }
    }

    /// It, once there is a sample.
    pub(crate) fn get(&self) -> Option<Nanos> {
        self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn estimator(rules: &RtoRules) -> RttEstimator {
        RttEstimator::new_in(None, &Profile { rto: *rules, ..Profile::rfc() })
    }

    #[test]
    fn the_estimator_follows_rfc_6298() {
        let rules = RtoRules { minimum_ns: MS, ..Profile::rfc().rto };
        let mut rtt = estimator(&rules);
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
        let mut rtt = estimator(&rules);
        for _ in 0..200 {
            rtt.sample(&rules, 0, 100 * MS);
        }
        assert_eq!(rtt.rto(), 110 * MS);
    }

    #[test]
    fn quantized_rtts_count_ticks_of_a_fixed_clock_and_at_least_one() {
        let rules = Profile::ns2_full_1998().rto;
        let mut rtt = estimator(&rules);
        rtt.sample(&rules, 110 * MS, 190 * MS);
        assert_eq!(rtt.smoothed(&rules), Some(100 * MS));
        assert_eq!(rtt.rto(), 300 * MS);
        let mut rtt = estimator(&rules);
        rtt.sample(&rules, 190 * MS, 310 * MS);
        assert_eq!(rtt.smoothed(&rules), Some(200 * MS));
        assert_eq!(rtt.rto(), 600 * MS);
    }

    #[test]
    fn linux_adds_a_floor_of_variation_to_the_round_trip() {
        let rules = Profile::linux().rto;
        let mut rtt = estimator(&rules);
        assert_eq!(rtt.rto(), 1000 * MS);
        rtt.sample_duration(&rules, 100 * MS, 1, 2);
        assert_eq!((rtt.rto(), rtt.variation(&rules)), (300 * MS, 50 * MS));
        // Steady samples: the deviation fades, the floor remains.
        for round in 2..60 {
            rtt.sample_duration(&rules, 100 * MS, round + 1, round + 2);
        }
        assert_eq!(rtt.rto(), 300 * MS);
        assert!(rtt.variation(&rules) < MS);
    }

    #[test]
    fn linux_follows_a_longer_round_trip_at_once_and_a_shorter_one_slowly() {
        let rules = Profile::linux().rto;
        let mut rtt = estimator(&rules);
        rtt.sample_duration(&rules, 100 * MS, 1, 10);
        // Within the round: deviation 3/4 x 200 + 400 = 550 ms (times 4), round trip 100 + 400/8 = 150 ms.
        rtt.sample_duration(&rules, 500 * MS, 5, 10);
        assert_eq!(rtt.rto(), (150 + 550) * MS);
        // Back to 100 ms, 50 below the mean: deviation 137.5 ms is larger, so 3/4 x 550 + 50 = 462.5 ms; no fall within
        // the round.
        rtt.sample_duration(&rules, 100 * MS, 6, 10);
        assert_eq!(rtt.rto(), 143_750_000 + 550 * MS);
        assert_eq!(rtt.variation(&rules), 462_500_000 / 4);
        // The next rounds bring it down by a quarter of the distance to the value that each has seen.
        rtt.sample_duration(&rules, 143_750_000, 11, 20);
        assert_eq!(rtt.rto(), 143_750_000 + 550 * MS);
        rtt.sample_duration(&rules, 143_750_000, 21, 30);
        assert!(rtt.rto() < 143_750_000 + 550 * MS);
    }

    #[test]
    fn a_much_shorter_round_trip_raises_linux_deviation_by_an_eighth() {
        let rules = Profile::linux().rto;
        let mut rtt = estimator(&rules);
        for una in 1..100 {
            rtt.sample_duration(&rules, 800 * MS, una, una);
        }
        let before = rtt.variation(&rules);
        assert!(before < MS);
        rtt.sample_duration(&rules, 400 * MS, 100, 100);
        let rise = rtt.variation(&rules) - before;
        assert!((12 * MS..13 * MS).contains(&rise), "{rise}");
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten_after_five_minutes() {
        let mut shortest = ShortestRtt::default();
        assert_eq!(shortest.get(), None);
        shortest.sample(0, 20 * MS);
        shortest.sample(299_000 * MS, 30 * MS);
        assert_eq!(shortest.get(), Some(20 * MS));
        shortest.sample(300_000 * MS, 30 * MS);
        assert_eq!(shortest.get(), Some(20 * MS));
        shortest.sample(300_001 * MS, 30 * MS);
        assert_eq!(shortest.get(), Some(30 * MS));
    }
}
