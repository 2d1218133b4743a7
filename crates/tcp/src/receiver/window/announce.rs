//! The receiver's fields of every segment: its acknowledgment and its window. Also: when an update of the window
//! is worth a segment.

use crate::connection::handshake::LARGEST_FIELD;
use crate::connection::{Endpoint, State, due, feature};
use crate::receiver::Memory;
use crate::receiver::window::GrowingWindow;
use crate::segment::{Flags, Segment};
use crate::sequence::{SeqNum, wire};
use crate::{Deadline, Nanos};

impl Endpoint {
    /// A segment without payload.
    #[inline]
    pub(crate) fn bare_segment(&mut self, now: Nanos, position: SeqNum, into: &mut Segment) {
        self.segment(now, position, 0, false, into);
    }

    /// A segment of a synchronized connection. Every one acknowledges, so no acknowledgment is due after it, unless the
    /// payload leaves no room for its options. Options are only added, as
    /// [`poll_transmit_into`](Self::poll_transmit_into) says.
    #[inline]
    pub(crate) fn segment(
        &mut self,
        now: Nanos,
        position: SeqNum,
        payload_bytes: u32,
        retransmission: bool,
        into: &mut Segment,
    ) {
        self.rcv.unacknowledged_segments = 0;
        self.timers.ack = Deadline::NEVER;
        self.stats.segments_sent += 1;
        into.seq = wire(position);
        into.ack = wire(self.rcv.nxt);
        into.payload_bytes = payload_bytes;
        into.window = self.announce_window();
        into.flags = Flags::ACK;
        into.retransmission = retransmission;
        if self.features == 0 || self.add_options(now, into) {
            self.due &= !(due::ACK | due::ACK_FIRST);
        }
    }

    /// Highest right edge of a receive window that does not grow.
    #[inline]
    fn fixed_edge(&self) -> SeqNum {
        self.rcv.read_next + u64::from(self.profile.receive_window_bytes)
    }

    /// The window that the buffer has room for, from RCV.NXT on.
    // Linux, __tcp_select_window: in less than half of the buffer, no more ACKs are quick.
    pub(crate) fn select_window(&mut self) -> u64 {
        let (in_force, shift) = (self.window_in_force(), self.scaling.rcv_shift);
        let Some(Memory { window: Some(window), is_announced, arrivals, segment_size, .. }) = self.extras.memory_mut()
        else {
            return self.fixed_edge().saturating_sub(self.rcv.nxt);
        };
        let selected = window.select(segment_size.bytes, in_force, shift);
        if selected.is_tight {
            *is_announced = false;
            if let Some(arrivals) = arrivals {
                arrivals.end_quick();
            }
        }
        selected.bytes
    }

    /// The window field of a segment that leaves now.
    #[inline]
    fn announce_window(&mut self) -> u16 {
        if self.features & feature::RECEIVER == 0 || !self.move_growing_edge() {
            self.move_fixed_edge();
        }
        (self.rcv.window() >> self.scaling.rcv_shift).min(u64::from(LARGEST_FIELD)) as u16
    }

    /// False if the window does not grow.
    // Without scaling the window also depends on the one in force, which this changes.
    #[inline(never)]
    fn move_growing_edge(&mut self) -> bool {
        let repeats = self.scaling.rcv_shift > 0;
        let Some(Memory { window: Some(_), is_announced, .. }) = self.extras.memory_mut() else { return false };
        if std::mem::replace(is_announced, repeats) {
            debug_assert_eq!(self.grown_edge(), self.rcv.edge, "nothing arrived and nothing was read");
        } else {
            self.rcv.edge = self.grown_edge();
        }
        true
    }

    /// Right edge of a window that grows, as the next segment announces it.
    // Linux, tcp_select_window: never less than is left of the one in force, rounded up to units of the field.
    fn grown_edge(&mut self) -> SeqNum {
        let last = (1 << self.scaling.rcv_shift) - 1;
        let left = (self.rcv.window() + last) >> self.scaling.rcv_shift << self.scaling.rcv_shift;
        self.rcv.nxt + self.select_window().max(left)
    }

    // RFC 9293 §3.8.6.2.2, receiver's SWS avoidance: the edge moves by min (half the buffer, MSS) or not at all.
    #[inline]
    fn move_fixed_edge(&mut self) {
        let edge = self.fixed_edge();
        let step = (self.profile.receive_window_bytes / 2).min(self.mss);
        if edge >= self.rcv.edge + u64::from(step) {
            self.rcv.edge = edge;
        }
    }

    /// Makes an acknowledgment due if the peer may be waiting for a larger window.
    #[inline]
    pub(crate) fn update_window_if_needed(&mut self) {
        let left = self.rcv.window();
        let wanted = match self.extras.growing_window().map(GrowingWindow::clamp) {
            None => {
                // BSD updates whenever two segments or half of the buffer are free. Here that counts only while the peer
                // cannot send two segments, so that an application that reads immediately does not disturb the
                // acknowledgment policy.
                let (mss, buffer) = (u64::from(self.mss), u64::from(self.profile.receive_window_bytes));
                let opened = self.fixed_edge().saturating_sub(self.rcv.edge);
                left < 2 * mss && opened >= (2 * mss).min(buffer / 2)
            }
            // Linux, tcp_cleanup_rbuf: when the window is down to half and would at least double.
            Some(clamp) => {
                self.due & due::ACK == 0 && 2 * left <= u64::from(clamp) && self.select_window() >= (2 * left).max(1)
            }
        };
        if wanted && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.due |= due::ACK;
        }
    }
}
