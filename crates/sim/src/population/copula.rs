//! A Gaussian copula over the five figures of a path.
//!
//! Each figure has a normal score; the scores are jointly normal with the correlations that the plan states, and each
//! figure is its law's quantile at its score. So the marginals are exactly the laws, whatever the dependence.
//!
//! Users of one subnet share a part of their scores: score = sqrt(share) * subnet's + sqrt(1 - share) * user's. Both
//! have the stated correlations, so a user's score does as well, and two users' scores of one figure correlate by the
//! share.

use std::ops::Range;

use firstflight_path::SpecError;

use crate::{PlanError, normal, random::Stream};

/// Figures of a path: round trip, rate down, rate up, buffer, loss.
pub const FIGURES: usize = 5;

/// Their names, in the order of the correlations.
pub const NAMES: [&str; FIGURES] = ["rtt", "down", "up", "buffer", "loss"];

/// One vector for each figure, with one element for each user.
pub type Columns = [Vec<f64>; FIGURES];

/// A pivot below this means that a figure is given by the others, up to rounding.
const LEAST_PIVOT: f64 = 1e-12;

#[derive(Clone, Copy, Debug)]
pub struct Copula {
    /// Lower triangle of Cholesky's factor of the correlations.
    factor: [[f64; FIGURES]; FIGURES],
    /// Square roots of the shares of the variance that the subnet explains, and that it leaves.
    weights: [f64; 2],
}

impl Copula {
    /// From correlations, row by row, and the share of the variance that the subnet explains.
    ///
    /// # Errors
    /// Numbers that are no correlations, or that contradict each other.
    pub fn new(correlation: &[f64], subnet_share: f64) -> Result<Copula, PlanError> {
        let rows: Vec<&[f64]> = correlation.chunks(FIGURES).collect();
        if correlation.len() != FIGURES * FIGURES {
            return Err(misfit!("correlation has {} numbers, but must have 25, five per row", correlation.len()));
        }
        for i in 0..FIGURES {
            if rows[i][i] != 1.0 {
                return Err(misfit!("the correlation of {} with itself is {}, but must be 1", NAMES[i], rows[i][i]));
            }
            for j in 0..i {
                let pair = format!("the correlation of {} and {}", NAMES[j], NAMES[i]);
                if rows[i][j] != rows[j][i] {
                    return Err(misfit!("{pair} is given as {} and as {}", rows[j][i], rows[i][j]));
                }
                if rows[i][j].is_nan() || rows[i][j].abs() >= 1.0 {
                    return Err(misfit!("{pair} is {}, but must lie between -1 and 1", rows[i][j]));
                }
            }
        }
        if !(0.0..1.0).contains(&subnet_share) {
            return Err(SpecError::new("subnet_share", subnet_share, "it must be at least 0 and below 1").into());
        }
        let mut factor = [[0.0; FIGURES]; FIGURES];
        for i in 0..FIGURES {
            for j in 0..=i {
                let explained: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
                let rest = rows[i][j] - explained;
                if i != j {
                    factor[i][j] = rest / factor[j][j];
                } else if rest > LEAST_PIVOT {
                    factor[i][i] = libm::sqrt(rest);
                } else {
                    return Err(misfit!("{}", contradiction(&rows, i)));
                }
            }
        }
        Ok(Copula { factor, weights: [libm::sqrt(subnet_share), libm::sqrt(1.0 - subnet_share)] })
    }

    /// Turns independent scores into correlated ones, in place. `subnets`: for each subnet, the places of its users in the
    /// columns, and its stream.
    pub fn correlate(&self, scores: &mut Columns, subnets: impl Iterator<Item = (Range<usize>, Stream)>) {
        let [shared, own] = self.weights;
        if shared > 0.0 {
            let (places, streams): (Vec<_>, Vec<_>) = subnets.unzip();
            for (column, subnets) in scores.iter_mut().zip(draw(streams.into_iter())) {
                for (places, common) in places.iter().zip(subnets) {
                    column[places.clone()].iter_mut().for_each(|score| *score = own * *score + shared * common);
                }
            }
        }
        // The factor is triangular: a figure needs those before it, so the last one is made first.
        for (figure, row) in self.factor.iter().enumerate().rev() {
            let (before, rest) = scores.split_at_mut(figure);
            for (place, score) in rest[0].iter_mut().enumerate() {
                let others: f64 = before.iter().zip(row).map(|(column, factor)| factor * column[place]).sum();
                *score = others + row[figure] * *score;
            }
        }
    }
}

/// Independent standard normal scores: the first draws of each stream, which gives them in pairs.
pub fn draw(streams: impl ExactSizeIterator<Item = Stream>) -> Columns {
    let mut columns = [(); FIGURES].map(|()| Vec::with_capacity(streams.len()));
    for stream in streams {
        let [[first, second], [third, fourth], [fifth, _]] = [0, 1, 2].map(|index| stream.uniforms(index));
        for (column, draw) in columns.iter_mut().zip([first, second, third, fourth, fifth]) {
            column.push(draw);
        }
    }
    for column in &mut columns {
        column.iter_mut().for_each(|draw| *draw = normal::quantile(*draw));
    }
    columns
}

/// Names the correlations of the figure at which no more room was left.
fn contradiction(rows: &[&[f64]], figure: usize) -> String {
    let stated: Vec<String> = (0..figure + 1)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| rows[i][j] != 0.0)
        .map(|(i, j)| format!("{}_{} = {}", NAMES[j], NAMES[i], rows[i][j]))
        .collect();
    format!(
        "no joint law has these correlations, whose matrix is not positive definite: {}; bring some of them nearer to 0",
        stated.join(", ")
    )
}
