//! File descriptors, by the numbers that the script gives them.

use crate::script::Argument;
use std::collections::BTreeMap;

/// The object of a descriptor.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Role {
    /// A socket that is neither connected nor listening.
    Fresh,
    Listening,
    /// The end of a connection, by its index.
    Connected(usize),
}

impl Role {
    /// The index of the connection.
    pub fn connection(&self) -> Option<usize> {
        if let Self::Connected(index) = self { Some(*index) } else { None }
    }
}

/// Socket options, as far as they say something about a connection to come.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct SocketOptions {
    /// `TCP_MAXSEG`, in bytes.
    pub segment_bytes: Option<i64>,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `TCP_CORK`.
    pub cork: bool,
    /// `TCP_CONGESTION`.
    pub congestion_control: Option<String>,
    /// `SO_SNDBUF`, twice the requested size, as in Linux.
    pub send_buffer_bytes: Option<i64>,
    /// `TCP_SYNCNT`.
    pub syn_retries: Option<u32>,
    /// `SO_RCVBUF`, likewise.
    pub receive_buffer_bytes: Option<i64>,
    /// `SO_LINGER` with a time of 0: closing resets.
    pub resets_on_close: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Descriptor {
    pub role: Role,
    pub blocks: bool,
    pub options: SocketOptions,
}

/// All open descriptors.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    pub open: BTreeMap<i64, Descriptor>,
}

impl Descriptors {
    /// Opens a descriptor under the number that the script expects, or the lowest free one from 3 on; false if it is
    /// taken.
    pub fn open(&mut self, expected: Option<&Argument>, descriptor: Descriptor) -> (i64, bool) {
        let free = (3..).find(|number| !self.open.contains_key(number)).unwrap_or(3);
        let number = match expected {
            Some(Argument::Integer(number)) if *number >= 0 => *number,
            _ => free,
        };
        let is_free = !self.open.contains_key(&number);
        if is_free {
            self.open.insert(number, descriptor);
        }
        (number, is_free)
    }

    /// The number of the listening descriptor, the latest if there are several.
    pub fn listening(&self) -> Option<i64> {
        self.open.iter().rev().find(|(_, open)| open.role == Role::Listening).map(|(number, _)| *number)
    }
}
