//! Westwood+: grows as Reno does; loss sets the threshold to the bandwidth-delay product that was measured, rather than
//! to half of the data in flight (Grieco and Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno and
//! Vegas TCP", 2004).
//!
//! The estimate is Linux's: one sample a round trip, at least 50 ms long, in bytes a millisecond, through two low-pass
//! filters of 7/8. As in the paper, the threshold is set when loss is noticed; Linux sets it at the end of fast
//! recovery, having halved on the way there.

use super::interface::{Acknowledged, CongestionControl, RoundTrip};
use super::reno::Reno;
use super::start::Start;
use super::window::Window;
use crate::amounts::Bytes;
use crate::sequence::SeqNum;
use crate::{MILLISECOND, Nanos};

/// A clock tick, Linux's jiffy, in nanoseconds.
const TICK: Nanos = MILLISECOND;
/// Samples last at least this number of ticks.
const SHORTEST_SAMPLE: u64 = 50;

#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    reno: Reno,
    /// Bandwidth in bytes a tick: filtered once and twice; 0: no sample yet.
    filtered_once: u64,
    bandwidth: u64,
    /// The sample being taken: when it began, and the bytes acknowledged since; none before the first round trip.
    sample: Option<(u64, u64)>,
    una: SeqNum,
    /// Latest round trip in ticks, rounded up.
    rtt: u64,
    /// Shortest round trip in ticks; none at first and after a timeout.
    min_rtt: Option<u64>,
}

impl Westwood {
    pub(super) fn new(start: &Start) -> Self {
        Self { reno: Reno::new(start), filtered_once: 0, bandwidth: 0, sample: None, una: 0, rtt: 0, min_rtt: None }
    }

    fn filter(&mut self, bandwidth: u64) {
        if self.filtered_once == 0 && self.bandwidth == 0 {
            self.filtered_once = bandwidth;
            self.bandwidth = bandwidth;
        } else {
            self.filtered_once = (7 * self.filtered_once + bandwidth) / 8;
            self.bandwidth = (7 * self.bandwidth + self.filtered_once) / 8;
        }
    }

    /// BWE * RTTmin in full segments, at least two.
    fn bandwidth_delay_product(&self, w: &Window) -> Bytes {
        let mss = u64::from(w.mss);
        let segments = self.bandwidth * self.min_rtt.unwrap_or(self.rtt) / mss;
        Bytes(u32::try_from(segments.max(2) * mss).unwrap_or(u32::MAX))
    }
}

impl CongestionControl for Westwood {
    fn on_round_trip(&mut self, _w: &mut Window, now: Nanos, sample: &RoundTrip) {
        let now = now / TICK;
        self.rtt = sample.rtt.div_ceil(TICK);
        self.min_rtt = Some(self.min_rtt.map_or(self.rtt, |shortest| shortest.min(self.rtt)));
        let (mut began, mut bytes) = self.sample.unwrap_or((now, 0));
        if now - began > self.rtt.max(SHORTEST_SAMPLE) {
            self.filter(bytes / (now - began));
            (began, bytes) = (now, 0);
        }
        // The data that the first acknowledgment covers was sent before the sample began.
        if self.sample.is_some() {
            bytes += sample.una - self.una;
        }
        self.una = sample.una;
        self.sample = Some((began, bytes));
    }

    fn on_ack(&mut self, w: &mut Window, now: Nanos, acknowledged: Acknowledged) {
        self.reno.on_ack(w, now, acknowledged);
    }

    // Grieco and Mascolo 2004, §2: after three duplicate acknowledgments ssthresh = max (2, BWE * RTTmin / seg_size)
    // and cwnd = ssthresh if it is above.
    fn on_congestion(&mut self, w: &mut Window, now: Nanos, flight: Bytes) {
        let window = w.cwnd();
        self.reno.on_congestion(w, now, flight);
        let product = self.bandwidth_delay_product(w);
        w.ssthresh = product;
        w.set_cwnd(window.min(product));
    }

    // The same after a timeout, with cwnd at the loss window; Linux then looks for the shortest round trip again.
    fn on_timeout(&mut self, w: &mut Window, now: Nanos, flight: Bytes, first: bool) {
        self.reno.on_timeout(w, now, flight, first);
        if first {
            w.ssthresh = self.bandwidth_delay_product(w);
            self.min_rtt = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::congestion::CongestionAlgorithm;
    use crate::sender::congestion::controller::Controller;

    const MSS: u32 = 1000;

    fn westwood() -> Controller {
        Controller::new_in(None, CongestionAlgorithm::Westwood, &Start::of(100))
    }

    /// ACKs up to `una` at times in ms, with an RTT in ms.
    fn acknowledge(westwood: &mut Controller, rtt_ms: f64, acks: &[(u64, SeqNum)]) {
        for &(at, una) in acks {
            let rtt = (rtt_ms * 1e6) as Nanos;
            westwood.on_round_trip(at * TICK, &RoundTrip { rtt, una, nxt: una });
        }
    }

    /// cwnd and ssthresh in segments after a loss.
    fn after_loss(mut westwood: Controller) -> (u32, u32) {
        westwood.on_congestion(0, 100 * MSS);
        (westwood.cwnd() / MSS, westwood.ssthresh() / MSS)
    }

    // 51,000 bytes in 51 ms: 1000 bytes a ms, of which an RTT of 40 ms makes 40 segments.
    const FIRST: [(u64, SeqNum); 4] = [(1000, 5000), (1030, 35_000), (1050, 56_000), (1051, 65_000)];

    #[test]
    fn the_first_sample_of_bandwidth_comes_after_more_than_50_ms_and_is_the_estimate() {
        let mut westwood = westwood();
        acknowledge(&mut westwood, 39.2, &FIRST[..3]);
        assert_eq!(after_loss(westwood.clone()), (2, 2), "without a sample two segments are left");
        acknowledge(&mut westwood, 39.2, &FIRST[3..]);
        assert_eq!(after_loss(westwood.clone()), (40, 40));
        westwood.set_cwnd(30 * MSS);
        assert_eq!(after_loss(westwood), (30, 40));
    }

    // Linux, westwood_do_filter: (7 old + new) / 8 twice, in whole bytes a tick.
    #[test]
    fn later_samples_pass_two_filters() {
        let mut westwood = westwood();
        acknowledge(&mut westwood, 40.0, &FIRST);
        // 9000 bytes, which came as the sample began, in 51 ms: 176; (7000 + 176) / 8 = 897; (7000 + 897) / 8 = 987.
        acknowledge(&mut westwood, 40.0, &[(1102, 65_000)]);
        assert_eq!(after_loss(westwood.clone()), (39, 39));
        // 0 in 51 ms: 7 * 897 / 8 = 784; (7 * 987 + 784) / 8 = 961; 38 segments. Then 686 and 926: 37.
        acknowledge(&mut westwood, 40.0, &[(1153, 65_000)]);
        assert_eq!(after_loss(westwood.clone()), (38, 38));
        acknowledge(&mut westwood, 40.0, &[(1204, 65_000)]);
        assert_eq!(after_loss(westwood), (37, 37));
    }

    #[test]
    fn a_sample_lasts_for_more_than_the_rtt_and_the_shortest_rtt_counts() {
        let mut westwood = westwood();
        acknowledge(&mut westwood, 20.0, &[(1000, 0)]);
        acknowledge(&mut westwood, 80.0, &[(1060, 81_000), (1080, 81_000)]);
        assert_eq!(after_loss(westwood.clone()), (2, 2));
        acknowledge(&mut westwood, 80.0, &[(1081, 81_000)]);
        assert_eq!(after_loss(westwood), (20, 20));
    }

    #[test]
    fn a_timeout_sets_ssthresh_once_and_forgets_the_shortest_rtt() {
        let mut westwood = westwood();
        acknowledge(&mut westwood, 40.0, &FIRST);
        acknowledge(&mut westwood, 60.0, &[(1052, 65_000)]);
        westwood.on_timeout(0, 100 * MSS, true);
        assert_eq!((westwood.cwnd(), westwood.ssthresh()), (MSS, 40 * MSS));
        westwood.on_timeout(0, MSS, false);
        assert_eq!((westwood.cwnd(), westwood.ssthresh()), (MSS, 40 * MSS));
        westwood.set_cwnd(100 * MSS);
        assert_eq!(after_loss(westwood.clone()), (60, 60), "the latest RTT stands in");
        acknowledge(&mut westwood, 50.0, &[(1053, 65_000)]);
        assert_eq!(after_loss(westwood), (50, 50));
    }

    #[test]
    fn cwnd_grows_as_renos() {
        let mut westwood = westwood();
        westwood.on_ack(0, Acknowledged { bytes: Bytes(3 * MSS) });
        assert_eq!(westwood.cwnd(), 103 * MSS);
    }
}
