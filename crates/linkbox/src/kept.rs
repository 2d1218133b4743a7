//! Packets kept for a capture: their headers, when and which way they passed.

use std::path::Path;

use firstflight_path::Nanos;
use firstflight_pcap::{CaptureFile, Direction, FileError, Record};
use firstflight_segment::{Ip, TCP, Tcp};

use crate::{Error, refused};

/// Bytes of headers per allocation.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes that may be kept, of headers and of entries.
const MOST_BYTES: usize = 512 << 20;

/// The headers of IPv4 and TCP with all options: the maximum kept of a packet. IPv6's without extensions are shorter.
pub(crate) const MOST_HEADER_BYTES: usize = 120;

/// Bytes of data that are kept with the headers: so much of a record shows that it is TLS, and its version.
const RECORD_BYTES: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: Nanos,
    piece: u32,
    at: u32,
    interface: u16,
    kept_bytes: u16,
    bytes: u16,
    outgoing: bool,
}

/// A kept packet to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptPacket<'a> {
    /// By the monotonic clock.
    pub(crate) time: Nanos,
    /// Index of the interface.
    pub(crate) interface: u16,
    /// The interface's host sent it.
    pub(crate) outgoing: bool,
    /// Its headers, and the beginning of its data.
    pub(crate) headers: &'a [u8],
    /// Its original length, headers included.
    pub(crate) bytes: u16,
}

/// Packets in the order in which they were seen.
#[derive(Debug, Default)]
pub(crate) struct CapturedHeaders {
    pieces: Vec<Vec<u8>>,
    entries: Vec<Vec<Entry>>,
    /// Packets that found no room.
    pub(crate) missed: u64,
}

const PIECE_ENTRIES: usize = 8192;

impl CapturedHeaders {
    /// Keeps the headers of a packet of `bytes`; `seen` is its available part.
    pub(crate) fn add(&mut self, time: Nanos, interface: u16, outgoing: bool, seen: &[u8], bytes: u16) {
        let headers = &seen[..(header_bytes(seen) + RECORD_BYTES).min(MOST_HEADER_BYTES).min(seen.len())];
        if self.pieces.last().is_none_or(|piece| piece.len() + headers.len() > PIECE_BYTES) {
            if self.pieces.len() * PIECE_BYTES + self.entries.len() * PIECE_ENTRIES * size_of::<Entry>() >= MOST_BYTES {
                self.missed += 1;
                return;
            }
            self.pieces.push(Vec::with_capacity(PIECE_BYTES));
        }
        if self.entries.last().is_none_or(|piece| piece.len() == PIECE_ENTRIES) {
            self.entries.push(Vec::with_capacity(PIECE_ENTRIES));
        }
        let last = self.pieces.len() - 1;
        let piece = &mut self.pieces[last];
        let at = piece.len() as u32;
        piece.extend_from_slice(headers);
        let kept_bytes = headers.len() as u16;
        if let Some(entries) = self.entries.last_mut() {
            entries.push(Entry { time, piece: last as u32, at, interface, kept_bytes, bytes, outgoing });
        }
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = KeptPacket<'_>> {
        self.entries.iter().flatten().map(|entry| KeptPacket {
            time: entry.time,
            interface: entry.interface,
            outgoing: entry.outgoing,
            headers: &self.pieces[entry.piece as usize][entry.at as usize..][..usize::from(entry.kept_bytes)],
            bytes: entry.bytes,
        })
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = CapturedHeaders::default();
    }

    /// Writes the packets of interfaces that are `chosen` to a capture file, in the order of time; `wall_ahead` brings
    /// their times to the wall clock. Returns their number.
    pub(crate) fn write(
        &self,
        path: &Path,
        interfaces: &[&str],
        wall_ahead: Nanos,
        chosen: impl Fn(u16) -> bool,
    ) -> Result<usize, Error> {
        if self.missed > 0 {
            return Err(refused!("{} packets found no room: keep fewer interfaces, or for less time", self.missed));
        }
        let mut packets: Vec<KeptPacket<'_>> = self.packets().filter(|packet| chosen(packet.interface)).collect();
        packets.sort_by_key(|packet| packet.time);
        Ok(write(path, interfaces, wall_ahead, &packets)?)
    }
}

fn write(path: &Path, interfaces: &[&str], wall_ahead: Nanos, packets: &[KeptPacket<'_>]) -> Result<usize, FileError> {
    let comment = "Written by firstflight: headers and the beginning of the data, as they passed in real time.";
    let mut file = CaptureFile::create(path, comment, interfaces)?;
    for packet in packets {
        let direction = if packet.outgoing { Direction::Outbound } else { Direction::Inbound };
        let interface = packet.interface.into();
        let record = Record { time_ns: packet.time.saturating_add(wall_ahead), interface, direction };
        file.write(&record, packet.headers, packet.bytes.into())?;
    }
    file.finish()?;
    Ok(packets.len())
}

/// Bytes of the headers with their options; for packets that are not TCP, all that may be kept.
fn header_bytes(packet: &[u8]) -> usize {
    let Some(ip) = Ip::at(packet).filter(|ip| ip.protocol == TCP) else { return MOST_HEADER_BYTES };
    let tcp = packet.get(ip.header_bytes..).and_then(Tcp::at);
    tcp.map_or(MOST_HEADER_BYTES, |tcp| (ip.header_bytes + tcp.header_bytes()).min(MOST_HEADER_BYTES))
}
