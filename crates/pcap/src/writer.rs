//! Packets into a stream, in either format.

use std::{
    io::{self, Write},
    path::Path,
};

use crate::{Record, pcap, pcapng};

/// A capture file's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// pcapng: names the interfaces, the program and the captured subject.
    Pcapng,
    /// The older pcap, in its variant with nanoseconds: packets and times alone.
    Pcap,
}

impl Format {
    /// pcap for names that end in `.pcap`, pcapng for all others.
    pub fn of(path: &Path) -> Format {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("pcap") => Format::Pcap,
            _ => Format::Pcapng,
        }
    }
}

/// Writes a capture.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: Format,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture by `program` on the named interfaces; `comment` is for its reader. pcap keeps none of these.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn new(mut out: W, format: Format, program: &str, comment: &str, interfaces: &[&str]) -> io::Result<Self> {
        let mut block = Vec::new();
        match format {
            Format::Pcapng => {
                pcapng::section_header(program, comment, &mut block);
                interfaces.iter().for_each(|name| pcapng::interface_description(name, &mut block));
            }
            Format::Pcap => pcap::file_header(&mut block),
        }
        out.write_all(&block)?;
        Ok(Self { out, format, block })
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn write(&mut self, record: &Record, packet: &[u8]) -> io::Result<()> {
        self.write_cut(record, packet, packet.len() as u32)
    }

    /// Adds a packet of which only the beginning was kept, and that had `bytes`.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn write_cut(&mut self, record: &Record, kept: &[u8], bytes: u32) -> io::Result<()> {
        self.block.clear();
        match self.format {
            Format::Pcapng => pcapng::enhanced_packet(record, kept, bytes, &mut self.block),
            Format::Pcap => pcap::packet(record, kept, bytes, &mut self.block),
        }
        self.out.write_all(&self.block)
    }

    /// Flushes and hands `out` back.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
