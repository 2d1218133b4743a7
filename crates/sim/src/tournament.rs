//! The smallest of many keys of which one changes at a time: a tournament tree.
//!
//! A change replays one path from leaf to root without a branch that depends on the data, which makes it faster than a
//! heap when the keys are uneven (`bench` measures it).

/// What a [`Tournament`] compares: the smallest wins.
pub trait Key: Copy + Ord {
    /// Loses against all others, and ties with its like alone.
    const NEVER: Self;
}

impl Key for u64 {
    const NEVER: Self = Self::MAX;
}

impl Key for u128 {
    const NEVER: Self = Self::MAX;
}

/// A key for each leaf, and the smallest of them.
#[derive(Clone, Debug)]
pub struct Tournament<K> {
    /// Node 1 is the root, the children of `i` are `2 i` and `2 i + 1`; the leaves are the second half.
    nodes: Vec<K>,
    /// Node 1.
    first: K,
    replay: Replay<K>,
}

/// Puts in the key of a leaf and replays its matches up to the root, which it answers.
type Replay<K> = fn(nodes: &mut [K], leaf: u32, key: K) -> K;

impl<K: Key> Tournament<K> {
    /// A tree of this number of leaves at least, without a key.
    pub fn new(leaves: usize) -> Self {
        let nodes = vec![K::NEVER; 2 * leaves.next_power_of_two().max(2)];
        let replay = match nodes.len() {
            4 => replay::<K, 4>,
            8 => replay::<K, 8>,
            16 => replay::<K, 16>,
            32 => replay::<K, 32>,
            64 => replay::<K, 64>,
            128 => replay::<K, 128>,
            256 => replay::<K, 256>,
            512 => replay::<K, 512>,
            1024 => replay::<K, 1024>,
            _ => replay_any,
        };
        Self { nodes, first: K::NEVER, replay }
    }

    /// Number of leaves.
    #[inline]
    pub fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.nodes.fill(K::NEVER);
        self.first = K::NEVER;
    }

    /// The smallest key.
    #[inline]
    pub fn first(&self) -> K {
        self.first
    }

    /// The key of a leaf; a leaf that there is not has none.
    #[inline]
    pub fn key(&self, leaf: u32) -> K {
        self.nodes.get(self.leaves() + leaf as usize).copied().unwrap_or(K::NEVER)
    }

    /// Changes the key of a leaf.
    #[inline]
    pub fn set(&mut self, leaf: u32, key: K) {
        self.first = (self.replay)(&mut self.nodes, leaf, key);
    }

    /// As [`Tournament::set`], to a key that is not greater than the one before.
    #[inline]
    pub fn advance(&mut self, leaf: u32, key: K) {
        let mut node = self.leaves() + leaf as usize;
        // Above a node that stays nothing changes either.
        while node > 0 && key < self.nodes[node] {
            self.nodes[node] = key;
            node /= 2;
        }
        self.first = self.nodes[1];
    }

    /// Visits each leaf with a key below `bound`.
    pub fn visit_below(&self, bound: K, visit: &mut impl FnMut(K)) {
        if self.first < bound {
            self.visit_node(1, bound, visit);
        }
    }

    fn visit_node(&self, node: usize, bound: K, visit: &mut impl FnMut(K)) {
        if node >= self.leaves() {
            return visit(self.nodes[node]);
        }
        // Most nodes are not below, and a call costs more than a look.
        for child in [2 * node, 2 * node + 1] {
            if self.nodes[child] < bound {
                self.visit_node(child, bound, visit);
            }
        }
    }

    /// Makes room for this leaf.
    pub fn grow(&mut self, leaf: u32) {
        let mut grown = Self::new(leaf as usize + 1);
        for leaf in 0..self.leaves() as u32 {
            grown.set(leaf, self.key(leaf));
        }
        *self = grown;
    }
}

/// [`Replay`] for a tree of `N` nodes: unrolled, and without checks of bounds.
fn replay<K: Key, const N: usize>(nodes: &mut [K], leaf: u32, key: K) -> K {
    let Ok(nodes) = <&mut [K; N]>::try_from(nodes) else { return key };
    let mut node = (N / 2 + leaf as usize) % N;
    let mut winner = key;
    nodes[node] = key;
    for _ in 1..N.trailing_zeros() {
        winner = smaller(winner, nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
    winner
}

/// [`Replay`] for a tree of any size.
fn replay_any<K: Key>(nodes: &mut [K], leaf: u32, key: K) -> K {
    let mut node = nodes.len() / 2 + leaf as usize;
    let mut winner = key;
    nodes[node] = key;
    while node > 1 {
        winner = smaller(winner, nodes[node ^ 1]);
        node /= 2;
        nodes[node] = winner;
    }
    winner
}

/// The smaller key, without a jump: which one it is cannot be predicted.
#[inline]
fn smaller<K: Key>(one: K, other: K) -> K {
    #[cfg(has_select_unpredictable)]
    #[allow(clippy::incompatible_msrv)]
    return std::hint::select_unpredictable(other < one, other, one);
    #[cfg(not(has_select_unpredictable))]
    one.min(other)
}
