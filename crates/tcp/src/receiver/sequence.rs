//! The receive sequence variables (RFC 9293 §3.3.1), and the data that arrived ahead of RCV.NXT.

use super::reassembly::Reassembly;
use crate::sequence::{SeqNum, origin};
use std::num::NonZeroU64;

/// The positions of the peer's stream that matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveSequence {
    /// RCV.NXT: next position expected.
    pub nxt: SeqNum,
    /// Next position that the application will read.
    pub read_next: SeqNum,
    /// Right edge of the window announced (BSD: `rcv_adv`).
    pub edge: SeqNum,
    /// Position of the peer's FIN, once it arrived. None is 0.
    pub fin: Option<NonZeroU64>,
    /// Data that arrived ahead of a hole.
    pub reassembly: Reassembly,
    /// IRS: sequence number of the peer's SYN, once `nxt` says that it arrived.
    irs: u32,
    /// Data segments received in order since the last acknowledgment.
    pub unacknowledged_segments: u32,
}

impl ReceiveSequence {
    /// The peer's SYN arrived.
    pub fn begin(&mut self, irs: u32) {
        self.irs = irs;
        self.nxt = origin(irs) + 1;
        self.read_next = self.nxt;
    }

    /// The peer's initial sequence number, once its SYN arrived.
    #[inline]
    pub fn irs(&self) -> Option<u32> {
        (self.nxt > 0).then_some(self.irs)
    }

    /// Position of the first byte of the peer's stream, once its SYN arrived.
    #[inline]
    pub fn first(&self) -> Option<SeqNum> {
        self.irs().map(|irs| origin(irs) + 1)
    }

    /// This position, or that of the peer's FIN if that comes before.
    #[inline]
    pub fn up_to_fin(&self, position: SeqNum) -> SeqNum {
        self.fin.map_or(position, |fin| position.min(fin.get()))
    }

    /// Bytes received in order and not read yet.
    // The peer's FIN takes a position but is nothing to read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.up_to_fin(self.nxt) - self.read_next
    }

    /// Bytes of the announced window that are left.
    #[inline]
    pub fn window(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_fin_takes_a_position_but_is_nothing_to_read() {
        let mut rcv = ReceiveSequence::default();
        assert_eq!((rcv.irs(), rcv.first(), rcv.readable()), (None, None, 0));
        rcv.begin(7);
        let first = rcv.first().unwrap();
        assert_eq!((rcv.irs(), rcv.readable()), (Some(7), 0));
        rcv.edge = first + 100;
        rcv.fin = NonZeroU64::new(first + 30);
        rcv.nxt = first + 31;
        assert_eq!((rcv.readable(), rcv.window()), (30, 69));
    }
}
