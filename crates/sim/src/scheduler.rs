//! The event queue: the next event of each source, in a [`Tournament`].
//!
//! A source (a link's packets in flight, or its departures) keeps its own events in order, so only its next one competes.
//! Timers are no source.
//!
//! Events at the same time happen in the order in which they were scheduled. The tree knows times alone, so that a key
//! is one word: it sees that several sources are due at the same time when it has been replayed for one of them and the
//! winner is due then, too. Only then are they asked which was first.

use crate::{Deadline, Nanos, tournament::Tournament};

/// Sources that a scheduler can have.
pub const MAX_SOURCES: usize = 1 << 20;

/// The time of an event and, below it, its source.
type Key = u64;

/// The next event of each source.
#[derive(Clone, Debug)]
pub struct Scheduler {
    tree: Tournament<Key>,
    /// Bits of a key that hold its source.
    source_bits: u32,
    source_mask: u32,
    /// Events at this time or later never happen: keys have no room for them.
    end_of_time: Nanos,
}

impl Scheduler {
    /// A scheduler of this number of sources, all idle.
    pub fn new(sources: usize) -> Scheduler {
        debug_assert!(sources <= MAX_SOURCES);
        let tree = Tournament::new(sources);
        let source_bits = tree.leaves().trailing_zeros();
        let source_mask = (1 << source_bits) - 1;
        Scheduler { tree, source_bits, source_mask, end_of_time: Key::MAX >> source_bits }
    }

    /// Events at this time or later never happen.
    pub fn end_of_time(&self) -> Nanos {
        self.end_of_time
    }

    /// Makes all sources idle.
    pub fn clear(&mut self) {
        self.tree.clear();
    }

    /// The earliest event: its time and its source, or one of its sources; from the end of time on there is none.
    pub fn earliest(&self) -> (Nanos, u32) {
        (self.tree.first() >> self.source_bits, self.source(self.tree.first()))
    }

    /// The [earliest](Scheduler::earliest) event, which came from `source` at `now`, has happened; the next one from there
    /// is due at `following`. False: something else is due at `now`, too.
    #[inline]
    #[must_use]
    pub fn follow(&mut self, now: Nanos, source: u32, following: Deadline) -> bool {
        self.set(source, following);
        self.earliest().0 != now
    }

    /// The next event of `source` is due then.
    pub fn set(&mut self, source: u32, next: Deadline) {
        self.tree.set(source, self.key(source, next));
    }

    /// Of the sources that are due at the time of the earliest event, the one whose event was scheduled first: `order`
    /// counts the events scheduled before a source's next one.
    pub fn first_scheduled(&self, order: impl Fn(u32) -> u64) -> u32 {
        let (time, source) = self.earliest();
        debug_assert!(time < self.end_of_time, "no event is left");
        let mut first = (u64::MAX, source);
        self.tree.visit_below((time + 1) << self.source_bits, &mut |key| {
            let source = self.source(key);
            first = first.min((order(source), source));
        });
        first.1
    }

    fn key(&self, source: u32, next: Deadline) -> Key {
        next.no_later_than(self.end_of_time) << self.source_bits | Key::from(source)
    }

    fn source(&self, key: Key) -> u32 {
        key as u32 & self.source_mask
    }
}
