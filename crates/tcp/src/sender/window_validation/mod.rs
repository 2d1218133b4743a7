//! Congestion-window validation: which acknowledgments let cwnd grow, and what becomes of window that is not used.
//!
//! The rule is Linux's: the window grows while it limits the sender, in slow start also while it is less than twice the
//! data that was outstanding; window that was not used for a retransmission timeout is given up by half (RFC 2861).

mod validate;

use crate::Nanos;
use crate::profile::WindowValidation;
use crate::sequence::SeqNum;

/// The sender after a burst: it can send nothing more now.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// cwnd kept the sender from sending more.
    limited: bool,
    /// Segments sent and not acknowledged cumulatively.
    outstanding_segments: u32,
    una: SeqNum,
    nxt: SeqNum,
    window_segments: u32,
    /// The window is below the threshold.
    in_slow_start: bool,
    /// Window below this is kept even if it is not used.
    initial_window_segments: u32,
    /// Retransmission timeout in force.
    rto: Nanos,
    /// Nothing was lost, reordered or marked of late.
    open: bool,
}

/// What the rule remembers of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// Unused window is given up.
    decays: bool,
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

impl Validation {
    /// None if every acknowledgment lets the window grow.
    pub(crate) fn new(rule: WindowValidation) -> Option<Self> {
        match rule {
            WindowValidation::Off => None,
            WindowValidation::CwndLimited { app_limited_decay } => {
                Some(Self { decays: app_limited_decay, ..Self::default() })
            }
        }
    }

    /// A burst was sent: the window that is left if some was unused for too long, in segments.
    fn on_burst(&mut self, now: Nanos, burst: &Burst) -> Option<u32> {
        self.note_use(now, burst);
        if self.decays { self.unused(now, burst) } else { None }
    }

    // Linux's tcp_cwnd_validate: the strongest signal of the window of data counts: being limited, or else the most
    // that was outstanding.
    fn note_use(&mut self, now: Nanos, burst: &Burst) {
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

    // Linux's tcp_cwnd_application_limited (RFC 2861 §3.1): after a timeout's worth of partial use, half-way down to
    // the used part, and not below the initial window; outside of the open state only the time begins again.
    fn unused(&mut self, now: Nanos, burst: &Burst) -> Option<u32> {
        if self.used == 0 || now - self.used_at < burst.rto {
            return None;
        }
        self.used_at = now;
        if !burst.open {
            return None;
        }
        let used = self.used.max(burst.initial_window_segments);
        self.used = 0;
        let window = burst.window_segments;
        (used < window).then(|| u32::midpoint(window, used))
    }

    /// True if an acknowledgment lets the window grow.
    // Linux's tcp_is_cwnd_limited: in slow start the window may reach twice the outstanding data.
    fn allows_growth(&self, window_segments: u32, in_slow_start: bool) -> bool {
        self.limited || in_slow_start && window_segments < self.most_outstanding.saturating_mul(2)
    }

    /// The window was considered for growth, or the retransmission timer expired.
    pub(crate) fn begin_period(&mut self, now: Nanos) {
        self.used_at = now;
    }

    /// The connection was idle for longer than the RTO, and the restart window applied.
    // Linux's tcp_cwnd_restart: the restart window begins a new period of use.
    pub(crate) fn on_restart(&mut self, now: Nanos) {
        self.used = 0;
        self.used_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    /// An application that uses a part of 40 segments, with an initial window of 10.
    const BURST: Burst = Burst {
        limited: false,
        outstanding_segments: 12,
        una: 1,
        nxt: 13,
        window_segments: 40,
        in_slow_start: false,
        initial_window_segments: 10,
        rto: SECOND,
        open: true,
    };

    fn burst(limited: bool, outstanding: u32, window: u32, in_slow_start: bool) -> Burst {
        let nxt = 1 + u64::from(outstanding);
        Burst { limited, outstanding_segments: outstanding, nxt, window_segments: window, in_slow_start, ..BURST }
    }

    fn linux() -> Validation {
        Validation::new(WindowValidation::CwndLimited { app_limited_decay: true }).expect("it validates")
    }

    #[test]
    fn in_slow_start_the_window_grows_to_twice_what_was_outstanding() {
        let mut rule = linux();
        rule.on_burst(0, &burst(false, 6, 10, true));
        assert!(rule.allows_growth(10, true) && rule.allows_growth(11, true) && !rule.allows_growth(12, true));
        let mut rule = linux();
        rule.on_burst(0, &burst(false, 5, 10, true));
        assert!(!rule.allows_growth(10, true));
    }

    #[test]
    fn in_congestion_avoidance_it_grows_only_if_it_limits_the_sender() {
        let mut rule = linux();
        rule.on_burst(0, &burst(false, 9, 10, false));
        assert!(!rule.allows_growth(10, false));
        rule.on_burst(0, &burst(true, 10, 10, false));
        assert!(rule.allows_growth(10, false));
    }

    #[test]
    fn being_limited_counts_until_the_window_of_data_is_acknowledged() {
        let mut rule = linux();
        rule.on_burst(0, &burst(true, 10, 10, false));
        let later = Burst { una: 10, nxt: 14, ..burst(false, 4, 10, false) };
        rule.on_burst(1, &later);
        assert!(rule.allows_growth(10, false), "position 11 is not acknowledged yet");
        rule.on_burst(2, &Burst { una: 11, nxt: 15, ..later });
        assert!(!rule.allows_growth(10, false));
    }

    #[test]
    fn what_was_not_used_for_a_timeout_is_given_up_by_half() {
        let mut rule = linux();
        rule.on_burst(0, &burst(true, 40, 40, false));
        let little = Burst { una: 100, nxt: 112, ..BURST };
        assert_eq!(rule.on_burst(SECOND / 2, &little), None);
        assert_eq!(rule.on_burst(SECOND, &little), Some(26));
        assert_eq!(rule.on_burst(SECOND + 1, &little), None);
    }

    #[test]
    fn without_decay_nothing_is_given_up() {
        let rule = WindowValidation::CwndLimited { app_limited_decay: false };
        let mut rule = Validation::new(rule).expect("it validates");
        assert_eq!([0, 1, 2, 3].map(|time| rule.on_burst(time * SECOND, &BURST)), [None; 4]);
    }

    #[test]
    fn the_most_that_was_outstanding_since_the_last_growth_counts_as_used() {
        let mut rule = linux();
        [12, 20, 15].into_iter().for_each(|outstanding| {
            rule.on_burst(0, &burst(false, outstanding, 40, false));
        });
        rule.begin_period(SECOND / 2);
        let next = burst(false, 15, 40, false);
        assert_eq!(rule.on_burst(3 * SECOND / 2 - 1, &next), None, "it was considered for growth half a second in");
        assert_eq!(rule.on_burst(3 * SECOND / 2, &next), Some(30));
        // In slow start 40 segments may be twice the outstanding data.
        rule.on_burst(10 * SECOND, &burst(false, 30, 40, true));
        assert_eq!(rule.on_burst(20 * SECOND, &burst(false, 30, 40, true)), None);
    }

    #[test]
    fn outside_of_the_open_state_nothing_is_given_up_and_the_time_begins_again() {
        let mut rule = linux();
        rule.on_burst(0, &BURST);
        assert_eq!(rule.on_burst(SECOND, &Burst { open: false, ..BURST }), None);
        assert_eq!(rule.on_burst(2 * SECOND - 1, &BURST), None);
        assert_eq!(rule.on_burst(2 * SECOND, &BURST), Some(26));
    }

    #[test]
    fn a_connection_that_begins_late_has_left_nothing_unused_before() {
        let mut rule = linux();
        assert_eq!(rule.on_burst(70 * SECOND, &BURST), None);
        assert_eq!(rule.on_burst(71 * SECOND, &BURST), Some(26));
    }

    #[test]
    fn a_restart_window_is_not_given_up_for_the_idle_time_that_led_to_it() {
        let mut rule = linux();
        rule.on_burst(0, &BURST);
        rule.on_restart(2 * SECOND);
        let first = Burst { una: 13, nxt: 14, ..burst(false, 1, 20, false) };
        assert_eq!(rule.on_burst(2 * SECOND, &first), None);
        assert_eq!(rule.on_burst(3 * SECOND, &first), Some(15));
    }

    #[test]
    fn the_initial_window_is_never_given_up() {
        let mut rule = linux();
        assert_eq!([0, 2, 4].map(|time| rule.on_burst(time * SECOND, &burst(false, 2, 10, false))), [None; 3]);
    }
}
