//! The initial window of 2013.

/// Up to ten segments, about 15 KB, in bytes.
// RFC 6928 §2: min (10*MSS, max (2*MSS, 14600)).
pub(super) fn window_bytes(mss_bytes: u32) -> u32 {
    (10 * mss_bytes).min((2 * mss_bytes).max(14600))
}
