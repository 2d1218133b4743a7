//! pcap: one header, then packets of one interface (draft-ietf-opsawg-pcap).

use std::io::{Read, Result};

use super::{Clock, Next, Record, word};
use crate::{
    problems::Trouble,
    source::{LARGEST_BYTES, Source},
};

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
/// Of a packet of Kuznetzov's pcap, behind that: its interface, protocol and type.
const MODIFIED_BYTES: usize = 8;

/// The fields of the file's header.
#[derive(Debug)]
pub(super) struct Header {
    little_endian: bool,
    /// Nanoseconds of a unit below the second.
    unit_ns: u32,
    packet_header: usize,
    link_type: u16,
    clock: Clock,
}

impl Header {
    /// None if it is no pcap file; else it is passed.
    pub(super) fn read<R: Read>(source: &mut Source<R>) -> Result<Option<Self>> {
        let Some(bytes) = source.peek(FILE_HEADER)? else { return Ok(None) };
        let (little_endian, unit_ns, more) = match bytes[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (true, 1000, 0),
            [0xa1, 0xb2, 0xc3, 0xd4] => (false, 1000, 0),
            [0x4d, 0x3c, 0xb2, 0xa1] => (true, 1, 0),
            [0xa1, 0xb2, 0x3c, 0x4d] => (false, 1, 0),
            [0x34, 0xcd, 0xb2, 0xa1] => (true, 1000, MODIFIED_BYTES),
            [0xa1, 0xb2, 0xcd, 0x34] => (false, 1000, MODIFIED_BYTES),
            _ => return Ok(None),
        };
        // Its upper bits describe frame check sequences, which follow the data that is read here.
        let link_type = word(bytes, 20, little_endian) as u16;
        source.consume(FILE_HEADER);
        let packet_header = PACKET_HEADER + more;
        Ok(Some(Self { little_endian, unit_ns, packet_header, link_type, clock: Clock::default() }))
    }

    pub(super) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Next> {
        let offset = source.offset();
        let Some(header) = source.peek(self.packet_header)? else {
            return Ok(if source.is_at_end()? { Next::End } else { Next::Bad(Trouble::CutOff) });
        };
        let [seconds, parts, kept, length] = [0, 4, 8, 12].map(|at| word(header, at, self.little_endian));
        let kept = kept as usize;
        // Nothing in a packet's header marks it as one; but these no packet has.
        let second = 1_000_000_000 / self.unit_ns;
        if kept > LARGEST_BYTES - self.packet_header || length as usize > LARGEST_BYTES || parts >= second {
            return Ok(Next::Bad(Trouble::Damaged));
        }
        if source.peek(self.packet_header + kept)?.is_none() {
            return Ok(Next::Bad(Trouble::CutOff));
        }
        source.consume(self.packet_header);
        let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(parts) * i64::from(self.unit_ns);
        Ok(Next::Packet(Record {
            time_ns,
            link_type: self.link_type,
            kept,
            length,
            offset,
            trailer: 0,
            set_back: self.clock.read(time_ns),
        }))
    }
}
