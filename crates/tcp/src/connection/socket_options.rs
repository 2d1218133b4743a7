//! Socket options of an open connection: requests of an application other than reading and writing.

use super::{Endpoint, due};
use crate::sender::nagle::Nagle;
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
    fn after(&self, position: SeqNum) -> Option<SeqNum> {
        self.0.get(self.0.partition_point(|end| *end <= position)).copied()
    }
}

impl Endpoint {
    /// Replaces the rule for small segments (`TCP_NODELAY` turns it off).
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.snd.small.nagle = nagle;
        self.due |= due::STREAM;
    }

    /// True if a last segment that is not full waits for more data (`TCP_CORK`).
    pub fn set_cork(&mut self, on: bool) {
        self.snd.small.corked = on;
        self.due |= due::STREAM;
    }

    /// Ends a record after the data written so far (`MSG_EOR`): no segment will span this place, neither an original
    /// nor a retransmission.
    pub fn end_record(&mut self) {
        let end = self.snd.wanted_end();
        let ends = &mut self.extras.get_or_new(&self.profile, self.snd.iss).record_ends.0;
        if ends.last() != Some(&end) {
            ends.push(end);
        }
    }

    /// Last possible end of a segment that begins at `position`: the end of its record, or of the data.
    #[inline]
    pub(crate) fn record_end(&self, position: SeqNum) -> SeqNum {
        match self.extras.record_ends() {
            None => self.snd.data_end,
            Some(ends) => ends.after(position).map_or(self.snd.data_end, |end| end.min(self.snd.data_end)),
        }
    }
}
