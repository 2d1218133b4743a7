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

use std::{
    io::{Error, ErrorKind, Result},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

pub use clock::{monotonic_ns, wall_ahead_ns};
pub use closed::{Closed, ClosedConnections, Counts, Filter};
pub use drawn::{Drawn, DrawnWindows};
pub use packet_socket::{BATCH, Batch, MacAddress, PacketSocket, Taken, mac_address};
pub use process::{duplicate, lock_memory, precise_timers};
pub use readiness::{Readiness, Wake};
pub use tun::Tun;

/// Nanoseconds of CLOCK_MONOTONIC.
pub type Nanos = u64;

/// The error of the last system call.
fn last_error() -> Error {
    Error::last_os_error()
}

/// The answer of a system call that says "-1 and errno" for an error.
fn checked(answer: libc::c_int) -> Result<libc::c_int> {
    if answer < 0 { Err(last_error()) } else { Ok(answer) }
}

/// As [`checked`], of a call that answers with a length.
fn checked_length(answer: libc::ssize_t) -> Result<usize> {
    usize::try_from(answer).map_err(|_| last_error())
}

/// A new socket, which programs that this one starts do not get.
fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: takes numbers alone.
    let socket = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Binds a socket to an address, a structure of its family.
fn bind<A>(socket: &OwnedFd, address: &A) -> Result<()> {
    let (address, length): (*const A, _) = (address, size_of::<A>() as libc::socklen_t);
    // SAFETY: `address` has the length given and outlives the call, which only reads it.
    checked(unsafe { libc::bind(socket.as_raw_fd(), address.cast(), length) }).map(drop)
}

fn set_option(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` has the length given and outlives the call, which only reads it.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) }).map(drop)
}

/// Reads an option into `value`, which is plain numbers.
fn get_option<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &mut T) -> Result<()> {
    let (value, mut length): (*mut T, _) = (value, size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` has room for `length` bytes; all callers pass plain numbers, for which any bytes are values.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, value.cast(), &mut length) }).map(drop)
}

/// A request about an interface, by its name.
fn interface_request(name: &str) -> Result<libc::ifreq> {
    let room = libc::IFNAMSIZ - 1;
    if name.is_empty() || name.len() > room || name.bytes().any(|byte| byte == 0 || byte == b'/') {
        let reason = format!("{name:?} is no name for an interface: give 1 to {room} characters without /");
        return Err(Error::new(ErrorKind::InvalidInput, reason));
    }
    // SAFETY: an ifreq is plain numbers, for which zeros are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}
