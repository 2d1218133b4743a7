//! The packets of the interface, in a capture file.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use firstflight_device::monotonic_ns;
use firstflight_pcap::{CaptureFile, Direction, FileError, Record};
use firstflight_tcp::Nanos;

/// A capture in progress.
#[derive(Debug)]
pub(crate) struct CaptureWriter {
    file: CaptureFile,
    /// The offset of the wall clock from the monotonic one at the beginning.
    epoch: Nanos,
    /// The first error.
    failure: Option<FileError>,
}

impl CaptureWriter {
    /// Begins a capture.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn create(path: &Path) -> Result<CaptureWriter, FileError> {
        let program = concat!("firstflight ", env!("CARGO_PKG_VERSION"));
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as Nanos);
        let file = CaptureFile::create(path, program, "packets of our TCP on a device", &["wire"])?;
        Ok(CaptureWriter { file, epoch: wall.saturating_sub(monotonic_ns()), failure: None })
    }

    /// A packet passed at a time of the monotonic clock.
    pub(crate) fn note(&mut self, time: Nanos, direction: Direction, packet: &[u8]) {
        let record = Record { time_ns: self.epoch + time, interface: 0, direction };
        if self.failure.is_none() {
            self.failure = self.file.write(&record, packet).err();
        }
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The file system's first error, from an earlier write or from now.
    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.failure.map_or(Ok(()), Err)?;
        self.file.finish()
    }
}
