//! Flow queues with CoDel: RFC 8290. Each flow hashes into its own queue with its own CoDel, and deficit round robin
//! serves the queues, those of flows that have just begun or send little (sparse flows) first.

use std::collections::VecDeque;

use super::{CodelSpec, Held, Limit, OnDeparture, Packet, Released, codel::ControlLaw, departure::Fifo};
use crate::{Nanos, SpecError, hash::mix, spec::spec};

spec! {
    /// Flow queues with CoDel (RFC 8290).
    ///
    /// Connections hash into `flows` queues, each with CoDel, which send `quantum` bytes in turn; those of connections that
    /// have just begun or send little come first. All together hold `limit`: beyond it the longest queue loses half.
    pub struct FqCodelSpec {
        /// limit; beyond it packets are dropped from the longest flow queue, up to half of it, 64 at most
        limit: Limit = Limit::Packets(10_240),
        /// target queueing delay of each flow queue
        target_ns: Nanos [> 0] = 5_000_000,
        /// time above `target` before a flow queue's first drop, as with `codel`
        interval_ns: Nanos = 100_000_000,
        /// CE-mark packets of ECN-capable connections instead of dropping them
        #[serde(default)]
        ecn: bool = false,
        /// number of flow queues, chosen by a hash of the connection
        flows: u32 [>= 1, <= 65536] = 1024,
        /// bytes that a flow queue sends per round
        quantum_bytes: u32 [>= 1] = 1514,
    }
}

/// RFC 8290 section 4.1 and Linux's `drop_batch_size`: packets that are dropped together when too many are held.
const DROP_BATCH: u32 = 64;

/// A queue of flows.
#[derive(Debug)]
struct Bucket<T> {
    fifo: Fifo<T>,
    law: ControlLaw,
    /// Bytes that it may still send in its turn.
    credits: i64,
    /// It is in one of the lists.
    is_active: bool,
}

/// An FQ-CoDel queue.
#[derive(Debug)]
pub struct FqCodel<T> {
    /// Of each bucket; its limit is that of all together.
    codel: CodelSpec,
    quantum_bytes: u32,
    key: u64,
    buckets: Vec<Bucket<T>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

impl<T: Packet> FqCodel<T> {
    /// Builds the queue, which hashes flows with `key`.
    ///
    /// # Errors
    /// Parameters of CoDel that are none.
    pub fn new(spec: &FqCodelSpec, key: u64) -> Result<FqCodel<T>, SpecError> {
        let &FqCodelSpec { limit, target_ns, interval_ns, ecn, flows, quantum_bytes } = spec;
        let codel = CodelSpec { limit, target_ns, interval_ns, ecn };
        codel.validate()?;
        let empty = |_| Bucket { fifo: Fifo::default(), law: ControlLaw::default(), credits: 0, is_active: false };
        let buckets = (0..flows).map(empty).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Ok(FqCodel { codel, quantum_bytes, key, buckets, new, old, packets: 0, bytes: 0 })
    }

    /// The number of a flow's queue.
    fn bucket_of(&self, flow: u32) -> u32 {
        let hash = mix(self.key ^ u64::from(flow));
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as u32
    }

    fn forget(&mut self, held: &Held<T>) {
        self.packets -= 1;
        self.bytes -= u64::from(held.offered.bytes);
    }

    /// RFC 8290 section 4.1: the queue that holds most bytes loses half of them from its head, up to a batch.
    fn drop_from_the_fattest(&mut self, dropped: &mut Vec<Held<T>>) {
        // The first of equals, as in Linux.
        let fattest = self.buckets.iter_mut().rev().max_by_key(|bucket| bucket.fifo.bytes());
        let Some(bucket) = fattest else { return };
        let threshold = bucket.fifo.bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(held) = bucket.fifo.pop() {
            packets += 1;
            bytes += u64::from(held.offered.bytes);
            dropped.push(held);
            if packets >= DROP_BATCH || bytes >= threshold {
                break;
            }
        }
        self.packets -= packets;
        self.bytes -= bytes;
    }
}

impl<T: Packet> OnDeparture<T> for FqCodel<T> {
    fn enqueue(&mut self, held: Held<T>, dropped: &mut Vec<Held<T>>) {
        let number = self.bucket_of(held.offered.connection);
        let bucket = &mut self.buckets[number as usize];
        self.packets += 1;
        self.bytes += u64::from(held.offered.bytes);
        bucket.fifo.push(held);
        if !bucket.is_active {
            bucket.is_active = true;
            bucket.credits = i64::from(self.quantum_bytes);
            self.new.push_back(number);
        }
        while self.codel.limit.is_exceeded_by(self.packets, self.bytes) {
            self.drop_from_the_fattest(dropped);
        }
    }

    /// RFC 8290 section 4.2.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Held<T>>) -> Option<Released<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let number = *self.new.front().or(self.old.front())?;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let bucket = &mut self.buckets[number as usize];
            if bucket.credits <= 0 {
                bucket.credits += i64::from(self.quantum_bytes);
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = dropped.len();
            let released = bucket.law.dequeue(&self.codel, now, &mut bucket.fifo, dropped);
            for held in &dropped[before..] {
                self.packets -= 1;
                self.bytes -= u64::from(held.offered.bytes);
            }
            let Some(released) = released else {
                list.pop_front();
                // A new queue becomes an old one first, or a flow could stay new for ever by sending packets singly.
                if is_new {
                    self.old.push_back(number);
                } else {
                    bucket.is_active = false;
                }
                continue;
            };
            bucket.credits -= i64::from(released.held.offered.bytes);
            self.forget(&released.held);
            return Some(released);
        }
    }

    fn packets(&self) -> u32 {
        self.packets
    }
}
