//! The blocks of memory that received payload lies in until the application has read it, as a Linux receiver counts them.

use crate::sequence::SeqNum;
use std::collections::VecDeque;

/// Memory ahead of the headers (Linux: `NET_SKB_PAD`), IPv4 and TCP headers without options, the description at the block's
/// end (`struct skb_shared_info`), and the one next to it (`struct sk_buff`).
const PAD: u32 = 64;
const HEADERS: u32 = 40;
const SHARED: u32 = 320;
const DESCRIPTION: u32 = 256;
/// The alignment of blocks, and the smallest (`skb_small_head_cache`).
const ALIGNMENT: u32 = 64;
const SMALLEST: u32 = 576;
/// Memory is set aside by the page.
const PAGE: u32 = 4096;

/// One segment, or several that fit its block [sk_buff].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    start: SeqNum,
    end: SeqNum,
    /// Memory that it takes [truesize].
    pub memory: u32,
    /// Bytes unused at its end.
    room: u32,
}

impl Block {
    /// The block of a segment.
    // Linux, __alloc_skb and kmalloc_reserve, behind TUN, AF_PACKET and drivers that allocate for each packet: a block of a
    // power of two. A segment of 1448 bytes takes 2304. Other drivers waste more.
    pub(crate) fn of(start: SeqNum, payload_bytes: u32, option_bytes: u32) -> Self {
        let end = start + u64::from(payload_bytes);
        let used = PAD + HEADERS + option_bytes + payload_bytes;
        // tun_alloc_skb: a packet of a page or more fills one page and, without a copy of the next one behind it, others.
        if used >= PAGE {
            let memory = PAGE + (used + SHARED - PAGE).next_multiple_of(PAGE) + DESCRIPTION;
            return Self { start, end, memory, room: 0 };
        }
        let least = used.next_multiple_of(ALIGNMENT) + SHARED;
        let size = if least <= SMALLEST { SMALLEST } else { least.next_power_of_two() };
        Self { start, end, memory: size + DESCRIPTION, room: size - SHARED - used }
    }

    /// The same, of which the bytes from `end` on were not accepted. They stay in memory, but nothing waits for their
    /// being read.
    pub(crate) fn accepted_up_to(self, end: SeqNum) -> Self {
        Self { end: self.end.min(end), ..self }
    }

    /// Takes in the next one, if there is room at the end.
    // Linux, skb_try_coalesce: blocks that were allocated for one packet are copied, and only if they fit.
    fn merge(&mut self, next: &Self) -> bool {
        let bytes = next.end - next.start;
        let fits = self.end == next.start && bytes <= u64::from(self.room);
        if fits {
            self.end = next.end;
            self.room -= bytes as u32;
        }
        fits
    }
}

/// All blocks of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    /// In order, not read yet [sk_receive_queue].
    ready: VecDeque<Block>,
    /// Ahead of a hole, by position [out_of_order_queue].
    ahead: Vec<Block>,
    /// Memory in use [sk_rmem_alloc].
    memory: u64,
    /// Memory that is set aside and not in use, less than a page between two arrivals [sk_forward_alloc].
    reserved: u32,
}

impl Blocks {
    /// No blocks, in the same memory.
    pub(crate) fn emptied(mut self) -> Self {
        self.ready.clear();
        self.ahead.clear();
        (self.memory, self.reserved) = (0, 0);
        self
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// True if a block that is next in order fits the reserved memory, so that no check for room is needed.
    // Linux, tcp_rcv_established: `if ((int)skb->truesize > sk->sk_forward_alloc) goto step5`; header prediction is off
    // while anything lies ahead of a hole.
    pub(crate) fn has_reserved(&self, block: &Block) -> bool {
        self.ahead.is_empty() && block.memory <= self.reserved
    }

    /// Sets memory aside for a block.
    // Linux, sk_rmem_schedule and __sk_mem_schedule.
    pub(crate) fn reserve(&mut self, block: &Block) {
        self.reserved += block.memory.saturating_sub(self.reserved).next_multiple_of(PAGE);
    }

    // Linux, sk_mem_charge.
    fn charge(&mut self, memory: u32) {
        self.memory += u64::from(memory);
        self.reserved = self.reserved.saturating_sub(memory);
    }

    // Linux, sk_mem_uncharge: whole pages are given back.
    fn free(&mut self, memory: u32) {
        self.memory -= u64::from(memory);
        self.reserved = (self.reserved + memory) % PAGE;
    }

    /// Payload arrived in order.
    // Linux, tcp_queue_rcv.
    pub(crate) fn push(&mut self, block: Block) {
        if !self.queue(block) {
            self.charge(block.memory);
        }
    }

    /// True if the last block took it in.
    fn queue(&mut self, block: Block) -> bool {
        let merged = self.ready.back_mut().is_some_and(|last| last.merge(&block));
        if !merged {
            self.ready.push_back(block);
        }
        merged
    }

    /// Payload arrived ahead of a hole; false if all of it is held already.
    // Linux, tcp_data_queue_ofo.
    pub(crate) fn insert(&mut self, block: Block) -> bool {
        let mut place = self.ahead.partition_point(|held| held.start <= block.start);
        if let Some(before) = place.checked_sub(1).map(|before| &mut self.ahead[before]) {
            if block.end <= before.end {
                return false;
            }
            if before.merge(&block) {
                return true;
            }
            if before.start == block.start {
                place -= 1;
            }
        }
        let covered = self.ahead[place..].iter().take_while(|held| held.end <= block.end).count();
        let freed = self.ahead.splice(place..place + covered, [block]).map(|held| held.memory).sum();
        self.charge(block.memory);
        self.free(freed);
        true
    }

    /// The hole up to `next` has been filled, so the data after it is in order now.
    // Linux, tcp_ofo_queue.
    pub(crate) fn advance(&mut self, before: SeqNum, next: SeqNum) {
        let beyond = self.ahead.split_off(self.ahead.partition_point(|held| held.start <= next));
        let mut edge = before;
        for block in std::mem::replace(&mut self.ahead, beyond) {
            if block.end <= edge {
                self.free(block.memory);
            } else {
                edge = block.end;
                if self.queue(block) {
                    self.free(block.memory);
                }
            }
        }
    }

    /// The application reads up to `position`: the next block of which it takes something, up to where; none once it has
    /// all. The block is free once it is read to its end.
    pub(crate) fn read_next(&mut self, from: SeqNum, position: SeqNum) -> Option<SeqNum> {
        let block = *self.ready.front().filter(|_| from < position)?;
        let end = block.end.min(position);
        if end == block.end {
            self.free(block.memory);
            self.ready.pop_front();
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory_of(payload: u32, options: u32) -> u32 {
        Block::of(1, payload, options).memory
    }

    #[test]
    fn a_block_is_a_power_of_two_and_its_descriptions() {
        assert_eq!([1448, 1000, 701].map(|payload| memory_of(payload, 12)), [2304, 2304, 2304]);
        assert_eq!([600, 536, 300].map(|payload| memory_of(payload, 0)), [1280; 3]);
        assert_eq!([4000, 7600, 8960].map(|payload| memory_of(payload, 0)), [8448, 8448, 12544], "a page and more");
        // 152 bytes of payload and 104 of headers fit the smallest block.
        assert_eq!([153, 152, 1].map(|payload| memory_of(payload, 0)), [1280, 832, 832]);
    }

    #[test]
    fn what_fits_the_room_of_the_block_before_takes_no_memory() {
        let mut blocks = Blocks::default();
        blocks.push(Block::of(1, 1000, 0));
        blocks.push(Block::of(1001, 500, 0));
        assert_eq!(blocks.memory(), 2304, "1728 bytes of block, 1104 used");
        blocks.push(Block::of(1501, 500, 0));
        assert_eq!(blocks.memory(), 2304 + 1280);
    }

    #[test]
    fn a_block_is_free_once_it_is_read_to_its_end() {
        let mut blocks = Blocks::default();
        blocks.push(Block::of(1, 1000, 0));
        blocks.push(Block::of(1001, 1000, 0));
        assert_eq!(blocks.read_next(1, 1500), Some(1001));
        assert_eq!(blocks.read_next(1001, 1500), Some(1500));
        assert_eq!(blocks.read_next(1500, 1500), None);
        assert_eq!(blocks.memory(), 2304);
    }

    #[test]
    fn blocks_ahead_of_a_hole_are_held_once_and_queued_when_it_is_filled() {
        let mut blocks = Blocks::default();
        assert!(blocks.insert(Block::of(2001, 1000, 0)));
        assert!(!blocks.insert(Block::of(2001, 1000, 0)));
        assert!(blocks.insert(Block::of(4001, 1000, 0)));
        assert!(blocks.insert(Block::of(3001, 1000, 0)));
        assert_eq!(blocks.memory(), 3 * 2304);
        // A segment that spans two that are held takes their place.
        assert!(blocks.insert(Block::of(3001, 2100, 0)));
        assert_eq!(blocks.memory(), 2304 + 4352);
        // The first of them fits the room of the one that fills the hole.
        blocks.push(Block::of(1, 2000, 0));
        blocks.advance(2001, 5101);
        assert_eq!(blocks.memory(), 2 * 4352);
        for end in [3001, 5101] {
            assert_eq!(blocks.read_next(end - 1, 5101), Some(end));
        }
        assert_eq!(blocks.memory(), 0);
    }
}
