//! The rows of connections and responses. Times are nanoseconds since 1970, durations seconds, NaN where unknown.

use firstflight_records::{NamedColumns, Row, table};

/// Segments of a first flight that is not known.
pub const UNKNOWN: u32 = u32::MAX;

table! {
    /// A connection on which the server sent something.
    ConnectionRow = "connections" {
        /// Counted from 0 in the order of their first packets; some have no row.
        connection: u32,
        /// Its first packet.
        start_ns: i64,
        /// The client's network: of IPv4 the /24, of IPv6 the /48, as a number that differs between the two.
        subnet: u64,
        /// The server's port.
        server_port: u16,
        /// Least round trip of the whole path.
        rtt_s: f64,
        /// Largest round trip of the whole path.
        max_rtt_s: f64,
        /// Most bytes of data in a packet, as the ends agreed; assumed if their handshake was not seen.
        mss: u16,
        /// Rate of the path towards the client, headers included, from times in which its slowest link was busy.
        down_bps: f64,
        /// The most that came through on average during a response, headers included: it has at least this rate.
        min_down_bps: f64,
        /// 1 if the capture was taken nearer to the client than to the server.
        at_client: u8,
        /// 1 if its first packet is in the capture.
        from_start: u8,
        /// Data segments sent before the first ACK of the first response after a handshake of TLS, session tickets that were
        /// in progress with it included, or [`UNKNOWN`].
        answer_flight_segments: u32,
        /// 1 if it is TLS.
        tls: u8,
        /// 1 if the client asked before the handshake of TLS was over, which the first response then includes.
        early_data: u8,
    }
}

table! {
    /// Data from the server between two requests.
    ResponseRow = "responses" {
        /// Of [`ConnectionRow`].
        connection: u32,
        /// Counted from 0.
        object: u32,
        /// The client opened the connection or, for further ones and over TLS, asked.
        start_ns: i64,
        /// From the start until the client's handshake was complete; NaN for further ones and over TLS.
        handshake_time_s: f64,
        /// From the start until the first byte reached the client.
        first_byte_time_s: f64,
        /// From the start until the last byte reached the client.
        completion_time_s: f64,
        /// Bytes that the server sent.
        bytes: u64,
        /// Of these, acknowledged.
        delivered_bytes: u64,
        /// Data segments, retransmissions included.
        segments_sent: u32,
        /// Retransmitted ones.
        retransmissions: u32,
        /// Data segments sent before the first ACK of data on the connection, 0 for further ones, or [`UNKNOWN`].
        first_flight_segments: u32,
        /// Of these, retransmitted, as what is lost is; likewise.
        first_flight_lost_segments: u32,
        /// Times from an ACK with ECE to the server's CWR, or [`UNKNOWN`] with accurate ECN.
        ecn_cwnd_reductions: u32,
        /// 1 if all bytes were acknowledged.
        completed: u8,
    }
}

table! {
    /// The TLS handshake of a connection, which is no response: what the server sent before the first one.
    HandshakeRow = "handshakes" {
        /// Of [`ConnectionRow`].
        connection: u32,
        /// Bytes that the server sent, session tickets included.
        bytes: u64,
        /// Data segments, retransmissions included.
        segments_sent: u32,
        /// Retransmitted ones.
        retransmissions: u32,
        /// Bytes of the longest of the server's flights, each what it sent between two of the client's, without tickets;
        /// 0 if the client answered none.
        flight_bytes: u64,
        /// How often the client waited for the server before it could ask.
        exchanges: u8,
        /// From the client's first data until its Finished (1.3) or its request (1.2); NaN if that was not seen.
        time_s: f64,
        /// 1 if keys of an earlier connection were used, 0 if not, 2 if that was not seen.
        resumed: u8,
        /// Bytes of the ClientHello.
        client_hello_bytes: u32,
        /// Bytes of its key shares; 0 if not seen.
        key_share_bytes: u32,
        /// From the client's SYN until its TCP handshake was complete; NaN if that was not seen.
        handshake_time_s: f64,
        /// 13 for TLS 1.3, 12 for 1.2 and older, 0 if that was not seen.
        version: u8,
    }
}

table! {
    /// A TCP segment of one connection, as it passed the place of the capture.
    SegmentRow = "segments" {
        /// Since 1970.
        time_ns: i64,
        /// 1 if the server sent it.
        from_server: u8,
        /// Relative, as everywhere here: the first byte of data has 1.
        seq: u32,
        /// Bytes of data, of many segments if the sender's card was to divide them.
        length: u32,
        /// Likewise relative; 0 without the flag ACK.
        ack: u32,
        /// Of TCP.
        flags: u16,
    }
}

/// Rows that are ready.
#[derive(Debug, Default)]
pub struct Batch {
    /// Connections that ended or fell silent.
    pub connections: Vec<ConnectionRow>,
    /// Responses, of connections whose row may be yet to come.
    pub responses: Vec<ResponseRow>,
    /// Handshakes of TLS, likewise.
    pub handshakes: Vec<HandshakeRow>,
}

impl Batch {
    pub(crate) fn rows(&self) -> usize {
        self.connections.len() + self.responses.len() + self.handshakes.len()
    }

    /// The tables by name.
    pub fn into_tables(self) -> [NamedColumns; 3] {
        [Row::columns(&self.connections), Row::columns(&self.responses), Row::columns(&self.handshakes)]
    }
}
