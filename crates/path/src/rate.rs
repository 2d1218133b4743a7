//! Serialization times without a division on the hot path.

use crate::Nanos;

/// A link's rate, kept as nanoseconds a byte in 32.32 fixed point.
///
/// The serialization time of a packet is exact to half a nanosecond for rates of 2 bit/s and above; no floating
/// point takes part, so it is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    nanos_per_byte: u64,
}

impl Rate {
    /// A link that serializes nothing: packets never wait on it.
    pub const INFINITE: Rate = Rate { nanos_per_byte: 0 };

    /// The rate of `bits_per_second`, which must lie between 2 and 8 × 10^12.
    ///
    /// # Errors
    /// A rate outside these bounds: one sentence.
    pub fn from_bits_per_second(bits_per_second: u64) -> Result<Rate, String> {
        if !(2..=8_000_000_000_000).contains(&bits_per_second) {
            return Err(format!(
                "a rate of {bits_per_second} bit/s cannot be simulated: rates run from 2 bit/s to 8 Tbit/s"
            ));
        }
        let rate = u128::from(bits_per_second);
        let nanos_per_byte = ((8_000_000_000u128 << 32) + rate / 2) / rate;
        Ok(Rate { nanos_per_byte: nanos_per_byte as u64 })
    }

    /// Time to put `bytes` on the wire.
    #[inline]
    pub fn serialization(self, bytes: u32) -> Nanos {
        let product = u128::from(self.nanos_per_byte) * u128::from(bytes);
        ((product + (1 << 31)) >> 32) as Nanos
    }
}
