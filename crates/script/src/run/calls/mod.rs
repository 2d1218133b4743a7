//! System calls, by name, and one that does not return immediately: `+.1...0.2 read(4, ..., 1000) = 1000`.

pub(super) mod arguments;
mod data;
mod sockets;

use super::descriptors::Descriptor;
use super::errno::{Errno, Halt, Outcome};
use super::stop::Stop;
use super::{Runner, seconds};
use crate::problem::Problem;
use crate::script::{Argument, Call, Event};
use arguments::integer;
use firstflight_tcp::Nanos;

/// A call that has not returned yet.
pub(super) struct Blocked {
    pub call: Call,
    /// When the script says that it returns.
    pub returns: Nanos,
    /// Bytes written so far.
    pub written: i64,
}

impl Runner<'_> {
    pub(super) fn call(&mut self, event: &Event, call: &Call, base: Nanos) -> Result<(), Stop> {
        self.finish_blocked()?;
        let returns = call.returns.map(|end| if event.when.relative { base.saturating_add(end) } else { end });
        let mut written = 0;
        let outcome = self.attempt(call, &mut written)?;
        match (outcome, returns) {
            (Outcome::WouldBlock, Some(returns)) => {
                self.blocked = Some(Blocked { call: call.clone(), returns, written });
                Ok(())
            }
            (Outcome::WouldBlock, None) => {
                let sentence = format!(
                    "{}() would block at {}; a script says when a call that blocks returns, as in +0...0.100",
                    call.name,
                    seconds(self.world.now)
                );
                Err(self.differs(call.line, sentence))
            }
            (outcome, returns) => {
                if let Some(returns) = returns {
                    self.check_return_time(call, returns)?;
                }
                self.check_result(call, outcome)
            }
        }
    }

    /// Makes the call, or tries again. `written` stores the part that a call completed before it had to wait.
    pub(super) fn attempt(&mut self, call: &Call, written: &mut i64) -> Result<Outcome, Stop> {
        let outcome = match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => self.bind(call),
            "listen" => self.listen(call),
            "accept" | "accept4" => self.accept(call),
            "connect" => self.connect(call),
            "read" | "recv" | "recvfrom" | "recvmsg" | "readv" => self.read(call),
            "write" | "send" | "sendto" | "sendmsg" | "writev" => self.write(call, written),
            "shutdown" => self.shutdown(call),
            "close" => self.close(call),
            "fcntl" => self.fcntl(call),
            "ioctl" => self.ioctl(call),
            "setsockopt" => self.setsockopt(call),
            "getsockopt" => self.getsockopt(call),
            name => Err(Problem::unsupported(call.line, format!("the system call {name}() is not modeled")).into()),
        };
        for index in 0..self.world.connections.len() {
            self.world.flush(index);
        }
        outcome.or_else(|halt| match halt {
            Halt::Failed(errno) => Ok(Outcome::Failed(errno)),
            Halt::Stop(stop) => Err(stop),
        })
    }

    /// The descriptor whose number is the first argument.
    pub(super) fn descriptor(&mut self, call: &Call) -> Result<&mut Descriptor, Halt> {
        let number = integer(call, 0, "a descriptor")?;
        self.descriptors.open.get_mut(&number).ok_or(Errno::EBADF.into())
    }

    /// The descriptor, with the index of its connection; `unless`: the error if it has none.
    pub(super) fn connected(&mut self, call: &Call, unless: Errno) -> Result<(&mut Descriptor, usize), Halt> {
        let open = self.descriptor(call)?;
        let index = open.role.connection().ok_or(unless)?;
        Ok((open, index))
    }

    pub(super) fn check_result(&mut self, call: &Call, outcome: Outcome) -> Result<(), Stop> {
        let Some(expected) = &call.result else { return Ok(()) };
        let (same, came) = match outcome {
            Outcome::Returned(number) => {
                (*expected == Argument::Integer(number) && call.error.is_none(), number.to_string())
            }
            Outcome::Failed(errno) => (
                *expected == Argument::Integer(-1) && call.error.as_deref() == Some(&errno.to_string()),
                format!("-1 {errno}"),
            ),
            Outcome::WouldBlock => (false, "nothing yet".to_owned()),
        };
        if same {
            return Ok(());
        }
        let error = call.error.as_ref().map_or(String::new(), |error| format!(" {error}"));
        let sentence = format!("{}() returned {came} instead of {}{error}", call.name, arguments::shown(expected));
        Err(self.differs(call.line, sentence))
    }

    /// Tries the blocked call again; to be done after everything that may have changed its prospects.
    pub(super) fn resume(&mut self) -> Result<(), Stop> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.attempt(&blocked.call, &mut blocked.written)? {
            Outcome::WouldBlock => {
                let latest = blocked.returns.saturating_add(self.plan.tolerance_ns);
                if self.world.now > latest {
                    let sentence = format!("{}() has not returned by {}", blocked.call.name, seconds(latest));
                    return Err(self.differs(blocked.call.line, sentence));
                }
                self.blocked = Some(blocked);
                Ok(())
            }
            outcome => {
                self.check_return_time(&blocked.call, blocked.returns)?;
                self.check_result(&blocked.call, outcome)
            }
        }
    }

    /// Lets time pass until the blocked call returns, if there is one.
    pub(super) fn finish_blocked(&mut self) -> Result<(), Stop> {
        loop {
            self.resume()?;
            let Some(blocked) = &self.blocked else { return Ok(()) };
            let latest = blocked.returns.saturating_add(self.plan.tolerance_ns);
            if !self.world.step(latest) {
                // One more look, after the last moment at which it could have returned.
                self.world.now = self.world.now.max(latest.saturating_add(1));
            }
        }
    }

    pub(super) fn check_return_time(&mut self, call: &Call, returns: Nanos) -> Result<(), Stop> {
        if self.world.now.abs_diff(returns) <= self.plan.tolerance_ns {
            return Ok(());
        }
        let sentence =
            format!("{}() returned at {} instead of {}", call.name, seconds(self.world.now), seconds(returns));
        Err(self.differs(call.line, sentence))
    }

    /// Something happened otherwise than the script says, after all segments so far.
    pub(super) fn differs(&self, line: u32, sentence: String) -> Stop {
        Stop::differs(line, sentence).with_history(self.world.history(self.world.count()))
    }
}
