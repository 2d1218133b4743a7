//! From a capture file to rows.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{
    capture::CaptureReader,
    connection::Connection,
    connections::Table,
    packet::{self, Not, Other, Seen},
    problems::{Problem, Problems, Trouble},
    rows::{Batch, SegmentRow},
};

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file system refuses.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// It is neither pcap nor pcapng.
    #[error("{} is no capture: it begins neither as pcap nor as pcapng does", .0.display())]
    NoCapture(PathBuf),
}

/// A capture being read.
#[derive(Debug)]
pub struct Reader<R> {
    path: PathBuf,
    capture: CaptureReader<R>,
    table: Option<Table>,
    problems: Problems,
    packets: u64,
    segments: u64,
    others: BTreeMap<Other, u64>,
}

impl Reader<File> {
    /// Opens a capture file.
    ///
    /// # Errors
    /// A file that cannot be read, or is no capture.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|error| ReadError::Io(path.to_owned(), error))?;
        Self::new(path, file)
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read a capture; `path` names it in errors.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(path: &Path, reader: R) -> Result<Self, ReadError> {
        let capture = CaptureReader::new(reader).map_err(|error| ReadError::Io(path.to_owned(), error))?;
        let capture = capture.ok_or_else(|| ReadError::NoCapture(path.to_owned()))?;
        let table = Some(Table::new());
        let (problems, others) = (Problems::default(), BTreeMap::new());
        Ok(Self { path: path.to_owned(), capture, table, problems, packets: 0, segments: 0, others })
    }

    /// At least `rows` rows, or those that are left; None after them.
    ///
    /// # Errors
    /// The file system's error.
    pub fn read(&mut self, rows: usize) -> Result<Option<Batch>, ReadError> {
        if self.table.is_none() {
            return Ok(None);
        }
        let mut batch = Batch::default();
        while batch.rows() < rows && self.step(&mut batch, &mut |_, _, _| {})? {}
        Ok(Some(batch))
    }

    /// The segments of one connection, by its number in the rows, from a reader that has read nothing yet.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn segments_of(mut self, connection: u32) -> Result<Vec<SegmentRow>, ReadError> {
        let mut found = Vec::new();
        let mut keep = |own: &Connection, seen: &Seen<'_>, time| {
            if own.number == connection {
                found.push(own.row(seen, time));
            }
        };
        while self.step(&mut Batch::default(), &mut keep)? {}
        Ok(found)
    }

    /// Takes the next packet, and hands a segment on with its connection; false at the end.
    fn step(
        &mut self,
        batch: &mut Batch,
        each: &mut impl FnMut(&Connection, &Seen<'_>, i64),
    ) -> Result<bool, ReadError> {
        let Some(table) = &mut self.table else { return Ok(false) };
        let next = self.capture.next(&mut self.problems);
        let Some((record, bytes)) = next.map_err(|error| ReadError::Io(self.path.clone(), error))? else {
            table.finish(batch, &mut self.problems);
            self.table = None;
            return Ok(false);
        };
        self.packets += 1;
        if record.set_back {
            table.set_back(record.time_ns);
        }
        match packet::read(&record, bytes) {
            Ok(seen) => {
                self.segments += 1;
                if let Some(own) = table.take(&seen, record.time_ns, record.offset, batch, &mut self.problems) {
                    each(own, &seen, record.time_ns);
                }
            }
            Err(Not::Tcp(other)) => *self.others.entry(other).or_default() += 1,
            Err(Not::LinkLayer) => self.problems.add(Trouble::LinkLayer(record.link_type), record.offset),
            Err(Not::Fragment) => self.problems.add(Trouble::Fragment, record.offset),
            Err(Not::Short) => self.problems.add(Trouble::TooShort, record.offset),
            Err(Not::Malformed) => self.problems.add(Trouble::Malformed, record.offset),
        }
        Ok(true)
    }

    /// Problems of reading so far.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.found()
    }

    /// Packets read so far, and those of them that were TCP segments.
    pub fn counts(&self) -> (u64, u64) {
        (self.packets, self.segments)
    }

    /// The packets that were no TCP segments, by protocol, the most frequent first.
    pub fn others(&self) -> Vec<(String, u64)> {
        let mut named = BTreeMap::<String, u64>::new();
        for (other, count) in &self.others {
            *named.entry(other.to_string()).or_default() += count;
        }
        let mut found: Vec<_> = named.into_iter().collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    }
}
