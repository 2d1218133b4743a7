//! A rate, and a part of the stream that leaves at one.

use crate::Nanos;

/// This number of bytes of payload in this time. Kept as a fraction: a flight spread over a round trip then ends
/// exactly with it, for any two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    pub(super) bytes: u64,
    pub(super) time: Nanos,
}

impl Rate {
    /// `bytes`, at least 1, in every `time`.
    pub fn new(bytes: u64, time: Nanos) -> Self {
        Self { bytes: bytes.max(1), time }
    }

    /// Bytes per second, rounded down.
    pub fn bytes_per_second(self) -> u64 {
        let bytes = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.time.max(1));
        bytes.min(u128::from(u64::MAX)) as u64
    }
}

/// A part of the stream that leaves at a rate rather than as the window opens: this number of bytes from its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacedFlight {
    /// Its length.
    pub bytes: u64,
    /// Its rate.
    pub rate: Rate,
    /// If nothing is sent in this time for want of data, later data is not paced.
    pub time: Nanos,
    /// The first ACK of new data ends it, too. A loss always does.
    pub until_ack: bool,
}
