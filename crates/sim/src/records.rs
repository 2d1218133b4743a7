//! All that a simulation writes.

pub use firstflight_records::{
    Crossing, Crossings, DROPPED, LOST, LinkInterval, LinkIntervals, NO_CONNECTION, NO_LINK, NO_PAGE, NO_RESPONSE,
    NamedColumns, Page, Pages, RECEIVED, SENT, SegmentEvent, SegmentEvents, Sight, Transfer, Transfers, seconds,
    seconds_between,
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
