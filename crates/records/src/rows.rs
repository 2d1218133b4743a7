//! The rows. Times are seconds; NaN where a thing did not happen.

use firstflight_path::Interval;
use firstflight_tcp::Nanos;

use crate::table::{Column, table};

/// A page column of transfers that belong to no page.
pub const NO_PAGE: u32 = u32::MAX;
/// A link column of events at an endpoint.
pub const NO_LINK: u16 = u16::MAX;
/// A Quick-Start response column of segments without one.
pub const NO_RESPONSE: u8 = u8::MAX;
/// A subnet column of users of whom it is unknown.
pub const NO_SUBNET: u32 = u32::MAX;
/// A row column of users that were drawn.
pub const NO_ROW: u32 = u32::MAX;
/// A connection column of packets whose connection is over.
pub const NO_CONNECTION: u32 = u32::MAX;

table! {
    /// A file or object. The sender-side figures are those of the end that sends its data; for several objects on one
    /// connection they are the increments during the object.
    Transfer / Transfers {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the application.
        application: u16 as U16,
        /// Client of the application.
        client: u32 as U32,
        /// Page of the client, or [`NO_PAGE`].
        page: u32 as U32,
        /// 0 for the primary or only object.
        object: u32 as U32,
        /// Connection of the replicate, counted from 0.
        connection: u32 as U32,
        /// When the client opened the connection or, on an open one, asked.
        start_s: f64 as F64,
        /// Until the client's handshake was complete; NaN on an open connection.
        handshake_time_s: f64 as F64,
        /// Until the first byte arrived at the receiver.
        first_byte_time_s: f64 as F64,
        /// Until the last byte arrived at the receiver.
        completion_time_s: f64 as F64,
        /// Bytes asked for.
        bytes: u64 as U64,
        /// Bytes that arrived in order before the end of the run.
        delivered_bytes: u64 as U64,
        /// Data segments sent, retransmissions included.
        segments_sent: u32 as U32,
        /// Retransmitted data segments.
        retransmissions: u32 as U32,
        /// Retransmission timeouts.
        timeouts: u32 as U32,
        /// Losses repaired by duplicate or selective acknowledgements: once a loss event.
        fast_retransmits: u32 as U32,
        /// Of these, begun on fewer of them than the ordinary threshold.
        early_retransmits: u32 as U32,
        /// Tail loss probes (RFC 8985 section 7).
        tail_loss_probes: u32 as U32,
        /// Repairs found needless and undone.
        undos: u32 as U32,
        /// Reductions of cwnd in answer to ECN echoes.
        congestion_marks: u32 as U32,
        /// Data segments sent before the first ACK of data.
        first_flight_segments: u32 as U32,
        /// Of these, lost on the path.
        first_flight_lost: u32 as U32,
        /// Initial window of the connection, in whole segments.
        initial_window_segments: u32 as U32,
        /// 1 if the last byte arrived before the end of the run.
        completed: u8 as U8,
    }
}

table! {
    /// A web page.
    Page / Pages {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the application.
        application: u16 as U16,
        /// Client of the application.
        client: u32 as U32,
        /// Page of the client, counted from 0.
        page: u32 as U32,
        /// When the client opened the first connection.
        start_s: f64 as F64,
        /// Until that connection was up at the client.
        connect_time_s: f64 as F64,
        /// Until the last object had arrived.
        completion_time_s: f64 as F64,
        /// Objects, the primary included.
        objects: u32 as U32,
        /// Bytes of all objects.
        bytes: u64 as U64,
        /// Retransmitted data segments of all objects.
        retransmissions: u32 as U32,
        /// Retransmission timeouts of all objects.
        timeouts: u32 as U32,
        /// 1 if all objects arrived before the end of the run.
        completed: u8 as U8,
    }
}

table! {
    /// A link during an interval.
    LinkInterval / LinkIntervals {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the link.
        link: u16 as U16,
        /// Start of the interval.
        interval_start_s: f64 as F64,
        /// Its length.
        interval_s: f64 as F64,
        /// Packets that arrived.
        offered_packets: u64 as U64,
        /// Packets that the queue refused.
        dropped_packets: u64 as U64,
        /// Packets that the queue marked, "congestion experienced".
        marked_packets: u64 as U64,
        /// Packets lost after transmission.
        lost_packets: u64 as U64,
        /// Packets whose transmission ended in the interval.
        sent_packets: u64 as U64,
        /// Their bytes, headers included.
        sent_bytes: u64 as U64,
        /// Time for which the line transmitted.
        busy_s: f64 as F64,
        /// Packets that waited, averaged over the interval.
        queue_mean_packets: f64 as F64,
        /// Most packets that waited at once.
        queue_max_packets: u32 as U32,
    }
}

table! {
    /// A user of a population with the path that is theirs.
    User / Users {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Number of the user in the replicate: the client of transfers and pages.
        client: u32 as U32,
        /// Users of one access network, or [`NO_SUBNET`].
        subnet: u32 as U32,
        /// Row of the table of paths, or [`NO_ROW`].
        row: u32 as U32,
        /// How many of the whole population the user stands for.
        weight: f64 as F64,
        /// Round trip without serialization and queueing.
        rtt_s: f64 as F64,
        /// Largest round trip that was seen; NaN in virtual time.
        most_rtt_s: f64 as F64,
        /// Rate of the link to the user.
        down_bps: f64 as F64,
        /// Rate of the link from the user.
        up_bps: f64 as F64,
        /// Limit of the queue before the link to the user.
        buffer_bytes: u64 as U64,
        /// Probability that the link to the user loses a packet.
        loss: f64 as F64,
    }
}

table! {
    /// Transfers or pages of a bucket, counted and added up. Whole numbers, so parts merge exactly in any order.
    Aggregate / Aggregates {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the application.
        application: u16 as U16,
        /// 0 transfers, 1 pages.
        unit: u8 as U8,
        /// By what they are sorted into buckets: 0 not at all, 1 round trip of the path, 2 rate to the user, 3 product of
        /// the two, 4 segments of the response.
        dimension: u8 as U8,
        /// Bucket of the dimension, from 0.
        bucket: u16 as U16,
        /// How many there are.
        count: u64 as U64,
        /// Of these, those that were complete before the end of the run.
        completed: u64 as U64,
        /// Their completion times added up.
        completion_ns_sum: i64 as I64,
        /// Bytes asked for.
        bytes: u64 as U64,
        /// Data segments sent, retransmissions included.
        segments_sent: u64 as U64,
        /// Retransmitted data segments.
        retransmissions: u64 as U64,
        /// Retransmission timeouts.
        timeouts: u64 as U64,
        /// Those with a retransmission.
        with_retransmission: u64 as U64,
        /// Data segments sent before the first ACK of data.
        first_flight_segments: u64 as U64,
        /// Of these, lost on the path.
        first_flight_lost: u64 as U64,
        /// Those with a loss in a first flight.
        with_first_flight_loss: u64 as U64,
    }
}

table! {
    /// A bin of the completion times of a bucket: bin b holds those above 1.01^(b - 1) ns, up to and with 1.01^b ns.
    HistogramBin / Histograms {
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the application.
        application: u16 as U16,
        /// As in [`Aggregate`].
        unit: u8 as U8,
        /// As in [`Aggregate`].
        dimension: u8 as U8,
        /// Bucket of the dimension, from 0.
        bucket: u16 as U16,
        /// The bin.
        bin: i32 as I32,
        /// Completed transfers or pages in it, at least one.
        count: u64 as U64,
    }
}

table! {
    /// A segment at one point of its way.
    SegmentEvent / SegmentEvents {
        /// Time.
        time_ns: i64 as I64,
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Connection of the replicate.
        connection: u32 as U32,
        /// 0 sent by an endpoint, 1 received by one, 2 dropped by a queue, 3 lost on a link.
        event: u8 as U8,
        /// 1 if the server sent it.
        from_server: u8 as U8,
        /// The link of a drop or loss, else [`NO_LINK`].
        link: u16 as U16,
        /// Sequence number, relative to the sender's initial one.
        seq: u32 as U32,
        /// Payload bytes.
        length: u32 as U32,
        /// Acknowledgment number, relative to the other end's initial sequence number.
        ack: u32 as U32,
        /// Advertised window, unscaled to bytes.
        window_bytes: u64 as U64,
        /// Congestion window of the sender (event 0) or receiver (event 1) of the segment, in its segments.
        cwnd_segments: f64 as F64,
        /// Slow start threshold of the same end.
        ssthresh_segments: f64 as F64,
        /// What the same end is doing about losses, as [`firstflight_tcp::Info::recovery_state`] tells it.
        recovery_state: u8 as U8,
        /// TCP flags.
        flags: u8 as U8,
        /// 1 for a retransmission.
        retransmission: u8 as U8,
        /// ECN bits of the IP header: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
        ecn: u8 as U8,
        /// 1 if there is a timestamps option.
        has_timestamps: u8 as U8,
        /// Its TSval, else 0.
        ts_value: u32 as U32,
        /// Its TSecr, else 0.
        ts_echo: u32 as U32,
        /// Ranges in the SACK option.
        sack_count: u8 as U8,
        /// First sequence number of a range, relative as `ack` is; 0 where there is no such range.
        sack_left_0: u32 as U32,
        /// First sequence number after it.
        sack_right_0: u32 as U32,
        /// As `sack_left_0`.
        sack_left_1: u32 as U32,
        /// As `sack_right_0`.
        sack_right_1: u32 as U32,
        /// As `sack_left_0`.
        sack_left_2: u32 as U32,
        /// As `sack_right_0`.
        sack_right_2: u32 as U32,
        /// As `sack_left_0`.
        sack_left_3: u32 as U32,
        /// As `sack_right_0`.
        sack_right_3: u32 as U32,
        /// MSS option, else 0.
        mss: u16 as U16,
        /// Shift of the window scale option, else [`firstflight_tcp::NO_WINDOW_SCALE`].
        window_scale: u8 as U8,
        /// 1 if there is a SACK-permitted option.
        sack_permitted: u8 as U8,
        /// Quick-Start in the IP header: 0 none, 1 request, 2 request that a router passed on without approval, 3 report.
        quick_start: u8 as U8,
        /// Its rate code N (40 kbit/s x 2^N), 0 if refused or absent.
        quick_start_rate: u8 as U8,
        /// Rate code of the Quick-Start response in the TCP header, else [`NO_RESPONSE`].
        quick_start_response: u8 as U8,
    }
}

table! {
    /// A packet at a link.
    Crossing / Crossings {
        /// When it arrived at the link.
        time_ns: i64 as I64,
        /// Replicate of the experiment.
        replicate: u32 as U32,
        /// Index of the link.
        link: u16 as U16,
        /// Connection of the replicate, or [`NO_CONNECTION`] if both ends were done with it already.
        connection: u32 as U32,
        /// 1 if the server sent it.
        from_server: u8 as U8,
        /// Bytes, headers included.
        bytes: u32 as U32,
        /// 1 it reached the far end, 2 dropped by the queue, 3 lost after transmission.
        event: u8 as U8,
        /// When its transmission began; of a packet that the queue dropped, `time_ns`.
        start_ns: i64 as I64,
        /// When its transmission ended; of a packet that the queue dropped, `time_ns`.
        end_ns: i64 as I64,
    }
}

/// A table's name and its columns.
pub type NamedColumns = (&'static str, Vec<(&'static str, Column)>);

impl LinkInterval {
    /// The row of what a meter tells of the link with this index: an interval's start, length and counts.
    pub fn new(replicate: u32, link: u16, (start, length, counts): (Nanos, Nanos, &Interval)) -> Self {
        Self {
            replicate,
            link,
            interval_start_s: seconds(start),
            interval_s: seconds(length),
            offered_packets: counts.offered_packets,
            dropped_packets: counts.dropped_packets,
            marked_packets: counts.marked_packets,
            lost_packets: counts.lost_packets,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            busy_s: seconds(counts.busy),
            queue_mean_packets: counts.waiting as f64 / length as f64,
            queue_max_packets: counts.queue_max_packets,
        }
    }
}

/// Seconds of a moment.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// Seconds from one moment to another, if that came.
pub fn seconds_between(from: Nanos, to: Option<Nanos>) -> f64 {
    to.map_or(f64::NAN, |to| seconds(to - from))
}
