//! Timers: one heap for all endpoints and clients, itself one source of the scheduler.
//!
//! An endpoint's deadline moves with almost every segment. The heap is not told: an entry that fires too early is put
//! back at the deadline that holds then, so an endpoint costs one heap operation per expiry and not one per segment.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::Nanos;

/// Whom a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// One end of a connection: `2 * slot + side`.
    Endpoint(u32),
    /// An application's client.
    Client(u32),
    /// The server of the connection in this slot, which has an answer ready.
    Server(u32),
    /// The sender of a stream of datagrams.
    Stream(u32),
}

/// A timer: when it expires, what breaks ties, and whom it wakes.
pub type Timer = (Nanos, u64, Wake);

/// The heap.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
}

impl Timers {
    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// Adds a timer. Says whether it is now the earliest.
    #[inline]
    pub fn push(&mut self, timer: Timer) -> bool {
        self.heap.push(Reverse(timer));
        self.next() == Some(&timer)
    }

    /// The earliest timer.
    #[inline]
    pub fn next(&self) -> Option<&Timer> {
        self.heap.peek().map(|Reverse(timer)| timer)
    }

    /// Takes the earliest timer.
    #[inline]
    pub fn pop(&mut self) -> Option<Timer> {
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}
