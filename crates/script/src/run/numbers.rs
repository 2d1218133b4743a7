//! Between a script's numbers and the connection's: sequence numbers relative to the initial ones, timestamps relative
//! to the first.
//!
//! A script counts sequence numbers from 0 (packetdrill's `run_packet.c`): the SYN has the number that it is written
//! with, everything after it is relative to the SYN. The timestamp of an injected packet is taken as it stands; an echo
//! in it names a value that an expected packet was written with, and becomes the value that the packet actually had.

use crate::problem::{Refusal, refuse};
use crate::script::{ECN_MARKS, Packet};
use crate::wire::TcpOption;
use firstflight_tcp::{Ecn, Flags, SackBlocks, Segment, Timestamps};
use std::collections::BTreeMap;
use std::num::NonZeroU16;

/// The base of the sequence numbers and timestamps of one connection.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// Our initial sequence number, and the one the script writes on our SYN.
    local: u32,
    local_written: u32,
    /// The first TSval of ours as written and as sent.
    first_stamp: Option<(u32, u32)>,
    /// TSval as written to TSval as sent.
    stamps: BTreeMap<u32, u32>,
}

impl Numbers {
    pub fn new(local: u32) -> Self {
        Self { local, local_written: 0, first_stamp: None, stamps: BTreeMap::new() }
    }

    /// The segment that a script's packet stands for. `remote`: initial sequence number of the SYN that the endpoint has
    /// accepted, the one that the script wrote; another SYN changes nothing.
    pub fn segment_of(&self, packet: &Packet, remote: Option<u32>, scale_echoes: bool) -> Result<Segment, Refusal> {
        let syn = packet.flags.contains(Flags::SYN);
        let local = if syn { self.local.wrapping_sub(self.local_written) } else { self.local };
        let mut segment = Segment {
            seq: if syn { packet.seq } else { remote.unwrap_or(0).wrapping_add(packet.seq) },
            ack: packet.ack.map_or(0, |ack| ack.wrapping_add(local)),
            payload_bytes: packet.payload_bytes,
            window: packet.window.unwrap_or(0),
            flags: packet.flags,
            ecn: packet.ecn.map_or(Ecn::NotCapable, |(_, codepoints)| codepoints[0]),
            ..Segment::EMPTY
        };
        for option in packet.options.iter().flatten() {
            match option {
                TcpOption::End | TcpOption::Nop => {}
                TcpOption::Mss(bytes) => segment.mss = NonZeroU16::new(*bytes),
                TcpOption::WindowScale(shift) => segment.window_scale = Some(*shift),
                TcpOption::SackPermitted => segment.sack_permitted = true,
                TcpOption::Sack(blocks) => {
                    let mut sack = SackBlocks::NONE;
                    for [left, right] in blocks {
                        sack.push(left.wrapping_add(local), right.wrapping_add(local));
                    }
                    segment.sack = sack;
                }
                TcpOption::Timestamps { value, echo } => {
                    let echo =
                        if packet.flags.contains(Flags::ACK) { self.sent_stamp(*echo, scale_echoes)? } else { *echo };
                    segment.timestamps = Some(Timestamps { value: *value, echo });
                }
            }
        }
        Ok(segment)
    }

    /// The TSval that was sent where the script expected `written`.
    fn sent_stamp(&self, written: u32, scale: bool) -> Result<u32, Refusal> {
        match (self.stamps.get(&written), self.first_stamp) {
            (Some(sent), _) => Ok(*sent),
            (None, Some((first_written, first_sent))) if scale => {
                Ok(written.wrapping_sub(first_written).wrapping_add(first_sent))
            }
            _ => Err(refuse!(
                "\"ecr {written}\" echoes a timestamp that no packet was expected with before; --tcp_ts_ecr_scaled allows it"
            )),
        }
    }

    /// Learns the base of the numbers from a packet that the script expects.
    pub fn learn(&mut self, expected: &Packet, came: &Segment) {
        if expected.flags.contains(Flags::SYN) {
            self.local_written = expected.seq;
        }
        let written = expected.options.iter().flatten().find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => Some(*value),
            _ => None,
        });
        if let (Some(written), Some(stamps)) = (written, came.timestamps) {
            self.stamps.insert(written, stamps.value);
            self.first_stamp.get_or_insert((written, stamps.value));
        }
    }

    /// The packet that a script would write for a segment of ours; `remote` as in [`segment_of`](Self::segment_of).
    pub fn packet_of(&self, segment: &Segment, remote: Option<u32>) -> Packet {
        let syn = segment.flags.contains(Flags::SYN);
        let local = if syn { self.local.wrapping_sub(self.local_written) } else { self.local };
        let base = remote.unwrap_or(0);
        let remote = if syn { 0 } else { base };
        let mut options = crate::wire::options_of(segment);
        for option in &mut options {
            match option {
                TcpOption::Sack(blocks) => {
                    for edge in blocks.iter_mut().flatten() {
                        *edge = edge.wrapping_sub(base);
                    }
                }
                TcpOption::Timestamps { value, .. } => {
                    if let Some((written, sent)) = self.first_stamp {
                        *value = value.wrapping_sub(sent).wrapping_add(written);
                    }
                }
                _ => {}
            }
        }
        Packet {
            ecn: ECN_MARKS.into_iter().find(|(_, codepoints)| *codepoints == [segment.ecn]),
            flags: segment.flags,
            seq: segment.seq.wrapping_sub(local),
            payload_bytes: segment.payload_bytes,
            ack: segment.flags.contains(Flags::ACK).then(|| segment.ack.wrapping_sub(remote)),
            window: Some(segment.window),
            options: Some(options),
        }
    }
}
