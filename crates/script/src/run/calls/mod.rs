//! System calls, by name, and one that does not return immediately: `+.1...0.2 read(4, ..., 1000) = 1000`.

pub(super) mod arguments;
mod data;
mod sockets;

use super::errno::Outcome;
use super::stop::Stop;
use super::{Runner, seconds};
use crate::problem::Problem;
use crate::script::{Argument, Call, Event, When};
use firstflight_tcp::Nanos;

/// A call that has not returned yet.
pub(super) struct Blocked {
    pub line: u32,
    pub call: Call,
    /// When the script says that it returns.
    pub returns: Nanos,
    /// Bytes written so far.
    pub written: i64,
}

impl Runner<'_> {
    pub(super) fn call(&mut self, event: &Event, call: &Call, base: Nanos) -> Result<(), Stop> {
        self.finish_blocked()?;
        let returns = call.returns.map(|end| match event.when {
            When::After(_) => base.saturating_add(end),
            _ => end,
        });
        let mut written = 0;
        let outcome = self.attempt(event.line, call, &mut written)?;
        match (outcome, returns) {
            (Outcome::WouldBlock, Some(returns)) => {
                self.blocked = Some(Blocked { line: event.line, call: call.clone(), returns, written });
                Ok(())
            }
            (Outcome::WouldBlock, None) => {
                let sentence = format!(
                    "{}() would block at {}; a script says when a call that blocks returns, as in +0...0.100",
                    call.name,
                    seconds(self.world.now)
                );
                Err(self.differs(event.line, sentence))
            }
            (outcome, returns) => {
                if let Some(returns) = returns {
                    self.check_return_time(event.line, &call.name, returns)?;
                }
                self.check_result(event.line, call, outcome)
            }
        }
    }

    /// Makes the call, or tries again. `written` stores the part that a call completed before it had to wait.
    pub(super) fn attempt(&mut self, line: u32, call: &Call, written: &mut i64) -> Result<Outcome, Stop> {
        let outcome = match call.name.as_str() {
            "socket" => self.socket(line, call),
            "bind" => self.bind(line, call),
            "listen" => self.listen(line, call),
            "accept" | "accept4" => self.accept(line, call),
            "connect" => self.connect(line, call),
            "read" | "recv" | "recvfrom" | "recvmsg" | "readv" => self.read(line, call),
            "write" | "send" | "sendto" | "sendmsg" | "writev" => self.write(line, call, written),
            "shutdown" => self.shutdown(line, call),
            "close" => self.close(line, call),
            "fcntl" => self.fcntl(line, call),
            "ioctl" => self.ioctl(line, call),
            "setsockopt" => self.setsockopt(line, call),
            "getsockopt" => self.getsockopt(line, call),
            name => Err(Problem::unsupported(line, format!("the system call {name}() is not modeled")).into()),
        }?;
        for index in 0..self.world.connections.len() {
            self.world.flush(index);
        }
        Ok(outcome)
    }

    pub(super) fn check_result(&mut self, line: u32, call: &Call, outcome: Outcome) -> Result<(), Stop> {
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
        Err(self.differs(line, sentence))
    }

    /// Tries the blocked call again; to be done after everything that may have changed its prospects.
    pub(super) fn resume(&mut self) -> Result<(), Stop> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.attempt(blocked.line, &blocked.call, &mut blocked.written)? {
            Outcome::WouldBlock => {
                let latest = blocked.returns.saturating_add(self.plan.tolerance_ns);
                if self.world.now > latest {
                    let sentence = format!("{}() has not returned by {}", blocked.call.name, seconds(latest));
                    return Err(self.differs(blocked.line, sentence));
                }
                self.blocked = Some(blocked);
                Ok(())
            }
            outcome => {
                self.check_return_time(blocked.line, &blocked.call.name, blocked.returns)?;
                self.check_result(blocked.line, &blocked.call, outcome)
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

    pub(super) fn check_return_time(&mut self, line: u32, name: &str, returns: Nanos) -> Result<(), Stop> {
        if self.world.now.abs_diff(returns) <= self.plan.tolerance_ns {
            return Ok(());
        }
        let sentence = format!("{name}() returned at {} instead of {}", seconds(self.world.now), seconds(returns));
        Err(self.differs(line, sentence))
    }

    /// Something happened otherwise than the script says, after all segments so far.
    pub(super) fn differs(&self, line: u32, sentence: String) -> Stop {
        Stop::differs(line, sentence).with_history(self.world.history(self.world.count()))
    }
}
