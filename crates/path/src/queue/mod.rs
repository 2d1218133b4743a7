//! Queue disciplines: who is let in when the line is busy.

mod drop_tail;
mod red;

pub use drop_tail::{DropTail, DropTailSpec};
pub use red::{Red, RedSpec};

use serde::{Deserialize, Serialize};

use crate::{Nanos, backlog::Backlog};

/// What a queue sees when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Time of arrival.
    pub now: Nanos,
    /// Bytes of the arriving packet, headers included.
    pub bytes: u32,
    /// Its sender reacts to marks as it does to losses: ECT(0), ECT(1) or CE in the IP header (RFC 3168 §5).
    pub ecn_capable: bool,
    /// Packets that wait for the line.
    pub backlog: &'a Backlog,
    /// The line is transmitting a packet.
    pub line_busy: bool,
    /// Since when the line has been idle; meaningful when it is not busy.
    pub idle_since: Nanos,
}

impl Arrival<'_> {
    /// Packets held: those that wait and, if `with_service`, the one on the line.
    #[inline]
    fn packets(&self, with_service: bool) -> u32 {
        self.backlog.packets() + u32::from(with_service && self.line_busy)
    }

    /// Bytes held, as [`Arrival::packets`] counts packets.
    #[inline]
    fn bytes_held(&self, with_service: bool) -> u64 {
        let in_service = if with_service && self.line_busy { self.backlog.in_service_bytes() } else { 0 };
        self.backlog.bytes() + u64::from(in_service)
    }
}

/// What a queue does with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Lets it in.
    Admit,
    /// Lets it in with "congestion experienced" in its IP header.
    Mark,
    /// Refuses it.
    Drop,
}

/// A queue discipline that decides on arrival.
#[derive(Clone, Debug)]
pub enum Queue {
    /// Drop tail.
    DropTail(DropTail),
    /// Random early detection.
    Red(Red),
}

impl Queue {
    /// What becomes of the arriving packet. `random` gives uniform draws in [0, 1).
    // By value: what is passed on by reference has to be put together in memory, also for a queue that asks little.
    #[inline]
    pub fn judge(&mut self, arrival: Arrival<'_>, random: &mut impl FnMut() -> f64) -> Verdict {
        match self {
            Queue::DropTail(queue) => {
                if queue.admits(&arrival) {
                    Verdict::Admit
                } else {
                    Verdict::Drop
                }
            }
            Queue::Red(queue) => queue.judge(arrival, random),
        }
    }
}

/// A queue as a scenario describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QueueSpec {
    /// Drop tail.
    DropTail(DropTailSpec),
    /// Random early detection.
    Red(RedSpec),
}

impl QueueSpec {
    /// Builds the queue. `serialization` gives the time to send a packet of so many bytes, by which RED ages its
    /// average over idle time.
    ///
    /// # Errors
    /// An impossible parameter: one sentence that names it.
    pub fn build(&self, serialization: impl Fn(u32) -> Nanos) -> Result<Queue, String> {
        match self {
            QueueSpec::DropTail(spec) => Ok(Queue::DropTail(DropTail::new(spec)?)),
            QueueSpec::Red(spec) => Ok(Queue::Red(Red::new(spec, serialization(spec.mean_packet_bytes))?)),
        }
    }
}
