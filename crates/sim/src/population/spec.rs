//! A population as a plan describes it.

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{
    column::Column,
    copula::{Copula, FIGURES},
};
use crate::{PlanError, distribution::Distribution};

/// Links and users are numbered with 32 bits together.
const MOST_USERS: u32 = 1 << 31;
/// Whose rows are kept: all of them fit into a machine's memory.
const MOST_USERS_IN_ROWS: u32 = 10_000_000;
/// A millennium: sums and small multiples of times stay far from overflow.
const LONGEST_TIME_NS: f64 = 1e18;
/// Buckets of a dimension.
const MOST_EDGES: usize = 1000;

/// Users, each with their own path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopulationSpec {
    /// Users of a replicate.
    pub users: u32,
    /// The records that are kept of them.
    pub keep: Keep,
    /// Their paths.
    pub paths: PathsSpec,
    /// Full packets that a queue holds at least.
    pub least_buffer_packets: u32,
    /// Added to every round trip.
    pub farther_ns: Nanos,
    /// Borders of the buckets of the aggregates.
    pub buckets: Buckets,
}

/// The records that are kept of a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// One row per connection, page and user.
    Rows,
    /// Counts, sums and histograms a bucket.
    Aggregates,
}

/// The joint law of the paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PathsSpec {
    /// A law a figure, joined by a Gaussian copula.
    Marginals(MarginalsSpec),
    /// Paths that were measured.
    Table(TableSpec),
}

/// A law a figure, joined by a Gaussian copula.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarginalsSpec {
    /// Round trip without serialization and queueing, in ns.
    pub rtt_ns: Distribution,
    /// Rate to the user.
    pub down_bps: Distribution,
    /// Rate from the user.
    pub up_bps: Distribution,
    /// Length of the queues, as time at the rates of their links, in ns.
    pub buffer_ns: Distribution,
    /// Probability that the link to the user loses a packet.
    pub loss: Distribution,
    /// Correlations of the normal scores of the five, row by row.
    pub correlation: Vec<f64>,
    /// Consecutive users that share an access network.
    pub subnet_users: u32,
    /// Share of the variance of every score that the subnet explains.
    pub subnet_share: f64,
}

/// Paths that were measured: all columns have a value a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Assignment of rows to users.
    pub draw: Draw,
    /// Round trip without serialization and queueing, in ns.
    pub rtt_ns: Column,
    /// Rate to the user.
    pub down_bps: Column,
    /// Rate from the user.
    pub up_bps: Column,
    /// Length of the queues, as time at the rates of their links, in ns.
    pub buffer_ns: Column,
    /// Probability that the link to the user loses a packet.
    pub loss: Column,
    /// Weight of a row in the whole population; none: all equal.
    pub weight: Option<Vec<f64>>,
    /// Response sizes, for applications with `size_from_row`.
    pub bytes: Option<Vec<f64>>,
    /// Bytes of the server's first flight of a handshake, 0 for none, for applications whose handshakes are `from_row`.
    pub tls_bytes: Option<Vec<f64>>,
    /// Times that a client waits for the server in this handshake; none: once.
    pub tls_exchanges: Option<Vec<f64>>,
}

/// Assignment of a table's rows to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// User i gets row i.
    Each,
    /// Drawn by weight.
    Weighted,
}

/// Inner borders of the buckets of each dimension: bucket b holds values above border b - 1, up to and with border b.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buckets {
    /// Round trip of the path, in seconds.
    pub rtt_s: Vec<f64>,
    /// Rate to the user.
    pub down_bps: Vec<f64>,
    /// Product of the two.
    pub bdp_bytes: Vec<f64>,
    /// Full segments that the response fills, the last one in part.
    pub segments: Vec<f64>,
}

/// Fields with their names.
macro_rules! named {
    ($owner:ident: $($field:ident),*) => {
        [$((stringify!($field), &$owner.$field)),*]
    };
}

impl PopulationSpec {
    /// Checks conditions that a type cannot express.
    pub(crate) fn validate(&self) -> Result<(), PlanError> {
        if self.users == 0 {
            return Err(SpecError::new("users", 0, "a population has at least one").into());
        }
        if self.users > MOST_USERS {
            return Err(SpecError::new("users", self.users, format!("it must be at most {MOST_USERS}")).into());
        }
        if self.keep == Keep::Rows && self.users > MOST_USERS_IN_ROWS {
            return Err(misfit!(
                "users is {}: rows are kept of at most {MOST_USERS_IN_ROWS}, so keep aggregates or make more replicates \
                 of fewer users",
                self.users
            ));
        }
        if self.least_buffer_packets == 0 {
            return Err(SpecError::new("least_buffer_packets", 0, "a queue holds at least one packet").into());
        }
        if self.farther_ns as f64 > LONGEST_TIME_NS {
            let right = format!("it must be at most {LONGEST_TIME_NS}");
            return Err(SpecError::new("farther_ns", self.farther_ns, right).into());
        }
        match &self.paths {
            PathsSpec::Marginals(marginals) => marginals.validate()?,
            PathsSpec::Table(table) => {
                table.validate(self.users)?;
                let weights = table.weight.as_deref().unwrap_or_default();
                let are_equal = weights.windows(2).all(|pair| pair[0] == pair[1]);
                if self.keep == Keep::Aggregates && table.draw == Draw::Each && !are_equal {
                    return Err(misfit!(
                        "aggregates count each user once, but the rows have weights: draw rows by weight or \
                         keep rows"
                    ));
                }
            }
        }
        self.buckets.validate()
    }

    /// True if users come with the size of a response.
    pub(crate) fn has_bytes(&self) -> bool {
        matches!(&self.paths, PathsSpec::Table(TableSpec { bytes: Some(_), .. }))
    }

    /// True if users come with their handshakes.
    pub(crate) fn has_handshakes(&self) -> bool {
        matches!(&self.paths, PathsSpec::Table(TableSpec { tls_bytes: Some(_), .. }))
    }
}

impl MarginalsSpec {
    /// The laws with their names, in the order of the correlations.
    pub(super) fn laws(&self) -> [(&'static str, &Distribution); FIGURES] {
        named!(self: rtt_ns, down_bps, up_bps, buffer_ns, loss)
    }

    fn validate(&self) -> Result<(), PlanError> {
        for (name, law) in self.laws() {
            law.validate(name)?;
        }
        check_loss_law(&self.loss)?;
        if self.subnet_users == 0 {
            return Err(SpecError::new("subnet_users", 0, "a subnet has at least one user").into());
        }
        Copula::new(&self.correlation, self.subnet_share).map(drop)
    }
}

impl TableSpec {
    /// The columns with their names, in the order of the figures of a path.
    pub(super) fn columns(&self) -> [(&'static str, &Column); FIGURES] {
        named!(self: rtt_ns, down_bps, up_bps, buffer_ns, loss)
    }

    fn lists(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
        let measured = self.columns().into_iter().filter_map(|(name, column)| match column {
            Column::Values(values) => Some((name, values.as_slice())),
            Column::Distribution(_) => None,
        });
        let others = named!(self: weight, bytes, tls_bytes, tls_exchanges);
        measured.chain(others.into_iter().filter_map(|(name, values)| Some((name, values.as_deref()?))))
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.lists().next().map_or(0, |(_, values)| values.len())
    }

    fn validate(&self, users: u32) -> Result<(), PlanError> {
        let rows = self.rows();
        if rows == 0 {
            return Err(misfit!("the table of paths has no rows: give at least one"));
        }
        for (name, column) in self.columns() {
            if let Column::Distribution(law) = column {
                law.validate(name)?;
                if name == "loss" {
                    check_loss_law(law)?;
                }
            }
        }
        for (name, values) in self.lists() {
            if values.len() != rows {
                return Err(misfit!("the table of paths has {rows} rows, but {} values of {name}", values.len()));
            }
            for (row, &value) in values.iter().enumerate() {
                check(name, value).map_err(PlanError::within(format_args!("row {row} of the table of paths")))?;
            }
        }
        if let Some(weights) = &self.weight {
            let sum: f64 = weights.iter().sum();
            if sum <= 0.0 {
                return Err(misfit!("the table of paths has weights of 0 only: give a row one above"));
            }
            if sum.is_infinite() {
                return Err(misfit!(
                    "the weights of the table of paths add up to more than a number can be: divide them"
                ));
            }
        }
        if self.draw == Draw::Each && users as usize > rows {
            return Err(misfit!(
                "users is {users}, but the table of paths has {rows} rows: give at most as many users or draw rows by \
                 weight"
            ));
        }
        Ok(())
    }
}

impl Buckets {
    /// The dimensions with their borders.
    pub fn dimensions(&self) -> [(&'static str, &Vec<f64>); 4] {
        named!(self: rtt_s, down_bps, bdp_bytes, segments)
    }

    fn validate(&self) -> Result<(), PlanError> {
        for (name, borders) in self.dimensions() {
            if borders.len() > MOST_EDGES {
                return Err(misfit!(
                    "buckets: {name} has {} borders, but must have at most {MOST_EDGES}",
                    borders.len()
                ));
            }
            if !borders.is_sorted_by(|one, next| one < next) || borders.iter().any(|border| !border.is_finite()) {
                let error = SpecError::new(name, format_args!("{borders:?}"), "borders must ascend");
                return Err(PlanError::within("buckets")(error));
            }
        }
        Ok(())
    }
}

/// A law of losses must stay below certain loss.
fn check_loss_law(law: &Distribution) -> Result<(), PlanError> {
    match law.largest() {
        Some(largest) if largest < 1.0 => Ok(()),
        Some(largest) => Err(misfit!("loss reaches {largest}, but a probability of loss must be below 1")),
        None => Err(misfit!("loss has no largest value: give its law a maximum below 1")),
    }
}

/// Checks a figure of a path or a link, a weight or a size.
// Inlined: the compiler drops the comparisons with a constant name.
#[inline(always)]
pub(crate) fn check(name: &'static str, value: f64) -> Result<(), SpecError> {
    let (is_right, bounds) = match name {
        "rtt_ns" | "buffer_ns" | "delay_ns" => ((0.0..=LONGEST_TIME_NS).contains(&value), "from 0 to 1e18"),
        "down_bps" | "up_bps" | "rate_bps" => ((2.0..=8e12).contains(&value), "from 2 to 8e12"),
        "loss" => ((0.0..1.0).contains(&value), "at least 0 and below 1"),
        "bytes" => ((1.0..=8e12).contains(&value), "from 1 to 8e12"),
        "tls_bytes" => ((0.0..=8e12).contains(&value), "from 0 to 8e12"),
        "tls_exchanges" => ((1.0..=255.0).contains(&value), "from 1 to 255"),
        _ => ((0.0..f64::INFINITY).contains(&value), "at least 0"),
    };
    if is_right { Ok(()) } else { Err(SpecError::new(name, value, format!("it must be {bounds}"))) }
}
