//! The network in virtual time: what happens to packets, and when.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    net::IpAddr,
};

use firstflight_path::{Holding, Left, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket};
use firstflight_random::{Purpose, Sequence, Stream};

use crate::{
    Error,
    accounts::LinkCounts,
    plan::{LinkPlan, Plan, Way},
    refused,
};

/// A packet by the number that its owner gave it.
pub type Handle = u32;

/// Something that befalls a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It came to a link, and was dropped, lost or delivered there.
    Crossed {
        /// The packet.
        packet: Handle,
        /// Index of the link's direction: twice that of the link, and 1 more for the reverse path.
        link: u16,
        /// When.
        at: Nanos,
        /// When its transmission begins and ends; `at` if the queue dropped it.
        transmission: (Nanos, Nanos),
        /// Its outcome.
        outcome: LinkOutcome,
        /// It comes twice: this is to be [sent](Network::send_copy) as a separate packet.
        copy: Option<Copied>,
    },
    /// It is due at a port.
    Delivered {
        /// The packet.
        packet: Handle,
        /// Index of the port.
        port: u16,
        /// Since when.
        at: Nanos,
    },
}

/// The second of two packets that a link makes of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// When it reaches the link's far end.
    pub at: Nanos,
    hop: u32,
    leaves: u16,
    offered: OfferedPacket,
}

#[derive(Debug)]
struct DirectedLink {
    name: String,
    spec: LinkSpec,
    link: Link,
    /// The packets that wait, if the queue decides on departure.
    holding: Option<Holding<Waiting>>,
    draws: Draws,
    /// The network's time at which the link's own began; packets in flight to it at a reset may arrive earlier.
    epoch: Nanos,
    counts: LinkCounts,
}

impl DirectedLink {
    /// Packets that wait for their departure, where the queue decides on it.
    fn waiting(&self) -> usize {
        self.holding.as_ref().map_or(0, |holding| holding.packets() as usize)
    }
}

#[derive(Clone, Copy, Debug)]
enum Hop {
    Link(u16),
    Port(u16),
}

/// A packet's next step. The first two fields order steps: by time, then as they came to be known. No two share `order`, so
/// the fields after it never decide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Step {
    time: Nanos,
    order: u64,
    packet: Handle,
    hop: u32,
    /// The line that it leaves by this step, or [`NO_LINE`].
    leaves: u16,
    offered: OfferedPacket,
}

const NO_LINE: u16 = u16::MAX;

/// In place of a packet: a link takes the next one from its queue.
const NO_PACKET: Handle = Handle::MAX;
const NOTHING: OfferedPacket =
    OfferedPacket { bytes: 0, ecn_capable: false, carries_data: false, ends_train: false, connection: 0, class: 0 };

/// A packet in the queue of a link, with the hop that brought it there.
type Waiting = (Handle, u32);

/// Links between ports. Times are nanoseconds of the caller's clock, in which the network begins at 0.
#[derive(Debug)]
pub struct Network {
    lines: Vec<DirectedLink>,
    hops: Vec<Hop>,
    /// By first hop of a route: the class of packets that carry none.
    classes: Vec<u8>,
    /// By port of entry: destination addresses with the first hop towards each, sorted.
    routes: Vec<Vec<(IpAddr, u32)>>,
    steps: BinaryHeap<Reverse<Step>>,
    /// Events that were not reported yet.
    happened: VecDeque<Event>,
    order: u64,
    now: Nanos,
    meter: Meter,
    seed: u64,
}

impl Network {
    /// Lays the network out.
    ///
    /// # Errors
    /// A plan whose parts do not fit together.
    pub fn new(plan: &Plan) -> Result<Network, Error> {
        let meter = Meter::new(plan.duration_ns, plan.meter_interval_ns.unwrap_or(plan.duration_ns));
        let mut lines = Vec::with_capacity(2 * plan.links.len());
        for pair in &plan.links {
            for (name, spec) in [(pair.name.clone(), &pair.forward), (format!("{}.reverse", pair.name), &pair.reverse)]
            {
                if lines.iter().any(|line: &DirectedLink| line.name == name) {
                    return Err(refused!("two links have the name {name:?}; give each a different name"));
                }
                if spec.gso.is_some() {
                    return Err(refused!(
                        "link {name:?}: gso is set, but a box gets a GSO packet's segments one by one: leave it out"
                    ));
                }
                let index = lines.len();
                let named = |source| Error::Link { name: name.clone(), source };
                let draws = draws(plan.seed, plan.replicate, index);
                let link = Link::new(spec, meter.clone(), draws.keys[1]).map_err(named)?;
                let holding = Holding::new(spec, draws.keys[0]).map_err(named)?;
                let counts = LinkCounts::default();
                lines.push(DirectedLink { name, spec: spec.clone(), link, holding, draws, epoch: 0, counts });
            }
        }
        if lines.len() >= usize::from(NO_LINE) {
            return Err(refused!("{} links are too many: a box has at most {}", plan.links.len(), NO_LINE / 2));
        }
        let steps = BinaryHeap::with_capacity(plan.most_packets as usize);
        let routes = vec![Vec::new(); plan.ports.len()];
        let happened = VecDeque::new();
        let mut network = Network {
            lines,
            hops: Vec::new(),
            classes: Vec::new(),
            routes,
            steps,
            happened,
            order: 0,
            now: 0,
            meter,
            seed: plan.seed,
        };
        network.lay_routes(plan)?;
        Ok(network)
    }

    fn lay_routes(&mut self, plan: &Plan) -> Result<(), Error> {
        let port = |name: &str| {
            let known = || plan.ports.iter().map(|port| format!("{:?}", port.name)).collect::<Vec<_>>().join(", ");
            let found = plan.ports.iter().position(|port| port.name == name);
            found.ok_or_else(|| refused!("there is no port {name:?} for a route; there are {}", known()))
        };
        for route in &plan.routes {
            let (from, to) = (port(&route.from)?, port(&route.to)?);
            let first = self.hops.len() as u32;
            for (name, way) in &route.path {
                let pair = plan.links.iter().position(|link| link.name == *name).ok_or_else(|| {
                    refused!(
                        "the route from {:?} to {:?} names a link {name:?} that is not there",
                        route.from,
                        route.to
                    )
                })?;
                self.hops.push(Hop::Link((2 * pair + usize::from(*way == Way::Reverse)) as u16));
            }
            self.hops.push(Hop::Port(to as u16));
            self.classes.resize(self.hops.len(), route.class);
            let address = plan.ports[to].address;
            match self.routes[from].binary_search_by_key(&address, |&(address, _)| address) {
                Ok(_) => {
                    return Err(refused!("there are two routes from {:?} to {address}: give one", route.from));
                }
                Err(place) => self.routes[from].insert(place, (address, first)),
            }
        }
        Ok(())
    }

    /// The first hop from a port to an address; none: there is no route.
    pub fn route(&self, port: u16, destination: IpAddr) -> Option<u32> {
        let routes = &self.routes[usize::from(port)];
        let place = routes.binary_search_by_key(&destination, |&(address, _)| address).ok()?;
        Some(routes[place].1)
    }

    /// A packet comes in at `time` and takes the route that begins with `hop`. Returns how far `time` lies before
    /// events that the network has already processed: the packet counts as arrived later by this time.
    pub fn enter(&mut self, time: Nanos, hop: u32, packet: Handle, mut offered: OfferedPacket) -> Nanos {
        if offered.class == 0 {
            offered.class = self.classes[hop as usize];
        }
        let at = time.max(self.now);
        self.schedule(at, packet, hop, NO_LINE, offered);
        at - time
    }

    fn schedule(&mut self, time: Nanos, packet: Handle, hop: u32, leaves: u16, offered: OfferedPacket) {
        self.steps.push(Reverse(Step { time, order: self.order, packet, hop, leaves, offered }));
        self.order += 1;
    }

    /// When the next thing happens; none: nothing is in progress.
    pub fn next_time(&self) -> Option<Nanos> {
        self.steps.peek().map(|Reverse(step)| step.time)
    }

    /// The next event until `until`, that time included. Packets that come in later count as arrived after the
    /// reported events.
    pub fn next(&mut self, until: Nanos) -> Option<Event> {
        loop {
            if let Some(event) = self.happened.pop_front() {
                return Some(event);
            }
            let step = match self.steps.peek() {
                Some(Reverse(step)) if step.time <= until => *step,
                _ => return None,
            };
            self.steps.pop();
            self.now = step.time;
            if step.packet == NO_PACKET {
                self.wait_or_leave(step.leaves, step.time, None);
                continue;
            }
            let Step { time: at, packet, hop, offered, .. } = step;
            let link = match self.hops[hop as usize] {
                Hop::Port(port) => return Some(Event::Delivered { packet, port, at }),
                Hop::Link(link) => link,
            };
            let line = &mut self.lines[usize::from(link)];
            if line.holding.is_some() {
                self.wait_or_leave(link, at, Some(((packet, hop), offered)));
                continue;
            }
            let Draws { queue, loss, .. } = &mut line.draws;
            let outcome =
                line.link.offer(at.saturating_sub(line.epoch), offered, || queue.uniform(), || loss.uniform());
            let copy = line.link.copy();
            let left = Left { packet: (packet, hop), offered, arrived: at, at, outcome, copy };
            return Some(self.cross(link, left));
        }
    }

    /// Records the outcome for a packet that left a link, and lets it go on. The times of its outcome and of a copy's arrival
    /// are by the link's clock, the others by the network's.
    fn cross(&mut self, link: u16, left: Left<Waiting>) -> Event {
        let Left { packet: (packet, hop), offered, arrived, at, outcome, copy } = left;
        let line = &mut self.lines[usize::from(link)];
        let bytes = offered.bytes;
        line.counts.record(bytes, outcome);
        let epoch = line.epoch;
        let mut transmission = (at, at);
        if outcome != LinkOutcome::Dropped {
            let (start, end) = line.link.last_transmission(bytes);
            transmission = (epoch.saturating_add(start), epoch.saturating_add(end));
        }
        let outcome = match outcome {
            LinkOutcome::Arrives(time) => LinkOutcome::Arrives(epoch.saturating_add(time)),
            LinkOutcome::Marked(time) => LinkOutcome::Marked(epoch.saturating_add(time)),
            gone => gone,
        };
        let mut copied = None;
        if let LinkOutcome::Arrives(arrival) | LinkOutcome::Marked(arrival) = outcome {
            if let Some(copy) = copy {
                line.counts.duplicated.add(bytes);
                let at = epoch.saturating_add(copy);
                copied = Some(Copied { at, hop: hop + 1, leaves: link, offered });
            }
            self.schedule(arrival, packet, hop + 1, link, offered);
        }
        Event::Crossed { packet, link, at: arrived, transmission, outcome, copy: copied }
    }

    /// Sends a link's copy of a packet as a separate packet.
    pub fn send_copy(&mut self, copy: Copied, packet: Handle) {
        self.schedule(copy.at.max(self.now), packet, copy.hop, copy.leaves, copy.offered);
    }

    /// A packet comes to a link whose queue decides on departure, or one may leave it.
    fn wait_or_leave(&mut self, link: u16, now: Nanos, arrival: Option<(Waiting, OfferedPacket)>) {
        let line = &mut self.lines[usize::from(link)];
        let Some(holding) = &mut line.holding else { return };
        let (epoch, loss) = (line.epoch, &mut line.draws.loss);
        let time = now.saturating_sub(epoch);
        let was_due = holding.due();
        let mut left = Vec::new();
        match arrival {
            Some((waiting, offered)) => {
                holding.offer(&mut line.link, time, offered, waiting, |_| loss.uniform(), &mut left);
            }
            None => holding.advance(&mut line.link, time, |_| loss.uniform(), &mut left),
        }
        let due = holding.due();
        for left in left {
            let (arrived, at) = (epoch.saturating_add(left.arrived), epoch.saturating_add(left.at));
            let event = self.cross(link, Left { arrived, at, ..left });
            self.happened.push_back(event);
        }
        if let Some(due) = due.filter(|_| due != was_due) {
            self.schedule(epoch.saturating_add(due), NO_PACKET, 0, link, NOTHING);
        }
    }

    /// The decision of the router before a link on a Quick-Start request in a packet that arrives at `at`;
    /// see [`Link::answer_quick_start`].
    pub fn answer_quick_start(&mut self, line: u16, at: Nanos, requested: u8) -> Option<u8> {
        let line = &mut self.lines[usize::from(line)];
        line.link.answer_quick_start(at.saturating_sub(line.epoch), requested)
    }

    /// Number of the links' directions.
    pub fn lines(&self) -> u16 {
        self.lines.len() as u16
    }

    /// The name of a link's direction.
    pub fn name(&self, line: u16) -> &str {
        &self.lines[usize::from(line)].name
    }

    /// Events on a link's direction since the last call.
    pub fn take_counts(&mut self, line: u16) -> LinkCounts {
        std::mem::take(&mut self.lines[usize::from(line)].counts)
    }

    /// The meters of a link's direction since the start or its reset, and when that was.
    pub fn meter(&self, line: u16) -> (&Meter, Nanos) {
        let line = &self.lines[usize::from(line)];
        (line.link.meter(), line.epoch)
    }

    /// Packets in the network.
    pub fn under_way(&self) -> usize {
        let waiting: usize = self.lines.iter().map(DirectedLink::waiting).sum();
        self.steps.iter().filter(|Reverse(step)| step.packet != NO_PACKET).count() + waiting
    }

    /// From their next reset on the links are these, with the names that they have.
    ///
    /// # Errors
    /// A name that is not there. Nothing is changed then.
    pub fn change(&mut self, links: Vec<LinkPlan>) -> Result<(), Error> {
        let places: Vec<usize> = links.iter().map(|link| self.first_line(&link.name)).collect::<Result<_, _>>()?;
        for (first, LinkPlan { forward, reverse, .. }) in places.into_iter().zip(links) {
            self.lines[first].spec = forward;
            self.lines[first + 1].spec = reverse;
        }
        Ok(())
    }

    /// Makes both directions of links as new at `now`: empty, their lists of losses and their draws at the beginning.
    ///
    /// # Errors
    /// Packets that are on a link; a name that is not there. Nothing is changed then.
    pub fn reset(&mut self, names: &[String], replicate: u32, now: Nanos) -> Result<(), Error> {
        let pairs: Vec<usize> = names.iter().map(|name| self.resettable(name)).collect::<Result<_, _>>()?;
        for index in pairs.into_iter().flat_map(|first| first..first + 2) {
            let line = &mut self.lines[index];
            line.draws = draws(self.seed, replicate, index);
            let named = |source| Error::Link { name: line.name.clone(), source };
            line.link = Link::new(&line.spec, self.meter.clone(), line.draws.keys[1]).map_err(named)?;
            line.holding = Holding::new(&line.spec, line.draws.keys[0]).map_err(named)?;
            line.epoch = now.max(self.now);
        }
        Ok(())
    }

    /// The first line of a link.
    fn first_line(&self, name: &str) -> Result<usize, Error> {
        self.lines.iter().position(|line| line.name == name).filter(|first| first % 2 == 0).ok_or_else(|| {
            let names: Vec<_> = self.lines.iter().step_by(2).map(|line| format!("{:?}", line.name)).collect();
            refused!("there is no link {name:?} to reset; the links are {}", names.join(", "))
        })
    }

    /// The first line of a link without packets.
    fn resettable(&self, name: &str) -> Result<usize, Error> {
        let first = self.first_line(name)?;
        let own = first..first + 2;
        let leaves = |step: &Step| step.packet != NO_PACKET && own.contains(&usize::from(step.leaves));
        let leaving = self.steps.iter().filter(|Reverse(step)| leaves(step)).count();
        let under_way = leaving + self.lines[own.clone()].iter().map(DirectedLink::waiting).sum::<usize>();
        if under_way > 0 {
            return Err(refused!("link {name:?} cannot be reset while {under_way} packets are on it: wait for them"));
        }
        Ok(first)
    }
}

/// The draws of a link. Those of its queue are the simulator's; which connection of the simulator a packet belongs to is
/// not known here, so a packet's loss goes by its number on the link.
fn draws(seed: u64, replicate: u32, line: usize) -> Draws {
    let of = |purpose| Stream::new(seed, replicate, purpose, 0, line as u32);
    let queue = of(Purpose::Queue);
    Draws { keys: queue.bits(0), queue: Sequence::new(queue), loss: Sequence::new(of(Purpose::Loss)) }
}

#[derive(Debug)]
struct Draws {
    /// Of the queue's hash and of the link's own draws.
    keys: [u64; 2],
    queue: Sequence,
    loss: Sequence,
}
