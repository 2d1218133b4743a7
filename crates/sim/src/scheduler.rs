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
    replay: Replay,
}

/// Puts in the next event of a source and replays its matches up to the root.
type Replay = fn(nodes: &mut [Key], source: u32, key: Key);

impl Scheduler {
    /// A tree with a leaf for each of `sources`, all idle.
    pub fn new(sources: usize) -> Scheduler {
        debug_assert!(sources <= MAX_SOURCES);
        let nodes = vec![IDLE; 2 * sources.next_power_of_two().max(2)];
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
        Scheduler { nodes, replay }
    }

    /// Makes all sources idle.
    pub fn clear(&mut self) {
        self.nodes.fill(IDLE);
    }

    /// The earliest event: its time and its source. None if all sources are idle.
    #[inline]
    pub fn next(&self) -> Option<(Nanos, u32)> {
        let key = self.nodes[1];
        // An event at the end of time never comes.
        (time_of(key) != Nanos::MAX).then(|| (time_of(key), key as u32 & (MAX_SOURCES as u32 - 1)))
    }

    /// The next event of `source` is now `key`.
    #[inline]
    pub fn set(&mut self, source: u32, key: Key) {
        (self.replay)(&mut self.nodes, source, key);
    }

    /// As [`Scheduler::set`], where `key` is not later than the next event of `source` was.
    #[inline]
    pub fn advance(&mut self, source: u32, key: Key) {
        let mut node = self.nodes.len() / 2 + source as usize;
        // Above a node that stays nothing changes either.
        while node > 0 && key < self.nodes[node] {
            self.nodes[node] = key;
            node /= 2;
        }
    }
}

/// [`Replay`] for a tree of `N` nodes: unrolled, and without checks of bounds.
fn replay<const N: usize>(nodes: &mut [Key], source: u32, key: Key) {
    let Ok(nodes) = <&mut [Key; N]>::try_from(nodes) else { return };
    let mut node = (N / 2 + source as usize) % N;
    let mut winner = key;
    nodes[node] = key;
    for _ in 1..N.trailing_zeros() {
        winner = winner.min(nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
}

/// [`Replay`] for a tree of any size.
fn replay_any(nodes: &mut [Key], source: u32, key: Key) {
    let mut node = nodes.len() / 2 + source as usize;
    let mut winner = key;
    nodes[node] = key;
    while node > 1 {
        winner = winner.min(nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
}
