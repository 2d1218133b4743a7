//! A capture on an interface: the headers of all that passes, with the kernel's stamps.

use std::{
    ops::ControlFlow,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    thread,
    time::Duration,
};

use firstflight_device::{BATCH, Batch, PacketSocket, Readiness, Wake, monotonic_ns, wall_ahead_ns};
use firstflight_records::Row;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Error,
    control::{self, Answer, Control, Peer},
    kept::{CapturedHeaders, MOST_HEADER_BYTES},
    refused,
    segments::Rows,
};

/// After the first packet of many the others are waited for, so that not each of them costs a wake-up, which those who
/// are measured would feel. The stamps are the kernel's, so nothing is lost by it.
const GATHER: Duration = Duration::from_millis(2);

const SOCKET: u64 = 0;
const CONTROL: u64 = 1;

/// A command on the control socket.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// The `segments` of packets since the last take, which are then forgotten.
    Take {
        /// The monotonic clock's time from which the rows count.
        origin_ns: u64,
        /// Their replicate number.
        #[serde(default)]
        replicate: u32,
    },
    /// Forgets packets and connections.
    Reset,
    /// Writes a capture file of the packets since the last take.
    Pcapng {
        path: PathBuf,
    },
    Stop,
}

/// Captures the packets of an interface in the calling thread's network namespace until a command ends it or the
/// control socket's other end closes. `interrupted` is called after a signal and returns whether to end.
///
/// # Errors
/// An interface that is not there or goes away.
pub fn capture(
    interface: &str,
    mtu: u16,
    control: OwnedFd,
    mut interrupted: impl FnMut() -> bool,
) -> Result<(), Error> {
    control::run(control, |control| LinkCapture::new(interface, mtu)?.run(control, &mut interrupted))
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    packets: u64,
    /// Of TCP, and cannot be read.
    malformed: usize,
    /// Not IP.
    foreign: u64,
    /// Longer than the MTU: an offload is on.
    oversized: u64,
    /// Without a checksum: an offload is on.
    unchecksummed: u64,
    socket_drops: u64,
    /// Found no room.
    missed: u64,
}

struct LinkCapture {
    interface: String,
    socket: PacketSocket,
    mtu: u16,
    batch: Box<Batch>,
    kept: CapturedHeaders,
    rows: Rows,
    counts: Counts,
}

impl LinkCapture {
    fn new(interface: &str, mtu: u16) -> Result<LinkCapture, Error> {
        let socket = PacketSocket::open(interface, true)
            .map_err(Error::system(format_args!("packets of {interface:?} cannot be captured")))?;
        Ok(LinkCapture {
            interface: interface.into(),
            socket,
            mtu,
            batch: Batch::new(MOST_HEADER_BYTES),
            kept: CapturedHeaders::default(),
            rows: Rows::default(),
            counts: Counts::default(),
        })
    }

    fn run(&mut self, control: &mut Control, interrupted: &mut impl FnMut() -> bool) -> Result<(), Error> {
        let kernel = Error::system("waiting for packets failed");
        let mut readiness = Readiness::new().map_err(&kernel)?;
        readiness.add(self.socket.as_fd(), SOCKET).map_err(&kernel)?;
        readiness.add(control.as_fd(), CONTROL).map_err(&kernel)?;
        loop {
            if readiness.wait().map_err(&kernel)? == Wake::Interrupted && interrupted() {
                return Ok(());
            }
            let commanded = readiness.ready().any(|token| token == CONTROL);
            if !commanded {
                thread::sleep(GATHER);
            }
            self.read()?;
            if commanded {
                if control.serve(|line| self.handle_command(line)) == Peer::Gone {
                    return Ok(());
                }
                readiness.set_writing(control.as_fd(), CONTROL, control.is_sending()).map_err(&kernel)?;
            }
        }
    }

    /// Reads all that there is.
    fn read(&mut self) -> Result<(), Error> {
        loop {
            let packets = self.socket.read(&mut self.batch);
            let packets = packets
                .map_err(Error::system(format_args!("packets of {:?} can no longer be captured", self.interface)))?;
            let is_full = packets.len() == BATCH;
            for (taken, seen) in packets {
                if !taken.is_ip {
                    self.counts.foreign += 1;
                    continue;
                }
                self.counts.packets += 1;
                self.counts.oversized += u64::from(taken.length > usize::from(self.mtu));
                self.counts.unchecksummed += u64::from(taken.lacks_checksum);
                let bytes = u16::try_from(taken.length).unwrap_or(u16::MAX);
                self.kept.add(taken.time, 0, taken.outgoing, seen, bytes);
            }
            if !is_full {
                return Ok(());
            }
        }
    }

    fn handle_command(&mut self, line: &str) -> Result<ControlFlow<Answer, Answer>, Error> {
        let command = serde_json::from_str(line)
            .map_err(|error| refused!("unknown command {line:?} for the capture: {error}"))?;
        let mut packets = None;
        match command {
            Command::Stop => return Ok(ControlFlow::Break((times(), Vec::new()))),
            Command::Take { origin_ns, replicate } => {
                return Ok(ControlFlow::Continue(self.take(origin_ns, replicate)));
            }
            Command::Reset => {
                self.kept.clear();
                self.rows.clear();
                self.counts = Counts::default();
            }
            Command::Pcapng { path } => {
                packets = Some(self.kept.write(&path, &[self.interface.as_str()], wall_ahead_ns(), |_| true)?);
            }
        }
        let mut answer = times();
        if let Some(packets) = packets {
            answer["packets"] = packets.into();
        }
        Ok(ControlFlow::Continue((answer, Vec::new())))
    }

    fn take(&mut self, origin: u64, replicate: u32) -> Answer {
        let (table, malformed) = self.rows.of(&self.kept, origin, replicate);
        let socket_drops = self.socket.dropped_packets().map_or(0, u64::from);
        let counts = Counts { malformed, socket_drops, missed: self.kept.missed, ..std::mem::take(&mut self.counts) };
        let mut answer = times();
        answer["connections"] = json!(self.rows.connections.ends);
        answer["counts"] = json!(counts);
        self.kept.clear();
        (answer, vec![Row::columns(&table)])
    }
}

/// The common part of every answer.
fn times() -> Value {
    json!({"ok": true, "now_ns": monotonic_ns()})
}
