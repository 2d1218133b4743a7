//! The largest of the values seen lately, approximately: the best three are kept, spread over the window of time, which
//! is counted in whatever unit the caller likes (Kathleen Nichols' algorithm, as Linux's `win_minmax`).

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

/// Best, second and third best value; each is no older than the one before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaxFilter {
    best: [Sample; 3],
}

impl MaxFilter {
    #[inline]
    pub fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Takes a value seen at a time; what is older than `length` no longer counts.
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
}
