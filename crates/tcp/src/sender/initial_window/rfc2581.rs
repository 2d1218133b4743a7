//! The standard of 1999.

/// Two segments, in bytes.
// RFC 2581 §3.1: IW <= 2*SMSS bytes, and not more than 2 segments.
pub(super) fn window_bytes(mss_bytes: u32) -> u32 {
    2 * mss_bytes
}
