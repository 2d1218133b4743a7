//! FQ-CoDel against RFC 8290 sections 4.1 and 4.2, with a flow that hashes into no other's queue.

use std::collections::VecDeque;

use firstflight_path::{
    Nanos, OfferedPacket,
    queue::{FqCodelSpec, Held, Limit, QueueSpec},
};
use proptest::prelude::*;

use super::{
    codel::CodelQueue,
    line::{Became, Coming, MILLISECOND, Reference, arrivals, assert_alike, by_link},
};

/// The RFC's lists and queues, one for each flow.
struct FqCodelQueue {
    quantum: i64,
    limit: Limit,
    queues: Vec<CodelQueue>,
    credits: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqCodelQueue {
    fn packets(&self) -> usize {
        self.queues.iter().map(|queue| queue.packets.len()).sum()
    }

    fn is_too_full(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => self.packets() > limit as usize,
            Limit::Bytes(limit) => self.queues.iter().map(CodelQueue::bytes).sum::<u32>() > limit as u32,
        }
    }
}

impl Reference for FqCodelQueue {
    fn enqueue(&mut self, number: usize, packet: Coming) -> Vec<usize> {
        let flow = packet.flow as usize;
        self.queues[flow].enqueue(number, packet);
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.new.push_back(flow);
            self.credits[flow] = self.quantum;
        }
        let mut dropped = Vec::new();
        while self.is_too_full() {
            let fattest = (0..self.queues.len()).max_by_key(|&flow| self.queues[flow].bytes()).unwrap();
            let half = self.queues[fattest].bytes() / 2;
            let (mut packets, mut bytes) = (0, 0);
            while packets < 64 && (packets == 0 || bytes < half) {
                let (number, packet) = self.queues[fattest].packets.pop_front().unwrap();
                packets += 1;
                bytes += packet.bytes;
                dropped.push(number);
            }
        }
        dropped
    }

    fn dequeue(&mut self, now: Nanos) -> (Option<(usize, bool)>, Vec<usize>) {
        let mut all_dropped = Vec::new();
        loop {
            let is_new = !self.new.is_empty();
            let Some(&flow) = self.new.front().or(self.old.front()) else { return (None, all_dropped) };
            let list = if is_new { &mut self.new } else { &mut self.old };
            if self.credits[flow] <= 0 {
                self.credits[flow] += self.quantum;
                list.pop_front();
                self.old.push_back(flow);
                continue;
            }
            let sizes: Vec<(usize, u32)> = self.queues[flow].packets.iter().map(|(n, p)| (*n, p.bytes)).collect();
            let (sent, dropped) = self.queues[flow].dequeue(now);
            all_dropped.extend(dropped);
            let Some((number, marked)) = sent else {
                list.pop_front();
                if is_new {
                    self.old.push_back(flow);
                }
                continue;
            };
            let bytes = sizes.iter().find(|(one, _)| *one == number).unwrap().1;
            self.credits[flow] -= i64::from(bytes);
            return (Some((number, marked)), all_dropped);
        }
    }

    fn is_empty(&self) -> bool {
        self.packets() == 0
    }
}

fn spec(limit: Limit, quantum_bytes: u32, ecn: bool) -> QueueSpec {
    let (target_ns, interval_ns) = (5 * MILLISECOND, 100 * MILLISECOND);
    // So many queues that the few flows of a test share none.
    QueueSpec::FqCodel(FqCodelSpec { limit, target_ns, interval_ns, ecn, flows: 65_536, quantum_bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn fq_codel_drops_marks_and_sends_as_the_rfc(
        mut packets in arrivals(), quantum in 300..3000u32, ecn in any::<bool>(),
        limit in prop_oneof![(5..300u32).prop_map(Limit::Packets), (5_000..200_000u64).prop_map(Limit::Bytes)],
    ) {
        // Which of two equally long queues is dropped from follows no rule: sizes that are the flow's own.
        packets.iter_mut().for_each(|packet| packet.bytes = 400 + 151 * packet.flow);
        let codel = |_| CodelQueue::new(usize::MAX, 5 * MILLISECOND, 100 * MILLISECOND, ecn);
        let mut reference = FqCodelQueue {
            quantum: i64::from(quantum),
            limit,
            queues: (0..6).map(codel).collect(),
            credits: vec![0; 6],
            new: VecDeque::new(),
            old: VecDeque::new(),
        };
        assert_alike(spec(limit, quantum, ecn), &mut reference, &packets);
    }
}

fn coming(at: Nanos, flow: u32) -> Coming {
    Coming { at, bytes: 1000, flow, ecn_capable: false }
}

#[test]
fn a_sparse_flow_overtakes_those_that_fill_the_queue() {
    let mut packets: Vec<Coming> = (0..20).map(|_| coming(0, 1)).collect();
    packets.push(coming(MILLISECOND / 2, 2));
    let (became, _) = by_link(spec(Limit::Packets(1000), 1000, false), &packets, 100 * MILLISECOND);
    let at = |number| became.iter().position(|became| matches!(became, Became::Sent { number: n, .. } if *n == number));
    assert_eq!(at(20), Some(1), "right after the packet on the line");
}

#[test]
fn too_many_packets_cost_the_longest_queue_and_no_other() {
    let mut packets: Vec<Coming> = (0..5).map(|_| coming(0, 1)).collect();
    packets.extend((0..100).map(|_| coming(1, 2)));
    let (became, [_, dropped, _]) = by_link(spec(Limit::Packets(50), 1000, false), &packets, 200 * MILLISECOND);
    let of_the_short = became.iter().filter(|became| matches!(became, Became::Dropped(number) if *number < 5)).count();
    assert!(dropped > 20 && of_the_short == 0, "{dropped} dropped, {of_the_short} of the short queue");
}

/// A spec with this many queues.
fn with_queues(flows: u32) -> FqCodelSpec {
    match spec(Limit::Packets(1000), 1000, false) {
        QueueSpec::FqCodel(spec) => FqCodelSpec { flows, ..spec },
        other => panic!("{other:?}"),
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let possible = |spec| QueueSpec::FqCodel(spec).build_departure::<u32>(0).is_ok();
    for flows in [1, 65_536] {
        assert!(possible(with_queues(flows)), "{flows}");
    }
    for spec in [with_queues(0), with_queues(65_537), FqCodelSpec { quantum_bytes: 0, ..with_queues(4) }] {
        assert!(!possible(spec.clone()), "{spec:?}");
    }
}

/// The order in which one packet of each of 200 flows leaves four queues.
fn order(key: u64) -> Vec<u32> {
    let mut queue = QueueSpec::FqCodel(with_queues(4)).build_departure::<u32>(key).unwrap().unwrap();
    let mut dropped = Vec::new();
    for flow in 0..200 {
        let offered = OfferedPacket {
            bytes: 1000,
            ecn_capable: false,
            carries_data: true,
            ends_train: false,
            connection: flow,
            class: 0,
        };
        queue.enqueue(Held { packet: flow, offered, arrived: 0, ahead: flow }, &mut dropped);
    }
    let order = std::iter::from_fn(|| queue.dequeue(0, &mut dropped)).map(|released| released.held.packet).collect();
    assert!(dropped.is_empty());
    order
}

// RFC 8290 section 4.1: flows are hashed with a random number that is chosen at the start.
#[test]
fn flows_are_spread_over_all_queues_and_another_key_spreads_them_anew() {
    for key in [0, u64::MAX] {
        let order = order(key);
        // Each queue sends a packet in its turn, its own flows in their order. None of the four is empty before 25 turns,
        // and the first arrival does not depart first, as it would from one queue.
        for queue in 0..4 {
            let flows: Vec<u32> = order[..100].iter().skip(queue).step_by(4).copied().collect();
            assert!(flows.is_sorted(), "queue {queue}: {flows:?}");
        }
        assert!(!order.is_sorted(), "key {key}");
    }
    assert_ne!(order(0), order(u64::MAX));
}
