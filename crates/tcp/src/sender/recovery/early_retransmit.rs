//! Early retransmit: with few segments outstanding and nothing new to send, fewer duplicates have to suffice (RFC 5827).

/// Duplicate acknowledgments (or segments SACKed) that mean a loss.
// RFC 5827 §3.1 and §3.2: if fewer than four segments are outstanding and no unsent data is ready, the threshold is the
// number outstanding less one; with only one segment outstanding there is nothing to detect a loss by.
#[inline]
pub(super) fn threshold(enabled: bool, outstanding_segments: u32, has_new_data: bool, ordinary: u32) -> u32 {
    if enabled && !has_new_data && (2..4).contains(&outstanding_segments) {
        ordinary.min(outstanding_segments - 1)
    } else {
        ordinary
    }
}

#[cfg(test)]
mod tests {
    use super::threshold;

    #[test]
    fn three_outstanding_segments_need_two_duplicates_and_two_need_one() {
        assert_eq!(threshold(true, 4, false, 3), 3);
        assert_eq!(threshold(true, 3, false, 3), 2);
        assert_eq!(threshold(true, 2, false, 3), 1);
        assert_eq!(threshold(true, 1, false, 3), 3);
        assert_eq!(threshold(true, 3, true, 3), 3);
        assert_eq!(threshold(false, 3, false, 3), 3);
    }
}
