//! Random early detection: S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993; gentle mode: S. Floyd, "Recommendation on using the 'gentle_'
//! variant of RED", 2000; marks in place of drops: RFC 3168.

use super::{Arrival, Verdict};
use crate::{Nanos, SpecError, spec::spec};

spec! {
    /// Random Early Detection (Floyd and Jacobson 1993); defaults are ns-2's `Queue/RED`.
    ///
    /// Drops at random between the thresholds of the averaged queue, up to `max_probability`; `gentle` goes on rising
    /// to 1 at twice the upper threshold. `mean_packet` sets how the average decays while the link is idle. With `ecn`,
    /// packets of ECN-capable connections are marked where they would be dropped at random (RFC 3168).
    pub struct RedSpec {
        /// hard limit, in packets
        limit_packets: u32 [>= 1],
        /// average queue above which packets are dropped at random
        min_threshold_packets: f64 [>= 0.0] = 5.0,
        /// average queue at which the drop probability is `max_probability`
        max_threshold_packets: f64 [> 0.0] = 15.0,
        /// drop probability at `max_threshold_packets`
        max_probability: f64 [> 0.0, <= 1.0] = 0.1,
        /// weight of a new sample in the average
        weight: f64 [> 0.0, <= 1.0] = 0.002,
        /// gentle RED: the drop probability rises to 1 at twice `max_threshold_packets`, instead of dropping all packets
        /// above it
        gentle: bool = true,
        /// packet size used to decay the average in idle times
        mean_packet_bytes: u32 [>= 1] = 500,
        /// count the packet in service against `limit`
        #[serde(default)]
        counts_packet_in_service: bool = false,
        /// CE-mark packets of ECN-capable connections instead of dropping them at random (RFC 3168); `ecn` in `[tcp]`
        /// makes connections capable
        #[serde(default)]
        ecn: bool = false,
    }
}

/// A RED queue.
#[derive(Clone, Debug)]
pub struct Red {
    spec: RedSpec,
    mean_serialization: Nanos,
    average_packets: f64,
    /// Packets since the last one dropped or marked; -1 while the average is below the lower threshold.
    count: i64,
}

impl Red {
    /// Builds the queue; `serialization` is the time to send a packet of this number of bytes, by which the average
    /// ages over idle time.
    ///
    /// # Errors
    /// Thresholds that do not rise.
    pub fn new(spec: &RedSpec, serialization: &impl Fn(u32) -> Nanos) -> Result<Red, SpecError> {
        if spec.min_threshold_packets >= spec.max_threshold_packets {
            let right = format!("it must be below max_threshold_packets ({})", spec.max_threshold_packets);
            return Err(SpecError::new("min_threshold_packets", spec.min_threshold_packets, right));
        }
        let mean_serialization = serialization(spec.mean_packet_bytes);
        Ok(Red { spec: spec.clone(), mean_serialization, average_packets: 0.0, count: -1 })
    }

    /// The average queue, in packets.
    pub fn average_packets(&self) -> f64 {
        self.average_packets
    }

    /// Updates the average and decides on the arriving packet.
    // Out of line: most links have drop tail, and its code path must stay short.
    #[inline(never)]
    pub fn on_arrival(&mut self, arrival: Arrival<'_>, random: &mut impl FnMut() -> f64) -> Verdict {
        self.update_average(&arrival);
        if arrival.serving && arrival.packets(self.spec.counts_packet_in_service) >= self.spec.limit_packets {
            self.count = 0;
            return Verdict::Drop;
        }
        let Some(probability) = self.base_probability() else {
            self.count = -1;
            return Verdict::Admit;
        };
        self.count += 1;
        // RFC 3168 §7: beyond the upper threshold packets are dropped, not marked, so that those who only claim to be
        // ECN-capable gain nothing.
        if probability >= 1.0 {
            self.count = 0;
            return Verdict::Drop;
        }
        // The paper's section 7: p_a = p_b / (1 - count p_b) spreads the drops evenly over the arrivals.
        let spread = 1.0 - self.count as f64 * probability;
        if spread <= 0.0 || random() < probability / spread {
            self.count = 0;
            // RFC 3168 §5: a mark where a packet that is not ECN-capable would be dropped.
            return if self.spec.ecn && arrival.ecn_capable { Verdict::Mark } else { Verdict::Drop };
        }
        Verdict::Admit
    }

    /// The paper's figure 2: the average follows the queue at each arrival, and decays over idle time by the number
    /// of packets that might have been sent in it.
    fn update_average(&mut self, arrival: &Arrival<'_>) {
        let weight = self.spec.weight;
        if arrival.serving {
            self.average_packets += weight * (f64::from(arrival.backlog.packets()) - self.average_packets);
        } else if self.mean_serialization > 0 {
            let idle = (arrival.now - arrival.free_at) as f64 / self.mean_serialization as f64;
            self.average_packets *= libm::pow(1.0 - weight, idle);
        } else {
            self.average_packets = 0.0;
        }
    }

    /// p_b, or none below the lower threshold.
    fn base_probability(&self) -> Option<f64> {
        let RedSpec { min_threshold_packets: min, max_threshold_packets: max, max_probability, gentle, .. } = self.spec;
        let average = self.average_packets;
        if average < min {
            None
        } else if average < max {
            Some(max_probability * (average - min) / (max - min))
        } else if gentle && average < 2.0 * max {
            Some(max_probability + (1.0 - max_probability) * (average - max) / max)
        } else {
            Some(1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::Backlog;

    fn red(weight: f64) -> Red {
        let spec = RedSpec {
            limit_packets: 100,
            counts_packet_in_service: false,
            min_threshold_packets: 5.0,
            max_threshold_packets: 15.0,
            max_probability: 0.1,
            weight,
            gentle: true,
            mean_packet_bytes: 1500,
            ecn: false,
        };
        Red::new(&spec, &|_| 1_000_000).unwrap()
    }

    #[test]
    fn the_average_decays_over_idle_time_by_the_packets_that_might_have_been_sent() {
        let mut red = red(0.5);
        let mut backlog = Backlog::default();
        (1..=8).for_each(|packet| backlog.push(packet, 1500));
        let busy = Arrival { now: 0, bytes: 1500, ecn_capable: false, backlog: &backlog, serving: true, free_at: 0 };
        assert_eq!(red.on_arrival(busy, &mut || 0.999), Verdict::Admit);
        assert_eq!(red.average_packets(), 4.0);
        let backlog = Backlog::default();
        let idle = Arrival { now: 12_000_000, backlog: &backlog, serving: false, free_at: 10_000_000, ..busy };
        assert_eq!(red.on_arrival(idle, &mut || 0.999), Verdict::Admit);
        assert_eq!(red.average_packets(), 1.0);
    }

    // The paper's figure 2: count is -1 while the average is below the lower threshold.
    #[test]
    fn packets_below_the_lower_threshold_bring_no_drop_nearer() {
        for (draw, verdict) in [(0.049, Verdict::Drop), (0.051, Verdict::Admit)] {
            let mut red = red(1.0);
            let mut judge = |waiting| {
                let mut backlog = Backlog::default();
                (1..=waiting).for_each(|packet| backlog.push(packet, 1500));
                let arrival =
                    Arrival { now: 0, bytes: 1500, ecn_capable: false, backlog: &backlog, serving: true, free_at: 1 };
                red.on_arrival(arrival, &mut || draw)
            };
            assert!((0..100).all(|_| judge(4) == Verdict::Admit));
            // p_b = 0.1 (10 - 5) / (15 - 5) = 0.05, and p_a is that for the first packet above the threshold.
            assert_eq!(judge(10), verdict, "{draw}");
        }
    }
}
