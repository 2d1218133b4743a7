//! `socket`, `bind`, `listen`, `accept`, `connect`.

use super::Outcome;
use super::arguments::{integer, symbols};
use crate::problem::Problem;
use crate::run::Runner;
use crate::run::connection::Connection;
use crate::run::descriptors::{Descriptor, Role, SocketOptions};
use crate::run::errno::Errno;
use crate::run::stop::Stop;
use crate::script::{Argument, Call};

impl Runner<'_> {
    pub(super) fn socket(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let kind = symbols(line, call, 1, "a type of socket, such as SOCK_STREAM")?;
        if kind.first().is_none_or(|kind| kind != "SOCK_STREAM") {
            return Err(Problem::unsupported(line, "only sockets of SOCK_STREAM (TCP) are modeled").into());
        }
        if let Some(Argument::Symbols(protocol)) = call.arguments.get(2) {
            if protocol.first().is_none_or(|protocol| protocol != "IPPROTO_TCP") {
                return Err(Problem::unsupported(line, "only the protocol IPPROTO_TCP is modeled").into());
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

    pub(super) fn bind(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        Ok(match self.descriptors.get(number).map(|open| &open.role) {
            None => Outcome::Failed(Errno::EBADF),
            Some(Role::Fresh) => Outcome::Returned(0),
            Some(_) => Outcome::Failed(Errno::EINVAL),
        })
    }

    pub(super) fn listen(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        Ok(match self.descriptors.get_mut(number) {
            None => Outcome::Failed(Errno::EBADF),
            Some(open) if matches!(open.role, Role::Fresh | Role::Listening) => {
                open.role = Role::Listening;
                Outcome::Returned(0)
            }
            Some(_) => Outcome::Failed(Errno::EINVAL),
        })
    }

    pub(super) fn accept(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let Some(listener) = self.descriptors.get(number).cloned() else {
            return Ok(Outcome::Failed(Errno::EBADF));
        };
        if listener.role != Role::Listening {
            return Ok(Outcome::Failed(Errno::EINVAL));
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

    pub(super) fn connect(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let Some(open) = self.descriptors.get(number).cloned() else {
            return Ok(Outcome::Failed(Errno::EBADF));
        };
        match open.role {
            Role::Listening => Ok(Outcome::Failed(Errno::EISCONN)),
            Role::Connected(index) => Ok(self.await_connection(index, open.blocks, Errno::EALREADY)),
            Role::Fresh => {
                let profile = self.profile_for(&open.options);
                let profile = profile.map_err(|refusal| Problem::unsupported(line, refusal))?;
                let mut connection = Connection::client(profile, self.plan.initial_sequence);
                self.apply_options(&mut connection, &open.options);
                connection.endpoint.connect(self.world.clock());
                let index = self.world.add(connection);
                if let Some(open) = self.descriptors.get_mut(number) {
                    open.role = Role::Connected(index);
                }
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
}
