//! The larger initial window of 1998 (RFC 2414) and 2002 (RFC 3390).

/// Up to four segments, about 4 KB, in bytes.
// RFC 3390 §1: min (4*MSS, max (2*MSS, 4380 bytes)).
pub(crate) fn window_bytes(mss_bytes: u32) -> u32 {
    (4 * mss_bytes).min((2 * mss_bytes).max(4380))
}
