//! The rows. Times are seconds, relative ones to `start_s`; NaN where a thing did not happen. The comments are the
//! meanings that the reference of records prints.

use crate::{
    table,
    table::{Declared, Row},
};

/// A page column of transfers that belong to no page.
pub const NO_PAGE: u32 = u32::MAX;
/// A link column of events at an endpoint.
pub const NO_LINK: u16 = u16::MAX;
/// A window scale column of segments without the option, whose shifts end at 14.
pub const NO_WINDOW_SCALE: u8 = u8::MAX;
/// A Quick-Start response column of segments without one.
pub const NO_RESPONSE: u8 = u8::MAX;
/// A subnet column of users of whom it is unknown.
pub const NO_SUBNET: u32 = u32::MAX;
/// A row column of users that were drawn.
pub const NO_ROW: u32 = u32::MAX;
/// The connection column of packets whose connection has ended, and of packets without one.
pub const NO_CONNECTION: u32 = u32::MAX;
/// A recovery state of an end that only the end itself would know.
pub const UNKNOWN_STATE: u8 = u8::MAX;

table! {
    /// A file or object. The sender's counters are those of the end that sends its data; for several objects on one
    /// connection they are the increments during the object.
    Transfer = "transfers" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// client of the application, or user of the population, from 0
        client: u32,
        /// page of the client, from 0; null outside pages
        page: u32 = NO_PAGE,
        /// 0 for the primary or only object, then the in-line ones; requests count from 0
        object: u32,
        /// connection of the replicate, from 0; null for a DNS lookup
        connection: u32 = NO_CONNECTION,
        /// time at which the client opened the connection or, on an open connection, sent the request
        start_s: f64 ["s"],
        /// from start to the end of the handshake at the client
        handshake_time_s: f64 ["s"],
        /// from start to the end of the TLS handshake at the client; null without one
        tls_handshake_time_s: f64 ["s"],
        /// from start to the arrival of the first byte at the receiver
        first_byte_time_s: f64 ["s"],
        /// from start to the arrival of the whole first TLS record, before which no byte can be used; null without TLS
        first_usable_byte_time_s: f64 ["s"],
        /// from start to the arrival of the last byte at the receiver
        completion_time_s: f64 ["s"],
        /// bytes requested, response header included
        bytes: u64 ["B"],
        /// bytes delivered to the receiver in order before the end of the run
        delivered_bytes: u64 ["B"],
        .. sender: SenderCounts {
            /// data segments sent, retransmissions included
            segments_sent: u32 ["segments"],
            /// data segments retransmitted by the sender
            retransmissions: u32 ["segments"],
            /// retransmission timeouts of the sender
            timeouts: u32,
            /// loss events recovered by duplicate ACKs or SACK
            fast_retransmits: u32,
            /// of these, started below the ordinary duplicate ACK threshold
            early_retransmits: u32,
            /// tail loss probes of the sender (RFC 8985 section 7)
            tail_loss_probes: u32,
            /// spurious recoveries that the sender undid
            spurious_recoveries_undone: u32,
            /// reductions of cwnd in response to ECN echoes, at most one per window
            ecn_cwnd_reductions: u32,
            /// data segments sent before the first ACK of data
            first_flight_segments: u32 ["segments"],
            /// segments of the first flight that a queue dropped or a link lost
            first_flight_lost_segments: u32 ["segments"],
        }
        /// cwnd at the first data, in whole segments: the initial window, with the effect of lost SYNs; null if not
        /// observed
        initial_window_segments: u32 ["segments"],
        /// 1 if all bytes arrived before the end of the run, else 0
        completed: u8,
        /// 1 if affected by a host stall, by the rule of engines.emulate.disturbance, else 0
        disturbed: u8,
        /// maximum lateness of the link emulator during the transfer
        stall_s: f64 ["s"],
    }
}

table! {
    /// A web page.
    Page = "pages" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// client of the application, or user of the population, from 0
        client: u32,
        /// page of the client, from 0
        page: u32,
        /// time at which the client opened the connection or, on an open connection, sent the request
        start_s: f64 ["s"],
        /// from start to the end of the handshake of the primary's connection at the client
        connect_time_s: f64 ["s"],
        /// from start to the arrival of the last object
        completion_time_s: f64 ["s"],
        /// objects of the page, the primary included
        objects: u32,
        /// bytes of all objects
        bytes: u64 ["B"],
        /// data segments retransmitted by the sender
        retransmissions: u32 ["segments"],
        /// retransmission timeouts of the sender
        timeouts: u32,
        /// 1 if all bytes arrived before the end of the run, else 0
        completed: u8,
    }
}

table! {
    /// What passed on a connection before its first request: the handshake of TLS, or another dialog.
    Handshake = "handshakes" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// client of the application, or user of the population, from 0
        client: u32,
        /// connection of the replicate, from 0
        connection: u32,
        /// time at which the client opened the connection
        start_s: f64 ["s"],
        /// from start to the end of TCP's handshake at the client
        handshake_time_s: f64 ["s"],
        /// from start to the end of the handshake at the client
        tls_handshake_time_s: f64 ["s"],
        /// bytes of the client's flights
        client_bytes: u64 ["B"],
        /// bytes of the server's flights, without session tickets
        server_bytes: u64 ["B"],
        /// data segments that the server sent before the handshake was complete at the client, retransmissions included
        server_segments: u32 ["segments"],
        /// data segments retransmitted by both ends until then
        retransmissions: u32 ["segments"],
        /// retransmission timeouts of both ends until then
        timeouts: u32,
        /// 0 a full handshake, 1 a resumed one, 2 a resumed one with early data (0-RTT)
        resumption: u8,
        /// 1 if it was complete before the end of the run, else 0
        completed: u8,
    }
}

table! {
    /// A link during an interval.
    LinkInterval = "links" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the link; its reverse direction ends in .reverse
        link: u16 [names],
        /// start of the meter interval
        interval_start_s: f64 ["s"],
        /// length of the interval
        interval_s: f64 ["s"],
        /// packets that arrived at the link
        offered_packets: u64 ["packets"],
        /// packets that the queue dropped
        dropped_packets: u64 ["packets"],
        /// packets that the queue marked (ECN)
        marked_packets: u64 ["packets"],
        /// packets lost after transmission
        lost_packets: u64 ["packets"],
        /// packets that overtook one transmitted earlier
        reordered_packets: u64 ["packets"],
        /// packets that reached the far end twice
        duplicated_packets: u64 ["packets"],
        /// packets whose transmission ended in the interval
        sent_packets: u64 ["packets"],
        /// bytes of these packets, headers included
        sent_bytes: u64 ["B"],
        /// time during which the link transmitted
        busy_s: f64 ["s"],
        /// waiting packets, time average over the interval
        queue_mean_packets: f64 ["packets"],
        /// maximum number of waiting packets
        queue_max_packets: u32 ["packets"],
    }
}

table! {
    /// Datagrams that one endpoint of a client's application sent to the other. Times are NaN if nothing arrived.
    StreamReport = "streams" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// client of the application, or user of the population, from 0
        client: u32,
        /// 1 if the server sent the datagrams, 0 if the client did
        from_server: u8,
        /// time at which the first was sent
        start_s: f64 ["s"],
        /// datagrams sent
        packets_sent: u32 ["packets"],
        /// bytes of these packets, headers included
        bytes_sent: u64 ["B"],
        /// datagrams that arrived before the end of the run
        packets_received: u32 ["packets"],
        /// datagrams dropped or lost; the others were in flight at the end
        packets_lost: u32 ["packets"],
        /// datagrams received after their deadline or playout time
        packets_late: u32 ["packets"],
        /// datagrams received after one that was sent later
        packets_reordered: u32 ["packets"],
        /// one-way delay, mean over the datagrams received
        delay_mean_s: f64 ["s"],
        /// minimum
        delay_min_s: f64 ["s"],
        /// median; the error of a quantile is at most 0.5%
        delay_p50_s: f64 ["s"],
        /// 95th percentile
        delay_p95_s: f64 ["s"],
        /// 99th percentile
        delay_p99_s: f64 ["s"],
        /// maximum
        delay_max_s: f64 ["s"],
        /// interarrival jitter (RFC 3550 section 6.4.1), mean over the arrivals
        jitter_mean_s: f64 ["s"],
        /// maximum interarrival jitter
        jitter_max_s: f64 ["s"],
        /// mean length of a run of lost or late datagrams, divided by that of independent losses (BurstR of ITU-T
        /// G.107); at least 1
        burst_ratio: f64,
        /// voice: mouth-to-ear delay (coding, path and playout)
        mouth_to_ear_s: f64 ["s"],
        /// voice: transmission rating factor R (ITU-T G.107)
        rating: f64,
        /// voice: mean opinion score (ITU-T G.107 annex B), 1 to 4.5
        mos: f64,
    }
}

table! {
    /// A user of a population and the user's path.
    User = "users" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// user of the replicate, from 0; `client` of the other tables
        client: u32,
        /// access network of the user, from 0; null if unknown
        subnet: u32 = NO_SUBNET,
        /// row of the table of paths, from 0; null if the path was drawn
        row: u32 = NO_ROW,
        /// number of real users that this user represents
        weight: f64,
        /// RTT without queueing; for observed traffic, the minimum RTT
        rtt_s: f64 ["s"],
        /// maximum RTT of observed traffic; else null
        max_rtt_s: f64 ["s"] = f64::NAN,
        /// downlink rate; null if unknown
        down_bps: f64 ["bit/s"],
        /// uplink rate; null if unknown
        up_bps: f64 ["bit/s"],
        /// queue before the downlink; null if unknown
        buffer_bytes: u64 ["B"],
        /// loss probability of a packet on the downlink; null if unknown
        loss: f64,
    }
}

table! {
    /// Counts and sums over the transfers or pages of a bucket. Integers, so partial results merge exactly in any
    /// order.
    Aggregate = "aggregates" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// counted object: "transfer" or "page"
        unit: u8 [names],
        /// quantity of the bucket: "all", "rtt_s", "down_bps", "bdp_bytes" or "segments"
        dimension: u8 [names],
        /// bucket of that quantity, from 0: up to the first edge; 0 for all
        bucket: u16,
        /// transfers or pages
        count: u64,
        /// of these, completed
        completed: u64,
        /// sum of the completion times of completed ones
        completion_ns_sum: i64 ["ns"],
        .. sums: Sums {
            /// bytes requested
            bytes: u64 ["B"],
            /// data segments sent, retransmissions included
            segments_sent: u64 ["segments"],
            /// data segments retransmitted
            retransmissions: u64 ["segments"],
            /// retransmission timeouts
            timeouts: u64,
            /// transfers or pages with at least one retransmission
            with_retransmission: u64,
            /// data segments sent before the first ACK of data
            first_flight_segments: u64 ["segments"],
            /// segments of the first flights that a queue dropped or a link lost
            first_flight_lost_segments: u64 ["segments"],
            /// transfers or pages with a dropped or lost segment of a first flight
            with_first_flight_loss: u64,
        }
    }
}

table! {
    /// A bin of the completion times of a bucket.
    HistogramBin = "histograms" {
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the application
        application: u16 [names],
        /// counted object: "transfer" or "page"
        unit: u8 [names],
        /// quantity of the bucket: "all", "rtt_s", "down_bps", "bdp_bytes" or "segments"
        dimension: u8 [names],
        /// bucket of that quantity, from 0: up to the first edge; 0 for all
        bucket: u16,
        /// bin b: completion times above 1.01^(b-1) ns, up to 1.01^b ns
        bin: i32,
        /// completed transfers or pages in the bin
        count: u64,
    }
}

table! {
    /// A segment at one point of its path.
    SegmentEvent = "segments" {
        /// time since the start of the run
        time_ns: i64 ["ns"],
        /// replicate of the experiment, from 0
        replicate: u32,
        /// connection of the replicate, from 0
        connection: u32,
        /// 0 sent by an endpoint, 1 received by one, 2 dropped by a queue, 3 lost on a link
        event: u8,
        /// 1 if the server sent the segment
        from_server: u8,
        /// index of the link of a drop or loss, else null
        link: u16 = NO_LINK,
        /// sequence number relative to the sender's initial one
        seq: u32 ["B"],
        /// payload
        length: u32 ["B"],
        /// acknowledgment number relative to the peer's initial sequence number
        ack: u32 ["B"],
        /// advertised receive window
        window_bytes: u64 ["B"],
        /// cwnd of the endpoint that sent the segment (event 0) or received it (event 1, after processing)
        cwnd_segments: f64 ["segments"],
        /// ssthresh of the same endpoint
        ssthresh_segments: f64 ["segments"],
        /// recovery state of the same endpoint: 0 open, 1 disorder, 2 window reduced, 3 fast recovery, 4 loss (Linux's
        /// tcpi_ca_state); null in a capture
        recovery_state: u8 = UNKNOWN_STATE,
        /// TCP flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, ECE 64, CWR 128
        flags: u8,
        /// 1 for a retransmission
        retransmission: u8,
        /// ECN bits of the IP header: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced
        ecn: u8,
        /// 1 if there is a timestamps option
        has_timestamps: u8,
        /// its TSval, else 0
        ts_value: u32 ["ms"],
        /// its TSecr, else 0
        ts_echo: u32 ["ms"],
        /// ranges in the SACK option
        sack_count: u8,
        /// start of range 0, relative as `ack` is; 0 without one
        sack_left_0: u32 ["B"],
        /// first sequence number after it
        sack_right_0: u32 ["B"],
        /// start of range 1, relative as `ack` is; 0 without one
        sack_left_1: u32 ["B"],
        /// first sequence number after it
        sack_right_1: u32 ["B"],
        /// start of range 2, relative as `ack` is; 0 without one
        sack_left_2: u32 ["B"],
        /// first sequence number after it
        sack_right_2: u32 ["B"],
        /// start of range 3, relative as `ack` is; 0 without one
        sack_left_3: u32 ["B"],
        /// first sequence number after it
        sack_right_3: u32 ["B"],
        /// MSS option, on a SYN; null without one
        mss: u16 ["B"] = 0,
        /// shift of the window scale option, on a SYN; null without one
        window_scale: u8 = NO_WINDOW_SCALE,
        /// 1 if there is a SACK-permitted option
        sack_permitted: u8,
        /// Quick-Start: 0 none, 1 request, 2 request without a router's approval, 3 report
        quick_start: u8,
        /// rate code N of the option (40 kbit/s x 2^N); 0: refused, or none
        quick_start_rate: u8,
        /// rate code of a Quick-Start response; null without one
        quick_start_response: u8 = NO_RESPONSE,
    }
}

table! {
    /// A change of a sender's congestion state, or what explains one.
    SenderEventRow = "sender_events" {
        /// time since the start of the run
        time_ns: i64 ["ns"],
        /// replicate of the experiment, from 0
        replicate: u32,
        /// connection of the replicate, from 0
        connection: u32,
        /// 1 if it is the server's
        from_server: u8,
        /// congestion state before, as in qlog's congestion_state_updated: "slow_start", "congestion_avoidance" or
        /// "recovery"
        old_state: u8 [names],
        /// congestion state after; the same for a trigger that does not change it
        new_state: u8 [names],
        /// "ssthresh" (cwnd reached it); of an end of slow start also "ack_train" and "delay" (HyStart),
        /// "conservative_slow_start" (HyStart++), "queue" (Vegas), "full_pipe" (BBR), "startup" (the scheme) or
        /// "controller"; "loss", "tail_loss", "ecn" or "timeout"; "recovered"; "undo" (it was spurious); "idle_restart";
        /// "application_limited" (RFC 2861); "probe" (of the tail); "window_probe"
        trigger: u8 [names],
        /// cwnd after it
        cwnd_segments: f64 ["segments"],
        /// ssthresh after it; NaN if nothing has set it
        ssthresh_segments: f64 ["segments"],
    }
}

table! {
    /// A packet at a link.
    Crossing = "crossings" {
        /// arrival of the packet at the link, since the start of the run
        time_ns: i64 ["ns"],
        /// replicate of the experiment, from 0
        replicate: u32,
        /// name of the link; its reverse direction ends in .reverse
        link: u16 [names],
        /// connection of the replicate; null after both endpoints have closed it
        connection: u32 = NO_CONNECTION,
        /// 1 if the server sent the packet
        from_server: u8,
        /// size of the packet, headers included
        bytes: u32 ["B"],
        /// 1 delivered, 2 dropped by the queue, 3 lost after transmission
        event: u8,
        /// start of transmission, end of waiting; time_ns if dropped
        start_ns: i64 ["ns"],
        /// end of transmission; time_ns if dropped
        end_ns: i64 ["ns"],
    }
}

/// The tables by name.
pub const TABLES: &[(&str, &[Declared])] = &[
    (Transfer::TABLE, Transfer::COLUMNS),
    (Page::TABLE, Page::COLUMNS),
    (Handshake::TABLE, Handshake::COLUMNS),
    (LinkInterval::TABLE, LinkInterval::COLUMNS),
    (StreamReport::TABLE, StreamReport::COLUMNS),
    (User::TABLE, User::COLUMNS),
    (Aggregate::TABLE, Aggregate::COLUMNS),
    (HistogramBin::TABLE, HistogramBin::COLUMNS),
    (SegmentEvent::TABLE, SegmentEvent::COLUMNS),
    (SenderEventRow::TABLE, SenderEventRow::COLUMNS),
    (Crossing::TABLE, Crossing::COLUMNS),
];

/// Seconds of a moment in nanoseconds.
pub fn seconds(time: u64) -> f64 {
    time as f64 / 1e9
}

/// Seconds from one moment to another, if that came.
pub fn seconds_between(from: u64, to: Option<u64>) -> f64 {
    to.map_or(f64::NAN, |to| seconds(to - from))
}

#[cfg(test)]
mod tests {
    use super::TABLES;

    #[test]
    fn a_column_of_names_has_no_value_for_null() {
        for column in TABLES.iter().flat_map(|(_, columns)| *columns) {
            assert!(!(column.is_name && column.null.is_some()), "{column:?}");
        }
    }
}
