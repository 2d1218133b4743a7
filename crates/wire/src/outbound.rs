//! Data written by an application: pieces of a stream, made when a segment takes them.

use std::collections::VecDeque;

use firstflight_segment::write_payload;

/// A piece of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// These bytes.
    Bytes(Box<[u8]>),
    /// So many bytes of the stream that [`write_payload`] makes, from its beginning.
    Pattern(u64),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Pattern(length) => *length,
        }
    }
}

/// The part of a stream that was written and is not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// Offset of each piece.
    pieces: VecDeque<(u64, Piece)>,
    end: u64,
}

impl Outbound {
    /// Adds a piece; returns its length.
    pub(crate) fn write(&mut self, piece: Piece) -> u64 {
        let (start, length) = (self.end, piece.length());
        self.end += length;
        if length > 0 {
            self.pieces.push_back((start, piece));
        }
        length
    }

    /// All before this offset is acknowledged.
    pub(crate) fn forget(&mut self, acknowledged: u64) {
        while self.pieces.front().is_some_and(|(start, piece)| start + piece.length() <= acknowledged) {
            self.pieces.pop_front();
        }
    }

    /// Appends `length` bytes from `offset` on, all of which were written and not forgotten.
    pub(crate) fn read(&self, mut offset: u64, length: u32, into: &mut Vec<u8>) {
        let end = offset + u64::from(length);
        let first = self.pieces.partition_point(|(start, piece)| start + piece.length() <= offset);
        for (start, piece) in self.pieces.range(first..) {
            if offset >= end {
                break;
            }
            let upto = end.min(start + piece.length());
            match piece {
                Piece::Bytes(bytes) => {
                    into.extend_from_slice(&bytes[(offset - start) as usize..(upto - start) as usize]);
                }
                Piece::Pattern(_) => write_payload(offset - start, (upto - offset) as u32, into),
            }
            offset = upto;
        }
        debug_assert_eq!(offset, end, "what a segment takes was written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Outbound {
        let mut out = Outbound::default();
        out.write(Piece::Bytes((*b"head").into()));
        out.write(Piece::Pattern(40));
        out.write(Piece::Bytes((*b"").into()));
        out.write(Piece::Bytes((*b"next").into()));
        out
    }

    fn read(out: &Outbound, offset: u64, length: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        out.read(offset, length, &mut bytes);
        bytes
    }

    #[test]
    fn a_segment_may_span_pieces() {
        assert_eq!(read(&whole(), 2, 6), b"ad0000");
        assert_eq!(read(&whole(), 43, 5), b"2next".map(|byte| if byte == b'2' { b'0' } else { byte }));
        assert_eq!(read(&whole(), 0, 48).len(), 48);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_piece_by_piece() {
        let mut out = whole();
        out.forget(43);
        assert_eq!(out.pieces.len(), 2);
        assert_eq!(read(&out, 43, 5), read(&whole(), 43, 5));
        out.forget(48);
        assert!(out.pieces.is_empty());
    }
}
