//! TUN: an interface of the kernel whose other end is a file descriptor.

use std::{
    fs::OpenOptions,
    io::{Error, ErrorKind, Result},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    os::unix::fs::OpenOptionsExt,
};

use crate::{checked, checked_length, interface};

/// The file of a TUN interface: what the kernel sends there is read here, what is written here the kernel receives.
///
/// The interface offers no offloads, so every packet comes segmented and with its checksums. It is not persistent: it
/// vanishes with the last descriptor of its file.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
}

impl Tun {
    /// Makes the interface in the calling thread's network namespace, down and without an address.
    ///
    /// # Errors
    /// `/dev/net/tun` that is not there or may not be opened, a name that is taken or none.
    pub fn open(name: &str) -> Result<Tun> {
        let mut request = interface::request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: TUNSETIFF reads and writes an ifreq, which outlives the call.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
        Ok(Tun { file: file.into() })
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
            Ok(_) => Ok(Tun { file }),
            Err(_) => Err(Error::new(ErrorKind::InvalidInput, "the descriptor is not that of a TUN interface")),
        }
    }

    /// Takes one packet into `packet`, and what does not fit there into `excess`; its length is the sum.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; an interface that has been deleted.
    #[inline]
    pub fn read(&self, packet: &mut [u8], excess: &mut [u8]) -> Result<usize> {
        let parts = [
            libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() },
            libc::iovec { iov_base: excess.as_mut_ptr().cast(), iov_len: excess.len() },
        ];
        // SAFETY: each part points at a slice borrowed for writing, of the length given.
        checked_length(unsafe { libc::readv(self.file.as_raw_fd(), parts.as_ptr(), 2) })
    }

    /// Gives the kernel one packet.
    ///
    /// # Errors
    /// What the kernel makes of it: an interface that is down (EIO), no packet at all (EINVAL).
    #[inline]
    pub fn write(&self, packet: &[u8]) -> Result<()> {
        // SAFETY: the pointer and the length are those of a slice.
        checked_length(unsafe { libc::write(self.file.as_raw_fd(), packet.as_ptr().cast(), packet.len()) }).map(drop)
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> OwnedFd {
        tun.file
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
