//! Socket options of an open connection: requests of an application other than reading and writing.

use super::Endpoint;
use super::shared::due;
use crate::profile::Nagle;

impl Endpoint {
    /// Replaces the rule for small segments (`TCP_NODELAY` turns it off).
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.sender.small_segments().nagle = nagle;
        self.conn.due |= due::STREAM;
    }

    /// True if a last segment that is not full waits for more data (`TCP_CORK`).
    pub fn set_cork(&mut self, on: bool) {
        self.sender.small_segments().corked = on;
        self.conn.due |= due::STREAM;
    }

    /// Ends a record after the data written so far (`MSG_EOR`): no segment will span this place, neither an original
    /// nor a retransmission.
    pub fn end_record(&mut self) {
        self.sender.end_record(&self.conn);
    }

    /// Whether acknowledgments are sent immediately or delayed to be piggybacked on data, from now until the policy
    /// changes that (`TCP_QUICKACK`). Without effect unless the policy is [`Adaptive`](crate::AckPolicy::Adaptive).
    pub fn set_quick_ack(&mut self, quick: bool) {
        self.receiver.set_quick_ack(&mut self.conn, quick);
    }
}
