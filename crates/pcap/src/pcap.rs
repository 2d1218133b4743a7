//! The pcap format (draft-ietf-opsawg-pcap), little endian, with nanoseconds.

use crate::Record;

/// Says that the second half of a time is nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;

/// Raw IP, version 4 or 6 by its first four bits.
pub(crate) const LINKTYPE_RAW: u16 = 101;

/// More than any packet has.
pub(crate) const SNAPSHOT_BYTES: u32 = 262_144;

const BILLION: u64 = 1_000_000_000;

/// The header of the file: version 2.4, times in UTC.
pub(crate) fn file_header(into: &mut Vec<u8>) {
    into.extend_from_slice(&MAGIC.to_le_bytes());
    into.extend_from_slice(&2u16.to_le_bytes());
    into.extend_from_slice(&4u16.to_le_bytes());
    into.extend_from_slice(&[0; 8]);
    into.extend_from_slice(&SNAPSHOT_BYTES.to_le_bytes());
    into.extend_from_slice(&u32::from(LINKTYPE_RAW).to_le_bytes());
}

/// A packet with its header: its kept part, and the bytes that it had.
pub(crate) fn packet(record: &Record, packet: &[u8], bytes: u32, into: &mut Vec<u8>) {
    // Seconds wrap in the year 2106.
    into.extend_from_slice(&((record.time_ns / BILLION) as u32).to_le_bytes());
    into.extend_from_slice(&((record.time_ns % BILLION) as u32).to_le_bytes());
    into.extend_from_slice(&(packet.len() as u32).to_le_bytes());
    into.extend_from_slice(&bytes.to_le_bytes());
    into.extend_from_slice(packet);
}
