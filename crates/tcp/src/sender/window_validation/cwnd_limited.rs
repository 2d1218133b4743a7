//! Linux's rule: the window grows while it limits the sender, in slow start also while less than twice the data
//! that was outstanding; and window that was not used for a retransmission timeout is given up by half (RFC
//! 2861).

use super::{Burst, Shrunk, Unused};
use crate::Nanos;
use crate::sequence::SeqNum;

#[derive(Clone, Debug, Default)]
pub(crate) struct CwndLimited {
    /// cwnd limited the sender in the current window of data.
    limited: bool,
    /// Most segments outstanding in that window, if it did not.
    most_outstanding: u32,
    /// End of that window of data.
    window_end: SeqNum,
    /// Most segments outstanding since the window was last fully used.
    used: u32,
    /// When the window was last fully used, or considered for growth.
    used_at: Nanos,
}

impl CwndLimited {
    // Linux's tcp_cwnd_validate: the strongest signal of the window of data counts: being limited, or else the most
    // that was outstanding.
    #[inline]
    pub(super) fn on_transmit(&mut self, now: Nanos, burst: &Burst) {
        let outstanding = burst.outstanding_segments;
        if self.window_end == 0 {
            // The first burst: nothing was unused before it.
            self.used_at = now;
        }
        if burst.una >= self.window_end || burst.limited || !self.limited && outstanding > self.most_outstanding {
            self.limited = burst.limited;
            self.most_outstanding = outstanding;
            self.window_end = burst.nxt;
        }
        if self.allows_growth(burst.window_segments, burst.in_slow_start) {
            self.used = 0;
            self.used_at = now;
        } else {
            self.used = self.used.max(outstanding);
        }
    }

    /// The window was considered for growth.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Nanos) {
        self.used_at = now;
    }

    // Linux's tcp_cwnd_restart: the restart window begins a new period of use.
    pub(super) fn on_restart(&mut self, now: Nanos) {
        self.used = 0;
        self.used_at = now;
    }

    // Linux's tcp_is_cwnd_limited: in slow start the window may reach twice the outstanding data.
    #[inline]
    pub(super) fn allows_growth(&self, window_segments: u32, in_slow_start: bool) -> bool {
        self.limited || in_slow_start && window_segments < self.most_outstanding.saturating_mul(2)
    }

    // Linux's tcp_cwnd_application_limited (RFC 2861 §3.1): after a timeout's worth of partial use, half-way down to
    // the used part, and not below the initial window; outside of the open state only the time begins again.
    #[inline]
    pub(super) fn unused(&mut self, now: Nanos, unused: &Unused) -> Option<Shrunk> {
        if self.used == 0 || now - self.used_at < unused.rto {
            return None;
        }
        self.used_at = now;
        if !unused.open {
            return None;
        }
        let used = self.used.max(unused.initial_window_segments);
        self.used = 0;
        let window = unused.window_segments;
        (used < window).then(|| Shrunk::from(window, u32::midpoint(window, used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn burst(limited: bool, outstanding: u32, window: u32, in_slow_start: bool) -> Burst {
        let nxt = 1 + u64::from(outstanding);
        Burst { limited, outstanding_segments: outstanding, una: 1, nxt, window_segments: window, in_slow_start }
    }

    #[test]
    fn in_slow_start_the_window_grows_to_twice_what_was_outstanding() {
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 6, 10, true));
        assert!(rule.allows_growth(10, true) && rule.allows_growth(11, true) && !rule.allows_growth(12, true));
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 5, 10, true));
        assert!(!rule.allows_growth(10, true));
    }

    #[test]
    fn in_congestion_avoidance_it_grows_only_if_it_limits_the_sender() {
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 9, 10, false));
        assert!(!rule.allows_growth(10, false));
        rule.on_transmit(0, &burst(true, 10, 10, false));
        assert!(rule.allows_growth(10, false));
    }

    #[test]
    fn being_limited_counts_until_the_window_of_data_is_acknowledged() {
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(true, 10, 10, false));
        let mut later = burst(false, 4, 10, false);
        (later.una, later.nxt) = (10, 14);
        rule.on_transmit(1, &later);
        assert!(rule.allows_growth(10, false), "position 11 is not acknowledged yet");
        (later.una, later.nxt) = (11, 15);
        rule.on_transmit(2, &later);
        assert!(!rule.allows_growth(10, false));
    }

    #[test]
    fn what_was_not_used_for_a_timeout_is_given_up_by_half() {
        let mut rule = CwndLimited::default();
        let unused = Unused { window_segments: 40, initial_window_segments: 10, rto: SECOND, open: true };
        rule.on_transmit(0, &burst(true, 40, 40, false));
        let mut little = burst(false, 12, 40, false);
        (little.una, little.nxt) = (100, 112);
        rule.on_transmit(SECOND / 2, &little);
        assert_eq!(rule.unused(SECOND / 2, &unused), None);
        rule.on_transmit(SECOND, &little);
        let shrunk = Shrunk { window_segments: 26, least_ssthresh_segments: 30 };
        assert_eq!(rule.unused(SECOND, &unused), Some(shrunk));
        assert_eq!(rule.unused(SECOND + 1, &unused), None);
    }

    #[test]
    fn the_most_that_was_outstanding_since_the_last_growth_counts_as_used() {
        let unused = Unused { window_segments: 40, initial_window_segments: 10, rto: SECOND, open: true };
        let mut rule = CwndLimited::default();
        [12, 20, 15].into_iter().for_each(|outstanding| rule.on_transmit(0, &burst(false, outstanding, 40, false)));
        rule.on_ack(SECOND / 2);
        assert_eq!(rule.unused(3 * SECOND / 2 - 1, &unused), None, "it was considered for growth half a second in");
        let shrunk = Shrunk { window_segments: 30, least_ssthresh_segments: 30 };
        assert_eq!(rule.unused(3 * SECOND / 2, &unused), Some(shrunk));
        // The initial window is kept, even if it was not used.
        rule.on_transmit(2 * SECOND, &burst(false, 1, 10, false));
        assert_eq!(rule.unused(9 * SECOND, &Unused { window_segments: 10, ..unused }), None);
        // In slow start 40 segments may be twice the outstanding data.
        rule.on_transmit(10 * SECOND, &burst(false, 30, 40, true));
        assert_eq!(rule.unused(20 * SECOND, &unused), None);
    }

    #[test]
    fn outside_of_the_open_state_nothing_is_given_up_and_the_time_begins_again() {
        let unused = Unused { window_segments: 40, initial_window_segments: 10, rto: SECOND, open: true };
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 12, 40, false));
        assert_eq!(rule.unused(SECOND, &Unused { open: false, ..unused }), None);
        assert_eq!(rule.unused(2 * SECOND - 1, &unused), None);
        assert!(rule.unused(2 * SECOND, &unused).is_some_and(|shrunk| shrunk.window_segments == 26));
    }

    #[test]
    fn a_connection_that_begins_late_has_left_nothing_unused_before() {
        let mut rule = CwndLimited::default();
        let unused = Unused { window_segments: 40, initial_window_segments: 10, rto: SECOND, open: true };
        rule.on_transmit(70 * SECOND, &burst(false, 1, 40, false));
        assert_eq!(rule.unused(70 * SECOND, &unused), None);
        assert!(rule.unused(71 * SECOND, &unused).is_some());
    }

    #[test]
    fn a_restart_window_is_not_given_up_for_the_idle_time_that_led_to_it() {
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 12, 40, false));
        rule.on_restart(2 * SECOND);
        let mut first = burst(false, 1, 20, false);
        (first.una, first.nxt) = (13, 14);
        rule.on_transmit(2 * SECOND, &first);
        let unused = Unused { window_segments: 20, initial_window_segments: 10, rto: SECOND, open: true };
        assert_eq!(rule.unused(2 * SECOND, &unused), None);
        let shrunk = Shrunk { window_segments: 15, least_ssthresh_segments: 15 };
        assert_eq!(rule.unused(3 * SECOND, &unused), Some(shrunk));
    }

    #[test]
    fn the_initial_window_is_never_given_up() {
        let mut rule = CwndLimited::default();
        rule.on_transmit(0, &burst(false, 2, 10, false));
        let unused = Unused { window_segments: 10, initial_window_segments: 10, rto: SECOND, open: true };
        assert_eq!(rule.unused(2 * SECOND, &unused), None);
    }
}
