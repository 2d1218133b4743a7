//! A connection, segment by segment.

mod client;
mod rows;
mod server;

use firstflight_segment::Flags;

use crate::{
    busy::Busy,
    echo::Echoes,
    first_flight::FirstFlight,
    packet::{End, Seen},
    problems::Trouble,
    response::Response,
    round_trip::{self, RoundTrips},
    rows::{Batch, SegmentRow},
    secures::Secures,
    server_clock::ServerClock,
    stream::{SeqNum, Stream},
};

/// The flags of an answer to a SYN.
const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

/// Of Ethernet without options (RFC 9293 §3.7.1), where the ends' agreement was not seen.
const USUAL_MSS: u16 = 1460;
/// Linux sends no smaller ones, with any agreed MSS (tcp_min_snd_mss, made for hostile clients).
const LEAST_MSS: u16 = 48;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The three packets of a handshake.
#[derive(Clone, Copy, Default, Debug)]
struct Handshake {
    syn: Option<i64>,
    syn_ack: Option<i64>,
    complete: Option<i64>,
    /// SYN or SYN-ACK was sent more than once: which of them was answered is not known.
    repeated: bool,
    /// Number of the first byte and MSS by another SYN-ACK for the same SYN, as a second server behind one address sends it.
    other_answer: Option<(u32, Option<u16>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The handshake is not complete.
    Opening,
    Open,
    /// Both ends are done and know it of each other, or one has reset it.
    Closed,
    /// Over: only its ends are known.
    Gone,
}

#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    pub(crate) client: End,
    /// The capture has a packet of the client, and one of the server.
    client_seen: bool,
    server_seen: bool,
    /// It has an acknowledgment of the client, which follows a packet of the server.
    client_acknowledged: bool,
    server_port: u16,
    began: i64,
    /// Initial sequence number of the client, if its SYN was seen.
    initial: Option<u32>,
    handshake: Handshake,
    client_sends: Stream,
    server_sends: Stream,
    to_client: RoundTrips,
    to_server: RoundTrips,
    mss: [Option<u16>; 2],
    header: u32,
    option_bytes: u32,
    flight: FirstFlight,
    /// The flight of the first response after a handshake of TLS.
    answer_flight: Option<FirstFlight>,
    echoes: Echoes,
    at_server: Busy,
    at_client: Busy,
    /// After the data that an acknowledgment in the series of `at_server` covered.
    series: SeqNum,
    clock: Option<ServerClock>,
    response: Option<Response>,
    objects: u32,
    request: Option<i64>,
    /// Its records look like those of TLS.
    is_tls: bool,
    early_data: bool,
    /// The handshake of TLS, while it lasts.
    secures: Option<Box<Secures>>,
    most_bps: f64,
    reset: bool,
    /// How often the capture's clock had been set back when it began.
    era: u32,
    clock_was_set: bool,
    /// An acknowledgment came so late that the clock was set, unless the capture lacks those without data.
    late: bool,
    /// The client acknowledged data in a segment without data, so the capture has such ones.
    has_acks: bool,
    /// One of its acknowledgments took longer, or covered more, than RFC 9293 §3.8.6.3 allows: the capture lacks others.
    lacks_acks: bool,
    unseen: bool,
    /// Offset of its first packet in the file.
    offset: u64,
}

impl Connection {
    /// A connection that begins with this segment, which stands at `offset` of the file.
    pub(crate) fn new(number: u32, seen: &Seen<'_>, time: i64, era: u32, offset: u64) -> Self {
        let from_client = match seen.flags & SYN_ACK {
            Flags::SYN => true,
            SYN_ACK => false,
            // The endpoint with the lower port is the server, for clients take theirs from the upper ones (RFC 6335
            // §6).
            _ => seen.from.port > seen.to.port,
        };
        let (client, server) = if from_client { (seen.from, seen.to) } else { (seen.to, seen.from) };
        Self {
            number,
            client,
            server_port: server.port,
            began: time,
            initial: (seen.flags & SYN_ACK == Flags::SYN).then_some(seen.seq),
            era,
            offset,
            ..Self::default()
        }
    }

    /// True if a segment is the first of another connection between the same ends.
    pub(crate) fn is_over_with(&self, seen: &Seen<'_>) -> bool {
        match seen.flags & SYN_ACK {
            Flags::SYN => self.initial != Some(seen.seq) || seen.from != self.client,
            // Of a connection whose SYN the capture lacks.
            SYN_ACK => {
                seen.from == self.client
                    || self.client_sends.begins_elsewhere(seen.ack)
                        && self.server_sends.begins_elsewhere(seen.seq.wrapping_add(1))
            }
            _ => false,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        if self.reset || self.client_sends.is_closed() && self.server_sends.is_closed() {
            Stage::Closed
        } else if self.response.is_some() || self.handshake.complete.is_some() {
            Stage::Open
        } else {
            Stage::Opening
        }
    }

    /// Whether it fell silent in the `stage` of being open with data that was neither acknowledged nor retransmitted, as
    /// every sender would: the clock was set, or the capture stood still.
    pub(crate) fn is_cut_off(&mut self, stage: usize) -> bool {
        let cut_off = stage == Stage::Open as usize && self.server_sends.is_waiting() && self.has_acks;
        self.clock_was_set |= cut_off;
        cut_off
    }

    /// Processes one of its segments; returns a problem with it.
    pub(crate) fn take(&mut self, seen: &Seen<'_>, time: i64, era: u32, batch: &mut Batch) -> Option<Trouble> {
        let side = if seen.from == self.client { Side::Client } else { Side::Server };
        self.clock_was_set |= era != self.era;
        match side {
            Side::Client => {
                self.client_seen = true;
                self.client_acknowledged |= seen.flags.contains(Flags::ACK);
            }
            Side::Server => self.server_seen = true,
        }
        if seen.flags.contains(Flags::SYN) {
            return self.open(seen, side, time);
        }
        if seen.flags.contains(Flags::RST) {
            self.reset = true;
            return None;
        }
        let (own, other) = match side {
            Side::Client => (&mut self.client_sends, &mut self.server_sends),
            Side::Server => (&mut self.server_sends, &mut self.client_sends),
        };
        own.begin(seen.seq);
        let acks = seen.flags.contains(Flags::ACK);
        if acks {
            other.begin(seen.ack);
        }
        let trouble = match side {
            Side::Client => {
                let trouble = acks.then(|| self.acknowledged_by_client(seen, time)).flatten();
                self.ask(seen, time).or(trouble)
            }
            Side::Server => {
                let trouble = acks.then(|| self.acknowledged_by_server(seen, time)).flatten();
                if let Some((value, _)) = seen.options.timestamps {
                    let clock = self.clock.get_or_insert_with(|| ServerClock::new(value, time));
                    self.clock_was_set |= clock.stood_still(value, time);
                    clock.read(value, time);
                }
                (seen.payload > 0).then(|| self.answer(seen, time, batch)).flatten().or(trouble)
            }
        };
        if seen.flags.contains(Flags::FIN) {
            let own = if side == Side::Client { &mut self.client_sends } else { &mut self.server_sends };
            own.end(seen.seq.wrapping_add(seen.payload));
        }
        trouble
    }

    /// The segment with numbers relative to both ends' first bytes, as far as these are known.
    pub(crate) fn row(&self, seen: &Seen<'_>, time: i64) -> SegmentRow {
        let is_server = seen.from != self.client;
        let (own, other) =
            if is_server { (&self.server_sends, &self.client_sends) } else { (&self.client_sends, &self.server_sends) };
        SegmentRow {
            time_ns: time,
            from_server: u8::from(is_server),
            seq: own.relative(seen.seq),
            length: seen.payload,
            ack: if seen.flags.contains(Flags::ACK) { other.relative(seen.ack) } else { 0 },
            flags: seen.flags.bits(),
        }
    }

    fn open(&mut self, seen: &Seen<'_>, side: Side, time: i64) -> Option<Trouble> {
        let first = seen.seq.wrapping_add(1);
        if side == Side::Server && self.server_sends.begins_elsewhere(first) {
            self.handshake.other_answer = Some((first, seen.options.mss));
            return Some(Trouble::OtherAnswer);
        }
        self.mss[side as usize] = seen.options.mss;
        let moment = match side {
            Side::Client => {
                self.client_sends.begin(first);
                self.echoes.syn(seen.flags);
                &mut self.handshake.syn
            }
            Side::Server => {
                self.server_sends.begin(first);
                self.echoes.syn_ack(seen.flags);
                &mut self.handshake.syn_ack
            }
        };
        if moment.is_some() {
            self.handshake.repeated = true;
            return None;
        }
        *moment = Some(time);
        if side == Side::Server {
            self.client_sends.begin(seen.ack);
            if let Some(syn) = self.handshake.syn.filter(|_| !self.handshake.repeated) {
                self.clock_was_set |= self.to_server.add(time - syn, false);
            }
        }
        None
    }

    /// The client acknowledges a SYN-ACK, and decides with it which one counts.
    fn complete(&mut self, ack: u32, time: i64) {
        let handshake = &mut self.handshake;
        if handshake.complete.is_none() {
            handshake.complete = Some(time);
            let other = handshake.other_answer.filter(|(first, _)| *first == ack && self.server_sends.next() == 0);
            if let Some((first, mss)) = other {
                self.server_sends.begin_again(first);
                self.mss[Side::Server as usize] = mss;
            } else if let Some(syn_ack) = handshake.syn_ack.filter(|_| !handshake.repeated) {
                self.clock_was_set |= self.to_client.add(time - syn_ack, false);
            }
        }
    }

    /// From SYN until the client had completed the handshake of TCP; NaN if that was not seen.
    fn handshake_time_s(&self) -> f64 {
        let Handshake { syn, complete, .. } = self.handshake;
        syn.zip(complete).map_or(f64::NAN, |(syn, complete)| (complete - syn).max(0) as f64 / 1e9)
    }

    /// True if the capture was taken nearer to the client.
    fn is_at_client(&self) -> bool {
        matches!((self.to_server.least, self.to_client.least), (Some(server), Some(client)) if server > client)
    }

    /// Those that are counted.
    fn flights(&mut self) -> impl Iterator<Item = &mut FirstFlight> {
        std::iter::once(&mut self.flight).chain(&mut self.answer_flight)
    }

    /// Most bytes of data in a packet of the server's.
    fn segment_bytes(&self) -> u16 {
        let agreed = self.mss.iter().flatten().min().copied().unwrap_or(USUAL_MSS).max(LEAST_MSS);
        // RFC 6691: options take their place from the data.
        agreed.saturating_sub(self.option_bytes as u16).max(1)
    }

    /// Least round trip of the whole path.
    fn round_trip(&self) -> Option<i64> {
        match (self.to_client.least, self.to_server.least) {
            (None, None) => None,
            (client, server) => Some(client.unwrap_or_default() + server.unwrap_or_default()),
        }
    }

    fn most_round_trip(&self) -> Option<i64> {
        let most = if self.is_at_client() {
            let clock = self.clock.filter(|clock| clock.is_plausible())?;
            self.round_trip()? + clock.variation()
        } else {
            self.to_client.most? + self.to_server.least.unwrap_or_default()
        };
        (most < round_trip::LONGEST).then_some(most)
    }
}
