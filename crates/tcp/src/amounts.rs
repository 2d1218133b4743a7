//! Amounts of data in bytes and in segments, as two types: cwnd and ssthresh are kept in the one and reasoned about in
//! the other. The MSS is the [`Bytes`] of one segment.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Largest window TCP can express, in bytes.
// RFC 7323 §2.3: the shift is at most 14, so a window is at most 2^30 bytes.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 30;

/// An amount of payload in bytes: a window, the data in flight, the data that an ACK acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[repr(transparent)]
pub struct Bytes(pub u32);

/// An amount in full segments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[repr(transparent)]
pub struct Segments(pub u32);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The full segments that they make.
    pub const fn full_segments(self, mss: Self) -> Segments {
        Segments(self.0 / mss.0)
    }

    /// The segments that hold them, the last of them perhaps a short one.
    pub const fn segments_rounded_up(self, mss: Self) -> Segments {
        Segments(self.0.div_ceil(mss.0))
    }

    /// Rounded down to full segments.
    pub const fn round_down(self, mss: Self) -> Self {
        Self(self.0 - self.0 % mss.0)
    }

    /// The sum, or the largest value that fits.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Their excess over `other`, if any.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This number of times as many, or the largest value that fits.
    pub const fn saturating_mul(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Segments {
    /// Their bytes, or the largest value that fits.
    pub const fn bytes(self, mss: Bytes) -> Bytes {
        Bytes(self.0.saturating_mul(mss.0))
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// A share of them, rounded down.
impl Div<u32> for Bytes {
    type Output = Self;

    fn div(self, divisor: u32) -> Self {
        Self(self.0 / divisor)
    }
}

/// Segments of this size.
impl Mul<Bytes> for Segments {
    type Output = Bytes;

    fn mul(self, mss: Bytes) -> Bytes {
        Bytes(self.0 * mss.0)
    }
}

impl From<Bytes> for u64 {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into()
    }
}
