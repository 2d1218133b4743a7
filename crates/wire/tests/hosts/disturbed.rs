//! A disturbed wire, for trying out: loses, duplicates and reorders packets by chance.

use std::collections::VecDeque;

/// Rates of disturbances, each as the share of affected packets, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Packets that are lost.
    pub lose: f64,
    /// Packets that are sent twice.
    pub duplicate: f64,
    /// Packets that are held back.
    pub reorder: f64,
    /// Packets that overtake one that is held back.
    pub reorder_by: u32,
    /// Decides which packets are hit.
    pub seed: u64,
}

/// One direction of a disturbed wire.
#[derive(Debug)]
pub struct Disturbed {
    rules: Disturbance,
    state: u64,
    /// Packets held back, and how many others are yet to overtake each.
    held: VecDeque<(u32, Vec<u8>)>,
}

impl Disturbed {
    /// A direction; `number` separates its draws from those of others.
    pub fn new(rules: Disturbance, number: u64) -> Disturbed {
        Disturbed { rules, state: rules.seed.wrapping_mul(2).wrapping_add(number), held: VecDeque::new() }
    }

    /// A packet enters; `leave` is called for each that leaves now. A packet held back leaves behind those that overtake
    /// it, so the last ones stay where nothing follows: a sender that waits for them retransmits.
    pub fn pass(&mut self, packet: &[u8], mut leave: impl FnMut(&[u8])) {
        if self.hits(self.rules.lose) {
            return;
        }
        if self.hits(self.rules.reorder) {
            self.held.push_back((self.rules.reorder_by, packet.to_vec()));
            return;
        }
        leave(packet);
        if self.hits(self.rules.duplicate) {
            leave(packet);
        }
        self.held.iter_mut().for_each(|(overtaking, _)| *overtaking -= 1);
        while self.held.front().is_some_and(|(overtaking, _)| *overtaking == 0) {
            let (_, late) = self.held.pop_front().unwrap_or_default();
            leave(&late);
        }
    }

    fn hits(&mut self, share: f64) -> bool {
        if share == 0.0 {
            return false;
        }
        // SplitMix64, whose high bits make a number from 0 to 1.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = self.state;
        let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let value = value ^ value >> 31;
        ((value >> 11) as f64) < share * (1u64 << 53) as f64
    }
}

mod tests {
    use super::*;

    fn through(rules: Disturbance, count: u32) -> Vec<u32> {
        let mut wire = Disturbed::new(rules, 0);
        let mut out = Vec::new();
        for number in 0..count {
            wire.pass(&number.to_be_bytes(), |packet| out.push(u32::from_be_bytes(packet.try_into().unwrap())));
        }
        out
    }

    #[test]
    fn without_rules_nothing_is_disturbed() {
        assert_eq!(through(Disturbance::default(), 100), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn each_rule_hits_its_share() {
        let share = |found: usize| found as f64 / 100_000.0;
        let lost = 100_000 - through(Disturbance { lose: 0.01, ..Disturbance::default() }, 100_000).len();
        assert!((share(lost) - 0.01).abs() < 0.001, "{lost} lost");
        let twice = through(Disturbance { duplicate: 0.02, ..Disturbance::default() }, 100_000).len() - 100_000;
        assert!((share(twice) - 0.02).abs() < 0.002, "{twice} twice");
        let late = through(Disturbance { reorder: 0.01, reorder_by: 3, ..Disturbance::default() }, 100_000);
        let held = late.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!((share(held) - 0.01).abs() < 0.001, "{held} late");
    }
}
