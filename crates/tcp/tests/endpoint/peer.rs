//! A sender whose peer is the test: each acknowledgment is written down, each answer is looked at.

use crate::wire::{MS, SERVER_ISN};
use firstflight_tcp::{Endpoint, Flags, Info, Nanos, Profile, SackBlocks, Segment};
use std::num::NonZeroU16;
use std::sync::Arc;

/// Payload of a full segment.
pub const MSS: u32 = 1000;
const PEER_ISN: u32 = 77;

/// A connected sender. Segments are counted from 0; times are ms since the handshake.
pub struct Peer {
    pub sender: Endpoint,
    now: Nanos,
    start: Nanos,
    pub window: u16,
}

impl Peer {
    /// After a handshake with an RTT of 100 ms, with SACK if both endpoints support it, without timestamps.
    pub fn new(profile: &Profile) -> Self {
        Self::after_syn_acks(profile, 1)
    }

    /// The same with `count` SYN-ACKs of which the last one was answered; of several none gives an RTT.
    pub fn after_syn_acks(profile: &Profile, count: u32) -> Self {
        let mut peer =
            Self { sender: Endpoint::server(Arc::new(profile.clone()), SERVER_ISN), now: 0, start: 0, window: 65535 };
        let syn = Segment {
            seq: PEER_ISN,
            flags: Flags::SYN,
            mss: NonZeroU16::new(MSS as u16),
            sack_permitted: true,
            window: peer.window,
            ..Segment::EMPTY
        };
        peer.sender.handle_segment(0, &syn);
        assert!(peer.sender.poll_transmit(0).unwrap().flags.contains(Flags::SYN));
        for _ in 1..count {
            peer.now = peer.next_timer();
            peer.sender.handle_timeout(peer.now);
            assert!(peer.sender.poll_transmit(peer.now).unwrap().flags.contains(Flags::SYN));
        }
        peer.now += 100 * MS;
        peer.start = peer.now;
        assert!(peer.ack(0, &[]).is_empty());
        peer
    }

    /// When the sender's next timer expires.
    fn next_timer(&self) -> Nanos {
        self.sender.poll_timeout().time().expect("a timer runs")
    }

    /// Milliseconds since the handshake.
    pub fn ms(&self) -> u64 {
        (self.now - self.start) / MS
    }

    pub fn info(&self) -> Info {
        self.sender.info()
    }

    /// The application writes full segments; returns those that leave.
    pub fn write(&mut self, segments: u32) -> Vec<u32> {
        self.write_bytes(segments * MSS)
    }

    pub fn write_bytes(&mut self, bytes: u32) -> Vec<u32> {
        self.sender.write(self.now, bytes.into());
        self.sent()
    }

    /// An acknowledgment of the first `segments` and of ranges `[first, end)` beyond them arrives; returns the segments
    /// that leave.
    pub fn ack(&mut self, segments: u32, sacks: &[[u32; 2]]) -> Vec<u32> {
        let blocks: Vec<_> = sacks.iter().map(|block| block.map(|number| number * MSS)).collect();
        self.ack_bytes(segments * MSS, &blocks)
    }

    pub fn ack_bytes(&mut self, bytes: u32, sacks: &[[u32; 2]]) -> Vec<u32> {
        let mut sack = SackBlocks::NONE;
        for [left, right] in sacks {
            sack.push(SERVER_ISN + 1 + left, SERVER_ISN + 1 + right);
        }
        let ack = Segment {
            seq: PEER_ISN + 1,
            ack: SERVER_ISN + 1 + bytes,
            flags: Flags::ACK,
            window: self.window,
            sack,
            ..Segment::EMPTY
        };
        self.sender.handle_segment(self.now, &ack);
        self.sent()
    }

    /// Nothing arrives for so long; returns the segments that leave, with their times.
    pub fn wait(&mut self, ms: u64) -> Vec<(u64, u32)> {
        self.wait_until(self.ms() + ms)
    }

    /// Nothing arrives until then; returns the segments that leave, with their times.
    pub fn wait_until(&mut self, ms: u64) -> Vec<(u64, u32)> {
        let end = self.start + ms * MS;
        let mut sent = Vec::new();
        while self.sender.poll_timeout().is_due(end) {
            self.now = self.now.max(self.next_timer());
            self.sender.handle_timeout(self.now);
            let at = self.ms();
            sent.extend(self.sent().into_iter().map(|number| (at, number)));
        }
        self.now = end;
        sent
    }

    /// Nothing arrives until a segment leaves; returns how long that took in ns, and the segments.
    pub fn wait_for_segment(&mut self) -> (Nanos, Vec<u32>) {
        let before = self.now;
        loop {
            self.now = self.next_timer();
            self.sender.handle_timeout(self.now);
            let sent = self.sent();
            if !sent.is_empty() {
                return (self.now - before, sent);
            }
        }
    }

    fn sent(&mut self) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if segment.payload_bytes > 0 {
                numbers.push(segment.seq.wrapping_sub(SERVER_ISN + 1) / MSS);
            }
        }
        numbers
    }
}
