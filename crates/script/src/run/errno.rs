//! The result of a system call, and its errors.

use super::stop::Stop;
use std::fmt;

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Returned(i64),
    Failed(Errno),
    /// It cannot go on before something else happens.
    WouldBlock,
}

/// Why a call has no outcome of its own: the error that it ends with, or the end of the run.
pub(super) enum Halt {
    Failed(Errno),
    Stop(Stop),
}

impl From<Errno> for Halt {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl<S: Into<Stop>> From<S> for Halt {
    fn from(stop: S) -> Self {
        Self::Stop(stop.into())
    }
}

/// An error that a call here can end with: its number on Linux, for `SO_ERROR`, and its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Errno(pub i64, &'static str);

impl Errno {
    pub const EAGAIN: Self = Self(11, "EAGAIN");
    pub const EBADF: Self = Self(9, "EBADF");
    pub const EPIPE: Self = Self(32, "EPIPE");
    pub const ECONNREFUSED: Self = Self(111, "ECONNREFUSED");
    pub const ECONNRESET: Self = Self(104, "ECONNRESET");
    pub const EINPROGRESS: Self = Self(115, "EINPROGRESS");
    pub const EINVAL: Self = Self(22, "EINVAL");
    pub const EISCONN: Self = Self(106, "EISCONN");
    pub const EALREADY: Self = Self(114, "EALREADY");
    pub const ENOTCONN: Self = Self(107, "ENOTCONN");
    pub const ETIMEDOUT: Self = Self(110, "ETIMEDOUT");
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}
