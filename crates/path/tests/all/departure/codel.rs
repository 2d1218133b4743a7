//! CoDel against the pseudo-code of RFC 8289 sections 5.3 to 5.6.

use std::collections::VecDeque;

use firstflight_path::{
    Holding, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket,
    queue::{CodelSpec, Limit, QueueSpec},
};
use proptest::prelude::*;

use super::line::{Became, Coming, MILLISECOND, Reference, arrivals, assert_alike, by_link};

/// The RFC's queue with its names. `ecn`: marks as Linux does, where the RFC drops.
pub struct CodelQueue {
    pub packets: VecDeque<(usize, Coming)>,
    pub limit: usize,
    pub target: Nanos,
    pub interval: Nanos,
    pub ecn: bool,
    pub first_above_time: Nanos,
    pub drop_next: Nanos,
    pub count: u32,
    pub lastcount: u32,
    pub dropping: bool,
    pub maxpacket: u32,
}

type Dodequeued = (Option<(usize, Coming)>, bool);

impl CodelQueue {
    pub fn new(limit: usize, target: Nanos, interval: Nanos, ecn: bool) -> CodelQueue {
        CodelQueue {
            packets: VecDeque::new(),
            limit,
            target,
            interval,
            ecn,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            maxpacket: 0,
        }
    }

    pub fn bytes(&self) -> u32 {
        self.packets.iter().map(|(_, packet)| packet.bytes).sum()
    }

    fn control_law(&self, t: Nanos) -> Nanos {
        t + (self.interval as f64 / f64::from(self.count).sqrt()).floor() as Nanos
    }

    fn dodequeue(&mut self, now: Nanos) -> Dodequeued {
        let Some((number, packet)) = self.packets.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.maxpacket = self.maxpacket.max(packet.bytes);
        let mut ok_to_drop = false;
        let sojourn_time = now - packet.at;
        if sojourn_time < self.target || self.bytes() <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some((number, packet)), ok_to_drop)
    }
}

impl Reference for CodelQueue {
    fn enqueue(&mut self, number: usize, packet: Coming) -> Vec<usize> {
        if self.packets.len() >= self.limit {
            return vec![number];
        }
        self.packets.push_back((number, packet));
        vec![]
    }

    fn dequeue(&mut self, now: Nanos) -> (Option<(usize, bool)>, Vec<usize>) {
        let mut dropped = Vec::new();
        let (mut r, mut ok_to_drop) = self.dodequeue(now);
        let can_mark = |r: &Option<(usize, Coming)>| r.is_some_and(|(_, packet)| packet.ecn_capable);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.ecn && can_mark(&r) {
                    self.drop_next = self.control_law(self.drop_next);
                    return (r.map(|(number, _)| (number, true)), dropped);
                }
                dropped.extend(r.map(|(number, _)| number));
                (r, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let marked = self.ecn && can_mark(&r);
            if !marked {
                dropped.extend(r.map(|(number, _)| number));
                r = self.dodequeue(now).0;
            }
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount);
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
            return (r.map(|(number, _)| (number, marked)), dropped);
        }
        (r.map(|(number, _)| (number, false)), dropped)
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

fn spec(limit: Limit, target_ms: Nanos, interval_ms: Nanos, ecn: bool) -> QueueSpec {
    QueueSpec::Codel(CodelSpec {
        limit,
        target_ns: target_ms * MILLISECOND,
        interval_ns: interval_ms * MILLISECOND,
        ecn,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn codel_drops_marks_and_sends_as_the_rfc(
        packets in arrivals(), limit in 1..400u32, target in 1..20u64, interval in 20..200u64, ecn in any::<bool>(),
    ) {
        let (target_ns, interval_ns) = (target * MILLISECOND, interval * MILLISECOND);
        let mut reference = CodelQueue::new(limit as usize, target_ns, interval_ns, ecn);
        assert_alike(spec(Limit::Packets(limit), target, interval, ecn), &mut reference, &packets);
    }
}

/// Packets of 1000 bytes, one each millisecond's `share`, all on one flow: the line takes one each millisecond.
fn flood(packets: u64, share: f64, ecn_capable: bool) -> Vec<Coming> {
    let at = |number: u64| (number as f64 * share * 1e6) as Nanos;
    (0..packets).map(|number| Coming { at: at(number), bytes: 1000, flow: 0, ecn_capable }).collect()
}

#[test]
fn the_first_drop_comes_an_interval_after_the_delay_rose_above_the_target() {
    let (became, _) = by_link(spec(Limit::Packets(1000), 5, 100, false), &flood(1000, 0.5, false), 1000 * MILLISECOND);
    let first = became.iter().position(|became| matches!(became, Became::Dropped(_))).unwrap();
    // The tenth packet is the first to wait for 5 ms: it leaves at 10 ms, and a drop follows when 100 ms are over.
    assert!(matches!(became[first - 1], Became::Sent { at, .. } if at == 109 * MILLISECOND), "{:?}", became[first - 1]);
}

#[test]
fn packets_that_are_ecn_capable_are_marked_and_none_is_dropped() {
    let queue = spec(Limit::Packets(1000), 5, 100, true);
    let (became, [_, dropped, _]) = by_link(queue, &flood(1000, 0.5, true), 1000 * MILLISECOND);
    let marked = became.iter().filter(|became| matches!(became, Became::Sent { marked: true, .. })).count();
    assert!(marked > 20 && dropped == 0, "{marked} marked, {dropped} dropped");
}

#[test]
fn a_limit_in_bytes_holds_so_many() {
    let packets = vec![Coming { at: 0, bytes: 1000, flow: 0, ecn_capable: false }; 10];
    let (_, [_, dropped, sent]) = by_link(spec(Limit::Bytes(4000), 5, 100, false), &packets, 100 * MILLISECOND);
    assert_eq!((dropped, sent), (5, 5), "one in service and four that wait");
}

#[test]
fn nothing_is_due_where_the_one_packet_that_came_was_dropped() {
    let spec = LinkSpec::plain(Some(8_000_000), 0, spec(Limit::Bytes(999), 5, 100, false));
    let mut link = Link::new(&spec, Meter::new(MILLISECOND, MILLISECOND), 0).unwrap();
    let mut holding = Holding::<u32>::new(&spec, 0).unwrap().unwrap();
    let mut left = Vec::new();
    for bytes in [999, 1000] {
        let offered =
            OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 };
        holding.offer(&mut link, 0, offered, bytes, |_| 0.5, &mut left);
    }
    // The first is on the line, the second exceeds the limit.
    assert_eq!(
        left.iter().map(|left| left.outcome).collect::<Vec<_>>(),
        [LinkOutcome::Arrives(999_000), LinkOutcome::Dropped]
    );
    assert_eq!(holding.due(), None);
}

#[test]
fn impossible_parameters_are_refused() {
    for (limit, target, interval) in [
        (Limit::Packets(0), 5, 100),
        (Limit::Packets(1), 0, 100),
        (Limit::Packets(1), 5, 0),
        (Limit::Bytes(9), 101, 100),
    ] {
        assert!(spec(limit, target, interval, false).build_departure::<u32>(0).is_err());
    }
}
