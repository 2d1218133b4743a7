//! A law made ready to be looked up at a score millions of times.

use crate::{
    law::{Interpolation, Law},
    normal,
};

/// A law, with values that every look-up would compute again.
#[derive(Debug)]
pub(super) struct Marginal<'p> {
    law: &'p Law,
    /// Of a law tabulated for logarithmic interpolation: cumulative probability and logarithm of the value.
    logarithms: Vec<(f64, f64)>,
}

impl<'p> Marginal<'p> {
    pub(super) fn new(law: &'p Law) -> Marginal<'p> {
        let logarithms = match law {
            Law::Empirical { points, interpolation: Interpolation::Log, .. } => {
                points.iter().map(|&(p, value)| (p, libm::log(value.max(1.0)))).collect()
            }
            _ => Vec::new(),
        };
        Marginal { law, logarithms }
    }

    /// The law's quantile at a normal score: [`Law::at_score`].
    pub(super) fn at_score(&self, score: f64) -> f64 {
        match self.law {
            Law::Empirical { interpolation: Interpolation::Log, scale, minimum, maximum, .. } => {
                let logarithm = Law::between(&self.logarithms, normal::distribution(score));
                Law::clip(scale * libm::exp(logarithm), *minimum, *maximum)
            }
            law => law.at_score(score),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_made_ready_gives_the_same_to_the_last_bit() {
        let points = vec![(0.0, 0.0), (0.1, 20e6), (0.5, 72e6), (0.99, 1e9), (1.0, 3e9)];
        let empirical = |interpolation| Law::Empirical {
            points: points.clone(),
            interpolation,
            scale: 1.1,
            minimum: Some(1e6),
            maximum: Some(2e9),
        };
        let lognormal = Law::Lognormal { median: 72e6, sigma: 0.8, minimum: None, maximum: Some(5e9) };
        for law in [empirical(Interpolation::Log), empirical(Interpolation::Linear), lognormal] {
            let ready = Marginal::new(&law);
            for step in -900..900 {
                let score = f64::from(step) / 100.0;
                assert_eq!(ready.at_score(score).to_bits(), law.at_score(score).to_bits(), "{law:?} at {score}");
            }
        }
    }
}
