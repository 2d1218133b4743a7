//! `fcntl` and `ioctl`.

use super::Outcome;
use super::arguments::{integer, symbols, wrong};
use crate::problem::Problem;
use crate::run::Runner;
use crate::run::descriptors::Role;
use crate::run::errno::Errno;
use crate::run::stop::Stop;
use crate::script::{Argument, Call};

/// Values of `O_RDWR` and `O_NONBLOCK` on Linux.
const O_RDWR: i64 = 0x2;
const O_NONBLOCK: i64 = 0x800;

impl Runner<'_> {
    pub(super) fn fcntl(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let what = symbols(line, call, 1, "F_GETFL or F_SETFL")?;
        let Some(open) = self.descriptors.get_mut(number) else { return Ok(Outcome::Failed(Errno::EBADF)) };
        match what.first().map(String::as_str) {
            Some("F_GETFL") => Ok(Outcome::Returned(if open.blocks { O_RDWR } else { O_RDWR | O_NONBLOCK })),
            Some("F_SETFL") => {
                open.blocks = match call.arguments.get(2) {
                    Some(Argument::Symbols(flags)) => !flags.iter().any(|flag| flag == "O_NONBLOCK"),
                    Some(Argument::Integer(flags)) => flags & O_NONBLOCK == 0,
                    other => return Err(wrong(line, call, 2, "flags, such as O_RDWR|O_NONBLOCK", other).into()),
                };
                Ok(Outcome::Returned(0))
            }
            _ => Err(Problem::unsupported(line, "of fcntl() only F_GETFL and F_SETFL are modeled").into()),
        }
    }

    pub(super) fn ioctl(&mut self, line: u32, call: &Call) -> Result<Outcome, Stop> {
        let number = integer(line, call, 0, "a descriptor")?;
        let what = symbols(line, call, 1, "SIOCINQ or SIOCOUTQ")?;
        let Some(open) = self.descriptors.get(number) else { return Ok(Outcome::Failed(Errno::EBADF)) };
        let Role::Connected(index) = open.role else { return Ok(Outcome::Failed(Errno::EINVAL)) };
        let endpoint = &self.world.connections[index].endpoint;
        let found = match what.first().map(String::as_str) {
            Some("SIOCINQ" | "FIONREAD") => endpoint.readable_bytes(),
            Some("SIOCOUTQ" | "TIOCOUTQ") => endpoint.info().not_sent_bytes + u64::from(endpoint.flight_bytes()),
            Some("SIOCOUTQNSD") => endpoint.info().not_sent_bytes,
            _ => return Err(Problem::unsupported(line, "of ioctl() only SIOCINQ and SIOCOUTQ are modeled").into()),
        };
        self.check_value(line, call, 2, &Argument::Integer(found as i64))?;
        Ok(Outcome::Returned(0))
    }
}
