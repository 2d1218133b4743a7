//! A line of fixed rate that carries packets off one by one, in the plainest way, and the same by the crate.

use firstflight_path::{Holding, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket, queue::QueueSpec};
use proptest::prelude::*;

pub const MILLISECOND: Nanos = 1_000_000;
/// 8 Mbit/s: a byte a microsecond.
pub const NANOS_A_BYTE: Nanos = 1_000;

/// A packet of a test: when it comes, its size, its flow, whether it can be marked.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    pub at: Nanos,
    pub bytes: u32,
    pub flow: u32,
    pub ecn_capable: bool,
}

/// The outcome of a packet: its number, and whether it was dropped, sent, or sent with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Became {
    Dropped(usize),
    Sent { number: usize, at: Nanos, marked: bool },
}

/// Packets that come at random, in bursts and pauses, at more than the line's rate on the whole.
pub fn arrivals() -> impl Strategy<Value = Vec<Coming>> {
    let burst = (0..120 * MILLISECOND, 1..60u32, 40..=1500u32, 0..6u32, any::<bool>());
    prop::collection::vec(burst, 1..60).prop_map(|bursts| {
        let mut at = 0;
        let mut all = Vec::new();
        for (pause, packets, bytes, flow, ecn_capable) in bursts {
            at += pause;
            for _ in 0..packets {
                all.push(Coming { at, bytes, flow, ecn_capable });
                at += 300_000;
            }
        }
        all
    })
}

/// A queue as in its RFC.
pub trait Reference {
    /// A packet comes; numbers of those that are dropped for it.
    fn enqueue(&mut self, number: usize, packet: Coming) -> Vec<usize>;
    /// The number of the packet that leaves, whether it is marked; and those that are dropped before it.
    fn dequeue(&mut self, now: Nanos) -> (Option<(usize, bool)>, Vec<usize>);
    fn is_empty(&self) -> bool;
}

/// The line before which a reference queue is.
pub fn by_reference(queue: &mut dyn Reference, packets: &[Coming], end: Nanos) -> Vec<Became> {
    let (mut became, mut free_at, mut next) = (Vec::new(), 0, 0);
    loop {
        let arrival = packets.get(next).map_or(end, |packet| packet.at);
        let departure = if queue.is_empty() { end } else { free_at };
        // A packet that departs at the time of an arrival departs before it.
        if departure <= arrival && departure < end {
            let (sent, dropped) = queue.dequeue(departure);
            became.extend(dropped.into_iter().map(Became::Dropped));
            if let Some((number, marked)) = sent {
                became.push(Became::Sent { number, at: departure, marked });
                free_at = departure + Nanos::from(packets[number].bytes) * NANOS_A_BYTE;
            }
        } else if arrival < end {
            became.extend(queue.enqueue(next, packets[next]).into_iter().map(Became::Dropped));
            free_at = free_at.max(arrival);
            next += 1;
        } else {
            return became;
        }
    }
}

/// The same packets over a link of this crate; and its meter's packets: offered, dropped, sent.
pub fn by_link(queue: QueueSpec, packets: &[Coming], end: Nanos) -> (Vec<Became>, [u64; 3]) {
    let spec = LinkSpec::plain(Some(8_000_000_000 / NANOS_A_BYTE), 0, queue);
    let mut link = Link::new(&spec, Meter::new(2 * end, 2 * end), 0).unwrap();
    let mut holding = Holding::<usize>::new(&spec, 1).unwrap().unwrap();
    let mut left = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let offered = OfferedPacket {
            bytes: packet.bytes,
            ecn_capable: packet.ecn_capable,
            carries_data: true,
            ends_train: false,
            connection: packet.flow,
            class: packet.flow as u8,
        };
        holding.offer(&mut link, packet.at, offered, number, |_| 1.0, &mut left);
    }
    while let Some(due) = holding.due().filter(|&due| due < end) {
        holding.advance(&mut link, due, |_| 1.0, &mut left);
    }
    let mut waiting = 0;
    holding.close(&mut link, end, |_| waiting += 1);
    assert_eq!(left.len() + waiting, packets.len(), "no packet is gone, and none is there twice");
    let became = left.iter().map(|left| match left.outcome {
        LinkOutcome::Arrives(_) => Became::Sent { number: left.packet, at: left.at, marked: false },
        LinkOutcome::Marked(_) => Became::Sent { number: left.packet, at: left.at, marked: true },
        LinkOutcome::Dropped | LinkOutcome::Lost => Became::Dropped(left.packet),
    });
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    (became.collect(), [counts.offered_packets, counts.dropped_packets, counts.sent_packets])
}

/// Asserts that both make the same of the same packets.
pub fn assert_alike(queue: QueueSpec, reference: &mut dyn Reference, packets: &[Coming]) {
    let end = packets.last().map_or(0, |packet| packet.at) + 10_000 * MILLISECOND;
    let expected = by_reference(reference, packets, end);
    let (found, [offered, dropped, sent]) = by_link(queue, packets, end);
    assert_eq!(found, expected);
    let drops = expected.iter().filter(|became| matches!(became, Became::Dropped(_))).count() as u64;
    assert_eq!([offered, dropped, sent], [packets.len() as u64, drops, expected.len() as u64 - drops]);
}
