//! A segment as a row.

use std::num::NonZeroU16;

use firstflight_segment::{Flags, QuickStart, Segment};

use crate::rows::{NO_RESPONSE, NO_WINDOW_SCALE, SegmentEvent, UNKNOWN_STATE};

/// A segment was sent.
pub const SENT: u8 = 0;
/// A segment was received, or a packet reached the far end of a link.
pub const RECEIVED: u8 = 1;
/// A queue dropped it.
pub const DROPPED: u8 = 2;
/// It was lost after its transmission.
pub const LOST: u8 = 3;

/// What the end that sent a segment or, once it arrived, received it knows of itself.
#[derive(Clone, Copy, Debug)]
pub struct AtEnd {
    /// Largest payload of its segments.
    pub mss_bytes: u32,
    /// Its congestion window.
    pub cwnd_bytes: u32,
    /// Its slow start threshold, if anything has set it.
    pub ssthresh_bytes: Option<u32>,
    /// What it is doing about losses, as the column says.
    pub recovery_state: u8,
}

/// What is known of a segment that was seen, in addition to its own fields.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// When, in nanoseconds.
    pub time_ns: i64,
    /// Replicate of the experiment.
    pub replicate: u32,
    /// Number of its connection.
    pub connection: u32,
    /// What happened to it: [`SENT`], [`RECEIVED`], or as the records spell it.
    pub event: u8,
    /// True if the server sent it.
    pub from_server: bool,
    /// The link that lost it, or [`NO_LINK`](crate::NO_LINK).
    pub link: u16,
    /// Initial sequence numbers of the end that sent it, and of the other.
    pub initial_sequences: [u32; 2],
    /// The window that it announces, in bytes.
    pub window_bytes: u64,
}

/// An ssthresh that nothing has set, in a column that is compared with cwnd.
const ABOVE_ALL_WINDOWS: u32 = u32::MAX;

impl Sight {
    /// The row of the records; `end`, if that is known.
    pub fn row(&self, end: Option<AtEnd>, segment: &Segment) -> SegmentEvent {
        let [from, to] = self.initial_sequences;
        let in_segments = |bytes: fn(AtEnd) -> u32| {
            end.map_or(f64::NAN, |end| f64::from(bytes(end)) / f64::from(end.mss_bytes.max(1)))
        };
        let acknowledges = segment.flags.contains(Flags::ACK);
        // Of the other end's data, as acknowledgment numbers are.
        let acknowledged = |number: u32| number.wrapping_sub(to);
        let ranges = segment.sack.as_slice();
        let edge = |range: usize, side: usize| ranges.get(range).map_or(0, |edges| acknowledged(edges[side]));
        let (quick_start, quick_start_rate) = match segment.quick_start() {
            QuickStart::None => (0, 0),
            QuickStart::Request { rate, approved } => (if approved { 1 } else { 2 }, rate),
            QuickStart::Report { rate } => (3, rate),
        };
        SegmentEvent {
            time_ns: self.time_ns,
            replicate: self.replicate,
            connection: self.connection,
            event: self.event,
            from_server: u8::from(self.from_server),
            link: self.link,
            seq: segment.seq.wrapping_sub(from),
            length: segment.payload_bytes,
            ack: if acknowledges { acknowledged(segment.ack) } else { 0 },
            window_bytes: self.window_bytes,
            cwnd_segments: in_segments(|end| end.cwnd_bytes),
            ssthresh_segments: in_segments(|end| end.ssthresh_bytes.unwrap_or(ABOVE_ALL_WINDOWS)),
            recovery_state: end.map_or(UNKNOWN_STATE, |end| end.recovery_state),
            flags: segment.flags.bits() as u8,
            retransmission: u8::from(segment.retransmission),
            ecn: segment.ecn as u8,
            has_timestamps: u8::from(segment.timestamps.is_some()),
            ts_value: segment.timestamps.map_or(0, |timestamps| timestamps.value),
            ts_echo: segment.timestamps.map_or(0, |timestamps| timestamps.echo),
            sack_count: ranges.len() as u8,
            sack_left_0: edge(0, 0),
            sack_right_0: edge(0, 1),
            sack_left_1: edge(1, 0),
            sack_right_1: edge(1, 1),
            sack_left_2: edge(2, 0),
            sack_right_2: edge(2, 1),
            sack_left_3: edge(3, 0),
            sack_right_3: edge(3, 1),
            mss: segment.mss.map_or(0, NonZeroU16::get),
            window_scale: segment.window_scale.unwrap_or(NO_WINDOW_SCALE),
            sack_permitted: u8::from(segment.sack_permitted),
            quick_start,
            quick_start_rate,
            quick_start_response: segment.quick_start_response().unwrap_or(NO_RESPONSE),
        }
    }
}
