//! The segment size of the peer, as its segments show it.

use crate::segment::{Flags, Segment};

/// Smallest and largest first guess (Linux: `TCP_MIN_MSS`, `TCP_MSS_DEFAULT`).
pub(crate) const SMALLEST: u32 = 88;
pub(crate) const DEFAULT: u32 = 536;

/// The estimate.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSize {
    /// Payload of a full segment [rcv_mss].
    pub bytes: u32,
    /// Payload of the last segment, if it was shorter [last_seg_size].
    short_bytes: u32,
}

/// A segment compared with the estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compared {
    /// As long as no other before.
    Longer,
    /// As long as a full one.
    Full,
    /// As short as the one before, so full segments are that short.
    Settled,
    /// Shorter: a write ends with it.
    Short,
}

impl SegmentSize {
    // Linux, tcp_initialize_rcv_mss.
    pub(crate) fn new(mss_bytes: u32, window_bytes: u32) -> Self {
        Self { bytes: mss_bytes.min(window_bytes / 2).clamp(SMALLEST, DEFAULT), short_bytes: 0 }
    }

    /// Learns from a segment: the largest payload seen, `most_bytes` at most, or a shorter one that comes twice in a row.
    /// `stamp_bytes`: of options that every segment of the connection has.
    // Linux, tcp_measure_rcv_mss.
    pub(crate) fn learn(&mut self, segment: &Segment, stamp_bytes: u32, most_bytes: u32) -> Compared {
        let previous = std::mem::take(&mut self.short_bytes);
        let bytes = segment.payload_bytes;
        if bytes >= self.bytes {
            let compared = if bytes > self.bytes { Compared::Longer } else { Compared::Full };
            self.bytes = bytes.min(most_bytes);
            return compared;
        }
        let with_options = bytes + segment.option_bytes();
        let ends = segment.flags.intersects(Flags::PSH | Flags::FIN);
        if with_options >= DEFAULT || with_options >= SMALLEST && !ends {
            self.short_bytes = with_options.saturating_sub(stamp_bytes);
            if self.short_bytes == previous {
                self.bytes = previous;
                return Compared::Settled;
            }
        }
        Compared::Short
    }
}
