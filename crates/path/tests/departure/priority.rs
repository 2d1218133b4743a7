//! Strict priority.

use firstflight_path::queue::{CodelSpec, Limit, PrioritySpec, QueueSpec};
use proptest::prelude::*;

use crate::line::{Became, Coming, MILLISECOND, Reference, arrivals, assert_alike, by_link};

/// Packets by class, which is the flow of the test.
struct Classes(Vec<Vec<usize>>, usize);

impl Reference for Classes {
    fn enqueue(&mut self, number: usize, packet: Coming) -> Vec<usize> {
        let class = &mut self.0[packet.flow as usize];
        if class.len() >= self.1 {
            return vec![number];
        }
        class.push(number);
        vec![]
    }

    fn dequeue(&mut self, _: u64) -> (Option<(usize, bool)>, Vec<usize>) {
        let highest = self.0.iter_mut().rev().find(|class| !class.is_empty());
        (highest.map(|class| (class.remove(0), false)), vec![])
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

proptest! {
    #[test]
    fn the_highest_class_that_waits_leaves_first(packets in arrivals(), limit in 1..200u32) {
        let queue = QueueSpec::Priority(PrioritySpec { limit: Limit::Packets(limit), codel: None });
        assert_alike(queue, &mut Classes(vec![vec![]; 8], limit as usize), &packets);
    }
}

#[test]
fn codel_in_a_class_drops_from_that_class_alone() {
    let limit = Limit::Packets(1000);
    let codel = CodelSpec { limit, target_ns: 5 * MILLISECOND, interval_ns: 100 * MILLISECOND, ecn: true };
    let queue = QueueSpec::Priority(PrioritySpec { limit, codel: Some(codel) });
    // The line takes a packet each millisecond; the high class uses half of it, the low class wants all.
    let mut packets: Vec<Coming> = (0..2000)
        .map(|number| Coming { at: number * MILLISECOND, bytes: 1000, flow: 0, ecn_capable: number % 2 == 0 })
        .chain((0..1000).map(|number| Coming {
            at: 2 * number * MILLISECOND,
            bytes: 1000,
            flow: 7,
            ecn_capable: false,
        }))
        .collect();
    packets.sort_by_key(|packet| packet.at);
    let (became, _) = by_link(queue, &packets, 3000 * MILLISECOND);
    let dropped = became.iter().filter_map(|became| match became {
        Became::Dropped(number) => Some(packets[*number]),
        Became::Sent { .. } => None,
    });
    let dropped: Vec<Coming> = dropped.collect();
    assert!(dropped.len() > 20 && dropped.iter().all(|packet| packet.flow == 0 && !packet.ecn_capable));
    assert!(became.iter().any(|became| matches!(became, Became::Sent { marked: true, .. })));
}
