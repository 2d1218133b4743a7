//! The receiver's fields of every segment: its acknowledgment and its window. Also: when an update of the window
//! is worth a segment.

use crate::connection::handshake::LARGEST_FIELD;
use crate::connection::{Endpoint, State, due, feature};
use crate::receiver::Memory;
use crate::receiver::window::{GrowingWindow, Selected};
use crate::segment::{Flags, Segment};
use crate::sequence::{SeqNum, wire};
use crate::{Deadline, Nanos};

impl Endpoint {
    /// A segment without payload.
    #[inline]
    pub(crate) fn bare_segment(&mut self, now: Nanos, position: SeqNum, into: &mut Segment) {
        self.pace_bare(now);
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
        let Some(selected) = self.selected_window() else {
            return self.fixed_edge().saturating_sub(self.rcv.nxt);
        };
        if selected.is_tight {
            if let Some(memory) = self.extras.memory_mut() {
                memory.edge_is_current = false;
                if let Some(arrivals) = &mut memory.arrivals {
                    arrivals.end_quick();
                }
            }
        }
        selected.bytes
    }

    /// That of a window that grows.
    #[inline]
    fn selected_window(&self) -> Option<Selected> {
        let Memory { window: Some(window), segment_size, .. } = self.extras.memory()? else { return None };
        Some(window.select(segment_size.bytes, self.window_in_force(), self.scaling.rcv_shift))
    }

    /// The window field of a segment that leaves now.
    #[inline]
    fn announce_window(&mut self) -> u16 {
        if self.features & feature::RECEIVER == 0 || !self.move_growing_edge() {
            self.move_fixed_edge();
        }
        (self.rcv.window() >> self.scaling.rcv_shift).min(u64::from(LARGEST_FIELD)) as u16
    }

    /// Moves the right edge of a window that grows; false if the window is of fixed size.
    // Without scaling the selected window depends on the one in force, which an announcement changes.
    #[inline(never)]
    fn move_growing_edge(&mut self) -> bool {
        let is_scaled = self.scaling.rcv_shift > 0;
        let Some(Memory { window: Some(_), edge_is_current, .. }) = self.extras.memory_mut() else { return false };
        if std::mem::replace(edge_is_current, is_scaled) {
            let repeats = |now: Selected| !now.is_tight && self.edge_of(now.bytes) == self.rcv.edge;
            debug_assert!(self.selected_window().is_some_and(repeats), "what changes the window says so");
        } else {
            let selected = self.select_window();
            self.rcv.edge = self.edge_of(selected);
        }
        true
    }

    /// Right edge of a window that grows and has room for `selected` bytes, as the next segment announces it.
    // Linux, tcp_select_window: never less than is left of the one in force, rounded up to units of the field.
    fn edge_of(&self, selected: u64) -> SeqNum {
        let last = (1 << self.scaling.rcv_shift) - 1;
        let left = (self.rcv.window() + last) >> self.scaling.rcv_shift << self.scaling.rcv_shift;
        self.rcv.nxt + selected.max(left)
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
