//! Packets before a link whose queue decides on departure, and their outcomes.

use crate::{
    Link, LinkOutcome, LinkSpec, Nanos, OfferedPacket, SpecError,
    queue::{Held, OnDeparture, Packet},
};

/// A packet that waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left<T> {
    /// The packet, as its owner knows it.
    pub packet: T,
    /// The link's data on the packet.
    pub offered: OfferedPacket,
    /// When it came to the link.
    pub arrived: Nanos,
    /// When its transmission began, or when it was dropped.
    pub at: Nanos,
    /// Its outcome.
    pub outcome: LinkOutcome,
    /// When a copy of it reaches the far end, if it comes twice.
    pub copy: Option<Nanos>,
}

/// The packets before a link whose queue decides on departure.
///
/// The owner calls [`Holding::advance`] when the next departure is [due](Holding::due), and [`Holding::offer`] for each
/// arrival; both append packets that left the queue to `left`, in this order. A packet that departs at the time of an
/// arrival departs before it.
#[derive(Debug)]
pub struct Holding<T> {
    queue: Box<dyn OnDeparture<T>>,
    /// Time at which the link begins to send the next packet; `None` if no packet waits.
    due: Option<Nanos>,
    dropped: Vec<Held<T>>,
}

impl<T: Packet> Holding<T> {
    /// The queue that `spec` asks for, empty; none if it decides on arrival. `key` keys a hash of flows.
    ///
    /// # Errors
    /// An impossible queue.
    pub fn new(spec: &LinkSpec, key: u64) -> Result<Option<Holding<T>>, SpecError> {
        let queue = spec.queue.build_departure(key)?;
        Ok(queue.map(|queue| Holding { queue, due: None, dropped: Vec::new() }))
    }

    /// Time at which the link begins to send the next packet; `None` if no packet waits.
    pub fn due(&self) -> Option<Nanos> {
        self.due
    }

    /// Packets that wait.
    pub fn packets(&self) -> u32 {
        self.queue.packets()
    }

    /// A packet comes to the link at `now`. `loss_draw` gives a packet's draw for whether it is lost at random.
    pub fn offer(
        &mut self,
        link: &mut Link,
        now: Nanos,
        offered: OfferedPacket,
        packet: T,
        mut loss_draw: impl FnMut(&T) -> f64,
        left: &mut Vec<Left<T>>,
    ) {
        self.advance(link, now, &mut loss_draw, left);
        let held = Held { packet, offered, arrived: now, ahead: self.queue.packets() };
        self.queue.enqueue(held, &mut self.dropped);
        self.note_dropped(link, now, left);
        if self.due.is_none() && self.queue.packets() > 0 {
            self.due = Some(link.ready_at(now));
            self.advance(link, now, loss_draw, left);
        }
    }

    /// Releases the packets due until `now`.
    pub fn advance(
        &mut self,
        link: &mut Link,
        now: Nanos,
        mut loss_draw: impl FnMut(&T) -> f64,
        left: &mut Vec<Left<T>>,
    ) {
        while let Some(due) = self.due.filter(|&due| due <= now) {
            let released = self.queue.dequeue(due, &mut self.dropped);
            self.note_dropped(link, due, left);
            if let Some(released) = released {
                let Held { packet, offered, arrived, .. } = released.held;
                let outcome = link.depart(due, &released, || loss_draw(&packet));
                left.push(Left { packet, offered, arrived, at: due, outcome, copy: link.copy() });
            }
            self.due = (self.queue.packets() > 0).then(|| link.ready_after(due));
        }
    }

    /// The end of the time that is looked at: gives back the packets that still wait.
    pub fn close(&mut self, link: &mut Link, now: Nanos, mut waiting: impl FnMut(T)) {
        self.due = None;
        while let Some(released) = self.queue.dequeue(now, &mut self.dropped) {
            self.dropped.push(released.held);
        }
        for held in self.dropped.drain(..) {
            link.meter.waited(held.arrived, now, held.ahead);
            waiting(held.packet);
        }
    }

    fn note_dropped(&mut self, link: &mut Link, at: Nanos, left: &mut Vec<Left<T>>) {
        for held in self.dropped.drain(..) {
            let Held { packet, offered, arrived, ahead } = held;
            link.meter.dropped_from_queue(arrived, at, ahead);
            left.push(Left { packet, offered, arrived, at, outcome: LinkOutcome::Dropped, copy: None });
        }
    }
}
