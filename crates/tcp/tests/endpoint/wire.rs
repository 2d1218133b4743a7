//! Two endpoints and the path between them: a delay in each direction, and a rule that decides each segment's fate.

use firstflight_tcp::{
    Choices, CongestionAlgorithm, Deadline, Endpoint, Events, Flags, Nanos, PathOption, Profile, QuickStart,
    RecoveryAlgorithm, ScoreboardRules, Segment,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;
pub const CLIENT_ISN: u32 = 1000;
pub const SERVER_ISN: u32 = 5_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

/// A segment that an endpoint handed out.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Nanos,
    pub from: Side,
    pub segment: Segment,
    pub lost: bool,
}

/// Answers with the delays of the copies that arrive: none is a loss, two are a duplication.
pub type Fate = Box<dyn FnMut(&Sent) -> Vec<Nanos>>;

pub struct Wire {
    pub client: Endpoint,
    pub server: Endpoint,
    pub now: Nanos,
    /// Everything sent, in order.
    pub log: Vec<Sent>,
    /// Whether each side's application reads immediately.
    pub client_reads: bool,
    pub server_reads: bool,
    pub client_events: Events,
    pub server_events: Events,
    /// The answer of the routers on the path to Quick-Start options.
    pub on_path: Option<fn(QuickStart) -> QuickStart>,
    fate: Fate,
    arrivals: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Bytes of each side's stream that have reached the other end: sorted, disjoint ranges of offsets.
    arrived: [Vec<(u64, u64)>; 2],
}

/// Every congestion control, and CUBIC with each end of slow start: the tests that take these cover a new one, too.
pub fn congestion_controls() -> Vec<CongestionAlgorithm> {
    let choices = Choices::all();
    let cubic = choices.hystart.into_iter().map(|hystart| CongestionAlgorithm::Cubic { hystart });
    let others = choices.congestion_control.into_iter();
    others.filter(|control| !matches!(control, CongestionAlgorithm::Cubic { .. })).chain(cubic).collect()
}

pub fn rfc() -> Profile {
    Profile::rfc()
}

/// The profile `linux` with other rules of its scoreboard.
pub fn linux_with(change: impl FnOnce(&mut ScoreboardRules)) -> Profile {
    let mut linux = Profile::linux();
    if let RecoveryAlgorithm::Scoreboard(rules) = &mut linux.recovery {
        change(rules);
    }
    linux
}

pub fn ns2() -> Profile {
    Profile::ns2_full_1998()
}

impl Wire {
    /// Both ends with one profile, and a wire of `delay` one way that loses nothing.
    pub fn new(profile: &Profile, delay: Nanos) -> Self {
        Self::between(profile, profile, delay)
    }

    pub fn between(client: &Profile, server: &Profile, delay: Nanos) -> Self {
        Self::with_sequences(client, server, delay, CLIENT_ISN, SERVER_ISN)
    }

    pub fn with_sequences(client: &Profile, server: &Profile, delay: Nanos, client_isn: u32, server_isn: u32) -> Self {
        Self {
            client: Endpoint::client(Arc::new(client.clone()), client_isn),
            server: Endpoint::server(Arc::new(server.clone()), server_isn),
            now: 0,
            log: Vec::new(),
            client_reads: true,
            server_reads: true,
            client_events: Events::NONE,
            server_events: Events::NONE,
            on_path: None,
            fate: Box::new(move |_| vec![delay]),
            arrivals: BinaryHeap::new(),
            arrived: [Vec::new(), Vec::new()],
        }
    }

    /// An established connection over a wire that loses nothing so far.
    pub fn connected(profile: &Profile, delay: Nanos) -> Self {
        let mut wire = Self::new(profile, delay);
        wire.connect();
        wire
    }

    pub fn connect(&mut self) {
        self.connect_and_keep_the_log();
        self.log.clear();
    }

    pub fn connect_and_keep_the_log(&mut self) {
        self.client.connect(self.now);
        self.run_until(self.now + 10 * SECOND);
        assert!(self.client_events.contains(Events::CONNECTED) && self.server_events.contains(Events::CONNECTED));
    }

    /// Loses the segments that `lost` picks; the others take `delay`.
    pub fn lose(&mut self, delay: Nanos, mut lost: impl FnMut(&Sent) -> bool + 'static) {
        self.fate = Box::new(move |sent| if lost(sent) { vec![] } else { vec![delay] });
    }

    pub fn set_fate(&mut self, fate: Fate) {
        self.fate = fate;
    }

    /// Loses the n-th (from 1) data segments of the server, counted from now on.
    pub fn lose_data_of_server(&mut self, delay: Nanos, numbers: &'static [u32]) {
        let mut count = 0;
        self.lose(delay, move |sent| {
            let counts = sent.from == Server && sent.segment.payload_bytes > 0;
            count += u32::from(counts);
            counts && numbers.contains(&count)
        });
    }

    pub fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// Takes the segments that both endpoints have to send, and their events.
    pub fn pump(&mut self) {
        for side in [Client, Server] {
            let now = self.now;
            loop {
                let may_transmit = self.endpoint(side).may_transmit();
                let Some(segment) = self.endpoint(side).poll_transmit(now) else { break };
                assert!(may_transmit, "what would send nothing sends");
                let mut sent = Sent { at: now, from: side, segment, lost: false };
                self.check_sack(&sent);
                let delays = (self.fate)(&sent);
                sent.lost = delays.is_empty();
                self.log.push(sent);
                for delay in delays {
                    self.arrivals.push(Reverse((now + delay, self.log.len() - 1)));
                }
                assert!(self.endpoint(side).cwnd_bytes() >= self.endpoint(side).mss_bytes());
            }
        }
        self.client_events |= self.client.poll_events();
        self.server_events |= self.server.poll_events();
    }

    /// Time of the next thing to happen.
    pub fn next(&self) -> Deadline {
        let arrival = Deadline::from(self.arrivals.peek().map(|Reverse((at, _))| *at));
        arrival.earliest(self.client.poll_timeout()).earliest(self.server.poll_timeout())
    }

    /// Runs until nothing is left to happen before `end`, and sets the clock to `end`.
    pub fn run_until(&mut self, end: Nanos) {
        self.pump();
        while self.next().is_due(end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.pump();
        while self.next().is_set() {
            self.step();
            assert!(self.now < 100_000 * SECOND, "the connection does not come to rest");
        }
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) {
        self.pump();
        self.now = self.next().time().expect("something happens");
        let arrival = self.arrivals.peek().map(|Reverse(arrival)| *arrival).filter(|(at, _)| *at == self.now);
        if let Some((_, index)) = arrival {
            self.arrivals.pop();
            self.deliver(index);
        } else {
            let now = self.now;
            self.client.handle_timeout(now);
            self.server.handle_timeout(now);
        }
        self.pump();
    }

    fn deliver(&mut self, index: usize) {
        let mut sent = self.log[index];
        if let Some(on_path) = self.on_path {
            let (quick_start, response) = (sent.segment.quick_start(), sent.segment.quick_start_response());
            sent.segment.path_option = PathOption::new(on_path(quick_start), response);
        }
        let now = self.now;
        let (to, reads) = match sent.from {
            Client => (Server, self.server_reads),
            Server => (Client, self.client_reads),
        };
        self.note_arrival(sent.from, &sent.segment);
        let receiver = self.endpoint(to);
        let before = receiver.received_bytes();
        receiver.handle_segment(now, &sent.segment);
        let after = receiver.received_bytes();
        assert!(after >= before, "what was received in order stays received");
        if reads {
            receiver.read(u64::MAX);
        }
        let prefix =
            self.arrived[sent.from as usize].first().map_or(0, |&(start, end)| if start == 0 { end } else { 0 });
        assert!(after <= prefix, "bytes {prefix}..{after} were never delivered");
    }

    /// Every block of a SACK option describes arrived data, and apart from a duplicate none overlaps another.
    fn check_sack(&mut self, sent: &Sent) {
        let peer = if sent.from == Client { Server } else { Client };
        let isn = self.endpoint(peer).initial_sequence();
        let blocks = sent.segment.sack.as_slice();
        for (index, &[left, right]) in blocks.iter().enumerate() {
            let offset = |sequence: u32| u64::from(sequence.wrapping_sub(isn).wrapping_sub(1));
            let (start, end) = (offset(left), offset(right));
            let arrived = &self.arrived[peer as usize];
            assert!(arrived.iter().any(|range| range.0 <= start && end <= range.1), "block {start}..{end}");
            let disjoint = |other: &[u32; 2]| offset(other[1]) <= start || end <= offset(other[0]);
            let duplicate = |other: &[u32; 2]| index == 0 && offset(other[0]) <= start && end <= offset(other[1]);
            assert!(blocks[index + 1..].iter().all(|other| disjoint(other) || duplicate(other)), "{blocks:?}");
        }
    }

    fn note_arrival(&mut self, from: Side, segment: &Segment) {
        let isn = self.endpoint(from).initial_sequence();
        if segment.sequence_length() == 0 || segment.flags.contains(Flags::SYN) {
            return;
        }
        let start = u64::from(segment.seq.wrapping_sub(isn).wrapping_sub(1));
        let ranges = &mut self.arrived[from as usize];
        // A FIN counts as a byte.
        ranges.push((start, start + u64::from(segment.sequence_length())));
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in ranges.iter() {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        *ranges = merged;
    }

    /// Delivers a segment out of the blue.
    pub fn inject(&mut self, to: Side, segment: Segment) {
        let now = self.now;
        self.note_arrival(if to == Client { Server } else { Client }, &segment);
        self.endpoint(to).handle_segment(now, &segment);
        self.pump();
    }

    /// Data segments of a side as (milliseconds, number of the segment in its stream, from 0), for full segments.
    pub fn data(&self, from: Side) -> Vec<(u64, u32)> {
        let (isn, mss) = match from {
            Client => (self.client.initial_sequence(), self.client.mss_bytes()),
            Server => (self.server.initial_sequence(), self.server.mss_bytes()),
        };
        let data = self.log.iter().filter(|sent| sent.from == from && sent.segment.payload_bytes > 0);
        data.map(|sent| (sent.at / MS, sent.segment.seq.wrapping_sub(isn + 1) / mss)).collect()
    }

    /// Times at which the server sent data, in nanoseconds after `start`.
    pub fn departures(&self, start: Nanos) -> Vec<Nanos> {
        let data = self.log.iter().filter(|sent| sent.from == Server && sent.segment.payload_bytes > 0);
        data.map(|sent| sent.at - start).collect()
    }

    /// Segments without payload of a side as (milliseconds, acknowledged bytes of the other's stream).
    pub fn acks(&self, from: Side) -> Vec<(u64, u32)> {
        let isn = match from {
            Client => self.server.initial_sequence(),
            Server => self.client.initial_sequence(),
        };
        let bare = self.log.iter().filter(|sent| {
            sent.from == from && sent.segment.payload_bytes == 0 && !sent.segment.flags.contains(Flags::SYN)
        });
        bare.map(|sent| (sent.at / MS, sent.segment.ack.wrapping_sub(isn + 1))).collect()
    }

    /// Times in milliseconds at which a side sent a SYN.
    pub fn syns(&self, from: Side) -> Vec<u64> {
        let syns = self.log.iter().filter(|sent| sent.from == from && sent.segment.flags.contains(Flags::SYN));
        syns.map(|sent| sent.at / MS).collect()
    }
}

/// An acknowledgment without payload, to be injected.
pub fn bare_ack(seq: u32, ack: u32) -> Segment {
    Segment {
        seq,
        ack,
        payload_bytes: 0,
        window: 0,
        mss: None,
        window_scale: None,
        flags: Flags::ACK,
        ..Segment::EMPTY
    }
}

/// Numbers of the segments sent at one time.
pub fn sent_at(data: &[(u64, u32)], ms: u64) -> Vec<u32> {
    data.iter().filter(|(at, _)| *at == ms).map(|(_, number)| *number).collect()
}
