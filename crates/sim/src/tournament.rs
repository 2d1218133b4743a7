//! The smallest of many keys of which one changes at a time: a tournament tree.
//!
//! [`Tournament::set`] replays one path from leaf to root, in all but large trees without a branch that depends on the data,
//! which makes it faster than a heap when the keys are uneven (`bench` measures it).

use firstflight_path::select;

/// What a [`Tournament`] compares: the smallest wins.
pub trait Key: Copy + Ord {
    /// No key: greater than all others.
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
    /// The key of node 1, which only [`replay_any`] keeps in `nodes`.
    first: K,
    replay: Replay<K>,
}

/// Puts in the key of a leaf and replays its matches up to the root, whose key it returns.
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
    pub fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.nodes.fill(K::NEVER);
        self.first = K::NEVER;
    }

    /// The smallest key.
    pub fn first(&self) -> K {
        self.first
    }

    /// The key of a leaf; of a leaf beyond the last one `NEVER`.
    pub fn key(&self, leaf: u32) -> K {
        self.nodes.get(self.leaves() + leaf as usize).copied().unwrap_or(K::NEVER)
    }

    /// Changes the key of a leaf.
    pub fn set(&mut self, leaf: u32, key: K) {
        self.first = (self.replay)(&mut self.nodes, leaf, key);
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

    /// Grows the tree up to this leaf.
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
    for _ in 1..N.trailing_zeros() {
        nodes[node] = winner;
        winner = smaller(winner, nodes[node ^ 1]);
        node /= 2;
    }
    winner
}

/// [`Replay`] for a tree of any size: up to where the winner is the same as before, in a large one
/// mostly after few levels.
fn replay_any<K: Key>(nodes: &mut [K], leaf: u32, key: K) -> K {
    let mut node = nodes.len() / 2 + leaf as usize;
    let mut winner = key;
    while node > 1 {
        if nodes[node] == winner {
            return nodes[1];
        }
        nodes[node] = winner;
        winner = smaller(winner, nodes[node ^ 1]);
        node /= 2;
    }
    nodes[1] = winner;
    winner
}

/// The smaller key, without a jump: which one it is cannot be predicted.
fn smaller<K: Key>(one: K, other: K) -> K {
    select(other < one, other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets and removes keys of a tree of this size at random, and compares with a plain list.
    fn compare<K: Key + From<u32> + std::fmt::Debug>(leaves: usize) {
        let mut tree = Tournament::<K>::new(leaves);
        let mut keys = vec![K::NEVER; tree.leaves()];
        let mut draw = 1_u64;
        for step in 0..20_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (leaf, key) = ((draw >> 40) as usize % keys.len(), K::from((draw >> 52) as u32));
            keys[leaf] = if draw >> 62 == 0 { K::NEVER } else { key };
            tree.set(leaf as u32, keys[leaf]);
            assert_eq!(Some(tree.first()), keys.iter().min().copied());
            if step % 1000 == 999 {
                let bound = K::from(1000);
                let (mut below, mut sorted) = (Vec::new(), keys.clone());
                tree.visit_below(bound, &mut |key| below.push(key));
                below.sort_unstable();
                sorted.sort_unstable();
                assert_eq!(below, sorted[..sorted.partition_point(|key| *key < bound)]);
            }
        }
        let last = keys.len() as u32;
        tree.grow(last);
        assert!(tree.leaves() > last as usize && tree.key(last) == K::NEVER);
        assert!((0..last).all(|leaf| tree.key(leaf) == keys[leaf as usize]));
        tree.clear();
        assert!(tree.first() == K::NEVER && (0..=last).all(|leaf| tree.key(leaf) == K::NEVER));
    }

    #[test]
    fn the_first_key_is_the_smallest_however_they_change() {
        for leaves in [1, 2, 3, 40, 600] {
            compare::<u64>(leaves);
            compare::<u128>(leaves);
        }
    }
}
