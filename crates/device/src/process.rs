//! Requests to the kernel of a process that keeps time.

use std::{
    io::Result,
    os::fd::{FromRawFd, OwnedFd, RawFd},
};

use nix::sys::{
    mman::{MlockAllFlags, mlockall},
    prctl,
};

use crate::checked;

/// Lets the calling thread's timers fire when they are due, not up to 50 µs later for the sake of power.
///
/// # Errors
/// The kernel's error.
pub fn precise_timers() -> Result<()> {
    Ok(prctl::set_timerslack(1)?)
}

/// Keeps the memory that the process has now from being paged out.
///
/// # Errors
/// Without the privilege, memory above RLIMIT_MEMLOCK.
pub fn lock_memory() -> Result<()> {
    // Later pages are not locked in advance: under a limit that would make allocations fail.
    Ok(mlockall(MlockAllFlags::MCL_CURRENT)?)
}

/// Another descriptor of the object of `fd`: how a number from elsewhere becomes an owned one.
///
/// # Errors
/// A number that is no open descriptor.
pub fn duplicate(fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: takes numbers alone.
    let new = checked(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}
