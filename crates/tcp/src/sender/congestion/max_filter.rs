//! The largest of the values seen lately, approximately: the best three are kept, spread over the window of time, which
//! is counted in whatever unit the caller likes (Kathleen Nichols' algorithm, as Linux's `win_minmax`).

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

/// Best, second and third best value; each is no older than the one before it.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    best: [Sample; 3],
}

impl MaxFilter {
    pub fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Takes a value seen at a time; values older than `length` no longer count.
    pub fn update(&mut self, length: u64, at: u64, value: u64) {
        let sample = Sample { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at - third.at > length {
            self.best = [sample; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (sample, sample);
        } else if value >= third.value {
            *third = sample;
        }
        self.age(length, sample);
    }

    /// Lets the second and third best take over, and renews them where the window has none of its later parts.
    fn age(&mut self, length: u64, sample: Sample) {
        let age = sample.at - self.best[0].at;
        if age > length {
            self.drop_best(sample);
            if sample.at - self.best[0].at > length {
                self.drop_best(sample);
            }
        } else if self.best[1].at == self.best[0].at && age > length / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].at == self.best[1].at && age > length / 2 {
            self.best[2] = sample;
        }
    }

    fn drop_best(&mut self, sample: Sample) {
        self.best = [self.best[1], self.best[2], sample];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_for_the_window_and_then_gives_way_to_what_came_later() {
        let mut filter = MaxFilter::default();
        filter.update(10, 1, 100);
        for round in 2..=11 {
            filter.update(10, round, 60);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.update(10, 12, 60);
        assert_eq!(filter.get(), 60);
        filter.update(10, 13, 200);
        assert_eq!(filter.get(), 200);
    }

    // Linux, lib/win_minmax.c, minmax_running_max and minmax_subwin_update, with a window of 12.
    #[test]
    fn the_second_and_third_best_come_from_later_parts_of_the_window() {
        let mut filter = MaxFilter::default();
        for (at, value, best) in [
            (0, 100, [(0, 100), (0, 100), (0, 100)]),
            // A quarter of the window passes, then one half, before the others are renewed.
            (3, 50, [(0, 100), (0, 100), (0, 100)]),
            (4, 40, [(0, 100), (4, 40), (4, 40)]),
            (5, 30, [(0, 100), (4, 40), (4, 40)]),
            (6, 60, [(0, 100), (6, 60), (6, 60)]),
            (7, 50, [(0, 100), (6, 60), (7, 50)]),
            (8, 50, [(0, 100), (6, 60), (8, 50)]),
            (9, 60, [(0, 100), (9, 60), (9, 60)]),
            (10, 55, [(0, 100), (9, 60), (10, 55)]),
            // The best is too old; then the next one is, too.
            (12, 10, [(0, 100), (9, 60), (10, 55)]),
            (13, 10, [(9, 60), (10, 55), (13, 10)]),
            (22, 5, [(10, 55), (13, 10), (22, 5)]),
            (26, 1, [(22, 5), (26, 1), (26, 1)]),
            // Nothing in it is within the window.
            (39, 0, [(39, 0), (39, 0), (39, 0)]),
        ] {
            filter.update(12, at, value);
            assert_eq!(filter.best.map(|sample| (sample.at, sample.value)), best, "at {at}");
        }
    }
}
