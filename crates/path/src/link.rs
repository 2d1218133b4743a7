//! A FIFO link: a queue, a transmitter, losses, a propagation delay.

use firstflight_records::{DROPPED, LOST, RECEIVED};
use serde::{Deserialize, Serialize};

use crate::{
    Holding, Meter, Nanos, Rate, SpecError,
    backlog::Backlog,
    bucket::{Bucket, BucketSpec},
    gso::{Gso, GsoSpec},
    impairment::{Flight, ImpairmentSpec, Impairments},
    loss::{Loss, LossModel},
    queue::{Arrival, Held, Queue, QueueSpec, Released, Verdict},
    quick_start::{QuickStartRouter, QuickStartSpec},
    rate::{Schedule, ScheduleSpec},
};

/// A link as a scenario describes it. What is not set is left out when it is written, so that its readers can go by
/// presence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Bits a second, headers included; none: infinitely fast. Of a rate that changes its mean.
    pub rate_bps: Option<u64>,
    /// The changes of the rate; none: it is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_schedule: Option<ScheduleSpec>,
    /// Propagation delay.
    pub delay_ns: Nanos,
    /// Probability that a packet is lost after its transmission, each independently of the others (Bernoulli).
    #[serde(default)]
    pub loss: f64,
    /// Data packets that are lost after their transmission, in addition: their numbers, ascending, counted from 1 in the order
    /// in which the link transmits packets with payload, whatever connection they belong to.
    #[serde(default)]
    pub lose: Vec<u32>,
    /// A model by which packets are lost in addition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_model: Option<LossModel>,
    /// The queue before the transmitter.
    pub queue: QueueSpec,
    /// The Quick-Start rule of the router before the link. None: it does not know such requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<QuickStartSpec>,
    /// The token bucket that bounds the rate; none: packet after packet is transmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BucketSpec>,
    /// The segments that take one place in the queue; none: each takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso: Option<GsoSpec>,
    /// Impairments between transmission and the far end, applied in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impairments: Vec<ImpairmentSpec>,
}

impl LinkSpec {
    /// A link that transmits packet after packet at one rate and loses none.
    pub const fn plain(rate_bps: Option<u64>, delay_ns: Nanos, queue: QueueSpec) -> LinkSpec {
        LinkSpec {
            rate_bps,
            rate_schedule: None,
            delay_ns,
            loss: 0.0,
            lose: Vec::new(),
            loss_model: None,
            queue,
            quick_start: None,
            burst: None,
            gso: None,
            impairments: Vec::new(),
        }
    }

    /// Checks all of it.
    ///
    /// # Errors
    /// The parameter that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        Link::new(self, Meter::new(1, 1), 0)?;
        Holding::<()>::new(self, 0).map(|_| ())
    }

    /// Whether packets can reach the far end in another order than that of their transmission, or twice.
    pub fn reorders(&self) -> bool {
        self.impairments.iter().any(ImpairmentSpec::reorders)
    }
}

/// A packet that comes to a link, as far as the link needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferedPacket {
    /// Its size, headers included.
    pub bytes: u32,
    /// It may be marked rather than dropped.
    pub ecn_capable: bool,
    /// It has payload.
    pub carries_data: bool,
    /// It is the last one of a train, where a link joins packets.
    pub ends_train: bool,
    /// Connection and direction that it belongs to, where a link joins packets or a queue distinguishes
    /// flows.
    pub connection: u32,
    /// Its class, 0 to 7, where a queue prefers higher ones.
    pub class: u8,
}

/// The outcome for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// It reaches the far end at this time.
    Arrives(Nanos),
    /// It reaches the far end at this time, with "congestion experienced" in its IP header.
    Marked(Nanos),
    /// The queue refused it.
    Dropped,
    /// It was transmitted and then lost, at random or because it is listed.
    Lost,
}

impl LinkOutcome {
    /// It in the column `event` of the records.
    pub fn event(self) -> u8 {
        match self {
            LinkOutcome::Arrives(_) | LinkOutcome::Marked(_) => RECEIVED,
            LinkOutcome::Dropped => DROPPED,
            LinkOutcome::Lost => LOST,
        }
    }
}

/// A FIFO link.
#[derive(Clone, Debug, Default)]
// What each packet needs comes first, so that a packet touches few cache lines.
#[repr(C)]
pub struct Link {
    rate: Rate,
    delay: Nanos,
    /// When everything accepted so far will be sent; with a bucket, until when its tokens are negative.
    free_at: Nanos,
    /// Bytes that may wait if the link is drop tail and its limit is one in bytes; else 0. Packets likewise.
    room_bytes: u64,
    room_packets: u32,
    /// Drop tail, and nothing acts behind the queue but losses. False as well if all packets are to be offered.
    is_drop_tail: bool,
    /// It is that and loses nothing: every accepted packet arrives.
    loses_nothing: bool,
    backlog: Backlog,
    pub(crate) meter: Meter,
    queue: Queue,
    loss: Loss,
    rare: Option<Box<Rare>>,
}

/// Parts that few links have.
#[derive(Clone, Debug, Default)]
struct Rare {
    quick_start: Option<QuickStartRouter>,
    bucket: Option<Bucket>,
    gso: Option<Gso>,
    schedule: Option<Schedule>,
    impairments: Option<Impairments>,
    /// When a copy of the last packet reaches the far end.
    copy: Option<Nanos>,
    /// When the last transmission began and ended.
    last: (Nanos, Nanos),
}

impl Rare {
    /// None if `spec` asks for nothing of this.
    fn new(spec: &LinkSpec, rate: Rate, key: impl FnOnce() -> u64) -> Result<Option<Box<Rare>>, SpecError> {
        let is_needed = spec.quick_start.is_some()
            || spec.burst.is_some()
            || spec.gso.is_some()
            || spec.rate_schedule.is_some()
            || !spec.impairments.is_empty();
        if !is_needed {
            return Ok(None);
        }
        if let Some(policy) = &spec.quick_start {
            policy.validate()?;
        }
        if let Some(bucket) = &spec.burst {
            bucket.validate(spec.rate_bps)?;
        }
        if let Some(gso) = spec.gso {
            gso.validate(&spec.queue)?;
        }
        if spec.rate_schedule.is_some() && (spec.rate_bps.is_none() || spec.burst.is_some()) {
            let found = if spec.burst.is_some() { "set with a token bucket" } else { "set without its mean" };
            return Err(SpecError::new("rate_schedule", found, "set rate_bps, and leave burst out"));
        }
        let rare = Rare {
            quick_start: spec.quick_start.map(|policy| QuickStartRouter::new(policy, spec.rate_bps)),
            bucket: spec.burst.map(|burst| Bucket::new(rate.serialization(burst.bytes))),
            gso: spec.gso.map(Gso::new),
            schedule: spec.rate_schedule.as_ref().map(Schedule::new).transpose()?,
            impairments: (!spec.impairments.is_empty())
                .then(|| Impairments::new(&spec.impairments, key()))
                .transpose()?,
            copy: None,
            last: (0, 0),
        };
        Ok(Some(Box::new(rare)))
    }

    /// Applies the impairments to a packet that would reach the far end at `arrival`; nothing if it is lost. `own` is
    /// its own draw.
    fn fly(&mut self, arrival: Nanos, own: f64, lost: bool) -> Option<Flight> {
        let flight = (!lost).then(|| self.impairments.as_mut().map(|all| all.act(arrival, own))).flatten();
        self.copy = flight.and_then(|flight| flight.copy);
        flight
    }

    /// Transmits an accepted packet, which takes `serialization` at the link's rate. It comes at `now`; if it `is_due` it
    /// came before, and begins now.
    fn transmit(
        &mut self,
        now: Nanos,
        packet: OfferedPacket,
        free_at: Nanos,
        serialization: Nanos,
        is_due: bool,
    ) -> Transmission {
        if let Some(router) = &mut self.quick_start {
            router.on_accepted(now, packet.bytes);
        }
        let transmission = if let Some(bucket) = &mut self.bucket {
            let joins = self.gso.as_ref().is_some_and(|gso| gso.joins);
            let (start, free_at) = bucket.pass(now, joins, serialization);
            // Its packets count as long as their bytes take at its rate, as without a bucket.
            Transmission { start, end: start, busy: serialization, free_at }
        } else if let Some(schedule) = &mut self.schedule {
            let start = if is_due { now } else { schedule.start(now, free_at) };
            let end = schedule.send(start, packet.bytes);
            Transmission { start, end, busy: schedule.busy(start, end, serialization), free_at: end }
        } else {
            Transmission::in_turn(now, free_at, serialization)
        };
        self.last = (transmission.start, transmission.end);
        transmission
    }
}

struct Transmission {
    start: Nanos,
    end: Nanos,
    /// For how long it counts as being transmitted.
    busy: Nanos,
    /// When the transmitter is free again.
    free_at: Nanos,
}

impl Transmission {
    /// One packet after the other.
    #[inline]
    fn in_turn(now: Nanos, free_at: Nanos, serialization: Nanos) -> Transmission {
        let start = free_at.max(now);
        // Saturating: an event beyond the range of the clock never comes.
        let end = start.saturating_add(serialization);
        Transmission { start, end, busy: end - start, free_at: end }
    }
}

impl Link {
    /// Builds the link with its meter. `key` keys its own draws.
    ///
    /// # Errors
    /// An impossible rate, loss or queue.
    pub fn new(spec: &LinkSpec, meter: Meter, key: u64) -> Result<Link, SpecError> {
        // `restart` sets everything but the meter.
        let mut link = Link { meter, ..Link::default() };
        link.restart(spec, || key)?;
        Ok(link)
    }

    /// Becomes the link of another description at time 0 with nothing on it. It keeps its memory, and its meter goes on
    /// counting where it was. `key` is asked for where the link draws something by itself.
    ///
    /// # Errors
    /// As [`Link::new`]; the link is unchanged then.
    pub fn restart(&mut self, spec: &LinkSpec, key: impl Fn() -> u64) -> Result<(), SpecError> {
        let rate = spec.rate_bps.map_or(Ok(Rate::INFINITE), Rate::from_bits_per_second)?;
        let queue = spec.queue.build(|bytes| rate.serialization(bytes))?;
        let loss = Loss::new(spec, &key)?;
        let rare = Rare::new(spec, rate, key)?;
        (self.is_drop_tail, (self.room_packets, self.room_bytes)) = match &queue {
            Queue::DropTail(queue) if rare.is_none() => (true, queue.room()),
            _ => (false, (0, 0)),
        };
        self.loses_nothing = self.is_drop_tail && !loss.are_possible();
        self.backlog.restart();
        (self.rate, self.delay, self.free_at) = (rate, spec.delay_ns, 0);
        (self.loss, self.queue, self.rare) = (loss, queue, rare);
        Ok(())
    }

    /// Offers a packet that arrives at `now`. `queue_draws` and `loss_draw` are uniform in [0, 1): for the queue's
    /// random decision, and for the random loss of this packet.
    ///
    /// Calls must come in the order of `now`.
    pub fn offer(
        &mut self,
        now: Nanos,
        packet: OfferedPacket,
        mut queue_draws: impl FnMut() -> f64,
        loss_draw: impl FnOnce() -> f64,
    ) -> LinkOutcome {
        let OfferedPacket { bytes, ecn_capable, .. } = packet;
        let serving = self.free_at > now;
        if serving {
            self.backlog.advance(now);
        } else {
            self.backlog.clear();
        }
        let backlog = &self.backlog;
        let free_at = self.free_at;
        let arrival = Arrival { now, bytes, ecn_capable, backlog, serving, free_at };
        let mut decide = || self.queue.on_arrival(arrival, &mut queue_draws);
        let mut joins = false;
        let verdict = match self.rare.as_mut().and_then(|rare| rare.gso.as_mut()) {
            None => decide(),
            Some(gso) => {
                let verdict = gso.judge(now, packet, decide);
                joins = gso.joins;
                verdict
            }
        };
        let marked = match verdict {
            Verdict::Admit => false,
            Verdict::Mark => true,
            Verdict::Drop => {
                self.meter.dropped(now);
                return LinkOutcome::Dropped;
            }
        };
        let waiting = self.backlog.packets();
        let (start, outcome) = self.transmit(now, now, packet, waiting, marked, loss_draw);
        if joins {
            self.backlog.join(bytes);
        } else if start > now {
            self.backlog.push(start, bytes);
        } else {
            self.backlog.serve(bytes);
        }
        outcome
    }

    /// From now on no packet [passes](Link::pass): each is to be offered, until a restart.
    pub fn offer_all(&mut self) {
        (self.is_drop_tail, self.loses_nothing) = (false, false);
    }

    /// The result of [`Link::offer`] for nearly all packets of nearly all links: the arrival time of a packet of
    /// `bytes` that a link which loses nothing has room for. None, and no effect, where it must be offered.
    // Inlined by force: the simulator's hop is this and little else.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, bytes: u32) -> Option<Nanos> {
        if self.loses_nothing { self.accept(now, bytes) } else { None }
    }

    /// As [`Link::pass`], also for a link that loses packets.
    #[inline(always)]
    pub fn pass_or_lose(
        &mut self,
        now: Nanos,
        bytes: u32,
        carries_data: bool,
        loss_draw: impl FnOnce() -> f64,
    ) -> Option<LinkOutcome> {
        let arrival = if self.is_drop_tail { self.accept(now, bytes)? } else { return None };
        if self.loss.is_lost(carries_data, loss_draw) {
            self.meter.lost(now);
            return Some(LinkOutcome::Lost);
        }
        Some(LinkOutcome::Arrives(arrival))
    }

    /// When a packet of `bytes` arrives that a drop-tail link has room for, if it is not lost. None, and no effect, if there is
    /// no room or its transmission falls into two intervals of the meter.
    #[inline(always)]
    fn accept(&mut self, now: Nanos, bytes: u32) -> Option<Nanos> {
        let serialization = self.rate.serialization(bytes);
        let start = self.free_at;
        let end = if start <= now {
            let end = self.meter.accepted_at_once(now, serialization, bytes)?;
            self.backlog.clear();
            self.backlog.serve(bytes);
            end
        } else {
            self.backlog.advance(now);
            let waiting = self.backlog.packets();
            if waiting >= self.room_packets && self.backlog.bytes() + u64::from(bytes) > self.room_bytes {
                return None;
            }
            let end = self.meter.accepted_in_turn(now, start, serialization, bytes, waiting)?;
            self.backlog.push(start, bytes);
            end
        };
        self.free_at = end;
        Some(end.saturating_add(self.delay))
    }

    /// Transmits a packet at `now`, or when the transmitter is free. The packet arrived at `arrived`, when `waiting` packets
    /// were in the queue. Returns the start time and the packet's outcome.
    #[inline(always)]
    fn transmit(
        &mut self,
        arrived: Nanos,
        now: Nanos,
        packet: OfferedPacket,
        waiting: u32,
        marked: bool,
        loss_draw: impl FnOnce() -> f64,
    ) -> (Nanos, LinkOutcome) {
        let serialization = self.rate.serialization(packet.bytes);
        let Transmission { start, end, busy, free_at } = match &mut self.rare {
            // A packet that waited until now could not begin earlier.
            Some(rare) => rare.transmit(now, packet, self.free_at, serialization, arrived < now),
            _ => Transmission::in_turn(now, self.free_at, serialization),
        };
        let mut arrival = end.saturating_add(self.delay);
        let lost = match &mut self.rare {
            Some(rare) if rare.impairments.is_some() => {
                let own = loss_draw();
                let lost = self.loss.is_lost(packet.carries_data, || own);
                if let Some(flight) = rare.fly(arrival, own, lost) {
                    arrival = flight.arrival;
                    self.meter.impaired(now, flight.overtakes, flight.copy.is_some());
                }
                lost
            }
            _ => self.loss.is_lost(packet.carries_data, loss_draw),
        };
        self.meter.accepted(arrived, start, start.saturating_add(busy), packet.bytes, waiting, lost);
        self.free_at = free_at;
        if marked {
            self.meter.marked(now);
            return (start, if lost { LinkOutcome::Lost } else { LinkOutcome::Marked(arrival) });
        }
        (start, if lost { LinkOutcome::Lost } else { LinkOutcome::Arrives(arrival) })
    }

    /// When the transmission of a packet can begin that arrives at `now` and finds an empty queue.
    pub(crate) fn ready_at(&mut self, now: Nanos) -> Nanos {
        match self.schedule() {
            None => self.free_at.max(now),
            Some((schedule, free_at)) => schedule.start(now, free_at),
        }
    }

    /// When that of the packet behind the one can begin that began at `now`.
    pub(crate) fn ready_after(&mut self, now: Nanos) -> Nanos {
        match self.schedule() {
            None => self.free_at.max(now),
            Some((schedule, free_at)) => schedule.following(free_at),
        }
    }

    fn schedule(&mut self) -> Option<(&mut Schedule, Nanos)> {
        Some((self.rare.as_mut()?.schedule.as_mut()?, self.free_at))
    }

    /// The queue lets a packet go into service; the link is [ready](Link::ready_at), at `now`.
    pub(crate) fn depart<T>(
        &mut self,
        now: Nanos,
        released: &Released<T>,
        loss_draw: impl FnOnce() -> f64,
    ) -> LinkOutcome {
        let Held { offered, arrived, ahead, .. } = released.held;
        self.transmit(arrived, now, offered, ahead, released.marked, loss_draw).1
    }

    /// The rate code that the router before the link grants of the one requested in a packet that arrives at `now`. None: it
    /// does not know such requests.
    pub fn answer_quick_start(&mut self, now: Nanos, requested: u8) -> Option<u8> {
        Some(self.rare.as_mut()?.quick_start.as_mut()?.answer(now, requested))
    }

    /// When a copy of the packet that was accepted last reaches the far end, if it comes twice.
    pub fn copy(&self) -> Option<Nanos> {
        self.rare.as_ref()?.copy
    }

    /// Time from the arrival of a packet of `bytes` to its arrival at the far end, if it need not wait; at the mean rate of
    /// a rate that changes.
    pub fn transit(&self, bytes: u32) -> Nanos {
        let is_shaped = self.rare.as_ref().is_some_and(|rare| rare.bucket.is_some());
        let serialization = if is_shaped { 0 } else { self.rate.serialization(bytes) };
        serialization.saturating_add(self.delay)
    }

    /// Start and end of the transmission of the packet accepted last, if it has this number of `bytes`.
    pub fn last_transmission(&self, bytes: u32) -> (Nanos, Nanos) {
        if let Some(rare) = &self.rare {
            return rare.last;
        }
        (self.free_at.saturating_sub(self.rate.serialization(bytes)), self.free_at)
    }

    /// Packets that wait at `now`, without the one in service. `now` must not lie before the last arrival.
    pub fn waiting_packets(&mut self, now: Nanos) -> u32 {
        self.backlog.advance(now);
        self.backlog.packets()
    }

    /// Counts so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }
}
