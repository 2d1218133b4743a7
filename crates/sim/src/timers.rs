//! Timers: one heap for all endpoints and clients, itself one source of the scheduler.
//!
//! An endpoint's deadline moves with almost every segment. The heap is not updated: an entry that fires too early is
//! put back at the deadline that holds then, so an endpoint costs one heap operation per expiry and not one per
//! segment.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::Nanos;

/// Whom a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A timer: its expiry, its tie-breaker, and its endpoint.
pub type Timer = (Nanos, u64, Wake);

/// A timer as the heap sees it: the earlier, the greater. No two have the same number, so whom one wakes decides nothing.
#[derive(Debug)]
struct Entry(Timer);

impl Entry {
    /// Time and number as one word, which is compared without a jump.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.0.0) << 64 | u128::from(self.0.1)
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

/// The heap.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Entry>,
}

impl Timers {
    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// Adds a timer. Says whether it is now the earliest.
    #[inline]
    pub fn push(&mut self, timer: Timer) -> bool {
        self.heap.push(Entry(timer));
        // No two have the same number.
        self.next().is_some_and(|&(_, order, _)| order == timer.1)
    }

    /// The earliest timer.
    #[inline]
    pub fn next(&self) -> Option<&Timer> {
        self.heap.peek().map(|Entry(timer)| timer)
    }

    /// Takes the earliest timer.
    #[inline]
    pub fn pop(&mut self) -> Option<Timer> {
        self.heap.pop().map(|Entry(timer)| timer)
    }

    /// Takes the earliest timer if it is due at `now` and has a number below `end`.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos, end: u64) -> Option<Timer> {
        self.next().filter(|&&(time, order, _)| time == now && order < end)?;
        self.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_however_taking_and_adding_alternate() {
        let (mut timers, mut sorted) = (Timers::default(), Vec::new());
        let mut draw = 1_u64;
        for order in 0..5000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if draw >> 62 < 2 {
                let timer = (draw >> 40 & 63, order, Wake::Client(0));
                sorted.push(timer);
                sorted.sort_by_key(|&(time, order, _)| (time, order));
                assert_eq!(timers.push(timer), sorted[0] == timer);
            } else {
                let first = (!sorted.is_empty()).then(|| sorted.remove(0));
                assert_eq!(timers.pop(), first);
            }
            assert_eq!(timers.next(), sorted.first());
        }
        assert!(sorted.len() > 10 && timers.pop().is_some());
    }

    #[test]
    fn what_is_due_later_or_was_scheduled_too_late_stays() {
        let mut timers = Timers::default();
        for timer in [(5, 2, Wake::Client(0)), (5, 7, Wake::Client(1)), (6, 1, Wake::Client(2))] {
            timers.push(timer);
        }
        assert_eq!(timers.pop_due(4, 9), None);
        assert_eq!(timers.pop_due(5, 7).map(|(_, order, _)| order), Some(2));
        assert_eq!(timers.pop_due(5, 7), None);
        assert_eq!(timers.pop_due(5, 8).map(|(_, order, _)| order), Some(7));
        assert_eq!(timers.pop_due(5, 9), None);
    }
}
