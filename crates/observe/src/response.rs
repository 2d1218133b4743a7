//! Data from the server since a request: bytes, segments and times.

use crate::stream::SeqNum;

/// Data from the server since the last request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Response {
    pub(crate) start: i64,
    pub(crate) begin: SeqNum,
    pub(crate) end: SeqNum,
    pub(crate) first_sent: i64,
    pub(crate) last_sent: i64,
    pub(crate) first_acked: Option<i64>,
    pub(crate) last_acked: Option<i64>,
    pub(crate) segments: u32,
    pub(crate) retransmissions: u32,
}

impl Response {
    pub(crate) fn new(start: i64, begin: SeqNum, time: i64) -> Self {
        Self { start, begin, end: begin, first_sent: time, last_sent: time, ..Self::default() }
    }

    /// Segments that end at a position are sent.
    pub(crate) fn send(&mut self, segments: u32, is_retransmission: bool, end: SeqNum, time: i64) {
        self.segments += segments;
        self.retransmissions += if is_retransmission { segments } else { 0 };
        if end > self.end {
            self.end = end;
            self.last_sent = time;
            self.last_acked = None;
        }
    }

    /// The client has all before a position.
    pub(crate) fn acknowledge(&mut self, position: SeqNum, time: i64) {
        if position > self.begin {
            self.first_acked.get_or_insert(time);
            if position >= self.end {
                self.last_acked.get_or_insert(time);
            }
        }
    }
}
