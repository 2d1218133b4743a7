//! Interfaces by name.

use std::io::{Error, ErrorKind, Result};

/// A request about an interface, by its name.
///
/// # Errors
/// A name that no interface can have.
pub(crate) fn request(name: &str) -> Result<libc::ifreq> {
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
