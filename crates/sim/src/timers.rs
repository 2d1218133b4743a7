//! Timers: of all endpoints, clients, servers and streams, whose earliest competes with the scheduler's.
//!
//! An endpoint's deadline moves with almost every segment. Its timer is not moved to a later time: one that fires too
//! early is set again for the deadline that holds then, so an endpoint costs one operation per expiry and not one per
//! segment. A timer that is set again for an earlier time takes the place of the one before.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Deadline, Nanos,
    tournament::{Key as _, Tournament},
};

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

/// A timer: its expiry, its tie-breaker, and whom it wakes.
pub type Timer = (Nanos, u64, Wake);

/// The expiry of a timer (64 bits), below it its tie-breaker (40 bits) and its endpoint. No two have the same tie-breaker.
// Tie-breakers count what was scheduled: a replicate that needs more than 40 bits takes days.
type Key = u128;

/// Bits of a key that hold its endpoint.
const END_BITS: u32 = 24;

#[inline]
fn key_of(time: Nanos, order: u64, end: u32) -> Key {
    debug_assert!(order < 1 << (64 - END_BITS) && end < 1 << END_BITS);
    Key::from(time) << 64 | Key::from(order << END_BITS | u64::from(end))
}

fn time_of(key: Key) -> Nanos {
    (key >> 64) as Nanos
}

fn order_of(key: Key) -> u64 {
    key as u64 >> END_BITS
}

fn end_of(key: Key) -> u32 {
    key as u32 & ((1 << END_BITS) - 1)
}

/// All timers of a simulation.
#[derive(Debug)]
pub struct Timers {
    /// At most one of each endpoint.
    endpoints: Tournament<Key>,
    /// No two have the same tie-breaker, so their order never depends on whom they wake.
    others: BinaryHeap<Reverse<Timer>>,
    /// When the earliest of all expires.
    next: Deadline,
}

impl Default for Timers {
    fn default() -> Self {
        Self { endpoints: Tournament::new(2), others: BinaryHeap::new(), next: Deadline::NEVER }
    }
}

impl Timers {
    /// Forgets all timers.
    pub fn clear(&mut self) {
        self.endpoints.clear();
        self.others.clear();
        self.next = Deadline::NEVER;
    }

    /// Sets the timer of a client, a server or a stream, or that of an endpoint, in place of the one before.
    #[inline(always)]
    pub fn set(&mut self, (time, order, wake): Timer) {
        if let Wake::Endpoint(end) = wake {
            if end as usize >= self.endpoints.leaves() {
                self.make_room(end);
            }
            self.endpoints.set(end, key_of(time, order, end));
        } else {
            self.others.push(Reverse((time, order, wake)));
        }
        self.next = Deadline::at(time_of(self.first()));
    }

    #[cold]
    fn make_room(&mut self, end: u32) {
        assert!(end < 1 << END_BITS, "a replicate has at most {} connections at a time", 1 << (END_BITS - 1));
        self.endpoints.grow(end);
    }

    /// When an endpoint's timer expires.
    pub fn of_endpoint(&self, end: u32) -> Deadline {
        Deadline::at(time_of(self.endpoints.key(end)))
    }

    /// Removes an endpoint's timer.
    pub fn cancel(&mut self, end: u32) {
        if self.endpoints.key(end) != Key::NEVER {
            self.endpoints.set(end, Key::NEVER);
            self.next = Deadline::at(time_of(self.first()));
        }
    }

    #[inline]
    fn first(&self) -> Key {
        let other = self.others.peek().map_or(Key::NEVER, |&Reverse((time, order, _))| key_of(time, order, 0));
        self.endpoints.first().min(other)
    }

    /// When the earliest timer expires.
    pub fn next(&self) -> Deadline {
        self.next
    }

    /// The tie-breaker of the earliest timer.
    pub fn next_order(&self) -> u64 {
        order_of(self.first())
    }

    /// Whom the earliest timer wakes. That of an endpoint stays until it is set again or cancelled: most are set again.
    #[inline]
    pub fn expire(&mut self) -> Option<Wake> {
        let key = self.first();
        if key == Key::NEVER {
            return None;
        }
        if key == self.endpoints.first() {
            return Some(Wake::Endpoint(end_of(key)));
        }
        let Reverse((.., wake)) = self.others.pop()?;
        self.next = Deadline::at(time_of(self.first()));
        Some(wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts by time and number; an endpoint's timers are one, the earliest of them.
    #[test]
    fn timers_expire_in_order_however_taking_and_setting_alternate() {
        let (mut timers, mut sorted) = (Timers::default(), Vec::<Timer>::new());
        let mut taken = 0;
        let mut draw = 1_u64;
        for order in 0..5000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let who = (draw >> 50 & 31) as u32;
            let wake = if who < 20 { Wake::Endpoint(who) } else { Wake::Client(who) };
            match draw >> 61 {
                0..4 => {
                    let timer = (draw >> 40 & 63, order, wake);
                    if who < 20 {
                        sorted.retain(|&(.., other)| other != wake);
                    }
                    sorted.push(timer);
                    sorted.sort_by_key(|&(time, order, _)| (time, order));
                    timers.set(timer);
                }
                4 => {
                    timers.cancel(who);
                    sorted.retain(|&(.., other)| other != Wake::Endpoint(who));
                }
                _ => {
                    let first = (!sorted.is_empty()).then(|| sorted.remove(0));
                    taken += u32::from(first.is_some());
                    assert_eq!(timers.expire(), first.map(|(.., wake)| wake));
                    if let Some((time, _, wake @ Wake::Endpoint(end))) = first {
                        if draw >> 40 & 1 == 0 {
                            timers.cancel(end);
                        } else {
                            let later = (time + (draw >> 41 & 31), order, wake);
                            timers.set(later);
                            sorted.push(later);
                            sorted.sort_by_key(|&(time, order, _)| (time, order));
                        }
                    }
                }
            }
            assert_eq!(timers.next(), sorted.first().map(|&(time, ..)| time).into());
            assert!(sorted.is_empty() || timers.next_order() == sorted[0].1);
        }
        assert!(taken > 1000);
        timers.set((1, 5000, Wake::Endpoint(0)));
        timers.clear();
        assert_eq!((timers.next(), timers.expire()), (Deadline::NEVER, None));
    }
}
