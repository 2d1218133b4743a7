//! The result of a system call.

use super::errno::Errno;

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Returned(i64),
    Failed(Errno),
    /// It cannot go on before something else happens.
    WouldBlock,
}
