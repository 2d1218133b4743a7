//! Errors that stop a host or a command.

use std::io;
use std::net::SocketAddr;

use firstflight_pcap::FileError;
use firstflight_tcp::ProfileError;
use thiserror::Error;

/// The problem, and the correct form.
#[derive(Debug, Error)]
pub enum Error {
    /// The plan is no JSON, or has a key or a type that it must not have.
    #[error("the plan cannot be read: {0}")]
    Plan(serde_json::Error),
    /// The same of a command.
    #[error("the command cannot be read: {0}")]
    Command(serde_json::Error),
    /// A profile with settings out of range, or that do not go together.
    #[error(transparent)]
    Profile(#[from] ProfileError),
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
    /// Something to fetch that cannot be asked for.
    #[error("fetch {fetch}: {problem}")]
    Fetch {
        /// Number of the fetch.
        fetch: u64,
        /// The problem, and the correct form.
        problem: String,
    },
    /// No port is free for a connection to that peer.
    #[error("all ports from {first} on are in use for connections to {peer}")]
    NoPort {
        /// The first that is given to connections that we open.
        first: u16,
        /// Whom to connect to.
        peer: SocketAddr,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The packets cannot be written to their file.
    #[error(transparent)]
    Capture(#[from] FileError),
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
}

impl Error {
    /// For `map_err`: what could not be done.
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |error| Error::System { what, error }
    }
}
