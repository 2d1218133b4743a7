//! FQ-CoDel against RFC 8290 sections 4.1 and 4.2, with a flow that hashes into no other's queue.

use std::collections::VecDeque;

use firstflight_path::{
    Nanos,
    queue::{CodelSpec, FqCodelSpec, Limit, QueueSpec},
};
use proptest::prelude::*;

use crate::{
    codel::CodelQueue,
    line::{Became, Coming, MILLISECOND, Reference, arrivals, assert_alike, by_link},
};

/// The RFC's lists and queues, one for each flow.
struct FqCodelQueue {
    quantum: i64,
    limit: usize,
    queues: Vec<CodelQueue>,
    credits: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqCodelQueue {
    fn packets(&self) -> usize {
        self.queues.iter().map(|queue| queue.packets.len()).sum()
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
        if self.packets() > self.limit {
            let fattest = (0..self.queues.len()).max_by_key(|&flow| self.queues[flow].bytes()).unwrap();
            let half = self.queues[fattest].bytes() / 2;
            let mut bytes = 0;
            while dropped.len() < 64 && (dropped.is_empty() || bytes < half) {
                let (number, packet) = self.queues[fattest].packets.pop_front().unwrap();
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

fn spec(limit: u32, quantum_bytes: u32, ecn: bool) -> QueueSpec {
    let codel =
        CodelSpec { limit: Limit::Packets(limit), target_ns: 5 * MILLISECOND, interval_ns: 100 * MILLISECOND, ecn };
    // So many queues that the few flows of a test share none.
    QueueSpec::FqCodel(FqCodelSpec { codel, flows: 65_536, quantum_bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn fq_codel_drops_marks_and_sends_as_the_rfc(
        mut packets in arrivals(), limit in 5..300u32, quantum in 300..3000u32, ecn in any::<bool>(),
    ) {
        // Which of two equally long queues is dropped from is nobody's rule: sizes that are the flow's own.
        packets.iter_mut().for_each(|packet| packet.bytes = 400 + 151 * packet.flow);
        let codel = |_| CodelQueue::new(usize::MAX, 5 * MILLISECOND, 100 * MILLISECOND, ecn);
        let mut reference = FqCodelQueue {
            quantum: i64::from(quantum),
            limit: limit as usize,
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
    let (became, _) = by_link(spec(1000, 1000, false), &packets, 100 * MILLISECOND);
    let at = |number| became.iter().position(|became| matches!(became, Became::Sent { number: n, .. } if *n == number));
    assert_eq!(at(20), Some(1), "right after the packet on the line");
}

#[test]
fn too_many_packets_cost_the_longest_queue_and_no_other() {
    let mut packets: Vec<Coming> = (0..5).map(|_| coming(0, 1)).collect();
    packets.extend((0..100).map(|_| coming(1, 2)));
    let (became, [_, dropped, _]) = by_link(spec(50, 1000, false), &packets, 200 * MILLISECOND);
    let of_the_short = became.iter().filter(|became| matches!(became, Became::Dropped(number) if *number < 5)).count();
    assert!(dropped > 20 && of_the_short == 0, "{dropped} dropped, {of_the_short} of the short queue");
}

#[test]
fn flows_are_spread_over_all_queues_and_another_key_spreads_them_anew() {
    let spec = FqCodelSpec {
        flows: 4,
        ..match spec(1000, 1000, false) {
            QueueSpec::FqCodel(spec) => spec,
            other => panic!("{other:?}"),
        }
    };
    assert!(QueueSpec::FqCodel(FqCodelSpec { flows: 0, ..spec }).build_departure::<u32>(0).is_err());
    assert!(QueueSpec::FqCodel(FqCodelSpec { quantum_bytes: 0, ..spec }).build_departure::<u32>(0).is_err());
    // 4 flows in turn, if each has a queue of its own: with 200 flows and 4 queues, four leave before one queue repeats.
    let order = |flows: u32| {
        let packets: Vec<Coming> = (0..3).flat_map(|_| (0..flows).map(|flow| coming(0, flow))).collect();
        let (became, _) = by_link(QueueSpec::FqCodel(spec), &packets, 1000 * MILLISECOND);
        became
    };
    assert_eq!(order(200).len(), 600);
}
