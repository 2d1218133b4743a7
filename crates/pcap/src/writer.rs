//! Packets into a stream, in either format.

use std::{
    io::{self, Write},
    path::Path,
};

use crate::{Direction, Record};

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
                section_header(program, comment, &mut block);
                interfaces.iter().for_each(|name| interface_description(name, &mut block));
            }
            Format::Pcap => pcap_header(&mut block),
        }
        out.write_all(&block)?;
        Ok(Self { out, format, block })
    }

    /// Adds a packet, of which all was kept or only the beginning. `bytes`: its length on the wire, at least
    /// `kept.len()`.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn write(&mut self, record: &Record, kept: &[u8], bytes: u32) -> io::Result<()> {
        debug_assert!(bytes as usize >= kept.len(), "{bytes} bytes on the wire, {} kept", kept.len());
        self.block.clear();
        match self.format {
            Format::Pcapng => enhanced_packet(record, kept, bytes, &mut self.block),
            Format::Pcap => pcap_packet(record, kept, bytes, &mut self.block),
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

// pcap: draft-ietf-opsawg-pcap, little endian, with nanoseconds.

/// Says that the second half of a time is nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;

/// Raw IP, version 4 or 6 by its first four bits.
const LINKTYPE_RAW: u16 = 101;

/// More than any packet has.
const SNAPSHOT_BYTES: u32 = 262_144;

const BILLION: u64 = 1_000_000_000;

/// The header of the file: version 2.4, times in UTC.
fn pcap_header(into: &mut Vec<u8>) {
    into.extend_from_slice(&MAGIC.to_le_bytes());
    into.extend_from_slice(&2u16.to_le_bytes());
    into.extend_from_slice(&4u16.to_le_bytes());
    into.extend_from_slice(&[0; 8]);
    into.extend_from_slice(&SNAPSHOT_BYTES.to_le_bytes());
    into.extend_from_slice(&u32::from(LINKTYPE_RAW).to_le_bytes());
}

/// A packet with its header: its kept part, and the bytes that it had.
fn pcap_packet(record: &Record, packet: &[u8], bytes: u32, into: &mut Vec<u8>) {
    // Seconds wrap in the year 2106.
    into.extend_from_slice(&((record.time_ns / BILLION) as u32).to_le_bytes());
    into.extend_from_slice(&((record.time_ns % BILLION) as u32).to_le_bytes());
    into.extend_from_slice(&(packet.len() as u32).to_le_bytes());
    into.extend_from_slice(&bytes.to_le_bytes());
    into.extend_from_slice(packet);
}

// pcapng: draft-ietf-opsawg-pcapng, little endian.

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Of a section: the program that wrote it.
const USER_APPLICATION: u16 = 4;
/// Of an interface: what the capture calls it.
const NAME: u16 = 2;
/// Of an interface: times are in units of 10 to the minus this.
const TIME_RESOLUTION: u16 = 9;
/// Of a packet: its direction in the low two bits.
const FLAGS: u16 = 2;

/// The block that begins a file: version 1.0, of unknown length.
fn section_header(program: &str, comment: &str, into: &mut Vec<u8>) {
    block(SECTION_HEADER, into, |body| {
        body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        body.extend_from_slice(&1u16.to_le_bytes());
        body.extend_from_slice(&0u16.to_le_bytes());
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        if !comment.is_empty() {
            option(COMMENT, comment.as_bytes(), body);
        }
        option(USER_APPLICATION, program.as_bytes(), body);
        option(END_OF_OPTIONS, &[], body);
    });
}

/// An interface, numbered in the order of these blocks.
fn interface_description(name: &str, into: &mut Vec<u8>) {
    block(INTERFACE_DESCRIPTION, into, |body| {
        body.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&SNAPSHOT_BYTES.to_le_bytes());
        option(NAME, name.as_bytes(), body);
        option(TIME_RESOLUTION, &[9], body);
        option(END_OF_OPTIONS, &[], body);
    });
}

/// A packet: its kept part, and the bytes that it had.
fn enhanced_packet(record: &Record, packet: &[u8], bytes: u32, into: &mut Vec<u8>) {
    let direction: u32 = match record.direction {
        Direction::Inbound => 1,
        Direction::Outbound => 2,
    };
    block(ENHANCED_PACKET, into, |body| {
        body.extend_from_slice(&record.interface.to_le_bytes());
        body.extend_from_slice(&((record.time_ns >> 32) as u32).to_le_bytes());
        body.extend_from_slice(&(record.time_ns as u32).to_le_bytes());
        body.extend_from_slice(&(packet.len() as u32).to_le_bytes());
        body.extend_from_slice(&bytes.to_le_bytes());
        padded(packet, body);
        option(FLAGS, &direction.to_le_bytes(), body);
        option(END_OF_OPTIONS, &[], body);
    });
}

/// A block: its type, its length, its body, and its length again.
fn block(kind: u32, into: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend_from_slice(&kind.to_le_bytes());
    into.extend_from_slice(&[0; 4]);
    body(into);
    let length = ((into.len() - start + 4) as u32).to_le_bytes();
    into.extend_from_slice(&length);
    into[start + 4..start + 8].copy_from_slice(&length);
}

/// An option, cut at the maximum of its length field.
fn option(code: u16, value: &[u8], into: &mut Vec<u8>) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    into.extend_from_slice(&code.to_le_bytes());
    into.extend_from_slice(&(value.len() as u16).to_le_bytes());
    padded(value, into);
}

/// Bytes, filled up to whole words.
fn padded(bytes: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(bytes);
    into.resize(into.len().next_multiple_of(4), 0);
}
