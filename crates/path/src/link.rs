//! A FIFO link: a queue, a line of fixed rate, a propagation delay, random loss.

use serde::{Deserialize, Serialize};

use crate::{
    Meter, Nanos, Rate,
    backlog::Backlog,
    queue::{Arrival, Queue, QueueSpec, Verdict},
    quick_start::{QuickStartRouter, QuickStartSpec},
};

/// A link as a scenario describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Bits a second, headers included; none: infinitely fast.
    pub rate_bps: Option<u64>,
    /// Propagation delay.
    pub delay_ns: Nanos,
    /// Probability that a packet is lost after its transmission, each independently of the others (Bernoulli).
    #[serde(default)]
    pub loss: f64,
    /// The queue before the line.
    pub queue: QueueSpec,
    /// What the router before the link makes of Quick-Start requests; none: it does not know them.
    #[serde(default)]
    pub quick_start: Option<QuickStartSpec>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the far end at this time.
    Arrives(Nanos),
    /// It reaches the far end at this time, with "congestion experienced" in its IP header.
    Marked(Nanos),
    /// The queue refused it.
    Dropped,
    /// It was transmitted and then lost at random.
    Lost,
}

/// A FIFO link.
#[derive(Clone, Debug)]
pub struct Link {
    rate: Rate,
    delay: Nanos,
    loss: f64,
    queue: Queue,
    backlog: Backlog,
    /// When the line has sent everything accepted so far.
    free_at: Nanos,
    meter: Meter,
    quick_start: Option<Box<QuickStartRouter>>,
}

impl Link {
    /// Builds the link with its meter.
    ///
    /// # Errors
    /// An impossible rate, loss or queue: one sentence.
    pub fn new(spec: &LinkSpec, meter: Meter) -> Result<Link, String> {
        if !(0.0..1.0).contains(&spec.loss) {
            return Err(format!("a loss of {} is not a probability below 1", spec.loss));
        }
        let rate = spec.rate_bps.map_or(Ok(Rate::INFINITE), Rate::from_bits_per_second)?;
        let queue = spec.queue.build(|bytes| rate.serialization(bytes))?;
        if let Some(policy) = &spec.quick_start {
            policy.validate()?;
        }
        let quick_start = spec.quick_start.map(|policy| Box::new(QuickStartRouter::new(policy, spec.rate_bps)));
        Ok(Link {
            rate,
            delay: spec.delay_ns,
            loss: spec.loss,
            queue,
            backlog: Backlog::default(),
            free_at: 0,
            meter,
            quick_start,
        })
    }

    /// Offers a packet of `bytes` (headers included) that arrives at `now`; `random` gives uniform draws in [0, 1).
    /// Only an `ecn_capable` packet can be marked.
    ///
    /// Calls must come in the order of `now`.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: u32, ecn_capable: bool, mut random: impl FnMut() -> f64) -> Fate {
        let line_busy = self.free_at > now;
        if line_busy {
            self.backlog.advance(now);
        } else {
            self.backlog.clear();
        }
        let arrival = Arrival { now, bytes, ecn_capable, backlog: &self.backlog, line_busy, idle_since: self.free_at };
        let verdict = self.queue.judge(&arrival, &mut random);
        if verdict == Verdict::Drop {
            self.meter.dropped(now);
            return Fate::Dropped;
        }
        let start = self.free_at.max(now);
        // Saturating: what would come later than the clock can tell never comes.
        let finish = start.saturating_add(self.rate.serialization(bytes));
        let lost = self.loss > 0.0 && random() < self.loss;
        self.meter.accepted(now, start, finish, bytes, self.backlog.packets(), lost);
        if line_busy {
            self.backlog.push(start, bytes);
        } else {
            self.backlog.serve(bytes);
        }
        self.free_at = finish;
        if let Some(router) = &mut self.quick_start {
            router.on_accepted(now, bytes);
        }
        let arrival = finish.saturating_add(self.delay);
        let marked = verdict == Verdict::Mark;
        if marked {
            self.meter.marked(now);
        }
        if lost {
            Fate::Lost
        } else if marked {
            Fate::Marked(arrival)
        } else {
            Fate::Arrives(arrival)
        }
    }

    /// What the router before the link makes of a request for a rate in a packet that arrives at `now`: the bits a second
    /// that it grants, which `round_down` brings to a rate that can be expressed. None: it does not know such requests.
    pub fn answer_quick_start(
        &mut self,
        now: Nanos,
        requested_bps: u64,
        round_down: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        self.quick_start.as_mut().map(|router| router.answer(now, requested_bps, round_down))
    }

    /// Time from the arrival of a packet of `bytes` to its arrival at the far end, if it need not wait.
    pub fn transit(&self, bytes: u32) -> Nanos {
        self.rate.serialization(bytes).saturating_add(self.delay)
    }

    /// When the transmission of the packet accepted last begins and ends, if that one has so many `bytes`.
    pub fn last_transmission(&self, bytes: u32) -> (Nanos, Nanos) {
        (self.free_at.saturating_sub(self.rate.serialization(bytes)), self.free_at)
    }

    /// Packets that wait at `now`, without the one on the line. `now` must not lie before the last arrival.
    pub fn waiting_packets(&mut self, now: Nanos) -> u32 {
        self.backlog.advance(now);
        self.backlog.packets()
    }

    /// What happened so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }
}
