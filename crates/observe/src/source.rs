//! Bytes of a file of any length through one buffer.

use std::io::{ErrorKind, Read, Result};

/// Read at once. Larger than any packet, and large enough that the cost of a read is negligible next to the copy.
const BUFFER_BYTES: usize = 4 << 20;

/// The size that must be read as a whole: less than the buffer, more than any packet in a capture.
pub(crate) const LARGEST_BYTES: usize = 1 << 20;

/// A file in progress.
#[derive(Debug)]
pub(crate) struct Source<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of `start`, in the file.
    offset: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset: 0 }
    }

    /// Offset of the next byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next `length` bytes, at most [`LARGEST_BYTES`]; None if the file ends before.
    pub(crate) fn peek(&mut self, length: usize) -> Result<Option<&[u8]>> {
        if self.end - self.start < length && !self.fill(length)? {
            return Ok(None);
        }
        Ok(Some(&self.buffer[self.start..self.start + length]))
    }

    /// The last result of [`Source::peek`], again.
    pub(crate) fn seen(&self, length: usize) -> &[u8] {
        &self.buffer[self.start..self.start + length]
    }

    /// Goes on by `length` bytes that were peeked at.
    pub(crate) fn consume(&mut self, length: usize) {
        self.start += length;
        self.offset += length as u64;
    }

    /// Goes on by `length` bytes, however many; false if the file ends before.
    pub(crate) fn skip(&mut self, mut length: u64) -> Result<bool> {
        while length > 0 {
            if self.start == self.end && !self.fill(1)? {
                return Ok(false);
            }
            let step = length.min((self.end - self.start) as u64);
            self.consume(step as usize);
            length -= step;
        }
        Ok(true)
    }

    /// True if there is nothing left.
    pub(crate) fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.peek(1)?.is_none())
    }

    fn fill(&mut self, length: usize) -> Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < length {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_buffer_comes_through_byte_by_byte() {
        let content: Vec<u8> = (0..BUFFER_BYTES + 12_345).map(|at| (at % 251) as u8).collect();
        let mut source = Source::new(content.as_slice());
        let mut seen = Vec::new();
        while let Some(piece) = source.peek(1000).unwrap() {
            seen.extend_from_slice(piece);
            source.consume(1000);
        }
        assert_eq!(source.offset(), seen.len() as u64);
        let rest = content.len() - seen.len();
        seen.extend_from_slice(source.peek(rest).unwrap().unwrap());
        assert_eq!(seen, content);
    }

    #[test]
    fn skipping_beyond_the_end_tells_so() {
        let content = vec![0; 100];
        let mut source = Source::new(content.as_slice());
        assert!(source.skip(99).unwrap());
        assert!(!source.skip(2).unwrap());
    }
}
