//! A system call that does not return immediately: `+.1...0.2 read(4, ..., 1000) = 1000`.

use super::errno::Outcome;
use super::stop::Stop;
use super::{Runner, seconds};
use crate::script::Call;
use firstflight_tcp::Nanos;

/// A call in progress.
pub(super) struct Blocked {
    pub line: u32,
    pub call: Call,
    /// When the script says that it returns.
    pub returns: Nanos,
    /// Bytes written so far.
    pub written: i64,
}

impl Runner<'_> {
    /// Tries the blocked call again; to be done after everything that may have changed its prospects.
    pub(super) fn resume(&mut self) -> Result<(), Stop> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.attempt(blocked.line, &blocked.call, &mut blocked.written)? {
            Outcome::WouldBlock => {
                let latest = blocked.returns.saturating_add(self.plan.tolerance_ns);
                if self.world.now > latest {
                    return Err(Stop::differs(
                        blocked.line,
                        format!("{}() has not returned by {}", blocked.call.name, seconds(latest)),
                    )
                    .with_history(self.world.history(self.world.count())));
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
        Err(Stop::differs(line, sentence).with_history(self.world.history(self.world.count())))
    }
}
