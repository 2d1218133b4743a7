//! TUN: an interface of the kernel whose other end is a file descriptor.

use std::{
    fs::{File, OpenOptions},
    io::{Error, ErrorKind, Read, Result, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    os::unix::fs::OpenOptionsExt,
};

use crate::{checked, interface_request};

/// The file of a TUN interface: packets that the kernel sends there are read here, and packets written here are
/// received by the kernel.
///
/// The interface offers no offloads, so every packet comes segmented and with its checksums. It is not persistent: it
/// vanishes with the last descriptor of its file.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes the interface in the calling thread's network namespace, down and without an address.
    ///
    /// # Errors
    /// `/dev/net/tun` that is not there or may not be opened, a name that is taken or none.
    pub fn open(name: &str) -> Result<Tun> {
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: TUNSETIFF reads and writes an ifreq, which outlives the call.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
        Ok(Tun { file })
    }

    /// The file of a descriptor that [`Tun::open`] opened, here or in another process.
    ///
    /// # Errors
    /// Another descriptor.
    pub fn adopt(file: OwnedFd) -> Result<Tun> {
        // SAFETY: an ifreq is plain numbers, for which zeros are values.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: TUNGETIFF writes an ifreq, which outlives the call; another file's driver does not know the number.
        match checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNGETIFF, &mut request) }) {
            Ok(_) => Ok(Tun { file: file.into() }),
            Err(_) => Err(Error::new(ErrorKind::InvalidInput, "the descriptor is not that of a TUN interface")),
        }
    }

    /// Reads one packet into `packet`, or as much of it as there is room for; returns the number of bytes.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; an interface that has been deleted.
    pub fn read(&self, packet: &mut [u8]) -> Result<usize> {
        (&self.file).read(packet)
    }

    /// Gives the kernel one packet.
    ///
    /// # Errors
    /// The kernel's error: an interface that is down (EIO), no packet at all (EINVAL).
    pub fn write(&self, packet: &[u8]) -> Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> OwnedFd {
        tun.file.into()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_tun_interface_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Tun::adopt(file.into()).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
