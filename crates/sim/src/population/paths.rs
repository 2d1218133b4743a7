//! The path of each user: a function of plan, seed, replicate and the user's number alone, so every arm of an
//! experiment meets the same paths.

use std::ops::Range;

use firstflight_path::{
    LinkSpec, Nanos, SpecError,
    queue::{DropTailSpec, Limit, QueueSpec},
};

use super::{
    column::Column,
    copula::{self, Columns, Copula, FIGURES},
    spec::{Draw, PathsSpec, PopulationSpec, TableSpec, check},
};
use crate::{
    PlanError,
    distribution::Distribution,
    random::{Purpose, Stream},
};

/// A user's path. The default is of no user: `weight` 0.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Path {
    /// Number of the subnet, if there are subnets.
    pub subnet: Option<u32>,
    /// Row of the table, if there is a table.
    pub row: Option<u32>,
    /// Number of users that it represents.
    pub weight: f64,
    /// Round trip without serialization and queueing.
    pub rtt: Nanos,
    /// Rate to the user.
    pub down_bps: u64,
    /// Rate from the user.
    pub up_bps: u64,
    /// Limit of the queue before the link to the user.
    pub down_buffer_bytes: u64,
    /// Limit of the queue before the link from the user.
    pub up_buffer_bytes: u64,
    /// Probability that the link to the user loses a packet.
    pub loss: f64,
    /// Size of the response, if the table has sizes.
    pub bytes: Option<f64>,
    /// The handshake, if the table has them.
    pub handshake: Option<RowHandshake>,
}

/// The handshake of a row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowHandshake {
    /// Bytes of the server's first flight; 0: there is no handshake.
    pub bytes: f64,
    /// Times that the client waits for the server.
    pub exchanges: u8,
}

/// The paths of a replicate's users.
#[derive(Debug)]
pub struct Paths<'p> {
    source: Source<'p>,
    farther: Nanos,
    /// Bytes that a queue holds at least.
    least_buffer_bytes: u64,
}

/// A law a figure, and their dependence.
#[derive(Debug)]
struct Joint<'p> {
    subnet_users: u32,
    laws: [&'p Distribution; FIGURES],
    copula: Copula,
}

#[derive(Debug)]
enum Source<'p> {
    Marginals(Box<Joint<'p>>),
    /// `up_to`: sums of the weights up to each row, where rows are drawn.
    Table {
        spec: &'p TableSpec,
        up_to: Vec<f64>,
    },
}

/// The drawn values, in the plan's units and order.
type Figures = [f64; FIGURES];

impl<'p> Paths<'p> {
    /// Ready to draw; a full packet has this number of bytes, headers included.
    ///
    /// # Errors
    /// Correlations that contradict each other.
    pub fn new(population: &'p PopulationSpec, packet_bytes: u32) -> Result<Paths<'p>, PlanError> {
        let source = match &population.paths {
            PathsSpec::Marginals(spec) => Source::Marginals(Box::new(Joint {
                subnet_users: spec.subnet_users,
                laws: spec.laws().map(|(_, law)| law),
                copula: Copula::new(&spec.correlation, spec.subnet_share)?,
            })),
            PathsSpec::Table(spec) => {
                let mut sum = 0.0;
                let mut add = |row: usize| {
                    sum += spec.weight.as_ref().map_or(1.0, |weights| weights[row]);
                    sum
                };
                let up_to = if spec.draw == Draw::Weighted { (0..spec.rows()).map(&mut add).collect() } else { vec![] };
                Source::Table { spec, up_to }
            }
        };
        let least_buffer_bytes = u64::from(population.least_buffer_packets) * u64::from(packet_bytes);
        Ok(Paths { source, farther: population.farther_ns, least_buffer_bytes })
    }

    /// The paths of these users of a replicate, in order. All are held at once, some 130 bytes each while they are drawn.
    ///
    /// # Errors
    /// A law gave a figure that no path has; the first such user is named.
    pub fn of(&self, seed: u64, replicate: u32, users: Range<u32>) -> Result<Vec<Path>, PlanError> {
        let mut paths = Vec::with_capacity(users.len());
        let mut add = |user, figures, path| {
            let path = self.measured(figures, path);
            paths.push(path.map_err(PlanError::within(format_args!("user {user} of replicate {replicate}")))?);
            Ok::<_, PlanError>(())
        };
        match &self.source {
            Source::Marginals(joint) => {
                let [rtt, down, up, buffer, loss] = &joint.figures(seed, replicate, users.clone());
                for (index, user) in users.enumerate() {
                    let path = Path { subnet: Some(user / joint.subnet_users), weight: 1.0, ..Path::default() };
                    add(user, [rtt[index], down[index], up[index], buffer[index], loss[index]], path)?;
                }
            }
            Source::Table { spec, up_to } => {
                for user in users {
                    let (figures, path) = spec.of(seed, replicate, user, up_to);
                    add(user, figures, path)?;
                }
            }
        }
        Ok(paths)
    }

    /// A path with the drawn values, in whole units.
    fn measured(&self, figures: Figures, path: Path) -> Result<Path, SpecError> {
        let [rtt_ns, down_bps, up_bps, buffer_ns, loss] = figures;
        check("rtt_ns", rtt_ns)?;
        check("down_bps", down_bps)?;
        check("up_bps", up_bps)?;
        check("buffer_ns", buffer_ns)?;
        check("loss", loss)?;
        let buffer = |bps: f64| (libm::round(buffer_ns * bps / 8e9) as u64).max(self.least_buffer_bytes);
        Ok(Path {
            rtt: libm::round(rtt_ns) as Nanos + self.farther,
            down_bps: libm::round(down_bps) as u64,
            up_bps: libm::round(up_bps) as u64,
            down_buffer_bytes: buffer(down_bps),
            up_buffer_bytes: buffer(up_bps),
            loss,
            ..path
        })
    }
}

impl Joint<'_> {
    /// The figures of users.
    // Each step is done for all users before the next one. The steps of one user depend on each other, those of different
    // users do not, so the processor overlaps them.
    fn figures(&self, seed: u64, replicate: u32, users: Range<u32>) -> Columns {
        let stream = |purpose, member| Stream::new(seed, replicate, purpose, 0, member);
        let mut columns = copula::draw(users.clone().map(|user| stream(Purpose::Path, user)));
        let subnets = users.start / self.subnet_users..users.end.div_ceil(self.subnet_users);
        let place = |user: u32| user.max(users.start).min(users.end).saturating_sub(users.start) as usize;
        self.copula.correlate(
            &mut columns,
            subnets.map(|subnet| {
                let first = subnet * self.subnet_users;
                let next = first.saturating_add(self.subnet_users);
                (place(first)..place(next), stream(Purpose::Subnet, subnet))
            }),
        );
        for (law, column) in self.laws.iter().zip(&mut columns) {
            law.at_scores(column);
        }
        columns
    }
}

impl TableSpec {
    /// The figures of a user, and the path without them. `up_to`: as in [`Source::Table`].
    fn of(&self, seed: u64, replicate: u32, user: u32, up_to: &[f64]) -> (Figures, Path) {
        let row = match self.draw {
            Draw::Each => user as usize,
            Draw::Weighted => {
                let [u, _] = Stream::new(seed, replicate, Purpose::Row, 0, user).uniforms(0);
                let at = u * up_to[up_to.len() - 1];
                up_to.partition_point(|&sum| sum <= at).min(up_to.len() - 1)
            }
        };
        let weight = match (&self.weight, self.draw) {
            (Some(weights), Draw::Each) => weights[row],
            _ => 1.0,
        };
        let bytes = self.bytes.as_ref().map(|bytes| bytes[row]);
        let handshake = self.tls_bytes.as_ref().map(|bytes| RowHandshake {
            bytes: bytes[row],
            exchanges: self.tls_exchanges.as_ref().map_or(1, |exchanges| exchanges[row] as u8),
        });
        let own = Stream::new(seed, replicate, Purpose::Path, 0, user);
        (self.figures(row, &own), Path { row: Some(row as u32), weight, bytes, handshake, ..Path::default() })
    }

    /// The figures of a row. A value that a law fills in is drawn for each user, each value from its own draws.
    fn figures(&self, row: usize, user: &Stream) -> Figures {
        let mut figures = [0.0; FIGURES];
        for (index, (figure, (_, column))) in figures.iter_mut().zip(self.columns()).enumerate() {
            *figure = match column {
                Column::Values(values) => values[row],
                Column::Distribution(Distribution::Constant { value }) => *value,
                Column::Distribution(law) => law.quantile(user.uniforms(index as u64 / 2)[index % 2]),
            };
        }
        figures
    }
}

impl Path {
    /// The link to the user.
    pub fn down(&self) -> LinkSpec {
        link(self.down_bps, self.rtt / 2, self.loss, self.down_buffer_bytes)
    }

    /// The link from the user.
    pub fn up(&self) -> LinkSpec {
        link(self.up_bps, self.rtt - self.rtt / 2, 0.0, self.up_buffer_bytes)
    }

    /// Bytes that fit into a round trip at the rate to the user.
    pub fn bdp_bytes(&self) -> f64 {
        self.down_bps as f64 * self.rtt as f64 / 8e9
    }
}

fn link(rate_bps: u64, delay_ns: Nanos, loss: f64, limit_bytes: u64) -> LinkSpec {
    let queue = DropTailSpec { limit: Limit::Bytes(limit_bytes), counts_packet_in_service: false };
    LinkSpec { loss, ..LinkSpec::plain(Some(rate_bps), delay_ns, QueueSpec::DropTail(queue)) }
}
