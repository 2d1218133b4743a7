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
}

impl Secures {
    pub(crate) fn new(handshake: tls::Handshake) -> Self {
        Self { handshake, sent: None, asked: 0, tickets: None }
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
            exchanges: self.handshake.exchanges(),
            handshake_time_s,
            version: match self.handshake.version() {
                Some(Version::V13) => 13,
                Some(Version::UpTo12) => 12,
                None => 0,
            },
        })
    }
}
