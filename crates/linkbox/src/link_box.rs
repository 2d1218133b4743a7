//! The box: the loop between devices, network and control socket.

use std::{
    ops::ControlFlow,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
};

use firstflight_device::{Batch, Readiness, Wake, lock_memory, monotonic_ns, precise_timers};
use firstflight_path::{LinkOutcome, Nanos};
use firstflight_segment::{answer_quick_start, mark};
use serde::Deserialize;

use crate::{
    Error,
    control::{self, Answer, Control, Peer},
    header,
    kept::CapturedHeaders,
    lateness::Lateness,
    log::Log,
    network::{Event, Network},
    plan::{LinkPlan, Plan},
    pool::Pool,
    port::{Device, Inside, Port, crowded},
    refused,
};

/// A command on the control socket.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// Nothing but the state.
    Look,
    /// The counters since the last take.
    Take {
        /// With the table `links`: the meters' intervals since the start or the last reset.
        #[serde(default)]
        intervals: bool,
    },
    /// Links as new.
    Reset {
        /// By name; none: all.
        links: Option<Vec<String>>,
        /// Whose randomness they get; none: that of the replicate in progress.
        replicate: Option<u32>,
        /// Those that are others from now on.
        #[serde(default)]
        changed: Vec<LinkPlan>,
    },
    /// From now on the headers of packets at the far ends of links are kept for a capture file.
    Watch {
        /// By name, one direction each; none: all.
        links: Option<Vec<String>>,
    },
    /// Writes a capture file of the kept packets.
    Pcapng {
        path: PathBuf,
        /// Of these links only, by name, one direction each; none: all.
        links: Option<Vec<String>>,
    },
    Stop,
}

const CONTROL: u64 = u64::MAX - 1;

/// The box wakes at least so often, to notice when it is not let run: a packet that waits for its reader unnoticed would
/// look like one that came late.
const HEARTBEAT_NS: Nanos = 1_000_000;

/// Runs a link box until a command ends it or the control socket's other end closes. `devices` are the ports' in the
/// order of the plan. `interrupted` is called after a signal and returns whether to end.
///
/// # Errors
/// A plan whose parts do not fit together, too many packets in flight, a device that is gone.
pub fn run(
    plan: &Plan,
    devices: Vec<Device>,
    control: OwnedFd,
    interrupted: impl FnMut() -> bool,
) -> Result<(), Error> {
    control::run(control, |control| LinkBox::new(plan, devices)?.run(control, interrupted))
}

pub(crate) struct LinkBox {
    pub(crate) network: Network,
    pub(crate) ports: Vec<Port>,
    /// Ports that are to be read.
    turn: Vec<u16>,
    pool: Pool,
    batch: Box<Batch>,
    /// Packets that entered and copies that a link made, less those dropped, lost or handed over. The report gives by how
    /// many it differs from the packets in flight.
    pub(crate) inside: i64,
    pub(crate) lateness: Lateness,
    pub(crate) log: Option<Log>,
    /// The packets of watched links.
    pub(crate) kept: CapturedHeaders,
    /// By direction of a link: whether packets at its far end are kept.
    pub(crate) is_watched: Vec<bool>,
    link_names: Vec<String>,
    pub(crate) replicate: u32,
    mtu: u16,
    spin: Nanos,
    pub(crate) origin: Nanos,
}

impl LinkBox {
    fn new(plan: &Plan, devices: Vec<Device>) -> Result<LinkBox, Error> {
        if plan.ports.len() != devices.len() {
            return Err(refused!("the plan has {} ports but {} devices came with it", plan.ports.len(), devices.len()));
        }
        let network = Network::new(plan)?;
        let ports = plan.ports.iter().zip(devices).enumerate();
        let ports: Vec<Port> =
            ports.map(|(index, (port, device))| Port::new(port, index as u16, device)).collect::<Result<_, _>>()?;
        // One byte more shows that a packet is longer.
        let pool = Pool::new(usize::from(plan.mtu) + 1, plan.most_packets as usize);
        precise_timers().map_err(Error::system("timers cannot be made precise"))?;
        // Without the privilege the pages stay as they are.
        let _ = lock_memory();
        Ok(LinkBox {
            network,
            turn: Vec::with_capacity(ports.len()),
            ports,
            pool,
            batch: Batch::new(plan.mtu.into()),
            inside: 0,
            lateness: Lateness::new(),
            log: plan.log.then(Log::new),
            kept: CapturedHeaders::default(),
            is_watched: vec![false; 2 * plan.links.len()],
            link_names: plan.links.iter().map(|link| link.name.clone()).collect(),
            replicate: plan.replicate,
            mtu: plan.mtu,
            spin: plan.spin_ns,
            origin: monotonic_ns(),
        })
    }

    fn run(&mut self, control: &mut Control, mut interrupted: impl FnMut() -> bool) -> Result<(), Error> {
        let kernel = Error::system("waiting for packets failed");
        let mut readiness = Readiness::new().map_err(&kernel)?;
        for (index, port) in self.ports.iter().enumerate() {
            readiness.add(port.as_fd(), index as u64).map_err(&kernel)?;
        }
        readiness.add(control.as_fd(), CONTROL).map_err(&kernel)?;
        loop {
            let before = monotonic_ns();
            let (due, spin) = self.next_wake(before);
            let wake = readiness.wait_until(due, spin).map_err(&kernel)?;
            let now = monotonic_ns();
            if due > before && due < now {
                self.lateness.woke(due, now - due);
            }
            if wake == Wake::Interrupted && interrupted() {
                return Ok(());
            }
            let mut commanded = false;
            for token in readiness.ready() {
                if token == CONTROL {
                    commanded = true;
                } else if !self.turn.contains(&(token as u16)) {
                    self.turn.push(token as u16);
                }
            }
            self.read()?;
            self.advance(now)?;
            if commanded {
                if control.serve(|line| self.handle_command(line)) == Peer::Gone {
                    return Ok(());
                }
                readiness.set_writing(control.as_fd(), CONTROL, control.is_sending()).map_err(&kernel)?;
            }
        }
    }

    /// Reads a batch from each port whose turn it is. A port with more than that has its turn again, though nothing may
    /// say that it is ready: maybe it is not, and everything waits for it until that is known.
    fn read(&mut self) -> Result<(), Error> {
        let mut inside = Inside {
            network: &mut self.network,
            pool: &mut self.pool,
            packets: &mut self.inside,
            mtu: self.mtu,
            origin: self.origin,
        };
        let mut error = None;
        self.turn.retain(|&index| {
            let port = &mut self.ports[usize::from(index)];
            if let Err(failed) = port.read(&mut inside, &mut self.batch) {
                error.get_or_insert(failed);
            }
            port.behind.is_some()
        });
        error.map_or(Ok(()), Err)
    }

    /// When to wake next, by the monotonic clock, and for how long before that not to sleep.
    fn next_wake(&self, now: Nanos) -> (Nanos, Nanos) {
        let beat = now.saturating_add(HEARTBEAT_NS);
        match self.network.next_time().map(|time| self.origin.saturating_add(time)) {
            Some(due) if due <= beat => (due, self.spin),
            _ => (beat, 0),
        }
    }

    /// Processes the due events of the network. Packets that a port was not asked for, because `now` was earlier, are
    /// not overtaken.
    fn advance(&mut self, now: Nanos) -> Result<(), Error> {
        let behind = self.turn.iter().filter_map(|&index| self.ports[usize::from(index)].behind);
        let until = behind.min().unwrap_or(now);
        let until = until.saturating_sub(self.origin);
        while let Some(event) = self.network.next(until) {
            match event {
                Event::Crossed { packet, link, at, transmission: (start, end), outcome, copy } => {
                    if let Some(log) = &mut self.log {
                        let (_, epoch) = self.network.meter(link);
                        let at = at.saturating_sub(epoch);
                        let transmission = (start.saturating_sub(epoch), end.saturating_sub(epoch));
                        log.add(self.pool.packet(packet), self.replicate, link, at, transmission, outcome);
                    }
                    if header::has_options(self.pool.packet(packet)) {
                        self.pass_router(packet, link, at);
                    }
                    if let LinkOutcome::Marked(_) = outcome {
                        mark(self.pool.packet_mut(packet));
                    }
                    // The far end of a link is where the reverse path begins.
                    if outcome != LinkOutcome::Dropped {
                        self.keep(packet, link ^ 1, true, end);
                    }
                    match outcome {
                        LinkOutcome::Arrives(at) | LinkOutcome::Marked(at) => self.keep(packet, link, false, at),
                        LinkOutcome::Dropped | LinkOutcome::Lost => {
                            self.inside -= 1;
                            self.pool.give_back(packet);
                        }
                    }
                    if let Some(copy) = copy {
                        let twin = self.pool.copy(packet).ok_or_else(|| crowded(self.pool.in_use()))?;
                        self.inside += 1;
                        self.keep(twin, link, false, copy.at);
                        self.network.send_copy(copy, twin);
                    }
                }
                Event::Delivered { packet, port, at } => {
                    let due = self.origin + at;
                    let target = &mut self.ports[usize::from(port)];
                    target.write(self.pool.packet(packet));
                    let now = monotonic_ns();
                    self.lateness.record(due, now.saturating_sub(due), port);
                    self.inside -= 1;
                    self.pool.give_back(packet);
                }
            }
        }
        Ok(())
    }

    /// Keeps the headers of a packet that passes the far end of a watched link.
    fn keep(&mut self, packet: u32, link: u16, outgoing: bool, at: Nanos) {
        if self.is_watched[usize::from(link)] {
            let bytes = self.pool.packet(packet);
            self.kept.add(self.origin + at, link, outgoing, bytes, bytes.len() as u16);
        }
    }

    /// Lets the router before a link answer the Quick-Start request that a packet may carry.
    #[cold]
    fn pass_router(&mut self, packet: u32, link: u16, at: Nanos) {
        let network = &mut self.network;
        answer_quick_start(self.pool.packet_mut(packet), |asked| network.answer_quick_start(link, at, asked));
    }

    fn handle_command(&mut self, line: &str) -> Result<ControlFlow<Answer, Answer>, Error> {
        let command = serde_json::from_str(line)
            .map_err(|error| refused!("unknown command {line:?} for the link emulator: {error}"))?;
        let mut packets = None;
        match command {
            Command::Stop => return Ok(ControlFlow::Break((self.state(), Vec::new()))),
            Command::Look => {}
            Command::Take { intervals } => return Ok(ControlFlow::Continue(self.take(intervals))),
            Command::Watch { links } => self.watch(links)?,
            Command::Pcapng { path, links } => packets = Some(self.write_kept(&path, links)?),
            Command::Reset { links, replicate, changed } => self.reset(links, replicate, changed)?,
        }
        let mut answer = self.state();
        if let Some(packets) = packets {
            answer["packets"] = packets.into();
        }
        Ok(ControlFlow::Continue((answer, Vec::new())))
    }

    fn reset(
        &mut self,
        links: Option<Vec<String>>,
        replicate: Option<u32>,
        changed: Vec<LinkPlan>,
    ) -> Result<(), Error> {
        let replicate = replicate.unwrap_or(self.replicate);
        let now = monotonic_ns().saturating_sub(self.origin);
        self.network.change(changed)?;
        self.network.reset(links.as_ref().unwrap_or(&self.link_names), replicate, now)?;
        self.replicate = replicate;
        if let (None, Some(log)) = (links, &mut self.log) {
            log.connections.clear();
        }
        Ok(())
    }
}
