//! BBR's unit of bandwidth.

use crate::Nanos;

/// Bandwidths are in segments per microsecond, times 2^24; Linux's (`BW_SCALE`) and rounded down as its are, which shows when
/// a few segments are delivered in a second.
pub(super) const BANDWIDTH_SHIFT: u32 = 24;
pub(super) const MICROSECOND: Nanos = 1_000;

/// The bandwidth of `segments` in a time.
pub(super) fn bandwidth(segments: u64, time: Nanos) -> u64 {
    (segments << BANDWIDTH_SHIFT) / (time / MICROSECOND).max(1)
}

/// Segments that a bandwidth delivers in a time, rounded down, times 2^[`BANDWIDTH_SHIFT`].
pub(super) fn scaled_product(bandwidth: u64, time: Nanos) -> u128 {
    u128::from(bandwidth) * u128::from(time / MICROSECOND)
}
