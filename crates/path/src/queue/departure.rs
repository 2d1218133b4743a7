//! The interface of a discipline that decides on departure.

use std::{collections::VecDeque, fmt::Debug};

use crate::{Nanos, OfferedPacket};

/// Whatever the owner of a queue knows a packet by.
pub trait Packet: Copy + Debug + Send + 'static {}

impl<T: Copy + Debug + Send + 'static> Packet for T {}

/// A packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<T> {
    /// The packet, as its owner knows it.
    pub packet: T,
    /// The link's data on the packet.
    pub offered: OfferedPacket,
    /// When it came.
    pub arrived: Nanos,
    /// Packets that waited as it came.
    pub ahead: u32,
}

/// A packet that a queue lets go into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// The packet.
    pub held: Held<T>,
    /// It leaves with "congestion experienced" in its IP header.
    pub marked: bool,
}

/// A discipline that holds the packets.
pub trait OnDeparture<T: Packet>: Debug + Send {
    /// Takes in a packet. Those that are dropped for it, itself perhaps, go to `dropped`.
    fn enqueue(&mut self, held: Held<T>, dropped: &mut Vec<Held<T>>);

    /// The packet that leaves at `now`; none if no packet is left. Those that are dropped before it go to `dropped`.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Held<T>>) -> Option<Released<T>>;

    /// Packets that wait.
    fn packets(&self) -> u32;
}

/// Packets in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Fifo<T> {
    packets: VecDeque<Held<T>>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Packet> Fifo<T> {
    pub(super) fn push(&mut self, held: Held<T>) {
        self.bytes += u64::from(held.offered.bytes);
        self.packets.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<Held<T>> {
        let held = self.packets.pop_front()?;
        self.bytes -= u64::from(held.offered.bytes);
        Some(held)
    }

    pub(super) fn packets(&self) -> u32 {
        self.packets.len() as u32
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
