//! The event queue: a tournament tree over a fixed set of sources, one leaf each.
//!
//! A source (a link's packets in flight, the timers) keeps its own events in order, so only its next one competes. An
//! update replays one path from leaf to root without a branch that depends on the data, which makes it faster
//! than a heap when event times are uneven (`bench` measures it).
//!
//! Events at the same time happen in the order in which they were scheduled. The tree knows times alone, so that a key
//! is one word: it sees that several sources are due at the same time when it has been replayed for one of them and the
//! winner is due then, too. Only then are they asked which was first.

use crate::{Deadline, Nanos};

/// Sources that a scheduler can have.
pub const MAX_SOURCES: usize = 1 << 20;

/// The time of an event and, below it, its source.
type Key = u64;

/// A tournament tree of the next event of each source.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Node 1 is the root, the children of `i` are `2 i` and `2 i + 1`; the leaves are the second half.
    nodes: Vec<Key>,
    /// Node 1.
    earliest: Key,
    replay: Replay,
    /// Bits of a key that hold its source.
    source_bits: u32,
    source_mask: u32,
    /// Events at this time or later never happen: keys have no room for them.
    end_of_time: Nanos,
}

/// Puts in the next event of a source and replays its matches up to the root, which it answers.
type Replay = fn(nodes: &mut [Key], source: u32, key: Key) -> Key;

impl Scheduler {
    /// A tree with a leaf for each of `sources`, all idle.
    pub fn new(sources: usize) -> Scheduler {
        debug_assert!(sources <= MAX_SOURCES);
        let nodes = vec![Key::MAX; 2 * sources.next_power_of_two().max(2)];
        let source_bits = nodes.len().trailing_zeros() - 1;
        let replay = match nodes.len() {
            4 => replay::<4>,
            8 => replay::<8>,
            16 => replay::<16>,
            32 => replay::<32>,
            64 => replay::<64>,
            128 => replay::<128>,
            256 => replay::<256>,
            512 => replay::<512>,
            1024 => replay::<1024>,
            _ => replay_any,
        };
        let source_mask = (1 << source_bits) - 1;
        Scheduler { nodes, earliest: Key::MAX, replay, source_bits, source_mask, end_of_time: Key::MAX >> source_bits }
    }

    /// Events at this time or later never happen.
    pub fn end_of_time(&self) -> Nanos {
        self.end_of_time
    }

    /// Makes all sources idle.
    pub fn clear(&mut self) {
        self.nodes.fill(Key::MAX);
        self.earliest = Key::MAX;
    }

    /// The earliest event: its time and its source, or one of its sources; from the end of time on there is none.
    #[inline]
    pub fn earliest(&self) -> (Nanos, u32) {
        (self.earliest >> self.source_bits, self.source(self.earliest))
    }

    /// The [earliest](Scheduler::earliest) event, which came from `source` at `now`, has happened; the next one from there
    /// is due at `following`. False: something else is due at `now`, too.
    #[inline]
    #[must_use]
    pub fn follow(&mut self, now: Nanos, source: u32, following: Deadline) -> bool {
        self.set(source, following);
        self.earliest >> self.source_bits != now
    }

    /// The next event of `source` is due then.
    #[inline]
    pub fn set(&mut self, source: u32, next: Deadline) {
        let key = self.key(source, next);
        self.earliest = (self.replay)(&mut self.nodes, source, key);
    }

    /// As [`Scheduler::set`], where `time` is not later than that of the next event of `source` was.
    #[inline]
    pub fn advance(&mut self, source: u32, time: Nanos) {
        let key = self.key(source, Deadline::at(time));
        let mut node = self.nodes.len() / 2 + source as usize;
        // Above a node that stays nothing changes either.
        while node > 0 && key < self.nodes[node] {
            self.nodes[node] = key;
            node /= 2;
        }
        self.earliest = self.nodes[1];
    }

    /// Of the sources that are due at the time of the earliest event, the one whose event was scheduled first: `order`
    /// counts the events scheduled before a source's next one.
    pub fn first_scheduled(&self, order: impl Fn(u32) -> u64) -> u32 {
        let mut first = (u64::MAX, self.source(self.earliest));
        self.first_below(1, self.earliest().0, &order, &mut first);
        first.1
    }

    /// As `first_scheduled` of the sources below a node that is due at `time`, if one was scheduled before `first`.
    fn first_below(&self, node: usize, time: Nanos, order: &impl Fn(u32) -> u64, first: &mut (u64, u32)) {
        if 2 * node >= self.nodes.len() {
            let source = self.source(self.nodes[node]);
            *first = (*first).min((order(source), source));
            return;
        }
        // Most nodes are not due, and a call costs more than a look.
        for below in [2 * node, 2 * node + 1] {
            if self.nodes[below] >> self.source_bits == time {
                self.first_below(below, time, order, first);
            }
        }
    }

    #[inline]
    fn key(&self, source: u32, next: Deadline) -> Key {
        next.no_later_than(self.end_of_time) << self.source_bits | Key::from(source)
    }

    #[inline]
    fn source(&self, key: Key) -> u32 {
        key as u32 & self.source_mask
    }
}

/// [`Replay`] for a tree of `N` nodes: unrolled, and without checks of bounds.
fn replay<const N: usize>(nodes: &mut [Key], source: u32, key: Key) -> Key {
    let Ok(nodes) = <&mut [Key; N]>::try_from(nodes) else { return key };
    let mut node = (N / 2 + source as usize) % N;
    let mut winner = key;
    nodes[node] = key;
    for _ in 1..N.trailing_zeros() {
        winner = earlier(winner, nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
    winner
}

/// [`Replay`] for a tree of any size.
fn replay_any(nodes: &mut [Key], source: u32, key: Key) -> Key {
    let mut node = nodes.len() / 2 + source as usize;
    let mut winner = key;
    nodes[node] = key;
    while node > 1 {
        winner = earlier(winner, nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
    winner
}

/// The smaller key, without a jump: which one it is cannot be predicted.
#[inline]
fn earlier(one: Key, other: Key) -> Key {
    #[cfg(has_select_unpredictable)]
    #[allow(clippy::incompatible_msrv)]
    return std::hint::select_unpredictable(other < one, other, one);
    #[cfg(not(has_select_unpredictable))]
    one.min(other)
}
