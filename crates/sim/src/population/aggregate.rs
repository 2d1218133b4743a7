//! Counts, sums and histograms of a population's transfers and pages by bucket, in place of a row each.
//!
//! All are whole numbers, so replicates and parts of runs merge exactly in any order.

use firstflight_path::Nanos;

use super::{Path, spec::Buckets};
use crate::{
    PlanError,
    histogram::{Bins, Histogram},
    plan::{Application, Direction, Kind, Plan},
    records::{Aggregate, HistogramBin, SenderCounts, Sums},
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Index of the application, as the records number it.
    pub(crate) application: u16,
    /// A transfer or a page.
    pub(crate) unit: Unit,
    /// From asking to the last byte, if that arrived.
    pub(crate) completion: Option<Nanos>,
    pub(crate) bytes: u64,
    pub(crate) booked: SenderCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A file or object.
    Transfer,
    Page,
}

/// Dimensions of the buckets: all together, and the four of [`Buckets`].
const DIMENSIONS: usize = firstflight_records::DIMENSIONS.len();

/// Units: transfers and pages.
const UNITS: usize = firstflight_records::COUNTED.len();

#[derive(Debug)]
pub(crate) struct Accounts {
    buckets: Buckets,
    bins: &'static Bins,
    /// Payload of a full segment of the responses of each application.
    payload_bytes: Vec<u64>,
    /// Of each application, whether it has transfers and pages.
    has: Vec<[bool; UNITS]>,
    /// Offsets of the buckets of each dimension within a block.
    first: [usize; DIMENSIONS],
    /// Buckets of all dimensions together: one block per application and unit.
    block: usize,
    cells: Vec<Cell>,
    /// Places in a block of the user whose outcomes are next, without the dimension of segments.
    user: [usize; DIMENSIONS - 1],
}

/// The account of a bucket.
#[derive(Clone, Debug, Default)]
struct Cell {
    count: u64,
    completed: u64,
    /// Wider than the column, whose end many long times can pass.
    completion_ns_sum: u128,
    sums: Sums,
    times: Histogram,
}

impl Accounts {
    /// Accounts without entries.
    pub(crate) fn new(plan: &Plan, buckets: &Buckets) -> Accounts {
        let mut first = [0; DIMENSIONS];
        let mut block = 1;
        for (first, (_, borders)) in first[1..].iter_mut().zip(buckets.dimensions()) {
            *first = block;
            block += borders.len() + 1;
        }
        Accounts {
            buckets: buckets.clone(),
            bins: Bins::get(),
            payload_bytes: plan.recorded_applications().map(|(spec, _, arm)| payload_bytes(spec, arm)).collect(),
            has: plan.recorded_applications().map(|(spec, ..)| units(&spec.kind)).collect(),
            first,
            block,
            cells: vec![Cell::default(); plan.recorded_applications().count() * UNITS * block],
            user: [0; DIMENSIONS - 1],
        }
    }

    /// The following events belong to a user with this path.
    pub(crate) fn begin_user(&mut self, path: &Path) {
        let [_, rtt, down, bdp, _] = self.first;
        self.user = [
            0,
            rtt + bucket(&self.buckets.rtt_s, path.rtt as f64 / 1e9),
            down + bucket(&self.buckets.down_bps, path.down_bps as f64),
            bdp + bucket(&self.buckets.bdp_bytes, path.bdp_bytes()),
        ];
    }

    /// Enters an outcome into the accounts of its buckets.
    pub(crate) fn enter(&mut self, outcome: &Outcome) {
        let application = usize::from(outcome.application);
        let block = (application * UNITS + outcome.unit as usize) * self.block;
        let segments = outcome.bytes.div_ceil(self.payload_bytes[application]);
        let by_segments = self.first[DIMENSIONS - 1] + bucket(&self.buckets.segments, segments as f64);
        let bin = outcome.completion.map(|time| (time, self.bins.of(time)));
        for place in self.user.into_iter().chain([by_segments]) {
            self.cells[block + place].enter(outcome, bin);
        }
    }

    /// Writes the accounts of a replicate, and begins the next one without entries.
    ///
    /// # Errors
    /// Completion times whose sum no column can hold.
    pub(crate) fn close(
        &mut self,
        replicate: u32,
        aggregates: &mut Vec<Aggregate>,
        histograms: &mut Vec<HistogramBin>,
    ) -> Result<(), PlanError> {
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let (block, place) = (index / self.block, index % self.block);
            let (application, unit) = (block / UNITS, block % UNITS);
            if !self.has[application][unit] {
                continue;
            }
            let dimension = self.first.iter().rposition(|&first| first <= place).unwrap_or_default();
            let (application, unit) = (application as u16, unit as u8);
            let bucket = (place - self.first[dimension]) as u16;
            let dimension = dimension as u8;
            let completion_ns_sum = i64::try_from(cell.completion_ns_sum).map_err(|_| {
                misfit!(
                    "the completion times of replicate {replicate} add up to more than 2^63 ns (292 years): make more \
                     replicates of fewer users, or keep rows"
                )
            })?;
            aggregates.push(Aggregate {
                replicate,
                application,
                unit,
                dimension,
                bucket,
                count: cell.count,
                completed: cell.completed,
                completion_ns_sum,
                sums: cell.sums,
            });
            for (bin, count) in cell.times.drain() {
                histograms.push(HistogramBin { replicate, application, unit, dimension, bucket, bin, count });
            }
            *cell = Cell { times: std::mem::take(&mut cell.times), ..Cell::default() };
        }
        Ok(())
    }
}

impl Cell {
    fn enter(&mut self, outcome: &Outcome, bin: Option<(Nanos, usize)>) {
        let booked = &outcome.booked;
        self.count += 1;
        if let Some((time, bin)) = bin {
            self.completed += 1;
            self.completion_ns_sum += u128::from(time);
            self.times.count(bin);
        }
        self.sums += Sums {
            bytes: outcome.bytes,
            segments_sent: booked.segments_sent.into(),
            retransmissions: booked.retransmissions.into(),
            timeouts: booked.timeouts.into(),
            with_retransmission: (booked.retransmissions > 0).into(),
            first_flight_segments: booked.first_flight_segments.into(),
            first_flight_lost_segments: booked.first_flight_lost_segments.into(),
            with_first_flight_loss: (booked.first_flight_lost_segments > 0).into(),
        };
    }
}

/// True if an application has transfers, and pages.
fn units(kind: &Kind) -> [bool; UNITS] {
    let streams_alone = kind.datagrams().is_some() && !matches!(kind, Kind::Dns(_));
    [!streams_alone, matches!(kind, Kind::WebPage { .. })]
}

/// The bucket of a value: up to and with the border above it.
fn bucket(borders: &[f64], value: f64) -> usize {
    borders.partition_point(|&border| border < value)
}

/// Payload of a full segment of the end that sends the files.
fn payload_bytes(spec: &Application, arm: u8) -> u64 {
    let [client, server] = spec.ends(arm);
    let (sender, receiver) = match spec.kind {
        Kind::FileTransfer { direction: Direction::Upload, .. } => (client, server),
        _ => (server, client),
    };
    u64::from(sender.full_payload_bytes(receiver))
}
