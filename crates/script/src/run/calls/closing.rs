//! `shutdown` and `close`.

use super::Outcome;
use super::arguments::{integer, symbols, wrong};
use crate::run::Runner;
use crate::run::descriptors::Role;
use crate::run::errno::Errno;
use crate::run::stop::Stop;
use crate::script::Call;
use firstflight_tcp::State;

impl Runner<'_> {
    pub(super) fn shutdown(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let how = symbols(line, call, 1, "SHUT_RD, SHUT_WR or SHUT_RDWR")?;
        let (reading, writing) = match how.first().map(String::as_str) {
            Some("SHUT_RD") => (true, false),
            Some("SHUT_WR") => (false, true),
            Some("SHUT_RDWR") => (true, true),
            _ => return Err(wrong(line, call, 1, "SHUT_RD, SHUT_WR or SHUT_RDWR", call.arguments.get(1)).into()),
        };
        let now = self.world.clock();
        let Some(open) = self.descriptors.get(number) else { return Ok(Outcome::Failed(Errno::EBADF)) };
        let Role::Connected(index) = open.role else { return Ok(Outcome::Failed(Errno::ENOTCONN)) };
        let connection = &mut self.world.connections[index];
        if connection.endpoint.is_finished() {
            return Ok(Outcome::Failed(Errno::ENOTCONN));
        }
        connection.reading_shut |= reading;
        if writing {
            connection.writing_shut = true;
            connection.endpoint.close(now);
        }
        Ok(Outcome::Returned(0))
    }

    pub(super) fn close(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let now = self.world.clock();
        let Some(open) = self.descriptors.remove(number) else { return Ok(Outcome::Failed(Errno::EBADF)) };
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
}
