//! The segment size of the peer, as its segments show it.

use crate::segment::{Flags, Segment};

/// Smallest and largest first guess (Linux: `TCP_MIN_MSS`, `TCP_MSS_DEFAULT`).
pub(crate) const SMALLEST: u32 = 88;
pub(crate) const DEFAULT: u32 = 536;

#[derive(Clone, Debug, Default)]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(size: &mut SegmentSize, payload_bytes: u32, flags: Flags) -> Compared {
        size.learn(&Segment { payload_bytes, flags, ..Segment::EMPTY }, 0, 1460)
    }

    // Linux, tcp_measure_rcv_mss: not below TCP_MIN_MSS, and below TCP_MSS_DEFAULT only without PSH.
    #[test]
    fn a_short_segment_that_comes_twice_settles_the_size_unless_it_is_tiny_or_ends_a_write() {
        for (bytes, flags, settles) in [
            (SMALLEST, Flags::ACK, true),
            (SMALLEST - 1, Flags::ACK, false),
            (DEFAULT - 1, Flags::ACK, true),
            (DEFAULT - 1, Flags::PSH, false),
            (DEFAULT - 1, Flags::FIN, false),
            (DEFAULT, Flags::PSH, true),
        ] {
            let mut size = SegmentSize::new(1460, u32::MAX);
            assert_eq!(learnt(&mut size, 1460, Flags::ACK), Compared::Longer);
            assert_eq!(learnt(&mut size, bytes, flags), Compared::Short);
            let second = if settles { Compared::Settled } else { Compared::Short };
            assert_eq!(learnt(&mut size, bytes, flags), second, "{bytes} bytes, {flags:?}");
            assert_eq!(size.bytes, if settles { bytes } else { 1460 });
        }
    }
}
