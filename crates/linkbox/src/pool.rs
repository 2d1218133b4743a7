//! Room for the packets in flight, allocated and returned without a system call.

/// Packets of a piece of memory: the number allocated together.
const PIECE: usize = 1024;

/// Buffers of one size, numbered.
#[derive(Debug)]
pub(crate) struct Pool {
    pieces: Vec<Box<[u8]>>,
    lengths: Vec<u16>,
    free: Vec<u32>,
    buffer_bytes: usize,
    most: usize,
}

impl Pool {
    /// Buffers of `buffer_bytes`, at most `most` of them and `PIECE` to begin with.
    pub(crate) fn new(buffer_bytes: usize, most: usize) -> Pool {
        let most = most.next_multiple_of(PIECE);
        let mut pool = Pool {
            pieces: Vec::with_capacity(most / PIECE),
            lengths: Vec::with_capacity(most),
            free: Vec::with_capacity(most),
            buffer_bytes: buffer_bytes.next_multiple_of(64),
            most,
        };
        pool.grow();
        pool
    }

    fn grow(&mut self) -> bool {
        let first = self.lengths.len();
        if first + PIECE > self.most {
            return false;
        }
        // Not zeros from the system, which would cost a page fault each when a packet comes.
        self.pieces.push(vec![1; PIECE * self.buffer_bytes].into_boxed_slice());
        self.lengths.resize(first + PIECE, 0);
        self.free.extend((first as u32..(first + PIECE) as u32).rev());
        true
    }

    /// Makes sure of `count` free buffers; false: this number is not possible.
    pub(crate) fn ensure(&mut self, count: usize) -> bool {
        while self.free.len() < count {
            if !self.grow() {
                return false;
            }
        }
        true
    }

    /// The buffer that will be given out next.
    pub(crate) fn next(&self) -> u32 {
        self.free[self.free.len() - 1]
    }

    /// Gives out the next buffer for a packet of `length` bytes.
    pub(crate) fn take(&mut self, length: u16) -> Option<u32> {
        let buffer = self.free.pop()?;
        self.lengths[buffer as usize] = length;
        Some(buffer)
    }

    /// Gives out the next buffer with the contents of another; none: there is no more room.
    pub(crate) fn copy(&mut self, buffer: u32) -> Option<u32> {
        self.ensure(1);
        let copy = self.take(self.lengths[buffer as usize])?;
        let content = self.packet(buffer).to_vec();
        self.packet_mut(copy).copy_from_slice(&content);
        Some(copy)
    }

    /// Takes a buffer back.
    pub(crate) fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Buffers given out.
    pub(crate) fn in_use(&self) -> usize {
        self.lengths.len() - self.free.len()
    }

    /// All of a buffer, to receive a packet into.
    pub(crate) fn room(&mut self, buffer: u32) -> &mut [u8] {
        let (piece, place) = (buffer as usize / PIECE, buffer as usize % PIECE);
        &mut self.pieces[piece][place * self.buffer_bytes..][..self.buffer_bytes]
    }

    /// The packet in a buffer: as many bytes of it as were taken.
    pub(crate) fn packet(&self, buffer: u32) -> &[u8] {
        let (piece, place) = (buffer as usize / PIECE, buffer as usize % PIECE);
        &self.pieces[piece][place * self.buffer_bytes..][..usize::from(self.lengths[buffer as usize])]
    }

    /// As [`Pool::packet`], to write into.
    pub(crate) fn packet_mut(&mut self, buffer: u32) -> &mut [u8] {
        let length = usize::from(self.lengths[buffer as usize]);
        &mut self.room(buffer)[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_the_most_is_never_passed() {
        let mut pool = Pool::new(1500, 1500);
        let mut taken = 0;
        while pool.ensure(1) {
            let next = pool.next();
            assert_eq!(pool.take(7), Some(next));
            taken += 1;
        }
        assert_eq!((taken, pool.in_use()), (2048, 2048));
        pool.give_back(5);
        assert!(pool.ensure(1));
        assert_eq!(pool.take(9), Some(5));
        assert_eq!(pool.packet(5).len(), 9);
        assert_eq!(pool.copy(5), None);
        pool.give_back(7);
        pool.packet_mut(5).fill(3);
        assert_eq!(pool.copy(5), Some(7));
        assert_eq!(pool.packet(7), [3; 9]);
    }
}
