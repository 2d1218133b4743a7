//! All that a simulation writes.

pub use firstflight_records::{
    Aggregate, Aggregates, AtEnd, Crossing, Crossings, DROPPED, HistogramBin, Histograms, LOST, LinkInterval,
    LinkIntervals, NO_CONNECTION, NO_LINK, NO_PAGE, NO_RESPONSE, NO_ROW, NO_SUBNET, NamedColumns, Page, Pages,
    RECEIVED, SENT, SegmentEvent, SegmentEvents, SenderCounts, Sight, StreamReport, StreamReports, Sums, Transfer,
    Transfers, User, Users, seconds, seconds_between,
};

/// Declares [`Records`]: tables that there always are, and those that there are on some conditions.
macro_rules! records {
    ($($(#[$doc:meta])+ $table:ident: $columns:ty,)* if asked { $($(#[$more_doc:meta])+ $more:ident: $more_columns:ty,)* }) => {
        /// All that was recorded.
        #[derive(Clone, Debug, Default)]
        pub struct Records {
            /// Names of the links, by index.
            pub link_names: Vec<String>,
            /// Names of the applications, by index.
            pub application_names: Vec<String>,
            $($(#[$doc])+ pub $table: $columns,)*
            $($(#[$more_doc])+ pub $more: Option<$more_columns>,)*
            /// Costs.
            pub counts: Counts,
        }

        impl Records {
            /// Adds the rows of another replicate of the same plan.
            pub fn append(&mut self, other: Records) {
                $(self.$table.append(other.$table);)*
                $(if let (Some(rows), Some(more)) = (&mut self.$more, other.$more) {
                    rows.append(more);
                })*
                self.counts += other.counts;
            }

            /// The tables with their names.
            pub fn into_tables(self) -> Vec<NamedColumns> {
                let always = [$(self.$table.into_columns(),)*];
                let asked = [$(self.$more.map(<$more_columns>::into_columns),)*];
                always.into_iter().chain(asked.into_iter().flatten()).collect()
            }
        }
    };
}

records! {
    /// Files and objects.
    transfers: Transfers,
    /// Web pages.
    pages: Pages,
    /// Links by interval.
    links: LinkIntervals,
    /// Streams of datagrams.
    streams: StreamReports,
    if asked {
        /// Users with their paths, if there is a population.
        users: Users,
        /// Transfers and pages of a population by bucket, in place of their rows.
        aggregates: Aggregates,
        /// Their completion times.
        histograms: Histograms,
        /// Segments.
        segments: SegmentEvents,
        /// Packets at every link, if segments are asked for.
        crossings: Crossings,
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
