use std::{fmt::Display, io};

use firstflight_path::SpecError;
use firstflight_pcap::FileError;
use firstflight_tcp::ProfileError;
use thiserror::Error;

/// An error that stops a link box, a capture, a host on the wire or a command.
#[derive(Debug, Error)]
pub enum Error {
    /// The plan is no JSON, or has a key or a type that it must not have.
    #[error("the plan of the link emulator cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A link that cannot be.
    #[error("link {name:?}: {source}")]
    Link {
        /// Its name.
        name: String,
        /// The problem.
        source: SpecError,
    },
    /// Parts of a plan, or a command, that do not fit together, and more packets than there is room for: one sentence.
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
