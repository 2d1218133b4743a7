//! Captures made byte by byte.

use std::path::Path;

use firstflight_observe::{Batch, ConnectionRow, HandshakeRow, Problem, Reader, ResponseRow};

pub const MS: i64 = 1_000_000;
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// A segment to be; sequence numbers as they stand in the header.
#[derive(Clone, Copy)]
pub struct Segment {
    pub from_server: bool,
    pub port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: u32,
    pub mss: Option<u16>,
    pub timestamps: Option<(u32, u32)>,
}

pub fn segment(from_server: bool, seq: u32, ack: u32, flags: u8, payload: u32) -> Segment {
    Segment { from_server, port: 40_000, seq, ack, flags, payload, mss: None, timestamps: None }
}

impl Segment {
    pub fn mss(self, mss: u16) -> Self {
        Self { mss: Some(mss), ..self }
    }

    pub fn stamped(self, value: u32, echo: u32) -> Self {
        Self { timestamps: Some((value, echo)), ..self }
    }

    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    fn tcp(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if let Some((value, echo)) = self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        let ports = if self.from_server { [80, self.port] } else { [self.port, 80] };
        let mut bytes: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags, 255, 255, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes
    }

    /// The packet's headers, without its payload, which is not read.
    pub fn ipv4(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let total = (20 + tcp.len() + self.payload as usize).min(65_535) as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (client, server) = ([10, 1, 2, 3], [192, 0, 2, 1]);
        let (from, to) = if self.from_server { (server, client) } else { (client, server) };
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend(tcp);
        bytes
    }

    pub fn ipv6(&self, extensions: &[u8], first: u8) -> Vec<u8> {
        let tcp = self.tcp();
        let payload = (extensions.len() + tcp.len() + self.payload as usize) as u16;
        let mut bytes = vec![0x60, 0, 0, 0];
        bytes.extend(payload.to_be_bytes());
        bytes.extend([first, 64]);
        let address = |last: u8| [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let (from, to) = if self.from_server { (address(1), address(2)) } else { (address(2), address(1)) };
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend(extensions);
        bytes.extend(tcp);
        bytes
    }
}

/// A packet in a file: time, bytes kept, and bytes that it had.
pub type Frame = (i64, Vec<u8>, u32);

/// A frame of raw IPv4 headers.
pub fn raw(time: i64, segment: &Segment) -> Frame {
    let kept = segment.ipv4();
    let length = kept.len() as u32 + segment.payload;
    (time, kept, length)
}

/// A little-endian pcap file with nanoseconds.
pub fn pcap(link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_3c4d_u32.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(262_144_u32.to_le_bytes());
    file.extend(link_type.to_le_bytes());
    for (time, kept, length) in frames {
        for word in [time / 1_000_000_000, time % 1_000_000_000, kept.len() as i64, (*length).into()] {
            file.extend((word as u32).to_le_bytes());
        }
        file.extend(kept);
    }
    file
}

/// The rows of a file.
#[derive(Default)]
pub struct Told {
    pub connections: Vec<ConnectionRow>,
    pub responses: Vec<ResponseRow>,
    pub handshakes: Vec<HandshakeRow>,
    pub problems: Vec<Problem>,
}

pub fn read(file: &[u8]) -> Told {
    let mut reader = Reader::new(Path::new("made"), file).expect("a capture");
    let mut told = Told::default();
    while let Some(batch) = reader.read(1000).expect("memory can be read") {
        told.add(batch);
    }
    told.problems = reader.problems();
    told
}

impl Told {
    fn add(&mut self, batch: Batch) {
        self.connections.extend(batch.connections);
        self.handshakes.extend(batch.handshakes);
        self.responses.extend(batch.responses);
    }
}

/// A capture taken `away` nanoseconds from the server on a path with this RTT: handshake, a request of 100 bytes,
/// `segments` segments of 1000 bytes back to back, an acknowledgment of each, over a line of 8 bits a nanosecond.
pub fn download(start: i64, port: u16, round_trip: i64, away: i64, segments: u32) -> Vec<Frame> {
    let near = 2 * away;
    let far = round_trip - near;
    let mut frames = Vec::new();
    let mut at = |time: i64, segment: Segment| frames.push(raw(start + time, &segment.port(port)));
    at(0, segment(false, 99, 0, SYN, 0).mss(1012).stamped(1, 0));
    at(near, segment(true, 499, 100, SYN | ACK, 0).mss(1012).stamped(1001, 1));
    at(near + far, segment(false, 100, 500, ACK, 0).stamped(51, 1001));
    at(near + far, segment(false, 100, 500, ACK, 100).stamped(51, 1001));
    let sent = near + far + near;
    for index in 0..segments {
        at(sent + i64::from(index), segment(true, 500 + index * 1000, 200, ACK, 1000).stamped(1051, 51));
    }
    for index in 0..segments {
        let time = sent + far + i64::from(index) * MS;
        at(time, segment(false, 200, 500 + (index + 1) * 1000, ACK, 0).stamped(101 + index, 1051));
    }
    let end = sent + far + i64::from(segments) * MS;
    at(end + near, segment(true, 500 + segments * 1000, 200, FIN | ACK, 0).stamped(1200, 101));
    at(end + near + far, segment(false, 200, 501 + segments * 1000, FIN | ACK, 0).stamped(201, 1200));
    at(end + near + far + near, segment(true, 501 + segments * 1000, 201, ACK, 0).stamped(1300, 201));
    frames
}
