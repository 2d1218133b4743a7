//! Laws of sizes and times.
//!
//! Logarithms and powers come from the `libm` crate, so a draw is the same number on every machine.

use std::{f64::consts::PI, fmt};

use firstflight_path::SpecError;
use serde::{Deserialize, Serialize};

use crate::{normal, random::Stream};

/// A probability law over bytes or seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform between two values.
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Lognormal, cut off (clipped) at the optional bounds.
    Lognormal {
        /// Median, exp(mu).
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smaller draws become this value.
        minimum: Option<f64>,
        /// Larger draws become this value.
        maximum: Option<f64>,
    },
    /// Pareto; with a maximum, truncated there (draws beyond it do not occur).
    Pareto {
        /// Tail index.
        shape: f64,
        /// Smallest value.
        minimum: f64,
        /// Largest value.
        maximum: Option<f64>,
    },
    /// A tabulated distribution function, interpolated; values are multiplied by `scale`, then clipped.
    Empirical {
        /// (cumulative probability, value), both rising; the first probability 0, the last 1.
        points: Points,
        /// Between the points.
        interpolation: Interpolation,
        /// Factor on the values.
        #[serde(default = "one")]
        scale: f64,
        /// Smaller draws become this value.
        minimum: Option<f64>,
        /// Larger draws become this value.
        maximum: Option<f64>,
    },
}

/// The points of a tabulated law.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(f64, f64)>", into = "Vec<(f64, f64)>")]
pub struct Points {
    values: Vec<(f64, f64)>,
    /// With the logarithms of the values, which each draw would compute again; values below 1 count as 1.
    logarithms: Vec<(f64, f64)>,
    /// Entry i: the number of points with a probability of at most i / n, of n entries. A search begins there.
    guide: Vec<u32>,
}

/// Entries of the guide for each point. With eight, most searches end at the first point that they look at.
const GUIDE_ENTRIES_PER_POINT: usize = 8;

impl From<Vec<(f64, f64)>> for Points {
    fn from(values: Vec<(f64, f64)>) -> Points {
        let logarithms = values.iter().map(|&(p, value)| (p, libm::log(value.max(1.0)))).collect();
        let n = GUIDE_ENTRIES_PER_POINT * values.len();
        let mut up_to = 0;
        let entry = |i| {
            while values.get(up_to).is_some_and(|&(p, _)| p * n as f64 <= i as f64) {
                up_to += 1;
            }
            up_to as u32
        };
        let guide = (0..n).map(entry).collect();
        Points { values, logarithms, guide }
    }
}

impl Points {
    /// What is interpolated at a probability.
    // Inlined with the search: as calls they make a path take 296 ns and not 237.
    #[inline(always)]
    fn at(&self, interpolation: Interpolation, u: f64) -> f64 {
        let points = match interpolation {
            Interpolation::Linear => &self.values,
            Interpolation::Log => &self.logarithms,
        };
        between(points, self.upper(u), u)
    }

    /// Index of the first point whose probability exceeds `u`, but at least 1; without such a point, of the last one.
    // A guide table: a binary search is slower, since each of its steps depends on the one before. H.-C. Chen, Y. Asau,
    // "On Generating Random Variates from an Empirical Distribution", AIIE Transactions 6(2), 1974.
    #[inline(always)]
    fn upper(&self, u: f64) -> usize {
        let last = self.values.len() - 1;
        let entry = ((u * self.guide.len() as f64) as usize).min(self.guide.len() - 1);
        let mut upper = (self.guide[entry] as usize).clamp(1, last);
        // The product above can be rounded up to the next entry.
        while upper > 1 && self.values[upper - 1].0 > u {
            upper -= 1;
        }
        while upper < last && self.values[upper].0 <= u {
            upper += 1;
        }
        upper
    }
}

impl From<Points> for Vec<(f64, f64)> {
    fn from(points: Points) -> Self {
        points.values
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(formatter)
    }
}

/// Interpolation of a tabulated law between its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// Linear in the logarithm of the value; values below 1 count as 1.
    Log,
    /// Linear in the value.
    Linear,
}

impl Interpolation {
    /// The value, from what is interpolated.
    fn value(self, interpolated: f64) -> f64 {
        match self {
            Interpolation::Linear => interpolated,
            Interpolation::Log => libm::exp(interpolated),
        }
    }
}

fn one() -> f64 {
    1.0
}

impl Distribution {
    /// Checks the parameters; `what` names the law's place in the plan.
    ///
    /// # Errors
    /// Parameters that are out of order, negative or infinite.
    pub fn validate(&self, what: &'static str) -> Result<(), SpecError> {
        let not_negative = |x: f64| x >= 0.0 && x.is_finite();
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let ok = match self {
            Distribution::Constant { value } => not_negative(*value),
            Distribution::Uniform { low, high } => *low >= 0.0 && high >= low && high.is_finite(),
            Distribution::Exponential { mean } => positive(*mean),
            Distribution::Lognormal { median, sigma, minimum, maximum } => {
                positive(*median) && not_negative(*sigma) && bounds_are_in_order(*minimum, *maximum)
            }
            Distribution::Pareto { shape, minimum, maximum } => {
                positive(*shape) && positive(*minimum) && maximum.is_none_or(|maximum| maximum > *minimum)
            }
            Distribution::Empirical { points: Points { values: points, .. }, scale, minimum, maximum, .. } => {
                let rises = points.windows(2).all(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1);
                let last = points.len().wrapping_sub(1);
                let spans = points.len() >= 2 && points[0].0 == 0.0 && points[last].0 == 1.0;
                let bounded = rises && spans && points[0].1 >= 0.0 && points[last].1.is_finite();
                bounded && positive(*scale) && bounds_are_in_order(*minimum, *maximum)
            }
        };
        if ok {
            Ok(())
        } else {
            let right = "its parameters must be in order, not negative, and not zero where they may not be";
            Err(SpecError::new(what, format_args!("{self:?}"), right))
        }
    }

    /// The largest value that can be drawn; none: there is no bound.
    pub fn largest(&self) -> Option<f64> {
        match self {
            Distribution::Constant { value } => Some(*value),
            Distribution::Uniform { high, .. } => Some(*high),
            Distribution::Exponential { .. } => None,
            Distribution::Lognormal { maximum, .. } | Distribution::Pareto { maximum, .. } => *maximum,
            Distribution::Empirical { points, scale, minimum, maximum, .. } => {
                points.values.last().map(|&(_, value)| Self::clip(scale * value, *minimum, *maximum))
            }
        }
    }

    /// The `index`-th draw of a stream.
    pub fn draw(&self, stream: &Stream, index: u64) -> f64 {
        if let Distribution::Constant { value } = self {
            return *value;
        }
        let [u, v] = stream.uniforms(index);
        if let Distribution::Lognormal { .. } = self {
            // Box and Muller: one normal deviate of two uniform ones.
            return self.at_score(libm::sqrt(-2.0 * libm::log(1.0 - u)) * libm::cos(2.0 * PI * v));
        }
        self.quantile(u)
    }

    /// The value that a draw does not exceed with probability `u`, in [0, 1).
    #[inline]
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Distribution::Constant { value } => *value,
            Distribution::Uniform { low, high } => low + (high - low) * u,
            Distribution::Exponential { mean } => -mean * libm::log(1.0 - u),
            Distribution::Lognormal { .. } => self.at_score(normal::quantile(u)),
            Distribution::Pareto { shape, minimum, maximum } => {
                let beyond = maximum.map_or(0.0, |maximum| libm::pow(minimum / maximum, *shape));
                minimum * libm::pow(1.0 - u * (1.0 - beyond), -1.0 / shape)
            }
            Distribution::Empirical { points, interpolation, scale, minimum, maximum } => {
                let value = interpolation.value(points.at(*interpolation, u));
                Self::clip(scale * value, *minimum, *maximum)
            }
        }
    }

    /// `value`, or the bound that it passes.
    fn clip(value: f64, minimum: Option<f64>, maximum: Option<f64>) -> f64 {
        let value = minimum.map_or(value, |minimum| value.max(minimum));
        maximum.map_or(value, |maximum| value.min(maximum))
    }

    /// Replaces each standard normal score by this law's value at the same probability.
    // Each step is done for all scores before the next one: the processor overlaps the steps of different scores.
    pub fn at_scores(&self, scores: &mut [f64]) {
        match self {
            Distribution::Constant { value } => scores.fill(*value),
            Distribution::Empirical { points, interpolation, scale, minimum, maximum } => {
                scores.iter_mut().for_each(|score| *score = normal::distribution(*score));
                scores.iter_mut().for_each(|u| *u = points.at(*interpolation, *u));
                scores.iter_mut().for_each(|x| *x = Self::clip(scale * interpolation.value(*x), *minimum, *maximum));
            }
            _ => scores.iter_mut().for_each(|score| *score = self.at_score(*score)),
        }
    }

    /// The quantile at which a standard normal variable has this score.
    fn at_score(&self, score: f64) -> f64 {
        match self {
            Distribution::Lognormal { median, sigma, minimum, maximum } => {
                Self::clip(median * libm::exp(sigma * score), *minimum, *maximum)
            }
            _ => self.quantile(normal::distribution(score)),
        }
    }
}

/// Linear interpolation at probability `u` between the point `upper` and the one before it.
fn between(points: &[(f64, f64)], upper: usize, u: f64) -> f64 {
    let ((p0, x0), (p1, x1)) = (points[upper - 1], points[upper]);
    x0 + (x1 - x0) * ((u - p0) / (p1 - p0))
}

fn bounds_are_in_order(minimum: Option<f64>, maximum: Option<f64>) -> bool {
    let low = minimum.unwrap_or(0.0);
    low >= 0.0 && low.is_finite() && maximum.is_none_or(|maximum| maximum >= low && maximum > 0.0)
}
