//! All that a simulation writes.

pub use firstflight_records::{
    Aggregate, Aggregates, Crossing, Crossings, DROPPED, HistogramBin, Histograms, LOST, LinkInterval, LinkIntervals,
    NO_CONNECTION, NO_LINK, NO_PAGE, NO_RESPONSE, NO_ROW, NO_SUBNET, NamedColumns, Page, Pages, RECEIVED, SENT,
    SegmentEvent, SegmentEvents, Sight, Transfer, Transfers, User, Users, seconds, seconds_between,
};

/// All that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Names of the links, by index.
    pub link_names: Vec<String>,
    /// Names of the applications, by index.
    pub application_names: Vec<String>,
    /// Files and objects.
    pub transfers: Transfers,
    /// Web pages.
    pub pages: Pages,
    /// Links by interval.
    pub links: LinkIntervals,
    /// Users with their paths, if there is a population.
    pub users: Option<Users>,
    /// Transfers and pages of a population by bucket, in place of their rows, if asked for.
    pub aggregates: Option<Aggregates>,
    /// Their completion times.
    pub histograms: Option<Histograms>,
    /// Segments, if asked for.
    pub segments: Option<SegmentEvents>,
    /// Packets at every link, if segments were asked for.
    pub crossings: Option<Crossings>,
    /// Costs.
    pub counts: Counts,
}

impl Records {
    /// Adds the rows of another replicate of the same plan.
    pub fn append(&mut self, other: Records) {
        self.transfers.append(other.transfers);
        self.pages.append(other.pages);
        self.links.append(other.links);
        if let (Some(users), Some(more)) = (&mut self.users, other.users) {
            users.append(more);
        }
        if let (Some(aggregates), Some(more)) = (&mut self.aggregates, other.aggregates) {
            aggregates.append(more);
        }
        if let (Some(histograms), Some(more)) = (&mut self.histograms, other.histograms) {
            histograms.append(more);
        }
        if let (Some(segments), Some(more)) = (&mut self.segments, other.segments) {
            segments.append(more);
        }
        if let (Some(crossings), Some(more)) = (&mut self.crossings, other.crossings) {
            crossings.append(more);
        }
        self.counts.add(other.counts);
    }

    /// The tables with their names.
    pub fn into_tables(self) -> Vec<NamedColumns> {
        let mut tables = vec![
            ("transfers", self.transfers.into_columns()),
            ("pages", self.pages.into_columns()),
            ("links", self.links.into_columns()),
        ];
        if let Some(users) = self.users {
            tables.push(("users", users.into_columns()));
        }
        if let Some(aggregates) = self.aggregates {
            tables.push(("aggregates", aggregates.into_columns()));
        }
        if let Some(histograms) = self.histograms {
            tables.push(("histograms", histograms.into_columns()));
        }
        if let Some(segments) = self.segments {
            tables.push(("segments", segments.into_columns()));
        }
        if let Some(crossings) = self.crossings {
            tables.push(("crossings", crossings.into_columns()));
        }
        tables
    }
}

/// What a simulation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events taken from the scheduler.
    pub events: u64,
    /// Packets offered to links.
    pub packet_hops: u64,
    /// Data segments emitted by endpoints.
    pub data_packets: u64,
}

impl Counts {
    /// Adds another simulation's costs.
    pub fn add(&mut self, other: Counts) {
        self.events += other.events;
        self.packet_hops += other.packet_hops;
        self.data_packets += other.data_packets;
    }
}
