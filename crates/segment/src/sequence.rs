//! Sequence numbers: 32 bits and wrapping on the wire, 64 bits and never wrapping inside.
//!
//! An endpoint keeps *positions*. The position of a byte is its sequence number plus a multiple of 2^32, so that
//! positions compare as plain integers, and the sequence number of a position is its low half.

/// A place in a stream of sequence numbers that does not wrap.
pub type Position = u64;

/// Position of an initial sequence number. One lap is added so that a position just before it is representable.
#[inline]
pub fn origin(initial_sequence: u32) -> Position {
    (1 << 32) | Position::from(initial_sequence)
}

/// Sequence number of a position.
#[inline]
pub fn wire(position: Position) -> u32 {
    position as u32
}

/// Position nearest to `reference` that has this sequence number.
// RFC 9293 §3.4: comparisons are modulo 2^32; a window of at most 2^30 bytes keeps them unambiguous.
#[inline]
pub fn near(reference: Position, sequence: u32) -> Position {
    let distance = sequence.wrapping_sub(wire(reference)) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_the_wire_across_the_wrap() {
        let start = origin(u32::MAX - 10);
        for offset in [0u64, 5, 10, 11, 12, 1 << 20, 1 << 29] {
            assert_eq!(near(start, wire(start + offset)), start + offset);
            assert_eq!(near(start + offset, wire(start)), start);
        }
        assert_eq!(near(origin(0), u32::MAX), origin(0) - 1);
    }
}
