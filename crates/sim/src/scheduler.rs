//! The event queue: a tournament tree over a fixed set of sources, one leaf each.
//!
//! A source (a link's packets in flight, the timers) keeps its own events in order, so only its next one competes. An
//! update replays one path from leaf to root without a branch that depends on the data, which is what makes it faster
//! than a heap when event times are uneven (`bench` measures it).

use crate::Nanos;

/// When an event happens: time, then the order in which events were scheduled, so ties break the same way every time.
pub type Key = u128;

/// A source that has no event.
pub const IDLE: Key = Key::MAX;

/// Sources that a scheduler can have.
pub const MAX_SOURCES: usize = 1 << SOURCE_BITS;

const SOURCE_BITS: u32 = 20;

/// Puts together a key; `order` counts the events scheduled so far.
#[inline]
pub fn key(time: Nanos, order: u64, source: u32) -> Key {
    debug_assert!(order < 1 << (64 - SOURCE_BITS));
    (Key::from(time) << 64) | Key::from(order << SOURCE_BITS | u64::from(source))
}

/// The time in a key.
#[inline]
pub fn time_of(key: Key) -> Nanos {
    (key >> 64) as Nanos
}

/// A tournament tree of the next event of each source.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Node 1 is the root, the children of `i` are `2 i` and `2 i + 1`; the leaves are the second half.
    nodes: Vec<Key>,
}

impl Scheduler {
    /// A tree with a leaf for each of `sources`, all idle.
    pub fn new(sources: usize) -> Scheduler {
        debug_assert!(sources <= MAX_SOURCES);
        Scheduler { nodes: vec![IDLE; 2 * sources.next_power_of_two().max(2)] }
    }

    /// Makes all sources idle.
    pub fn clear(&mut self) {
        self.nodes.fill(IDLE);
    }

    /// The earliest event: its time and its source. None if all sources are idle.
    #[inline]
    pub fn next(&self) -> Option<(Nanos, u32)> {
        let key = self.nodes[1];
        (key != IDLE).then(|| (time_of(key), key as u32 & (MAX_SOURCES as u32 - 1)))
    }

    /// The next event of `source` is now `key`.
    ///
    /// The comparisons must compile to conditional moves; `.cargo/config.toml` sees to that.
    #[inline]
    pub fn set(&mut self, source: u32, key: Key) {
        let mut node = self.nodes.len() / 2 + source as usize;
        let mut winner = key;
        self.nodes[node] = key;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = winner;
        }
    }
}
