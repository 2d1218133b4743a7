//! The purpose of a connection.

use firstflight_tcp::{Deadline, Nanos};

use crate::{
    outbound::Piece,
    report::{End, Report},
};

/// One end of a conversation over a connection. Each call may write, close and report.
pub trait Application {
    /// The connection is opened by us: data written now is sent after the handshake.
    fn open(&mut self, _now: Nanos, _conversation: &mut Conversation) {}

    /// The handshake is over.
    fn connected(&mut self, _now: Nanos, _conversation: &mut Conversation) {}

    /// The next bytes of the peer's stream.
    fn received(&mut self, now: Nanos, bytes: &[u8], conversation: &mut Conversation);

    /// The peer sends no more.
    fn peer_closed(&mut self, now: Nanos, conversation: &mut Conversation);

    /// The connection is over. Data written now is lost.
    fn over(&mut self, _now: Nanos, _end: End, _conversation: &mut Conversation) {}

    /// When the application gives up.
    fn patience(&self) -> Deadline {
        Deadline::NEVER
    }
}

/// An application's requests to its connection.
#[derive(Debug, Default)]
pub struct Conversation {
    pub(crate) written: Vec<Piece>,
    pub(crate) close: bool,
    pub(crate) reports: Vec<Report>,
}

impl Conversation {
    /// Sends these bytes after all others.
    pub fn write(&mut self, bytes: impl Into<Box<[u8]>>) {
        self.written.push(Piece::Bytes(bytes.into()));
    }

    /// Sends this number of bytes of the stream that [`firstflight_segment::write_payload`] makes.
    pub fn write_pattern(&mut self, length: u64) {
        self.written.push(Piece::Pattern(length));
    }

    /// Closes our side after the written data.
    pub fn close(&mut self) {
        self.close = true;
    }

    /// Notifies the host's owner.
    pub fn report(&mut self, report: Report) {
        self.reports.push(report);
    }
}
