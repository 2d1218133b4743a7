//! Packets in capture files, one after the other.

mod pcap;
mod pcapng;

use std::io::{Read, Result};

use crate::{
    problems::{Problems, Trouble},
    source::Source,
};

/// A packet as it stands in the file; its bytes are the next ones of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Since 1970.
    pub(crate) time_ns: i64,
    /// As <https://www.tcpdump.org/linktypes.html> numbers it.
    pub(crate) link_type: u16,
    /// Bytes that were kept.
    pub(crate) kept: usize,
    /// Bytes that it had.
    pub(crate) length: u32,
    pub(crate) offset: u64,
    /// Bytes of the file between its own and the next packet's header.
    trailer: usize,
    /// The interface's clock was set back before it.
    pub(crate) set_back: bool,
}

#[derive(Clone, Copy, Debug)]
struct Clock(i64);

/// Packets that several processors capture are out of order by less than this.
const OUT_OF_ORDER: i64 = 10_000_000;

impl Default for Clock {
    fn default() -> Self {
        Self(i64::MIN)
    }
}

impl Clock {
    /// It shows `time` now; whether it was set back.
    fn read(&mut self, time: i64) -> bool {
        let before = std::mem::replace(&mut self.0, time);
        time < before.saturating_sub(OUT_OF_ORDER)
    }
}

/// A file's format, and its data so far.
#[derive(Debug)]
enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

#[derive(Debug)]
pub(crate) struct CaptureReader<R> {
    source: Source<R>,
    format: Format,
    /// The last reported packet.
    last: Option<Record>,
}

/// The next item of a file.
enum Next {
    Packet(Record),
    /// Something else that has been passed.
    Other,
    End,
    Bad(Trouble),
}

impl<R: Read> CaptureReader<R> {
    /// None if the file is no capture.
    pub(crate) fn new(reader: R) -> Result<Option<Self>> {
        let mut source = Source::new(reader);
        let format = match pcap::Header::read(&mut source)? {
            Some(header) => Format::Pcap(header),
            None if pcapng::Section::begins(&mut source)? => Format::Pcapng(pcapng::Section::default()),
            None => return Ok(None),
        };
        Ok(Some(Self { source, format, last: None }))
    }

    /// The next packet and the bytes that were kept of it; None at the end of the readable part.
    pub(crate) fn next(&mut self, problems: &mut Problems) -> Result<Option<(Record, &[u8])>> {
        if let Some(last) = self.last.take() {
            self.source.consume(last.kept + last.trailer);
        }
        loop {
            let offset = self.source.offset();
            let next = match &mut self.format {
                Format::Pcap(header) => header.next(&mut self.source)?,
                Format::Pcapng(section) => section.next(&mut self.source)?,
            };
            match next {
                Next::Packet(record) => {
                    self.last = Some(record);
                    return Ok(Some((record, self.source.seen(record.kept))));
                }
                Next::Other => {}
                Next::End => return Ok(None),
                Next::Bad(trouble) => {
                    problems.add(trouble, offset);
                    if matches!(trouble, Trouble::CutOff | Trouble::Damaged) {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

fn word(bytes: &[u8], at: usize, little_endian: bool) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).unwrap_or_default();
    if little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
}

/// Half a word of the file.
fn half(bytes: &[u8], at: usize, little_endian: bool) -> u16 {
    let half = bytes.get(at..at + 2).and_then(|half| half.try_into().ok()).unwrap_or_default();
    if little_endian { u16::from_le_bytes(half) } else { u16::from_be_bytes(half) }
}
