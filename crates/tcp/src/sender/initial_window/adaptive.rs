//! An initial window that a whole population of connections moves, over a long time (RFC 9040 appendix C, by J. Touch).

use crate::profile::Adaptive;

/// The window of a population, such as all connections of a server.
#[derive(Clone, Copy, Debug)]
pub struct PopulationWindow {
    segments: u32,
    /// `conncount` and `losscount`.
    connections: u32,
    failures: u32,
}

impl PopulationWindow {
    // RFC 9040 §C.3 step 1: on boot, IW = MaxIW.
    /// The window at the start.
    pub fn new(policy: &Adaptive) -> Self {
        Self { segments: policy.max_segments, connections: 0, failures: 0 }
    }

    /// The window in force, in segments.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// A connection is opened: its initial window in segments. Losses of connections that are still open when
    /// an interval ends count in the next one.
    // RFC 9040 §C.3 steps 2 and 5.
    pub fn open(&mut self, policy: &Adaptive) -> u32 {
        if self.connections >= policy.connections {
            self.adjust(policy);
        }
        self.connections += 1;
        self.segments
    }

    /// A connection's initial window failed: some of it was retransmitted, or its SYN-ACK marked. Once a connection.
    // RFC 9040 §C.3 steps 3 and 4.
    pub fn note_failure(&mut self) {
        self.failures += 1;
    }

    fn adjust(&mut self, policy: &Adaptive) {
        let too_many =
            u64::from(self.failures) * 100 > u64::from(self.connections) * u64::from(policy.threshold_percent);
        let segments = if too_many {
            // MUST decrease the IW by at least 1 MSS when indicated.
            let share = u64::from(self.segments) * u64::from(policy.decrease_to_percent) / 100;
            (share as u32).min(self.segments.saturating_sub(1))
        } else {
            self.segments.saturating_add(policy.increase_segments)
        };
        // SHOULD use an IW that is an integer multiple of 2 MSSs.
        self.segments = (segments - segments % 2).clamp(policy.min_segments, policy.max_segments);
        (self.connections, self.failures) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Adaptive {
        Adaptive {
            min_segments: 3,
            max_segments: 10,
            decrease_to_percent: 50,
            increase_segments: 2,
            threshold_percent: 5,
            connections: 1000,
        }
    }

    #[test]
    fn what_a_policy_leaves_out_has_its_default() {
        let read: Adaptive = serde_json::from_str("{}").unwrap();
        assert_eq!(read, policy());
    }

    /// The windows of as many intervals as there are numbers of failures in 1000 connections, and the later ones.
    fn windows(policy: &Adaptive, failures: &[u32]) -> Vec<u32> {
        let mut population = PopulationWindow::new(policy);
        let mut windows = Vec::new();
        for &failures in failures {
            for number in 0..policy.connections {
                let window = population.open(policy);
                if number == 0 {
                    windows.push(window);
                }
                assert_eq!(window, *windows.last().unwrap(), "it changes between intervals only");
                if number < failures {
                    population.note_failure();
                }
            }
        }
        windows.push(population.open(policy));
        windows
    }

    #[test]
    fn it_begins_at_its_maximum_and_stays_there_without_failures() {
        assert_eq!(windows(&policy(), &[0, 0, 0]), [10, 10, 10, 10]);
    }

    #[test]
    fn more_than_five_percent_of_failures_halve_it_down_to_the_minimum() {
        assert_eq!(windows(&policy(), &[51, 51, 51, 1000]), [10, 4, 3, 3, 3]);
    }

    #[test]
    fn five_percent_are_not_more_than_five_percent() {
        assert_eq!(windows(&policy(), &[50]), [10, 10]);
    }

    #[test]
    fn without_failures_it_grows_back_in_even_steps() {
        assert_eq!(windows(&policy(), &[1000, 1000, 0, 0, 0, 0, 0]), [10, 4, 3, 4, 6, 8, 10, 10]);
    }

    #[test]
    fn a_decrease_takes_at_least_one_segment() {
        let gentle = Adaptive { decrease_to_percent: 99, ..policy() };
        assert_eq!(windows(&gentle, &[1000, 1000]), [10, 8, 6]);
    }

    #[test]
    fn it_may_oscillate_where_a_larger_window_fails() {
        // RFC 9040 §C.5: it may oscillate by a few MSSs as it repeatedly probes for larger IWs and fails.
        let mut population = PopulationWindow::new(&policy());
        let mut seen = Vec::new();
        for number in 0..8000 {
            let window = population.open(&policy());
            if number % 1000 == 0 {
                seen.push(window);
            }
            if window > 6 {
                population.note_failure();
            }
        }
        assert_eq!(seen, [10, 4, 6, 8, 4, 6, 8, 4]);
    }
}
