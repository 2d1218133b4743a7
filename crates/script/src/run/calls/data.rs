//! Reading and writing.

use super::Outcome;
use super::arguments::{field, integer, vector_bytes, wrong};
use crate::problem::{Problem, unsupported};
use crate::run::Runner;
use crate::run::descriptors::Descriptor;
use crate::run::errno::{Errno, Halt};
use crate::script::{Argument, Call};

impl Runner<'_> {
    pub(super) fn read(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let (wanted, flags) = match call.name.as_str() {
            "recvmsg" => {
                if field(call.arguments.get(1), "msg_control").is_some_and(|control| !is_empty(control)) {
                    unsupported!(call.line, "control messages of recvmsg() are not modeled");
                }
                (message_bytes(call)?, 2)
            }
            "readv" => (vector(call)?, usize::MAX),
            _ => (integer(call, 2, "a length in bytes")?, 3),
        };
        let waits = self.flags(call, flags, &["MSG_DONTWAIT", "MSG_TRUNC", "MSG_NOSIGNAL"])?;
        let (open, index) = self.connected(call, Errno::ENOTCONN)?;
        let open = open.clone();
        let connection = &mut self.world.connections[index];
        let taken = connection.endpoint.read(u64::try_from(wanted).unwrap_or(0));
        if taken > 0 {
            return Ok(Outcome::Returned(taken as i64));
        }
        if let Some(error) = connection.error.take() {
            return Ok(Outcome::Failed(error));
        }
        if connection.is_at_end() || wanted == 0 {
            return Ok(Outcome::Returned(0));
        }
        Ok(if open.blocks && waits { Outcome::WouldBlock } else { Outcome::Failed(Errno::EAGAIN) })
    }

    pub(super) fn write(&mut self, call: &Call, written: &mut i64) -> Result<Outcome, Halt> {
        let (bytes, flags) = match call.name.as_str() {
            "sendmsg" => (message_bytes(call)?, 2),
            "writev" => (vector(call)?, usize::MAX),
            _ => (integer(call, 2, "a length in bytes")?, 3),
        };
        let bytes =
            u64::try_from(bytes).map_err(|_| Problem::malformed(call.line, "a negative number of bytes is written"))?;
        let known = ["MSG_DONTWAIT", "MSG_NOSIGNAL", "MSG_EOR", "MSG_MORE"];
        let waits = self.flags(call, flags, &known)?;
        let has = |name: &str| matches!(call.arguments.get(flags), Some(Argument::Symbols(set)) if set.iter().any(|flag| flag == name));
        let (open, index) = self.connected(call, Errno::EPIPE)?;
        let open = open.clone();
        let now = self.world.clock();
        let room = self.send_room(&open, index, *written > 0);
        let connection = &mut self.world.connections[index];
        if let Some(error) = connection.error.take() {
            return Ok(Outcome::Failed(error));
        }
        if connection.writing_shut || connection.failed {
            return Ok(Outcome::Failed(Errno::EPIPE));
        }
        if !connection.established {
            return Ok(if open.blocks && waits { Outcome::WouldBlock } else { Outcome::Failed(Errno::EAGAIN) });
        }
        let left = bytes - (*written as u64).min(bytes);
        let part = left.min(room);
        connection.endpoint.set_cork(open.options.cork || has("MSG_MORE"));
        connection.endpoint.write(now, part);
        *written += part as i64;
        if part == left {
            if has("MSG_EOR") {
                connection.endpoint.end_record();
            }
            return Ok(Outcome::Returned(*written));
        }
        Ok(match (open.blocks && waits, *written) {
            (true, _) => Outcome::WouldBlock,
            (false, 0) => Outcome::Failed(Errno::EAGAIN),
            (false, written) => Outcome::Returned(written),
        })
    }

    /// Bytes that the send buffer takes now.
    ///
    /// Linux takes data while less than `SO_SNDBUF` is queued, wakes a waiting writer when a third of the buffer is
    /// free, and lets a buffer of which nothing was said grow.
    fn send_room(&self, open: &Descriptor, index: usize, waiting: bool) -> u64 {
        let Some(buffer) = open.options.send_buffer_bytes.and_then(|bytes| u64::try_from(bytes).ok()) else {
            return u64::MAX;
        };
        let endpoint = &self.world.connections[index].endpoint;
        let queued = endpoint.info().not_sent_bytes + u64::from(endpoint.flight_bytes());
        if waiting && queued > buffer - buffer / 3 { 0 } else { buffer.saturating_sub(queued) }
    }

    /// True if the flags let the call wait; those that are not modeled are refused.
    fn flags(&self, call: &Call, place: usize, known: &[&str]) -> Result<bool, Problem> {
        let Some(Argument::Symbols(set)) = call.arguments.get(place) else { return Ok(true) };
        match set.iter().find(|flag| !known.contains(&flag.as_str())) {
            Some(flag) => Err(Problem::unsupported(call.line, format!("{flag} of {}() is not modeled", call.name))),
            None => Ok(!set.iter().any(|flag| flag == "MSG_DONTWAIT")),
        }
    }
}

fn is_empty(control: &Argument) -> bool {
    matches!(control, Argument::List(items) if items.is_empty())
}

/// Bytes of `{msg_name(...)=..., msg_iov(1)=[{..., 40}], msg_flags=0}`.
fn message_bytes(call: &Call) -> Result<i64, Problem> {
    let message = call.arguments.get(1);
    vector_bytes(field(message, "msg_iov"))
        .ok_or_else(|| wrong(call, 1, "a message with msg_iov(1)=[{..., 1000}]", message))
}

fn vector(call: &Call) -> Result<i64, Problem> {
    let argument = call.arguments.get(1);
    vector_bytes(argument).ok_or_else(|| wrong(call, 1, "a vector such as [{..., 1000}]", argument))
}
