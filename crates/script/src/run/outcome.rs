//! What comes of a system call.

use super::errno::Errno;

/// What came of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Returned(i64),
    Failed(Errno),
    /// It cannot go on before something else happens.
    WouldBlock,
}
