//! Errors of system calls.

use std::fmt;

/// An error that a call here can end with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Errno {
    Again,
    BadDescriptor,
    BrokenPipe,
    ConnectionRefused,
    ConnectionReset,
    InProgress,
    Invalid,
    AlreadyConnected,
    Already,
    NotConnected,
    TimedOut,
}

impl Errno {
    /// The number on Linux, for `SO_ERROR`.
    pub fn number(self) -> i64 {
        match self {
            Self::Again => 11,
            Self::BadDescriptor => 9,
            Self::BrokenPipe => 32,
            Self::ConnectionRefused => 111,
            Self::ConnectionReset => 104,
            Self::InProgress => 115,
            Self::Invalid => 22,
            Self::AlreadyConnected => 106,
            Self::Already => 114,
            Self::NotConnected => 107,
            Self::TimedOut => 110,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Again => "EAGAIN",
            Self::BadDescriptor => "EBADF",
            Self::BrokenPipe => "EPIPE",
            Self::ConnectionRefused => "ECONNREFUSED",
            Self::ConnectionReset => "ECONNRESET",
            Self::InProgress => "EINPROGRESS",
            Self::Invalid => "EINVAL",
            Self::AlreadyConnected => "EISCONN",
            Self::Already => "EALREADY",
            Self::NotConnected => "ENOTCONN",
            Self::TimedOut => "ETIMEDOUT",
        })
    }
}
