//! The pcapng format (draft-ietf-opsawg-pcapng), little endian.

use crate::{
    Direction, Record,
    pcap::{LINKTYPE_RAW, SNAPSHOT_BYTES},
};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Of a section: the program that wrote it.
const USER_APPLICATION: u16 = 4;
/// Of an interface.
const NAME: u16 = 2;
/// Of an interface: times are in units of 10 to the minus this.
const TIME_RESOLUTION: u16 = 9;
/// Of a packet: its direction in the low two bits.
const FLAGS: u16 = 2;

/// The block that begins a file: version 1.0, of unknown length.
pub(crate) fn section_header(program: &str, comment: &str, into: &mut Vec<u8>) {
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
pub(crate) fn interface_description(name: &str, into: &mut Vec<u8>) {
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
pub(crate) fn enhanced_packet(record: &Record, packet: &[u8], bytes: u32, into: &mut Vec<u8>) {
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
