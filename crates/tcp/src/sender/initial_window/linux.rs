//! Linux's behavior.

/// Ten segments, in bytes.
// Linux 2.6.39 and later: TCP_INIT_CWND is 10 segments and, unlike RFC 6928 §2, has no bound in bytes.
pub(super) fn window_bytes(mss_bytes: u32) -> u32 {
    10 * mss_bytes
}
