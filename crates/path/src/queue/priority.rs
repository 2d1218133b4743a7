//! Strict priority: a packet leaves only when no packet of a higher class waits (Linux's `prio`; RFC 6928 section 7 names
//! such classification as a way to shelter other traffic).

use super::{CodelSpec, Held, Limit, OnDeparture, Packet, Released, codel::ControlLaw, departure::Fifo};
use crate::{Nanos, SpecError, spec::spec};

/// Classes of packets: 0 is the lowest.
const CLASSES: usize = 8;

spec! {
    /// Strict priority: a packet leaves when none of a higher class waits. An application's `priority` is its class.
    ///
    /// Each class holds `limit`, first in, first out, or with `codel` by CoDel.
    pub struct PrioritySpec {
        /// limit of each class; packets that arrive beyond it are dropped
        limit: Limit = Limit::Packets(1000),
        /// CoDel in each class, whose own `limit` counts no more; default: first in, first out
        codel: Option<CodelSpec> = None,
    }
}

/// A queue for each class.
#[derive(Debug)]
pub struct Priority<T> {
    spec: PrioritySpec,
    classes: [(Fifo<T>, ControlLaw); CLASSES],
}

impl<T: Packet> Priority<T> {
    /// Builds the queues, which hash nothing.
    ///
    /// # Errors
    /// A limit of zero, times that are none.
    pub fn new(spec: &PrioritySpec, _key: u64) -> Result<Priority<T>, SpecError> {
        spec.limit.validate()?;
        spec.codel.as_ref().map_or(Ok(()), CodelSpec::validate)?;
        Ok(Priority { spec: spec.clone(), classes: Default::default() })
    }
}

impl<T: Packet> OnDeparture<T> for Priority<T> {
    fn enqueue(&mut self, held: Held<T>, dropped: &mut Vec<Held<T>>) {
        let class = usize::from(held.offered.class).min(CLASSES - 1);
        let (fifo, _) = &mut self.classes[class];
        if self.spec.limit.is_exceeded_by(fifo.packets() + 1, fifo.bytes() + u64::from(held.offered.bytes)) {
            dropped.push(held);
        } else {
            fifo.push(held);
        }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Held<T>>) -> Option<Released<T>> {
        self.classes.iter_mut().rev().find_map(|(fifo, law)| match &self.spec.codel {
            Some(codel) => law.dequeue(codel, now, fifo, dropped),
            None => fifo.pop().map(|held| Released { held, marked: false }),
        })
    }

    fn packets(&self) -> u32 {
        self.classes.iter().map(|(fifo, _)| fifo.packets()).sum()
    }
}
