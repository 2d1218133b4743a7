//! RFC 7661: the window counts as validated while at least half of it was acknowledged in some round trip of late. A
//! window that is not validated stays as it is for five minutes, and falls to the used part when there is a loss.

use super::{Shrunk, Unused};
use crate::Nanos;
use crate::sender::congestion::MaxFilter;
use crate::sequence::SeqNum;

const MILLISECOND: Nanos = 1_000_000;
// RFC 7661 §4.2: the pipeACK sampling period is max(3*RTT, 1 second).
const LEAST_PERIOD: Nanos = 1000 * MILLISECOND;
const PERIOD_ROUND_TRIPS: u64 = 3;
// RFC 7661 §4.3: the non-validated period, NVP, is five minutes.
const NON_VALIDATED_PERIOD: Nanos = 300 * 1000 * MILLISECOND;

#[derive(Clone, Debug)]
pub(crate) struct Rfc7661 {
    mss_bytes: u32,
    /// pipeACK: largest volume acknowledged in a round trip, in bytes; none: undefined.
    pipe_ack: Option<MaxFilter>,
    /// The round being measured: the acknowledged data at its beginning, and the amount at which it ends.
    round: Option<(SeqNum, SeqNum)>,
    /// When the non-validated phase, or its latest period, began.
    non_validated_at: Option<Nanos>,
    /// max(pipeACK, LossFlightSize) in segments, during the recovery from a loss in the non-validated phase.
    safe: Option<u32>,
}

impl Rfc7661 {
    // RFC 7661 §4.1: a connection starts in the validated phase, with pipeACK undefined.
    pub(super) fn new(mss_bytes: u32) -> Self {
        Self { mss_bytes, pipe_ack: None, round: None, non_validated_at: None, safe: None }
    }

    /// pipeACK is undefined again.
    // RFC 7661 §4.2: as immediately after loss recovery.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.mss_bytes);
    }

    fn pipe_ack_segments(&self) -> Option<u32> {
        let bytes = self.pipe_ack.as_ref()?.get();
        Some(u32::try_from(bytes / u64::from(self.mss_bytes)).unwrap_or(u32::MAX))
    }

    // RFC 7661 §4.3: validated phase: pipeACK >= (1/2)*cwnd, or undefined.
    pub(super) fn is_validated(&self, window_segments: u32) -> bool {
        self.pipe_ack_segments().is_none_or(|pipe_ack| pipe_ack >= window_segments / 2)
    }

    // RFC 7661 §4.2: a pipeACK sample is the volume of data acknowledged over a round trip.
    pub(super) fn on_ack(&mut self, now: Nanos, una: SeqNum, nxt: SeqNum, srtt: Nanos, window_segments: u32) {
        let (from, end) = *self.round.get_or_insert((una, nxt));
        if una >= end && una > from {
            let period = (PERIOD_ROUND_TRIPS * srtt).max(LEAST_PERIOD);
            let filter = self.pipe_ack.get_or_insert_default();
            filter.update(period, now, una - from);
            self.round = Some((una, nxt));
        }
        if self.is_validated(window_segments) {
            self.non_validated_at = None;
        } else {
            self.non_validated_at.get_or_insert(now);
        }
    }

    // RFC 7661 §4.4.3: after the non-validated period, cwnd = max(cwnd/2, IW) and ssthresh = max(ssthresh, 3*cwnd/4).
    pub(super) fn unused(&mut self, now: Nanos, unused: &Unused) -> Option<Shrunk> {
        let began = self.non_validated_at.filter(|_| unused.open)?;
        if now - began < NON_VALIDATED_PERIOD {
            return None;
        }
        self.non_validated_at = Some(now);
        let window = unused.window_segments;
        let half = (window / 2).max(unused.initial_window_segments);
        (half < window).then(|| Shrunk::from(window, half))
    }

    // RFC 7661 §4.4.1: a loss in the non-validated phase: cwnd = max(pipeACK, LossFlightSize) / 2.
    pub(super) fn on_congestion(&mut self, flight_segments: u32, window_segments: u32) -> Option<u32> {
        self.safe = None;
        if self.is_validated(window_segments) {
            return None;
        }
        let safe = flight_segments.max(self.pipe_ack_segments()?);
        self.safe = Some(safe);
        Some((safe / 2).max(1))
    }

    // RFC 7661 §4.4.1: at the end of the recovery cwnd = (max(pipeACK, LossFlightSize) - R) / 2, where R is the volume
    // that was retransmitted, and ssthresh the same.
    pub(super) fn on_recovered(&mut self, retransmitted_segments: u32) -> Option<u32> {
        let safe = self.safe;
        self.forget();
        safe.map(|safe| (safe.saturating_sub(retransmitted_segments) / 2).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1000 * MILLISECOND;
    const RTT: Nanos = SECOND / 10;

    /// A sender with a window of `window` segments of 1000 bytes that uses `used` of it in each of this number of
    /// rounds.
    fn rounds(rule: &mut Rfc7661, from: u64, count: u64, used: u64, window: u32) -> u64 {
        for round in from..from + count {
            let una = 1 + round * used * 1000;
            rule.on_ack(round * RTT, una, una + used * 1000, RTT, window);
        }
        from + count
    }

    #[test]
    fn half_of_the_window_in_use_validates_it() {
        let mut rule = Rfc7661::new(1000);
        assert!(rule.is_validated(40));
        rounds(&mut rule, 0, 5, 20, 40);
        assert!(rule.is_validated(40) && !rule.is_validated(42));
    }

    #[test]
    fn a_burst_validates_the_window_for_a_second_or_three_round_trips() {
        let mut rule = Rfc7661::new(1000);
        rule.on_ack(0, 1, 40_001, RTT, 40);
        rule.on_ack(RTT, 40_001, 41_001, RTT, 40);
        let mut una = 40_001;
        for round in 2..=11 {
            assert!(rule.is_validated(40), "round {round}");
            una += 1000;
            rule.on_ack(round * RTT, una, una + 1000, RTT, 40);
        }
        rule.on_ack(12 * RTT, una + 1000, una + 2000, RTT, 40);
        assert!(!rule.is_validated(40));
    }

    #[test]
    fn five_minutes_without_validation_halve_the_window() {
        let mut rule = Rfc7661::new(1000);
        let unused = |window_segments| Unused { window_segments, initial_window_segments: 10, rto: SECOND, open: true };
        let next = rounds(&mut rule, 0, 2, 4, 40);
        assert_eq!(rule.unused(299 * SECOND, &unused(40)), None);
        let shrunk = Shrunk { window_segments: 20, least_ssthresh_segments: 30 };
        assert_eq!(rule.unused(next * RTT + 300 * SECOND, &unused(40)), Some(shrunk));
        assert_eq!(rule.unused(next * RTT + 301 * SECOND, &unused(20)), None);
        assert_eq!(rule.unused(next * RTT + 600 * SECOND, &unused(10)), None);
    }

    #[test]
    fn a_loss_in_the_non_validated_phase_brings_the_window_down_to_what_was_used() {
        let mut rule = Rfc7661::new(1000);
        rounds(&mut rule, 0, 5, 8, 40);
        assert_eq!(rule.on_congestion(6, 40), Some(4));
        assert_eq!(rule.on_recovered(2), Some(3));
        assert!(rule.is_validated(40), "pipeACK is undefined after a repair");
    }

    #[test]
    fn a_loss_in_the_validated_phase_is_the_controllers_affair() {
        let mut rule = Rfc7661::new(1000);
        rounds(&mut rule, 0, 5, 40, 40);
        assert_eq!((rule.on_congestion(40, 40), rule.on_recovered(1)), (None, None));
    }
}
