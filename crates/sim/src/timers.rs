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

/// The heap.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, Wake)>>,
}

impl Timers {
    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// Adds an entry; `order` breaks ties. Says whether it is now the earliest.
    #[inline]
    pub fn push(&mut self, time: Nanos, order: u64, wake: Wake) -> bool {
        self.heap.push(Reverse((time, order, wake)));
        self.next() == Some((time, order))
    }

    /// Time and order of the earliest entry.
    #[inline]
    pub fn next(&self) -> Option<(Nanos, u64)> {
        self.heap.peek().map(|&Reverse((time, order, _))| (time, order))
    }

    /// Takes the earliest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Wake)> {
        self.heap.pop().map(|Reverse((time, _, wake))| (time, wake))
    }
}
