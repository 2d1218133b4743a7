//! The part of a connection that is a handshake of TLS, in bytes and segments.

use crate::{
    response::Response,
    rows::HandshakeRow,
    stream::SeqNum,
    tls::{self, Version},
};

/// The handshake of TLS, and its part of the server's bytes.
#[derive(Debug)]
pub(crate) struct Secures {
    pub(crate) handshake: tls::Handshake,
    /// Data from the server before the client's request.
    pub(crate) sent: Option<Response>,
    /// When the client asked.
    pub(crate) asked: i64,
    /// Data that may be session tickets or the answer.
    pub(crate) tickets: Option<Response>,
    /// When the client said hello, and when it had all of the handshake.
    began: i64,
    complete: Option<i64>,
    /// The end of the server's last flight, and the bytes of its longest.
    flight_end: SeqNum,
    flight_bytes: i64,
}

impl Secures {
    pub(crate) fn new(handshake: tls::Handshake, began: i64) -> Self {
        Self { handshake, sent: None, asked: 0, tickets: None, began, complete: None, flight_end: 0, flight_bytes: 0 }
    }

    /// The client has sent new data, which ends a flight of the server, up to `sent`.
    pub(crate) fn end_flight(&mut self, sent: SeqNum, time: i64) {
        if self.complete.is_none() {
            self.flight_bytes = self.flight_bytes.max(sent - self.flight_end);
            self.flight_end = sent;
            if self.handshake.is_complete() {
                self.complete = Some(time);
            }
        }
    }

    /// The message that a segment at a position belongs to.
    pub(crate) fn part_at(&mut self, start: SeqNum) -> Option<&mut Response> {
        match &mut self.tickets {
            Some(tickets) if start >= tickets.begin => Some(tickets),
            _ => self.sent.as_mut(),
        }
    }

    /// The row of the handshake, which is over; None without anything from the server. `handshake_time_s`: of TCP.
    pub(crate) fn row(self, connection: u32, handshake_time_s: f64) -> Option<HandshakeRow> {
        let mut sent = self.sent?;
        if let Some(tickets) = self.tickets {
            sent.segments += tickets.segments;
            sent.retransmissions += tickets.retransmissions;
            sent.end = tickets.end;
        }
        Some(HandshakeRow {
            connection,
            bytes: (sent.end - sent.begin) as u64,
            segments_sent: sent.segments,
            retransmissions: sent.retransmissions,
            flight_bytes: self.flight_bytes as u64,
            exchanges: self.handshake.exchanges,
            time_s: self.complete.map_or(f64::NAN, |time| (time - self.began).max(0) as f64 / 1e9),
            resumed: self.handshake.resumed.map_or(2, u8::from),
            client_hello_bytes: self.handshake.hello.bytes,
            key_share_bytes: self.handshake.hello.key_share_bytes,
            handshake_time_s,
            version: match self.handshake.version() {
                Some(Version::V13) => 13,
                Some(Version::UpTo12) => 12,
                None => 0,
            },
        })
    }
}
