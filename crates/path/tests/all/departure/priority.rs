//! Strict priority.

use firstflight_path::queue::{CodelSpec, Limit, PrioritySpec, QueueSpec};
use proptest::prelude::*;

use super::line::{Became, Coming, MILLISECOND, Reference, arrivals, assert_alike, by_link};

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

fn coming(at: u64, bytes: u32, class: u32) -> Coming {
    Coming { at, bytes, flow: class, ecn_capable: false }
}

#[test]
fn a_limit_in_bytes_is_one_of_each_class() {
    let queue = QueueSpec::Priority(PrioritySpec { limit: Limit::Bytes(2000), codel: None });
    // The first goes on the line. Of each class 1999 bytes wait, and another byte has room.
    let packets = [(500, 3), (1000, 0), (999, 0), (2, 0), (1, 0), (1999, 3), (2, 3), (1, 3)];
    let packets = packets.map(|(bytes, class)| coming(0, bytes, class));
    let (became, _) = by_link(queue, &packets, 100 * MILLISECOND);
    let dropped: Vec<_> = became.iter().filter(|became| matches!(became, Became::Dropped(_))).collect();
    assert_eq!(dropped, [&Became::Dropped(3), &Became::Dropped(6)]);
}

#[test]
fn a_class_above_the_highest_counts_as_the_highest() {
    let queue = QueueSpec::Priority(PrioritySpec { limit: Limit::Packets(9), codel: None });
    // The first goes on the line; of the others the classes from 7 on leave in the order in which they came, and 6 behind.
    let packets = [0, 6, 7, 8, 255].map(|class| coming(0, 1000, class));
    let (became, _) = by_link(queue, &packets, 100 * MILLISECOND);
    let order = became.iter().map(|became| match became {
        Became::Sent { number, .. } | Became::Dropped(number) => *number,
    });
    assert_eq!(order.collect::<Vec<_>>(), [0, 2, 3, 4, 1]);
}
