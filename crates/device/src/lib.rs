//! The kernel's side of real time: devices that packets come from and go to, a clock, and waiting for both.
//!
//! [`Tun`] and [`PacketSocket`] carry IPv4 packets without a link layer. Both are opened in the network namespace of the
//! calling thread and stay usable from any other. Times are nanoseconds of CLOCK_MONOTONIC ([`monotonic_ns`]); the wall
//! clock enters only where a packet socket's kernel stamps are brought to that clock. All system calls of the project
//! are made here.

mod clock;
mod closed;
mod drawn;
mod packet_socket;
mod process;
mod readiness;
mod tun;

pub use clock::{boottime_ns, monotonic_ns, wall_ahead_ns};
pub use closed::{Closed, ClosedConnections, Counts, Filter};
pub use drawn::{Drawn, DrawnWindows};
pub use packet_socket::{Arrival, BATCH, MacAddress, PacketSocket, Taken};
pub use process::{duplicate, lock_memory, precise_timers, realtime_priority};
pub use readiness::{Readiness, Wake};
pub use tun::Tun;

/// Nanoseconds of CLOCK_MONOTONIC.
pub type Nanos = u64;

/// The error of the last system call.
fn last_error() -> std::io::Error {
    std::io::Error::last_os_error()
}

/// The answer of a system call that says "-1 and errno" for an error.
fn checked(answer: libc::c_int) -> std::io::Result<libc::c_int> {
    if answer < 0 { Err(last_error()) } else { Ok(answer) }
}

/// As [`checked`], of a call that answers with a length.
fn checked_length(answer: libc::ssize_t) -> std::io::Result<usize> {
    usize::try_from(answer).map_err(|_| last_error())
}

/// A request about an interface, by its name.
///
/// # Errors
/// A name that no interface can have.
fn interface_request(name: &str) -> std::io::Result<libc::ifreq> {
    let room = libc::IFNAMSIZ - 1;
    if name.is_empty() || name.len() > room || name.bytes().any(|byte| byte == 0 || byte == b'/') {
        let reason = format!("{name:?} is no name for an interface: give 1 to {room} characters without /");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
    }
    // SAFETY: an ifreq is plain numbers, for which zeros are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}
