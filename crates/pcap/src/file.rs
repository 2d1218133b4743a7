//! A capture file that is either whole or absent.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufWriter, ErrorKind},
    path::{Path, PathBuf},
};

use firstflight_segment::Unrepresentable;
use thiserror::Error;

use crate::{
    Record,
    writer::{Format, Writer},
};

/// The program that a capture file names.
const PROGRAM: &str = concat!("firstflight ", env!("CARGO_PKG_VERSION"));

/// Why there is no capture file.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file system refused.
    #[error("{}", unwritten(.path, .source))]
    Io {
        /// The file that was asked for.
        path: PathBuf,
        /// Its text.
        source: io::Error,
    },
    /// A segment does not make a packet.
    #[error(transparent)]
    Packet(#[from] Unrepresentable),
}

fn unwritten(path: &Path, source: &io::Error) -> String {
    let path = path.display();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            format!("there is no space left for {path}: nothing was written; make room")
        }
        _ => format!("{path} cannot be written: {source}"),
    }
}

/// A capture in progress: written next to its place, and renamed into it by [`CaptureFile::finish`]. If it is dropped
/// before that, an existing file stays as it was.
#[derive(Debug)]
pub struct CaptureFile {
    path: PathBuf,
    beside: PathBuf,
    writer: Option<Writer<BufWriter<fs::File>>>,
}

impl CaptureFile {
    /// Begins a capture file in the format that its name's ending asks for; the rest is as for [`Writer::new`].
    ///
    /// # Errors
    /// The file system's error.
    pub fn create(path: &Path, comment: &str, interfaces: &[&str]) -> Result<Self, FileError> {
        let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let mut file = Self { path: path.to_owned(), beside: path.with_file_name(name), writer: None };
        let opened = fs::File::create(&file.beside).map_err(|source| file.refused(source))?;
        let writer = Writer::new(BufWriter::new(opened), Format::of(path), PROGRAM, comment, interfaces);
        file.writer = Some(writer.map_err(|source| file.refused(source))?);
        Ok(file)
    }

    /// Adds a packet, as [`Writer::write`] does.
    ///
    /// # Errors
    /// The file system's error.
    pub fn write(&mut self, record: &Record, kept: &[u8], bytes: u32) -> Result<(), FileError> {
        let written = self.writer.as_mut().map_or(Ok(()), |writer| writer.write(record, kept, bytes));
        written.map_err(|source| self.refused(source))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The file system's error.
    pub fn finish(mut self) -> Result<(), FileError> {
        let done = match self.writer.take() {
            Some(writer) => writer
                .finish()
                .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
                .and_then(|file| file.sync_all())
                .and_then(|()| fs::rename(&self.beside, &self.path)),
            None => Ok(()),
        };
        done.map_err(|source| self.refused(source))
    }

    fn refused(&self, source: io::Error) -> FileError {
        FileError::Io { path: self.path.clone(), source }
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        // After a rename there is nothing to remove, and a failed removal cannot be reported.
        drop(self.writer.take());
        let _ = fs::remove_file(&self.beside);
    }
}
