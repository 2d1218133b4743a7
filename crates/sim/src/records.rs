//! All that a simulation writes.

pub use firstflight_records::{
    Aggregate, AtEnd, Crossing, Handshake, HistogramBin, LinkInterval, NO_CONNECTION, NO_LINK, NO_PAGE, NO_RESPONSE,
    NO_ROW, NO_SUBNET, NamedColumns, Page, RECEIVED, Row, SENT, SegmentEvent, SenderCounts, SenderEventRow, Sight,
    StreamReport, Sums, Transfer, User, seconds, seconds_between,
};
pub use firstflight_tcp::{Trigger, event_words};

/// Declares [`Records`]: tables that there always are, and those that there are on some conditions.
macro_rules! records {
    ($($(#[$doc:meta])+ $table:ident: $row:ty,)* if asked { $($(#[$more_doc:meta])+ $more:ident: $more_row:ty,)* }) => {
        /// All that was recorded.
        #[derive(Clone, Debug, Default)]
        pub struct Records {
            /// Names of the links, by index.
            pub link_names: Vec<String>,
            /// Names of the applications, by index.
            pub application_names: Vec<String>,
            $($(#[$doc])+ pub $table: Vec<$row>,)*
            $($(#[$more_doc])+ pub $more: Option<Vec<$more_row>>,)*
            /// Costs.
            pub counts: Counts,
        }

        impl Records {
            /// Adds the rows of another replicate of the same plan.
            pub fn append(&mut self, other: Records) {
                $(self.$table.extend(other.$table);)*
                $(if let (Some(rows), Some(more)) = (&mut self.$more, other.$more) {
                    rows.extend(more);
                })*
                self.counts += other.counts;
            }

            /// The tables with their names.
            pub fn into_tables(self) -> Vec<NamedColumns> {
                // Each table's rows are gone before the next table's columns are made.
                let always = [$({ let rows = self.$table; Row::columns(&rows) },)*];
                let asked = [$(self.$more.map(|rows| Row::columns(&rows)),)*];
                always.into_iter().chain(asked.into_iter().flatten()).collect()
            }
        }
    };
}

records! {
    /// Files and objects.
    transfers: Transfer,
    /// Web pages.
    pages: Page,
    /// Links by interval.
    links: LinkInterval,
    /// Streams of datagrams.
    streams: StreamReport,
    if asked {
        /// Handshakes behind TCP's, if some application has them.
        handshakes: Handshake,
        /// Users with their paths, if there is a population.
        users: User,
        /// Transfers and pages of a population by bucket, in place of their rows.
        aggregates: Aggregate,
        /// Their completion times.
        histograms: HistogramBin,
        /// Segments.
        segments: SegmentEvent,
        /// Events of the senders, if segments are asked for.
        sender_events: SenderEventRow,
        /// Packets at every link, if segments are asked for.
        crossings: Crossing,
    }
}

firstflight_records::counters! {
    /// The cost of a simulation.
    Counts {
        /// Events: packets that reach the far end of a link, departures from queues, and timers.
        events: u64,
        /// Packets offered to links.
        packet_hops: u64,
        /// Data segments emitted by endpoints.
        data_packets: u64,
    }
}
