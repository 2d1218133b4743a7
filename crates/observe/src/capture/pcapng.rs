//! pcapng: blocks in sections, with interfaces that each have a link layer and a resolution of time
//! (draft-ietf-opsawg-pcapng).

use std::io::{Read, Result};

use super::{Clock, Next, Record, half, word};
use crate::{
    problems::Trouble,
    source::{LARGEST_BYTES, Source},
};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// Obsolete, but still found.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Type and length before a block, the length again behind it.
const BLOCK_HEADER: usize = 8;
const BLOCK_TRAILER: usize = 4;
/// Of a packet block, before the packet.
const PACKET_FIELDS: usize = 20;

const BYTE_ORDER: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
const END_OF_OPTIONS: u16 = 0;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;
/// A clock with coarser units shows round trips of 0.
const FEWEST_UNITS_A_SECOND: u64 = 1000;

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u16,
    units_a_second: u64,
    offset_s: i64,
    clock: Clock,
}

#[derive(Debug, Default)]
pub(super) struct Section {
    little_endian: bool,
    interfaces: Vec<Interface>,
}

impl Section {
    /// True if a file begins as a section does.
    pub(super) fn begins<R: Read>(source: &mut Source<R>) -> Result<bool> {
        let head = source.peek(BLOCK_HEADER + 4)?;
        Ok(head.is_some_and(|head| word(head, 0, true) == SECTION && byte_order(head).is_some()))
    }

    pub(super) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Next> {
        let offset = source.offset();
        let Some(head) = source.peek(BLOCK_HEADER + 4)? else {
            return Ok(if source.is_at_end()? { Next::End } else { Next::Bad(Trouble::CutOff) });
        };
        if word(head, 0, true) == SECTION {
            let Some(little_endian) = byte_order(head) else { return Ok(Next::Bad(Trouble::Damaged)) };
            *self = Self { little_endian, interfaces: Vec::new() };
        }
        let kind = word(head, 0, self.little_endian);
        let length = word(head, 4, self.little_endian) as usize;
        if length % 4 != 0 || length < BLOCK_HEADER + BLOCK_TRAILER {
            return Ok(Next::Bad(Trouble::Damaged));
        }
        if !matches!(kind, INTERFACE | PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            return Ok(if source.skip(length as u64)? { Next::Other } else { Next::Bad(Trouble::CutOff) });
        }
        if length > LARGEST_BYTES {
            return Ok(Next::Bad(Trouble::Damaged));
        }
        let Some(block) = source.peek(length)? else { return Ok(Next::Bad(Trouble::CutOff)) };
        if word(block, length - BLOCK_TRAILER, self.little_endian) as usize != length {
            return Ok(Next::Bad(Trouble::Damaged));
        }
        let body = &block[BLOCK_HEADER..length - BLOCK_TRAILER];
        match kind {
            INTERFACE => {
                let Some(interface) = self.interface(body) else { return Ok(Next::Bad(Trouble::Damaged)) };
                self.interfaces.push(interface);
            }
            _ => {
                let next = self.packet(kind, body, offset).unwrap_or(Next::Bad(Trouble::Damaged));
                let is_packet = matches!(next, Next::Packet(_));
                source.consume(if is_packet { BLOCK_HEADER + PACKET_FIELDS } else { length });
                return Ok(next);
            }
        }
        source.consume(length);
        Ok(Next::Other)
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let link_type = half(body, 0, self.little_endian);
        let mut interface = Interface { link_type, units_a_second: 1_000_000, offset_s: 0, clock: Clock::default() };
        let mut options = body.get(8..)?;
        while options.len() >= 4 {
            let (code, length) = (half(options, 0, self.little_endian), half(options, 2, self.little_endian));
            let value = options.get(4..4 + usize::from(length))?;
            match (code, value) {
                (END_OF_OPTIONS, _) => break,
                // The high bit says whether the rest is a power of 2 or of 10.
                (TIME_RESOLUTION, &[exponent]) => {
                    let base: u64 = if exponent & 0x80 == 0 { 10 } else { 2 };
                    interface.units_a_second = base.checked_pow(u32::from(exponent & 0x7f))?;
                }
                (TIME_OFFSET, &[..]) if value.len() == 8 => {
                    let [first, second] = [0, 4].map(|at| u64::from(word(value, at, self.little_endian)));
                    let seconds = if self.little_endian { second << 32 | first } else { first << 32 | second };
                    interface.offset_s = seconds as i64;
                }
                _ => {}
            }
            options = options.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        }
        Some(interface)
    }

    fn packet(&mut self, kind: u32, body: &[u8], offset: u64) -> Option<Next> {
        if kind == SIMPLE_PACKET {
            return Some(Next::Bad(Trouble::WithoutTime));
        }
        let fields = body.get(..PACKET_FIELDS)?;
        let [_, high, low, kept, length] = [0, 4, 8, 12, 16].map(|at| word(fields, at, self.little_endian));
        let index = if kind == PACKET {
            half(fields, 0, self.little_endian).into()
        } else {
            word(fields, 0, self.little_endian)
        };
        let interface = self.interfaces.get_mut(index as usize)?;
        let kept = kept as usize;
        if kept > body.len() - PACKET_FIELDS || length as usize > LARGEST_BYTES {
            return None;
        }
        if interface.units_a_second < FEWEST_UNITS_A_SECOND {
            return Some(Next::Bad(Trouble::WithoutTime));
        }
        let units = u64::from(high) << 32 | u64::from(low);
        let (whole, part) = (units / interface.units_a_second, units % interface.units_a_second);
        // Below a second's units times 10^9, which 64 bits may not hold.
        let part_ns = (u128::from(part) * 1_000_000_000 / u128::from(interface.units_a_second)) as i64;
        // From 1970 to 2106 as in pcap, so that times can be added and taken from one another.
        let seconds = u32::try_from(whole.checked_add_signed(interface.offset_s)?).ok()?;
        let time_ns = i64::from(seconds) * 1_000_000_000 + part_ns;
        Some(Next::Packet(Record {
            time_ns,
            set_back: interface.clock.read(time_ns),
            link_type: interface.link_type,
            kept,
            length,
            offset,
            trailer: body.len() - PACKET_FIELDS - kept + BLOCK_TRAILER,
        }))
    }
}

/// True if the section that begins so is little endian; None if it is no section.
fn byte_order(head: &[u8]) -> Option<bool> {
    let order = &head[BLOCK_HEADER..BLOCK_HEADER + 4];
    if order.iter().eq(&BYTE_ORDER) {
        return Some(false);
    }
    order.iter().rev().eq(&BYTE_ORDER).then_some(true)
}
