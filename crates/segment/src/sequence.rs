//! Sequence numbers: 32 bits and wrapping on the wire, 64 bits and never wrapping inside.
//!
//! A [`SeqNum`] is a sequence number plus a multiple of 2^32, so that two of them compare as plain integers. Its low half
//! is the number on the wire.

/// A sequence number that does not wrap.
pub type SeqNum = u64;

/// The `SeqNum` of an initial sequence number. 2^32 is added so that the number just before it is representable.
pub fn origin(initial_sequence: u32) -> SeqNum {
    (1 << 32) | SeqNum::from(initial_sequence)
}

/// The sequence number on the wire.
pub fn wire(seq: SeqNum) -> u32 {
    seq as u32
}

/// The `SeqNum` nearest to `reference` with this number on the wire.
// RFC 9293 §3.4: comparisons are modulo 2^32; a window of at most 2^30 bytes keeps them unambiguous.
#[inline]
pub fn near(reference: SeqNum, sequence: u32) -> SeqNum {
    let distance = sequence.wrapping_sub(wire(reference)) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_the_wire_across_the_wrap() {
        let start = origin(u32::MAX - 10);
        for offset in [0u64, 5, 10, 11, 12, 1 << 20, 1 << 29] {
            assert_eq!(near(start, wire(start + offset)), start + offset);
            assert_eq!(near(start + offset, wire(start)), start);
        }
        assert_eq!(near(origin(0), u32::MAX), origin(0) - 1);
    }
}
