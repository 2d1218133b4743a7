//! A connection, segment by segment.

use crate::{
    busy::{Busy, with_headers},
    first_flight::{FirstFlight, Sight},
    packet::{ACK, End, FIN, RST, SYN, Seen},
    problems::Trouble,
    response::Response,
    round_trip::RoundTrips,
    rows::{Batch, ConnectionRow, ResponseRow, UNKNOWN},
    secures::Secures,
    server_clock::ServerClock,
    stream::{Place, Position, Stream},
    tls::{self, Part},
};

/// Of Ethernet without options (RFC 9293 §3.7.1), where the ends' agreement was not seen.
const USUAL_MSS: u16 = 1460;
const MS: i64 = 1_000_000;
/// A packet seen again so soon was captured twice: no sender repeats it before a round trip.
const TWICE_WITHIN: i64 = MS;
/// What fills a gap sooner than this, or than a round trip, was overtaken; later it was lost and sent again.
const OVERTAKEN_WITHIN: i64 = 3 * MS;

/// Which end.
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
}

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The handshake is not complete.
    Opening,
    Open,
    /// Both ends are done, or one has reset it.
    Closed,
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    pub(crate) client: End,
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
    at_server: Busy,
    at_client: Busy,
    /// Behind what an acknowledgment in the series of `at_server` covered.
    series: Position,
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
    finished: [bool; 2],
    reset: bool,
    unseen: bool,
    /// Where in the file its first packet stands.
    offset: u64,
}

impl Connection {
    /// A connection that begins with this segment, which stands at `offset` of the file.
    pub(crate) fn new(number: u32, seen: &Seen<'_>, time: i64, offset: u64) -> Self {
        let from_client = match seen.flags & (SYN | ACK) {
            SYN => true,
            flags if flags == SYN | ACK => false,
            // Who has the lower port serves, for clients take theirs from the upper ones (RFC 6335 §6).
            _ => seen.from.port > seen.to.port,
        };
        let (client, server) = if from_client { (seen.from, seen.to) } else { (seen.to, seen.from) };
        Self {
            number,
            client,
            server_port: server.port,
            began: time,
            initial: (seen.flags & (SYN | ACK) == SYN).then_some(seen.seq),
            handshake: Handshake::default(),
            client_sends: Stream::default(),
            server_sends: Stream::default(),
            to_client: RoundTrips::default(),
            to_server: RoundTrips::default(),
            mss: [None; 2],
            header: 0,
            option_bytes: 0,
            flight: FirstFlight::new(0),
            answer_flight: None,
            at_server: Busy::default(),
            at_client: Busy::default(),
            series: 0,
            clock: None,
            response: None,
            objects: 0,
            request: None,
            is_tls: false,
            early_data: false,
            secures: None,
            most_bps: 0.0,
            finished: [false; 2],
            reset: false,
            unseen: false,
            offset,
        }
    }

    /// Whether a segment is the first of another connection between the same ends.
    pub(crate) fn is_over_with(&self, seen: &Seen<'_>) -> bool {
        match seen.flags & (SYN | ACK) {
            SYN => self.initial != Some(seen.seq) || seen.from != self.client,
            // Of a connection whose SYN the capture lacks.
            flags if flags == SYN | ACK => {
                seen.from == self.client || self.server_sends.begins_elsewhere(seen.seq.wrapping_add(1))
            }
            _ => false,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        if self.reset || self.finished == [true; 2] {
            Stage::Closed
        } else if self.response.is_some() || self.handshake.complete.is_some() {
            Stage::Open
        } else {
            Stage::Opening
        }
    }

    /// Takes a segment of its own; answers trouble with it.
    pub(crate) fn take(&mut self, seen: &Seen<'_>, time: i64, batch: &mut Batch) -> Option<Trouble> {
        let side = if seen.from == self.client { Side::Client } else { Side::Server };
        if seen.flags & SYN != 0 {
            self.open(seen, side, time);
            return None;
        }
        if seen.flags & RST != 0 {
            self.reset = true;
            return None;
        }
        let (own, other) = match side {
            Side::Client => (&mut self.client_sends, &mut self.server_sends),
            Side::Server => (&mut self.server_sends, &mut self.client_sends),
        };
        own.begin(seen.seq);
        if seen.flags & ACK != 0 {
            other.begin(seen.ack);
        }
        if side == Side::Client && seen.flags & ACK != 0 {
            self.complete(time);
        }
        let trouble = match side {
            Side::Client => {
                if seen.flags & ACK != 0 {
                    self.acknowledged_by_client(seen, time);
                }
                self.ask(seen, time);
                None
            }
            Side::Server => {
                if seen.flags & ACK != 0 {
                    self.acknowledged_by_server(seen, time);
                }
                if let Some((value, _)) = seen.options.timestamps {
                    self.clock.get_or_insert_with(|| ServerClock::new(value, time)).read(value, time);
                }
                if seen.payload > 0 { self.answer(seen, time, batch) } else { None }
            }
        };
        if seen.flags & FIN != 0 {
            self.finished[side as usize] = true;
        }
        trouble
    }

    fn open(&mut self, seen: &Seen<'_>, side: Side, time: i64) {
        let stream = match side {
            Side::Client => &mut self.client_sends,
            Side::Server => &mut self.server_sends,
        };
        stream.begin(seen.seq.wrapping_add(1));
        self.mss[side as usize] = seen.options.mss;
        let handshake = &mut self.handshake;
        let moment = if side == Side::Client { &mut handshake.syn } else { &mut handshake.syn_ack };
        if moment.is_some() {
            handshake.repeated = true;
            return;
        }
        *moment = Some(time);
        if side == Side::Server {
            self.client_sends.begin(seen.ack);
            if let Some(syn) = self.handshake.syn.filter(|_| !self.handshake.repeated) {
                self.to_server.add(time - syn, false);
            }
        }
    }

    fn complete(&mut self, time: i64) {
        let handshake = &mut self.handshake;
        if handshake.complete.is_none() {
            handshake.complete = Some(time);
            if let Some(syn_ack) = handshake.syn_ack.filter(|_| !handshake.repeated) {
                self.to_client.add(time - syn_ack, false);
            }
        }
    }

    /// Whether the capture was taken nearer to the client.
    fn is_at_client(&self) -> bool {
        matches!((self.to_server.least(), self.to_client.least()), (Some(server), Some(client)) if server > client)
    }

    fn acknowledged_by_client(&mut self, seen: &Seen<'_>, time: i64) {
        let position = self.server_sends.position(seen.ack);
        if position <= 0 {
            return;
        }
        let recovering = self.server_sends.is_recovering();
        let Some(told) = self.server_sends.acknowledge(position) else {
            if seen.payload == 0 {
                self.at_server.take_back();
            }
            return;
        };
        self.unseen |= told.unseen;
        let timestamp = seen.options.timestamps.map(|(value, _)| value);
        for flight in self.flights() {
            flight.acknowledge(position, time, timestamp);
        }
        match told.sent {
            Some(sent) if !recovering => {
                let idle = self.to_client.least();
                self.to_client.add(time - sent, told.lone);
                let idle = idle.or(self.to_client.least()).unwrap_or_default();
                if told.lone {
                    // Its acknowledgment may have been held back (RFC 9293 §3.8.6.3), and so much is not the line's.
                    self.at_server.interrupt();
                } else {
                    self.at_server.add(time, position - self.series, sent, idle);
                    if position - self.series > self.segment_bytes().into() {
                        self.at_server.keep();
                    }
                }
                self.series = position;
            }
            _ => self.at_server.interrupt(),
        }
        if let Some(response) = &mut self.response {
            response.acknowledge(position, time);
        }
        if let Some(tickets) = self.secures.as_mut().and_then(|secures| secures.tickets.as_mut()) {
            tickets.acknowledge(position, time);
        }
    }

    fn acknowledged_by_server(&mut self, seen: &Seen<'_>, time: i64) {
        let position = self.client_sends.position(seen.ack);
        if let Some(sent) = self.client_sends.acknowledge(position).and_then(|told| told.sent) {
            self.to_server.add(time - sent, false);
        }
    }

    /// The client sends data: if it has all that the server sent, it asks for more.
    fn ask(&mut self, seen: &Seen<'_>, time: i64) {
        if seen.payload == 0 {
            return;
        }
        let position = self.client_sends.position(seen.seq);
        if position == 0 {
            self.is_tls |= tls::begins_with_record(seen);
            if self.server_sends.next() == 0 && self.secures.is_none() {
                self.secures = tls::Handshake::begin(seen).map(|handshake| Box::new(Secures::new(handshake)));
                self.request = None;
            }
        }
        let place = self.client_sends.send(position, seen.payload, time);
        if matches!(place, Place::Again(_)) {
            self.client_sends.retransmitted();
            return;
        }
        if let Some(secures) = &mut self.secures {
            if !secures.handshake.client_sends(position, seen, matches!(place, Place::Missing(_))) {
                return;
            }
            if !secures.handshake.is_early() {
                secures.asked = time;
                return;
            }
            if !self.early_data {
                self.early_data = true;
                self.request = Some(time);
                return;
            }
            self.secures = None;
        }
        if self.is_tls && tls::is_alert(seen) {
            return;
        }
        let has_all = self.server_sends.delivered() >= self.server_sends.next();
        if self.response.is_none() || has_all {
            self.request.get_or_insert(time);
        }
    }

    /// The server sends data.
    fn answer(&mut self, seen: &Seen<'_>, time: i64, batch: &mut Batch) -> Option<Trouble> {
        let start = self.server_sends.position(seen.seq);
        // A probe of a window or of a silent client repeats one old byte (RFC 9293 §3.8.4). What lies before the first
        // byte of a connection that had begun before the capture may be late as well as sent again.
        if seen.payload <= 1 && start < self.server_sends.next() || start < 0 {
            return None;
        }
        self.header = seen.header;
        self.option_bytes = seen.options.bytes;
        let segments = seen.payload.div_ceil(u32::from(self.segment_bytes()));
        let before = self.server_sends.next();
        let place = self.server_sends.send(start, seen.payload, time);
        let sent_again = match place {
            Place::Again(Some(since)) if since < TWICE_WITHIN => return Some(Trouble::Twice),
            Place::Again(_) => true,
            Place::Missing(since) => {
                let round_trip = self.round_trip().unwrap_or_default();
                since > OVERTAKEN_WITHIN.max(round_trip - round_trip / 4)
            }
            Place::Next | Place::Ahead => false,
        };
        if sent_again {
            let unseen = matches!(place, Place::Missing(_));
            let bytes = self.segment_bytes().into();
            for flight in self.flights() {
                flight.resend(segments, start, bytes, unseen);
            }
            self.server_sends.retransmitted();
            self.at_server.interrupt();
        }
        let echo = seen.options.timestamps.map(|(_, echo)| echo);
        let to_server = self.to_server.least().unwrap_or_default();
        let sight = Sight { time, echo, to_server, at_server: !self.is_at_client() };
        let is_new = matches!(place, Place::Next | Place::Ahead);
        let is_alert = self.is_tls && tls::is_alert(seen);
        let is_handshake = self.secures.is_some() && self.secure(seen, start, before, is_new && !is_alert, &sight, batch);
        if is_new && !is_alert && !is_handshake {
            // What comes sooner than a round trip from the server was under way when the client asked.
            let too_soon = |asked: &mut i64| time - *asked < to_server - to_server / 8;
            if self.response.is_some() {
                self.request.take_if(too_soon);
            }
            if let Some(asked) = self.request.take() {
                self.answered(batch);
                // All before was there when the client asked, so that what was passed over is the response's, too.
                self.respond(asked, before, time);
            } else if self.response.is_none() {
                self.respond(time, start, time);
            }
        }
        if !sent_again {
            let end = start + i64::from(seen.payload);
            for flight in self.flights() {
                flight.send(segments, end, &sight);
            }
        }
        self.arrive(place, time, seen);
        let end = self.server_sends.next();
        let part = match &mut self.secures {
            Some(secures) if is_handshake => secures.part_at(start),
            _ if is_alert => None,
            _ => self.response.as_mut(),
        };
        if let Some(part) = part {
            part.send(segments, sent_again, end, time);
        }
        None
    }

    /// The server sends data before the handshake of TLS is known to be over; whether it still is not.
    fn secure(
        &mut self,
        seen: &Seen<'_>,
        start: Position,
        before: Position,
        is_new: bool,
        sight: &Sight,
        batch: &mut Batch,
    ) -> bool {
        let time = sight.time;
        let full = seen.payload >= self.segment_bytes().into();
        let Some(secures) = &mut self.secures else { return false };
        let part = if is_new { secures.handshake.server_sends(start, seen, full) } else { Part::Handshake };
        if self.early_data {
            return false;
        }
        // Session tickets take their part of the window if they are still under way when the answer is sent.
        if part != Part::Handshake || is_new && secures.handshake.has_finished() {
            let goes_on = |flight: &FirstFlight| flight.includes(sight) || part == Part::Tickets;
            if !self.answer_flight.as_ref().is_some_and(goes_on) {
                self.answer_flight = Some(FirstFlight::new(before));
            }
        }
        match part {
            Part::Handshake => {
                secures.sent.get_or_insert(Response::new(time, before, time));
            }
            Part::Tickets => {
                secures.tickets.get_or_insert(Response::new(secures.asked, before, time));
            }
            Part::Answer(begin) => {
                let begin = if begin == start { before } else { begin };
                self.response = Some(Response::new(secures.asked, begin, time));
                if let Some(mut secures) = self.secures.take() {
                    // The segment that ends the handshake may begin the answer.
                    if let Some(last) = secures.tickets.as_mut().or(secures.sent.as_mut()) {
                        last.end = last.end.max(begin);
                    }
                    if let Some(row) = secures.row(self.number, self.handshake_time_s()) {
                        batch.handshakes.push(row);
                    }
                }
                return false;
            }
        }
        true
    }

    /// From SYN until the client had completed the handshake of TCP; NaN if that was not seen.
    fn handshake_time_s(&self) -> f64 {
        let Handshake { syn, complete, .. } = self.handshake;
        syn.zip(complete).map_or(f64::NAN, |(syn, complete)| (complete - syn) as f64 / 1e9)
    }

    /// Those that are counted.
    fn flights(&mut self) -> impl Iterator<Item = &mut FirstFlight> {
        std::iter::once(&mut self.flight).chain(&mut self.answer_flight)
    }

    fn respond(&mut self, asked: i64, begin: Position, time: i64) {
        let opens = self.objects == 0 && !self.is_tls;
        let start = if opens { self.handshake.syn.unwrap_or(asked) } else { asked };
        self.response = Some(Response::new(start, begin, time));
    }

    /// For a capture at the client: a segment that arrives, and when it was sent by the server's clock.
    fn arrive(&mut self, place: Place, time: i64, seen: &Seen<'_>) {
        match (place, self.clock) {
            (Place::Next, Some(clock)) => {
                self.at_client.add(time, i64::from(seen.payload), clock.latest(), clock.least());
            }
            _ => self.at_client.interrupt(),
        }
    }

    /// Most bytes of data in a packet of the server's.
    fn segment_bytes(&self) -> u16 {
        let agreed = self.mss.iter().flatten().min().copied().unwrap_or(USUAL_MSS);
        // RFC 6691: options take their place from the data.
        agreed.saturating_sub(self.option_bytes as u16).max(1)
    }

    /// Least round trip of the whole path.
    fn round_trip(&self) -> Option<i64> {
        match (self.to_client.least(), self.to_server.least()) {
            (None, None) => None,
            (client, server) => Some(client.unwrap_or_default() + server.unwrap_or_default()),
        }
    }

    fn most_round_trip(&self) -> Option<i64> {
        if self.is_at_client() {
            let clock = self.clock.filter(|clock| clock.is_plausible())?;
            return Some(self.round_trip()? + clock.variation());
        }
        Some(self.to_client.most()? + self.to_server.least().unwrap_or_default())
    }

    /// Tells of the response that is complete as far as the capture goes.
    fn answered(&mut self, batch: &mut Batch) {
        let Some(response) = self.response.take() else { return };
        let at_client = self.is_at_client();
        let (first, last) = if at_client {
            (Some(response.first_sent), Some(response.last_sent))
        } else {
            (response.first_acked, response.last_acked)
        };
        let delivered = (self.server_sends.delivered().min(response.end) - response.begin).max(0);
        let since = |time: Option<i64>| time.map_or(f64::NAN, |time| (time - response.start) as f64 / 1e9);
        // At the server the last acknowledgment came a round trip after what it is for was sent.
        let away = if at_client { 0 } else { self.to_client.least().unwrap_or_default() };
        let took = last.map_or(0, |last| last - response.first_sent - away);
        // The first packet's own time on the line may be missing from that, so its bytes do not count.
        let counted = delivered - i64::from(self.segment_bytes());
        if took > 0 && counted > 0 {
            let rate = with_headers(counted, self.segment_bytes().into(), self.header) * 8e9 / took as f64;
            self.most_bps = self.most_bps.max(rate);
        }
        let first_object = self.objects == 0;
        let [first_flight_segments, first_flight_lost] = match (first_object, self.initial) {
            (true, Some(_)) => [self.flight.segments(), self.flight.lost()],
            (true, None) => [UNKNOWN; 2],
            (false, _) => [0; 2],
        };
        batch.responses.push(ResponseRow {
            connection: self.number,
            object: self.objects,
            start_ns: response.start,
            handshake_time_s: if first_object && !self.is_tls { self.handshake_time_s() } else { f64::NAN },
            first_byte_time_s: since(first),
            completion_time_s: since(last),
            bytes: (response.end - response.begin) as u64,
            delivered_bytes: delivered as u64,
            segments_sent: response.segments,
            retransmissions: response.retransmissions,
            first_flight_segments,
            first_flight_lost,
            completed: u8::from(response.last_acked.is_some()),
        });
        self.objects += 1;
    }

    /// Tells of the connection, which is over. Answers trouble with it, and where it began.
    pub(crate) fn finish(mut self, batch: &mut Batch) -> Option<(Trouble, u64)> {
        let mut secures = self.secures.take().filter(|_| !self.early_data);
        if let Some(secures) = &mut secures {
            // What came by itself after the client had asked was the answer, and no session ticket.
            self.response = secures.tickets.take_if(|_| secures.handshake.is_lone_ticket());
        }
        let handshake = secures.and_then(|secures| secures.row(self.number, self.handshake_time_s()));
        self.answered(batch);
        if self.objects == 0 && handshake.is_none() {
            return None;
        }
        let seconds = |time: Option<i64>| time.map_or(f64::NAN, |time| time as f64 / 1e9);
        let (mss, at_client) = (self.segment_bytes(), self.is_at_client());
        let busy = if at_client {
            self.at_client.rate_bps(mss.into(), self.header).filter(|_| self.clock.is_some_and(|it| it.is_plausible()))
        } else {
            self.at_server.rate_bps(mss.into(), self.header)
        };
        if let Some(handshake) = handshake {
            batch.handshakes.push(handshake);
        }
        batch.connections.push(ConnectionRow {
            connection: self.number,
            start_ns: self.began,
            subnet: subnet(self.client.address),
            server_port: self.server_port,
            rtt_s: seconds(self.round_trip()),
            most_rtt_s: seconds(self.most_round_trip()),
            mss,
            down_bps: busy.unwrap_or(f64::NAN),
            least_down_bps: if self.most_bps > 0.0 { self.most_bps } else { f64::NAN },
            at_client: u8::from(at_client),
            from_start: u8::from(self.initial.is_some()),
            answer_flight_segments: match self.answer_flight {
                Some(flight) if self.objects > 0 => flight.segments(),
                _ => UNKNOWN,
            },
            tls: u8::from(self.is_tls),
            early_data: u8::from(self.early_data),
        });
        let missed = self.unseen || self.server_sends.has_unseen();
        missed.then_some((Trouble::Missed, self.offset))
    }
}

/// The /24 of IPv4 or the /48 of IPv6, which have no number in common.
fn subnet(address: u128) -> u64 {
    match (address >> 32) as u64 {
        0xffff => (address as u32 >> 8).into(),
        _ => (address >> 80) as u64 | 1 << 63,
    }
}
