//! What every segment says of the receiver: its acknowledgement and its window; and when an update of the window is
//! worth a segment.

use crate::connection::handshake::LARGEST_FIELD;
use crate::connection::{Endpoint, State, due};
use crate::segment::{Flags, Segment};
use crate::sequence::{Position, wire};
use crate::{NEVER, Nanos};

impl Endpoint {
    /// A segment without payload.
    #[inline]
    pub(crate) fn bare_segment(&mut self, now: Nanos, position: Position, into: &mut Segment) {
        self.segment(now, position, 0, false, into);
    }

    /// A segment of a synchronised connection. Every one acknowledges, so no acknowledgement is due after it, unless the
    /// payload leaves no room for what it should report. Options are only added, as
    /// [`poll_transmit_into`](Self::poll_transmit_into) says.
    #[inline]
    pub(crate) fn segment(
        &mut self,
        now: Nanos,
        position: Position,
        payload_bytes: u32,
        retransmission: bool,
        into: &mut Segment,
    ) {
        self.unacknowledged_segments = 0;
        self.ack_deadline = NEVER;
        self.stats.segments_sent += 1;
        into.seq = wire(position);
        into.ack = wire(self.rcv_nxt);
        into.payload_bytes = payload_bytes;
        into.window = self.announce_window();
        into.flags = Flags::ACK;
        into.retransmission = retransmission;
        if self.features == 0 || self.add_options(now, into) {
            self.due &= !(due::ACK | due::ACK_FIRST);
        }
    }

    /// Where the right edge of the receive window could be.
    #[inline]
    pub(crate) fn possible_edge(&self) -> Position {
        match self.extras.growing_window() {
            None => self.read_next + u64::from(self.profile.receive_window_bytes),
            Some(growing) => growing.edge(self.rcv_nxt, self.buffered_bytes(), self.rcv_shift),
        }
    }

    /// The window field of a segment that leaves now.
    #[inline]
    fn announce_window(&mut self) -> u16 {
        let (edge, buffer) = match self.extras.growing_window() {
            // Linux, __tcp_select_window: what a shift would cut off is announced.
            Some(growing) if self.rcv_shift > 0 => {
                let possible = growing.edge(self.rcv_nxt, self.buffered_bytes(), self.rcv_shift).max(self.rcv_edge);
                // Rounded up to units of the field, without the division of `next_multiple_of`.
                let last = (1 << self.rcv_shift) - 1;
                let field = (possible.saturating_sub(self.rcv_nxt) + last) >> self.rcv_shift;
                self.rcv_edge = self.rcv_nxt + (field << self.rcv_shift);
                return field.min(u64::from(LARGEST_FIELD)) as u16;
            }
            Some(growing) => (growing.edge(self.rcv_nxt, self.buffered_bytes(), 0), growing.limit()),
            None => {
                let buffer = self.profile.receive_window_bytes;
                (self.read_next + u64::from(buffer), buffer)
            }
        };
        // RFC 9293 §3.8.6.2.2, receiver's SWS avoidance: the edge moves by min (half the buffer, MSS) or not at all.
        let step = (buffer / 2).min(self.mss);
        if edge >= self.rcv_edge + u64::from(step) {
            self.rcv_edge = edge;
        }
        let window = self.rcv_edge.saturating_sub(self.rcv_nxt);
        (window >> self.rcv_shift).min(u64::from(LARGEST_FIELD)) as u16
    }

    /// Makes an acknowledgement due if the peer may be waiting for a larger window.
    #[inline]
    pub(crate) fn update_window_if_needed(&mut self) {
        let opened = self.possible_edge().saturating_sub(self.rcv_edge);
        let buffer = u64::from(self.profile.receive_window_bytes);
        let mss = u64::from(self.mss);
        let left = self.rcv_edge.saturating_sub(self.rcv_nxt);
        // BSD updates whenever two segments or half of the buffer are free. Here that counts only while the peer cannot
        // send two segments, so that an application that reads at once does not upset the acknowledgement policy.
        let wanted = match self.extras.growing_window() {
            None => left < 2 * mss && opened >= (2 * mss).min(buffer / 2),
            // Linux, tcp_cleanup_rbuf: when the window is down to half and would at least double.
            Some(growing) => opened > 0 && 2 * left <= u64::from(growing.clamp()) && opened >= left,
        };
        if wanted && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.due |= due::ACK;
        }
    }
}
