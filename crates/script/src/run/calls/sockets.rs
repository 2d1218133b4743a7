//! `socket`, `bind`, `listen`, `accept`, `connect`, `shutdown`, `close`, `fcntl` and `ioctl`.

use super::Outcome;
use super::arguments::{integer, symbols, wrong};
use crate::problem::{Problem, unsupported};
use crate::run::Runner;
use crate::run::connection::Connection;
use crate::run::descriptors::{Descriptor, Role, SocketOptions};
use crate::run::errno::{Errno, Halt};
use crate::script::{Argument, Call};
use firstflight_tcp::State;

/// Values of `O_RDWR` and `O_NONBLOCK` on Linux.
const O_RDWR: i64 = 0x2;
const O_NONBLOCK: i64 = 0x800;

impl Runner<'_> {
    pub(super) fn socket(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let kind = symbols(call, 1, "a type of socket, such as SOCK_STREAM")?;
        if kind.first().is_none_or(|kind| kind != "SOCK_STREAM") {
            unsupported!(call.line, "only sockets of SOCK_STREAM (TCP) are modeled");
        }
        if let Some(Argument::Symbols(protocol)) = call.arguments.get(2) {
            if protocol.first().is_none_or(|protocol| protocol != "IPPROTO_TCP") {
                unsupported!(call.line, "only the protocol IPPROTO_TCP is modeled");
            }
        }
        let blocks = !kind.iter().any(|flag| flag == "SOCK_NONBLOCK");
        Ok(self.open(call, Descriptor { role: Role::Fresh, blocks, options: SocketOptions::default() }))
    }

    fn open(&mut self, call: &Call, descriptor: Descriptor) -> Outcome {
        match self.descriptors.open(call.result.as_ref(), descriptor) {
            (number, true) => Outcome::Returned(number),
            (_, false) => Outcome::Failed(Errno::EINVAL),
        }
    }

    pub(super) fn bind(&mut self, call: &Call) -> Result<Outcome, Halt> {
        match self.descriptor(call)?.role {
            Role::Fresh => Ok(Outcome::Returned(0)),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    pub(super) fn listen(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let open = self.descriptor(call)?;
        if let Role::Connected(_) = open.role {
            return Err(Errno::EINVAL.into());
        }
        open.role = Role::Listening;
        Ok(Outcome::Returned(0))
    }

    pub(super) fn accept(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let number = integer(call, 0, "a descriptor")?;
        let listener = self.descriptor(call)?.clone();
        if listener.role != Role::Listening {
            return Err(Errno::EINVAL.into());
        }
        let waiting = self.world.connections.iter().position(|connection| {
            connection.listener == Some(number) && connection.established && !connection.accepted
        });
        let Some(index) = waiting else {
            return Ok(if listener.blocks { Outcome::WouldBlock } else { Outcome::Failed(Errno::EAGAIN) });
        };
        let flags = call.arguments.get(3);
        let blocks =
            !matches!(flags, Some(Argument::Symbols(flags)) if flags.iter().any(|flag| flag == "SOCK_NONBLOCK"));
        let outcome = self.open(call, Descriptor { role: Role::Connected(index), blocks, options: listener.options });
        self.world.connections[index].accepted = matches!(outcome, Outcome::Returned(_));
        Ok(outcome)
    }

    pub(super) fn connect(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let open = self.descriptor(call)?.clone();
        match open.role {
            Role::Listening => Err(Errno::EISCONN.into()),
            Role::Connected(index) => Ok(self.await_connection(index, open.blocks, Errno::EALREADY)),
            Role::Fresh => {
                let profile = self.profile_for(&open.options);
                let profile = profile.map_err(|refusal| Problem::unsupported(call.line, refusal))?;
                let mut connection = Connection::client(profile, self.plan.initial_sequence);
                connection.set_cork(open.options.cork);
                connection.endpoint.connect(self.world.clock());
                let index = self.world.add(connection);
                self.descriptor(call)?.role = Role::Connected(index);
                Ok(self.await_connection(index, open.blocks, Errno::EINPROGRESS))
            }
        }
    }

    /// The state of a connection that is being made; `pending` is the error for a non-blocking socket.
    fn await_connection(&mut self, index: usize, blocks: bool, pending: Errno) -> Outcome {
        let connection = &mut self.world.connections[index];
        match connection.error.take() {
            Some(error) => Outcome::Failed(error),
            // A call that blocks reports the established connection itself; a later call fails, because it is connected
            // already.
            None if connection.established && connection.accepted => Outcome::Failed(Errno::EISCONN),
            None if connection.established => {
                connection.accepted = true;
                Outcome::Returned(0)
            }
            None if blocks => Outcome::WouldBlock,
            None => Outcome::Failed(pending),
        }
    }

    pub(super) fn shutdown(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let how = symbols(call, 1, "SHUT_RD, SHUT_WR or SHUT_RDWR")?;
        let (reading, writing) = match how.first().map(String::as_str) {
            Some("SHUT_RD") => (true, false),
            Some("SHUT_WR") => (false, true),
            Some("SHUT_RDWR") => (true, true),
            _ => return Err(wrong(call, 1, "SHUT_RD, SHUT_WR or SHUT_RDWR", call.arguments.get(1)).into()),
        };
        let now = self.world.clock();
        let (_, index) = self.connected(call, Errno::ENOTCONN)?;
        let connection = &mut self.world.connections[index];
        if connection.endpoint.is_finished() {
            return Err(Errno::ENOTCONN.into());
        }
        connection.reading_shut |= reading;
        if writing {
            connection.writing_shut = true;
            connection.endpoint.close(now);
        }
        Ok(Outcome::Returned(0))
    }

    pub(super) fn close(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let now = self.world.clock();
        let number = integer(call, 0, "a descriptor")?;
        let open = self.descriptors.open.remove(&number).ok_or(Errno::EBADF)?;
        match open.role {
            Role::Fresh => {}
            Role::Listening => {
                // Linux resets the connections that can no longer be accepted.
                let orphans =
                    self.world.connections.iter_mut().filter(|it| it.listener == Some(number) && !it.accepted);
                orphans.for_each(|connection| connection.endpoint.abort(now));
            }
            Role::Connected(index) => {
                let connection = &mut self.world.connections[index];
                connection.released = true;
                connection.writing_shut = true;
                // RFC 2525 §2.17, RFC 9293 §3.6.1 and Linux: closing with data unread resets the connection. A handshake
                // that has just begun is forgotten.
                let unread = connection.endpoint.readable_bytes() > 0;
                if unread || open.options.resets_on_close || connection.endpoint.state() == State::SynSent {
                    connection.endpoint.abort(now);
                } else {
                    connection.endpoint.close(now);
                }
            }
        }
        Ok(Outcome::Returned(0))
    }

    pub(super) fn fcntl(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let what = symbols(call, 1, "F_GETFL or F_SETFL")?;
        let open = self.descriptor(call)?;
        match what.first().map(String::as_str) {
            Some("F_GETFL") => Ok(Outcome::Returned(if open.blocks { O_RDWR } else { O_RDWR | O_NONBLOCK })),
            Some("F_SETFL") => {
                open.blocks = match call.arguments.get(2) {
                    Some(Argument::Symbols(flags)) => !flags.iter().any(|flag| flag == "O_NONBLOCK"),
                    Some(Argument::Integer(flags)) => flags & O_NONBLOCK == 0,
                    other => return Err(wrong(call, 2, "flags, such as O_RDWR|O_NONBLOCK", other).into()),
                };
                Ok(Outcome::Returned(0))
            }
            _ => Err(Problem::unsupported(call.line, "of fcntl() only F_GETFL and F_SETFL are modeled").into()),
        }
    }

    pub(super) fn ioctl(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let what = symbols(call, 1, "SIOCINQ or SIOCOUTQ")?;
        let (_, index) = self.connected(call, Errno::EINVAL)?;
        let endpoint = &self.world.connections[index].endpoint;
        let found = match what.first().map(String::as_str) {
            Some("SIOCINQ" | "FIONREAD") => endpoint.readable_bytes(),
            Some("SIOCOUTQ" | "TIOCOUTQ") => endpoint.info().not_sent_bytes + u64::from(endpoint.flight_bytes()),
            Some("SIOCOUTQNSD") => endpoint.info().not_sent_bytes,
            _ => unsupported!(call.line, "of ioctl() only SIOCINQ and SIOCOUTQ are modeled"),
        };
        self.check_value(call, 2, &Argument::Integer(found as i64))?;
        Ok(Outcome::Returned(0))
    }
}
