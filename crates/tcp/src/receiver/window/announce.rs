//! The receiver's fields of every segment: its acknowledgment and its window. Also: when an update of the window
//! is worth a segment.

use crate::connection::handshake::{LARGEST_FIELD, State, feature};
use crate::connection::shared::{Connection, due};
use crate::receiver::Receiver;
use crate::receiver::memory::Memory;
use crate::receiver::window::{GrowingWindow, Selected};
use crate::segment::{Flags, MOST_SACK_BLOCKS, Segment, SentAt};
use crate::sequence::{SeqNum, wire};
use crate::{Deadline, Nanos};

/// Bytes of a SACK option with padding, without those of its ranges, and of a range (RFC 2018 §3).
const SACK_BYTES: u32 = 4;
const BLOCK_BYTES: u32 = 8;

impl Receiver {
    /// A segment of a synchronized connection. Every one acknowledges, so no acknowledgment is due after it, unless the
    /// payload leaves no room for its options.
    #[inline]
    pub fn segment(
        &mut self,
        conn: &mut Connection,
        now: Nanos,
        position: SeqNum,
        payload_bytes: u32,
        retransmission: bool,
        into: &mut Segment,
    ) {
        self.unacknowledged_segments = 0;
        self.ack_timer = Deadline::NEVER;
        conn.stats.segments_sent += 1;
        into.seq = wire(position);
        into.ack = wire(self.nxt);
        into.payload_bytes = payload_bytes;
        into.window = self.announce_window(conn);
        into.flags = Flags::ACK;
        into.retransmission = retransmission;
        into.clear_options();
        if conn.handshake.is_plain() || self.add_options(conn, now, into) {
            conn.due &= !(due::ACK | due::ACK_FIRST);
        }
    }

    /// Highest right edge of a receive window that does not grow.
    fn fixed_edge(&self, conn: &Connection) -> SeqNum {
        self.read_next + u64::from(conn.profile.receive_window_bytes)
    }

    /// The window that the buffer has room for, from RCV.NXT on.
    // Linux, __tcp_select_window: in less than half of the buffer, no more ACKs are quick.
    pub(crate) fn select_window(&mut self, conn: &Connection) -> u64 {
        let Some(selected) = self.selected_window(conn) else {
            return self.fixed_edge(conn).saturating_sub(self.nxt);
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
    fn selected_window(&self, conn: &Connection) -> Option<Selected> {
        let Memory { window: Some(window), segment_size, .. } = self.extras.memory()? else { return None };
        Some(window.select(segment_size.bytes, self.window_in_force(), conn.handshake.scaling().rcv_shift))
    }

    /// The window field of a segment that leaves now.
    #[inline]
    fn announce_window(&mut self, conn: &Connection) -> u16 {
        if !conn.handshake.has(feature::RECEIVER) || !self.move_growing_edge(conn) {
            self.move_fixed_edge(conn);
        }
        (self.window() >> conn.handshake.scaling().rcv_shift).min(u64::from(LARGEST_FIELD)) as u16
    }

    /// Moves the right edge of a window that grows; false if the window is of fixed size.
    // Without scaling the selected window depends on the one in force, which an announcement changes.
    #[inline(never)]
    fn move_growing_edge(&mut self, conn: &Connection) -> bool {
        let is_scaled = conn.handshake.scaling().rcv_shift > 0;
        let Some(Memory { window: Some(_), edge_is_current, .. }) = self.extras.memory_mut() else { return false };
        if std::mem::replace(edge_is_current, is_scaled) {
            let repeats = |now: Selected| !now.is_tight && self.edge_of(conn, now.bytes) == self.edge;
            debug_assert!(self.selected_window(conn).is_some_and(repeats), "what changes the window says so");
        } else {
            let selected = self.select_window(conn);
            self.edge = self.edge_of(conn, selected);
        }
        true
    }

    /// Right edge of a window that grows and has room for `selected` bytes, as the next segment announces it.
    // Linux, tcp_select_window: never less than is left of the one in force, rounded up to units of the field.
    fn edge_of(&self, conn: &Connection, selected: u64) -> SeqNum {
        let last = (1 << conn.handshake.scaling().rcv_shift) - 1;
        let left = (self.window() + last) >> conn.handshake.scaling().rcv_shift << conn.handshake.scaling().rcv_shift;
        self.nxt + selected.max(left)
    }

    // RFC 9293 §3.8.6.2.2, receiver's SWS avoidance: the edge moves by min (half the buffer, MSS) or not at all.
    #[inline]
    fn move_fixed_edge(&mut self, conn: &Connection) {
        let edge = self.fixed_edge(conn);
        let step = (conn.profile.receive_window_bytes / 2).min(conn.handshake.mss());
        if edge >= self.edge + u64::from(step) {
            self.edge = edge;
        }
    }

    /// Makes an acknowledgment due if the peer may be waiting for a larger window.
    #[inline]
    pub(crate) fn update_window_if_needed(&mut self, conn: &mut Connection) {
        let left = self.window();
        let wanted = match self.extras.growing_window().map(GrowingWindow::clamp) {
            None => {
                // BSD updates whenever two segments or half of the buffer are free. Here that counts only while the peer
                // cannot send two segments, so that an application that reads immediately does not disturb the
                // acknowledgment policy.
                let (mss, buffer) = (u64::from(conn.handshake.mss()), u64::from(conn.profile.receive_window_bytes));
                let opened = self.fixed_edge(conn).saturating_sub(self.edge);
                left < 2 * mss && opened >= (2 * mss).min(buffer / 2)
            }
            // Linux, tcp_cleanup_rbuf: when the window is down to half and would at least double.
            Some(clamp) => {
                conn.due & due::ACK == 0
                    && 2 * left <= u64::from(clamp)
                    && self.select_window(conn) >= (2 * left).max(1)
            }
        };
        if wanted && matches!(conn.handshake.state(), State::Established | State::FinWait1 | State::FinWait2) {
            conn.due |= due::ACK;
        }
    }

    /// Completes a segment that leaves on a synchronized connection; false if there was no room for all blocks.
    #[inline(never)]
    fn add_options(&mut self, conn: &mut Connection, now: Nanos, segment: &mut Segment) -> bool {
        if let Some(memory) = self.extras.memory_mut() {
            memory.last_ack_sent = self.nxt;
            if conn.handshake.has(feature::TIMESTAMPS) {
                segment.timestamps = Some(memory.timestamps.option(now));
            }
        }
        if conn.handshake.has(feature::ACK_ONE_WAY) {
            segment.sent_at = Some(SentAt::new(now));
        }
        if conn.handshake.has(feature::ECN) {
            conn.ecn.mark(segment);
        }
        if conn.handshake.has(feature::PATH_OPTION) {
            segment.path_option = self.take_path_option(conn);
        }
        if conn.handshake.has(feature::ADAPTIVE_ACK) {
            self.note_departure(now, segment.payload_bytes > 0);
        }
        // Nothing to report, as nearly always, also without SACK.
        let wanted = if conn.handshake.has(feature::SACK) { self.reassembly.blocks(most_blocks(conn)) } else { 0 };
        if wanted == 0 {
            return true;
        }
        let room = if segment.payload_bytes == 0 {
            u32::MAX
        } else {
            conn.handshake.mss().saturating_sub(segment.payload_bytes)
        };
        let fitting = wanted.min((room.saturating_sub(SACK_BYTES) / BLOCK_BYTES) as usize);
        segment.sack = self.reassembly.report(fitting);
        fitting == wanted
    }

    /// Most payload of a segment that leaves now.
    // As Linux does, a segment makes room for the SACK option that it has to carry.
    pub fn payload_room(&self, conn: &Connection) -> u32 {
        if !conn.handshake.has(feature::SACK) { conn.handshake.mss() } else { self.payload_room_beside_sack(conn) }
    }

    fn payload_room_beside_sack(&self, conn: &Connection) -> u32 {
        match self.reassembly.blocks(most_blocks(conn)) {
            0 => conn.handshake.mss(),
            blocks => {
                let option = SACK_BYTES + BLOCK_BYTES * blocks as u32;
                // A segment that is hardly larger than the option does without.
                if conn.handshake.mss() >= 2 * option { conn.handshake.mss() - option } else { conn.handshake.mss() }
            }
        }
    }
}

// RFC 2018 §3: 40 bytes of options hold four ranges, or three next to timestamps.
fn most_blocks(conn: &Connection) -> usize {
    if conn.handshake.has(feature::TIMESTAMPS) { MOST_SACK_BLOCKS - 1 } else { MOST_SACK_BLOCKS }
}
