//! Socket options of an open connection: requests of an application other than reading and writing.

use super::{Endpoint, due};
use crate::profile::Nagle;
use crate::sequence::SeqNum;

/// Ends of records, in order: places that no segment spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordEnds(Vec<SeqNum>);

impl RecordEnds {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cold]
    pub fn after(&self, position: SeqNum) -> Option<SeqNum> {
        self.0.get(self.0.partition_point(|end| *end <= position)).copied()
    }
}

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
        let end = self.sender.snd().wanted_end();
        let ends = &mut self.conn.extras.get_or_new(&self.conn.profile, self.sender.snd().iss).record_ends.0;
        if ends.last() != Some(&end) {
            ends.push(end);
        }
    }

    /// Whether acknowledgments are sent immediately or delayed to be piggybacked on data, from now until the policy
    /// changes that (`TCP_QUICKACK`). Without effect unless the policy is [`Adaptive`](crate::AckPolicy::Adaptive).
    pub fn set_quick_ack(&mut self, quick: bool) {
        self.receiver.set_quick_ack(&mut self.conn, quick);
    }
}
