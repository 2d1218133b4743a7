//! A fixed number of segments, as simulators and the studies of RFC 2415 use it.

/// `segments` full segments, in bytes.
pub(super) fn window_bytes(segments: u32, mss_bytes: u32) -> u32 {
    segments.saturating_mul(mss_bytes)
}
