//! The loop between a packet socket, a host and a control socket.

use std::{
    ops::ControlFlow,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
};

use firstflight_device::{
    BATCH, Batch, MacAddress, PacketSocket, Readiness, Taken, Wake, monotonic_ns, precise_timers, wall_ahead_ns,
};
use firstflight_linkbox::{
    Error,
    control::{self, Answer, Control, Peer},
};
use firstflight_pcap::{CaptureFile, Direction, FileError, Record};
use firstflight_records::Row;
use firstflight_tcp::{Nanos, Profile};
use serde_json::{Value, json};

use crate::{
    host::{Host, Listener, Opening},
    http::{Client, Fetch, Server},
    plan::{Command, Plan},
    wire::Wire,
};

const DEVICE: u64 = 0;
const CONTROL: u64 = 1;

/// Batches that are read before timers have their turn.
const MOST_BATCHES: usize = 4;

/// Runs a host on an interface until a command ends it or the control socket's other end closes. `interrupted` is
/// called after a signal and returns whether to end.
///
/// A command ([`Command`]) is a line of JSON, and so is its answer, which has `ok`; if not `ok`, `error` is one sentence.
/// Unasked come reports ([`crate::Report`]), lines with `report`. The answer to `take` announces the columns of `segments`
/// as the link box does its tables ([`firstflight_linkbox::control`]).
///
/// # Errors
/// An interface that is gone, or whose offloads are on: one sentence, which is sent over the control socket as well.
pub fn run(
    plan: &Plan,
    socket: PacketSocket,
    control: OwnedFd,
    interrupted: impl FnMut() -> bool,
) -> Result<(), Error> {
    control::run(control, |control| {
        let mut station = Station::new(plan, socket)?;
        station.run(control, interrupted)?;
        station.port.capture.map_or(Ok(()), |file| Ok(file?.finish()?))
    })
}

/// The packet socket as the host's wire.
struct Port {
    socket: PacketSocket,
    neighbour: MacAddress,
    sent: u64,
    /// Packets that the kernel had no room for.
    unsent: u64,
    /// Packets that came and were lost because they were not read in time.
    overrun: u64,
    failure: Option<std::io::Error>,
    /// The file of all packets, in progress, or why it cannot be written.
    capture: Option<Result<CaptureFile, FileError>>,
    /// The offset of the wall clock from the monotonic one at the beginning.
    wall_ahead: Nanos,
}

impl Port {
    /// A packet passed at a time of the monotonic clock.
    fn note(&mut self, time: impl FnOnce() -> Nanos, direction: Direction, packet: &[u8]) {
        if let Some(Ok(file)) = &mut self.capture {
            let record = Record { time_ns: self.wall_ahead + time(), interface: 0, direction };
            if let Err(failure) = file.write(&record, packet, packet.len() as u32) {
                self.capture = Some(Err(failure));
            }
        }
    }
}

impl Wire for Port {
    fn now(&mut self) -> Nanos {
        monotonic_ns()
    }

    fn send(&mut self, packet: &[u8]) {
        match self.socket.write(packet, self.neighbour) {
            Ok(()) => {
                self.sent += 1;
                self.note(monotonic_ns, Direction::Outbound, packet);
            }
            Err(error) if is_full(&error) => self.unsent += 1,
            Err(error) => self.failure = Some(error),
        }
    }
}

/// The kernel has no room for a packet at present.
fn is_full(error: &std::io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    error.kind() == std::io::ErrorKind::WouldBlock || error.raw_os_error() == Some(ENOBUFS)
}

struct Station {
    host: Host,
    port: Port,
    batch: Box<Batch>,
    mtu: u16,
}

impl Station {
    fn new(plan: &Plan, socket: PacketSocket) -> Result<Station, Error> {
        precise_timers().map_err(Error::system("timers cannot be made precise"))?;
        let mut host = Host::new(plan.address, plan.seed);
        if plan.segments {
            host.keep_segments();
        }
        let create = |path: &PathBuf| CaptureFile::create(path, "packets of our TCP on a device", &["wire"]);
        let port = Port {
            socket,
            neighbour: plan.neighbour,
            sent: 0,
            unsent: 0,
            overrun: 0,
            failure: None,
            capture: plan.packets.as_ref().map(create).transpose()?.map(Ok),
            wall_ahead: wall_ahead_ns(),
        };
        Ok(Station { host, port, batch: Batch::new(plan.mtu.into()), mtu: plan.mtu })
    }

    fn run(&mut self, control: &mut Control, mut interrupted: impl FnMut() -> bool) -> Result<(), Error> {
        let kernel = Error::system("waiting for packets failed");
        let mut readiness = Readiness::new().map_err(&kernel)?;
        readiness.add(self.port.socket.as_fd(), DEVICE).map_err(&kernel)?;
        readiness.add(control.as_fd(), CONTROL).map_err(&kernel)?;
        let mut writing = false;
        loop {
            let woken = match self.host.poll_timeout().time() {
                None => readiness.wait(),
                Some(time) => readiness.wait_until(time, 0),
            };
            if woken.map_err(&kernel)? == Wake::Interrupted && interrupted() {
                return Ok(());
            }
            let (mut packets, mut commanded) = (false, false);
            for token in readiness.ready() {
                packets |= token == DEVICE;
                commanded |= token == CONTROL;
            }
            if packets {
                self.receive()?;
            }
            self.host.handle_timeout(&mut self.port);
            let mut peer = if commanded { control.serve(|line| self.handle_command(line)) } else { Peer::Present };
            if peer == Peer::Gone {
                self.host.stop(&mut self.port);
            }
            for report in self.host.poll_reports() {
                control.answer(json!(report), Vec::new());
            }
            if let Some(source) = self.port.failure.take() {
                return Err(Error::System { what: "a packet cannot be sent".into(), source });
            }
            if control.send() == Peer::Gone {
                peer = Peer::Gone;
            }
            if control.is_sending() != writing {
                writing = !writing;
                readiness.set_writing(control.as_fd(), CONTROL, writing).map_err(&kernel)?;
            }
            if peer == Peer::Gone {
                return Ok(());
            }
        }
    }

    /// Takes the packets that have come.
    fn receive(&mut self) -> Result<(), Error> {
        for _ in 0..MOST_BATCHES {
            let packets =
                self.port.socket.read(&mut self.batch).map_err(Error::system("packets cannot be received"))?;
            let is_full = packets.len() == BATCH;
            for (taken, packet) in packets {
                if taken.outgoing || !taken.is_ip {
                    continue;
                }
                if taken.lacks_checksum || packet.len() < taken.length {
                    return Err(offloaded(&taken, self.mtu));
                }
                let (host, port) = (&mut self.host, &mut self.port);
                port.note(|| taken.time, Direction::Inbound, packet);
                host.handle_packet(packet, port);
            }
            if !is_full {
                break;
            }
        }
        Ok(())
    }

    fn handle_command(&mut self, line: &str) -> Result<ControlFlow<Answer, Answer>, Error> {
        let mut answer = json!({"ok": true});
        match Command::from_json(line, self.host.address(), self.mtu)? {
            Command::Take => {
                let segments = self.host.take_segments().map(|rows| Row::columns(&rows));
                let counters = self.counters().map_err(Error::system("the socket does not tell of drops"))?;
                return Ok(ControlFlow::Continue((counters, segments.into_iter().collect())));
            }
            Command::Stop => return Ok(ControlFlow::Break((answer, Vec::new()))),
            Command::Listen { port, profile, header_bytes } => self.listen(port, profile, header_bytes.unwrap_or(0)),
            Command::Fetch { profile, what } => {
                let (connection, port) = self.fetch(profile, what)?;
                (answer["connection"], answer["port"]) = (connection.into(), port.into());
            }
        }
        Ok(ControlFlow::Continue((answer, Vec::new())))
    }

    fn listen(&mut self, port: u16, profile: Arc<Profile>, header_bytes: u32) {
        let application = Box::new(move || Box::new(Server::new(header_bytes)) as _);
        self.host.listen(Listener { port, profile, application });
    }

    fn fetch(&mut self, profile: Arc<Profile>, what: Fetch) -> Result<(u32, u16), Error> {
        let (peer, now) = (what.server, self.port.now());
        let application = Box::new(move |number| Box::new(Client::new(what, number, now)) as _);
        self.host.open(Opening { peer, profile, application }, &mut self.port)
    }

    fn counters(&mut self) -> std::io::Result<Value> {
        self.port.overrun += u64::from(self.port.socket.dropped_packets()?);
        Ok(json!({
            "ok": true,
            "traffic": self.host.traffic(),
            "sent": self.port.sent,
            "unsent": self.port.unsent,
            "socket_drops": self.port.overrun,
        }))
    }
}

fn offloaded(taken: &Taken, mtu: u16) -> Error {
    if taken.lacks_checksum { Error::LacksChecksum } else { Error::Merged { bytes: taken.length, mtu } }
}
