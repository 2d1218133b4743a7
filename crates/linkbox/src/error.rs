use std::{fmt::Display, io, net::SocketAddr};

use firstflight_path::SpecError;
use firstflight_pcap::FileError;
use firstflight_tcp::ProfileError;
use thiserror::Error;

/// An error that stops a link box, a capture, a host on the wire or a command.
#[derive(Debug, Error)]
pub enum Error {
    /// A plan, or a command, that is no JSON, or has a key or a type that it must not have.
    #[error("{what} cannot be read: {source}")]
    Unreadable {
        /// The text.
        what: &'static str,
        /// The problem.
        source: serde_json::Error,
    },
    /// A number out of its range.
    #[error("{name} is {value}; {limit}")]
    OutOfRange {
        /// The key.
        name: &'static str,
        /// The found value.
        value: u32,
        /// The expected form.
        limit: String,
    },
    /// A link that cannot be.
    #[error("link {name:?}: {source}")]
    Link {
        /// Its name.
        name: String,
        /// The problem.
        source: SpecError,
    },
    /// No port of a host on the wire is free for a connection to that peer.
    #[error("all ports from {first} on are in use for connections to {peer}")]
    NoPort {
        /// The first that is given to connections that we open.
        first: u16,
        /// Whom to connect to.
        peer: SocketAddr,
    },
    /// An interface that leaves checksums to the device.
    #[error("a packet came without its checksum: switch tx-checksumming of the interface that sends to us off")]
    LacksChecksum,
    /// An interface that merges segments.
    #[error(
        "a packet of {bytes} bytes came over an interface of {mtu}: switch the segmentation and receive offloads of both \
         ends off"
    )]
    Merged {
        /// Size of the packet.
        bytes: usize,
        /// Largest that the interface sends.
        mtu: u16,
    },
    /// What else is asked for and cannot be: parts of a plan that do not fit together, a name or a command that there is
    /// not, a path that cannot be fetched, more packets than there is room for. One sentence.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A profile with settings out of range, or that do not go together.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The packets cannot be written to their file.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Error {
    /// For `map_err`: the action that failed.
    pub fn system(what: impl Display) -> impl Fn(io::Error) -> Error {
        move |source| Error::System { what: what.to_string(), source }
    }
}

/// An [`Error::Refused`], written as for `format!`.
#[macro_export]
macro_rules! refused {
    ($($sentence:tt)*) => {
        $crate::Error::Refused(format!($($sentence)*))
    };
}
