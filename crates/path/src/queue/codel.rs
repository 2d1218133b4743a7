//! Controlled delay: RFC 8289, with its names. Where its pseudo-code drops, a packet that is ECN-capable can be marked
//! instead, as section 5.1 allows; it then leaves, and the law goes on as after a drop (Linux's `codel_impl.h`).

use super::{
    Held, Limit, OnDeparture, Released,
    departure::{Fifo, Packet},
};
use crate::{Nanos, SpecError, spec::spec};

spec! {
    /// Controlled Delay (RFC 8289), which decides as packets leave.
    ///
    /// Once the delay in the queue has been above `target` for an `interval`, packets are dropped, faster and faster, until
    /// it is below. With `ecn`, packets of ECN-capable connections are marked instead. Beyond `limit` arrivals are dropped.
    pub struct CodelSpec {
        /// limit; arriving packets beyond it are dropped
        limit: Limit = Limit::Packets(1000),
        /// target queueing delay
        target_ns: Nanos [> 0] = 5_000_000,
        /// time above `target` before the first drop; later intervals shrink with the square root of the number of drops
        /// (RFC 8289)
        interval_ns: Nanos = 100_000_000,
        /// CE-mark packets of ECN-capable connections instead of dropping them
        #[serde(default)]
        ecn: bool = false,
    }
}

impl CodelSpec {
    /// Checks the limit and the times.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        self.check_bounds()?;
        self.limit.validate()?;
        if self.target_ns > self.interval_ns {
            return Err(SpecError::new("target_ns", self.target_ns, "it must be at most interval"));
        }
        Ok(())
    }
}

/// A CoDel queue.
#[derive(Debug)]
pub struct Codel<T> {
    spec: CodelSpec,
    fifo: Fifo<T>,
    law: ControlLaw,
}

impl<T: Packet> Codel<T> {
    /// Builds the queue, which hashes nothing.
    ///
    /// # Errors
    /// A limit of zero, times that are none.
    pub fn new(spec: &CodelSpec, _key: u64) -> Result<Codel<T>, SpecError> {
        spec.validate()?;
        Ok(Codel { spec: spec.clone(), fifo: Fifo::default(), law: ControlLaw::default() })
    }
}

impl<T: Packet> OnDeparture<T> for Codel<T> {
    fn enqueue(&mut self, held: Held<T>, dropped: &mut Vec<Held<T>>) {
        let (packets, bytes) = (self.fifo.packets() + 1, self.fifo.bytes() + u64::from(held.offered.bytes));
        if self.spec.limit.is_exceeded_by(packets, bytes) {
            dropped.push(held);
        } else {
            self.fifo.push(held);
        }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Held<T>>) -> Option<Released<T>> {
        self.law.dequeue(&self.spec, now, &mut self.fifo, dropped)
    }

    fn packets(&self) -> u32 {
        self.fifo.packets()
    }
}

/// The variables of RFC 8289 section 5.3 and their decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlLaw {
    /// When the delay will have been above the target for an interval; none: it is below.
    first_above_time: Option<Nanos>,
    /// When to drop next, or when the last drop was planned.
    drop_next: Nanos,
    /// Drops since dropping began.
    count: u32,
    /// `count` as dropping began last.
    lastcount: u32,
    dropping: bool,
    /// The largest packet that left.
    maxpacket: u32,
}

/// RFC 8289 section 5.4: a drop rate is remembered for this number of intervals.
const MEMORY_INTERVALS: Nanos = 16;

impl ControlLaw {
    /// The packet of `fifo` that leaves at `now`: `dequeue` of RFC 8289 section 5.5.
    pub(super) fn dequeue<T: Packet>(
        &mut self,
        spec: &CodelSpec,
        now: Nanos,
        fifo: &mut Fifo<T>,
        dropped: &mut Vec<Held<T>>,
    ) -> Option<Released<T>> {
        let (mut head, mut ok_to_drop) = self.dodequeue(spec, now, fifo);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let held = head?;
                self.count += 1;
                if spec.ecn && held.offered.ecn_capable {
                    self.drop_next = control_law(self.drop_next, spec.interval_ns, self.count);
                    return Some(Released { held, marked: true });
                }
                dropped.push(held);
                (head, ok_to_drop) = self.dodequeue(spec, now, fifo);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, spec.interval_ns, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let held = head?;
            let marked = spec.ecn && held.offered.ecn_capable;
            if !marked {
                dropped.push(held);
                (head, _) = self.dodequeue(spec, now, fifo);
            }
            self.dropping = true;
            // The drop rate that controlled the queue a short while ago is a good one to begin with.
            let delta = self.count.wrapping_sub(self.lastcount);
            let is_recent = now.saturating_sub(self.drop_next) < MEMORY_INTERVALS.saturating_mul(spec.interval_ns);
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = control_law(now, spec.interval_ns, self.count);
            self.lastcount = self.count;
            return head.map(|held| Released { held, marked });
        }
        head.map(|held| Released { held, marked: false })
    }

    /// The next packet, and whether the delay has been above the target for an interval.
    fn dodequeue<T: Packet>(&mut self, spec: &CodelSpec, now: Nanos, fifo: &mut Fifo<T>) -> (Option<Held<T>>, bool) {
        let Some(held) = fifo.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        self.maxpacket = self.maxpacket.max(held.offered.bytes);
        if now - held.arrived < spec.target_ns || fifo.bytes() <= u64::from(self.maxpacket) {
            self.first_above_time = None;
            return (Some(held), false);
        }
        let first_above_time = *self.first_above_time.get_or_insert(now.saturating_add(spec.interval_ns));
        (Some(held), now >= first_above_time)
    }
}

/// `t + interval / sqrt(count)`, in whole nanoseconds.
fn control_law(t: Nanos, interval: Nanos, count: u32) -> Nanos {
    let interval = u128::from(interval);
    t.saturating_add((interval * interval / u128::from(count.max(1))).isqrt() as Nanos)
}
