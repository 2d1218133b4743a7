//! One connection: the endpoint, the bytes that it counts, and its purpose.

use firstflight_segment::{Envelope, Packet, write_packet_with};
use firstflight_tcp::{Deadline, Endpoint, Events, Flags, Nanos, Segment, State};

use crate::{
    application::{Application, Conversation},
    inbound::Inbound,
    log::SegmentLog,
    outbound::Outbound,
    report::{ConnectionFacts, End, Life, Report},
    wire::{Traffic, Wire},
};

/// Time that a connection stays in TIME-WAIT, or waits in FIN-WAIT-2 for a peer that does not close.
// Linux: TCP_TIMEWAIT_LEN and tcp_fin_timeout.
const LINGER: Nanos = 60_000_000_000;

pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) life: Life,
    /// The listener it came to; none: it was opened here.
    pub(crate) listener: Option<usize>,
    /// Another listener has taken the place of its own: its results are no longer used.
    pub(crate) is_of_before: bool,
    /// Its entry in the timers that comes first.
    pub(crate) armed: Deadline,
    application: Box<dyn Application>,
    inbound: Inbound,
    outbound: Outbound,
    /// The peer's latest timestamp.
    peer_clock: Option<u32>,
    /// The state in which it lingers, and until when.
    lingers_in: Option<State>,
    lingers_until: Deadline,
    identification: u16,
    is_over: bool,
}

/// State that a host keeps for all its connections together.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) reports: Vec<Report>,
    pub(crate) traffic: Traffic,
    /// Every segment, if that is asked for.
    pub(crate) log: Option<SegmentLog>,
    /// Room that is used again for every packet.
    payload: Vec<u8>,
    packet: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(
        endpoint: Endpoint,
        life: Life,
        listener: Option<usize>,
        application: Box<dyn Application>,
    ) -> Connection {
        Connection {
            // RFC 6864 §4.1: with DF the number says nothing; it makes packets easy to distinguish in a capture.
            identification: endpoint.initial_sequence() as u16,
            endpoint,
            life,
            listener,
            is_of_before: false,
            armed: Deadline::NEVER,
            application,
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            peer_clock: None,
            lingers_in: None,
            lingers_until: Deadline::NEVER,
            is_over: false,
        }
    }

    pub(crate) fn open(&mut self, now: Nanos, books: &mut Books) {
        self.endpoint.connect(now);
        self.talk(now, books, |application, conversation| application.open(now, conversation));
    }

    pub(crate) fn handle_packet(&mut self, now: Nanos, packet: &Packet, bytes: &[u8], books: &mut Books) {
        let segment = &packet.segment;
        self.peer_clock = segment.timestamps.map(|timestamps| timestamps.value).or(self.peer_clock);
        self.endpoint.handle_segment(now, segment);
        if let Some(log) = &mut books.log {
            log.received(now, &self.life, &self.endpoint, segment);
        }
        self.outbound.forget(self.endpoint.acknowledged_bytes());
        let events = self.endpoint.poll_events();
        if events.contains(Events::CONNECTED) {
            self.talk(now, books, |application, conversation| application.connected(now, conversation));
        }
        if segment.payload_bytes > 0 {
            self.take_payload(now, segment, &bytes[packet.payload.clone()], books);
        }
        if events.contains(Events::PEER_CLOSED) {
            self.talk(now, books, |application, conversation| application.peer_closed(now, conversation));
        }
        self.on_end(now, events, books);
    }

    fn take_payload(&mut self, now: Nanos, segment: &Segment, payload: &[u8], books: &mut Books) {
        let mut conversation = Conversation::default();
        let (application, endpoint) = (&mut self.application, &mut self.endpoint);
        self.inbound.take(endpoint, segment, payload, |bytes| application.received(now, bytes, &mut conversation));
        endpoint.read(endpoint.readable_bytes());
        self.heed(now, conversation, books);
    }

    /// Time passed.
    pub(crate) fn handle_timeout(&mut self, now: Nanos, books: &mut Books) {
        if self.endpoint.poll_timeout().is_due(now) {
            self.endpoint.handle_timeout(now);
        }
        if self.lingers_until.is_due(now) || !self.is_over && self.application.patience().is_due(now) {
            self.abort(now, End::Aborted, books);
        }
        let events = self.endpoint.poll_events();
        self.on_end(now, events, books);
    }

    /// Ends the connection immediately.
    pub(crate) fn abort(&mut self, now: Nanos, end: End, books: &mut Books) {
        self.endpoint.abort(now);
        self.endpoint.poll_events();
        self.end(now, end, books);
    }

    fn on_end(&mut self, now: Nanos, events: Events, books: &mut Books) {
        let ends = [(Events::CLOSED, End::Closed), (Events::RESET, End::Reset), (Events::TIMED_OUT, End::TimedOut)];
        if let Some((_, end)) = ends.into_iter().find(|(event, _)| events.contains(*event)) {
            self.end(now, end, books);
        }
        let lingers_in = Some(self.endpoint.state()).filter(|state| matches!(state, State::TimeWait | State::FinWait2));
        if lingers_in != self.lingers_in {
            self.lingers_in = lingers_in;
            self.lingers_until = lingers_in.map(|_| now.saturating_add(LINGER)).into();
        }
    }

    fn end(&mut self, now: Nanos, end: End, books: &mut Books) {
        if !std::mem::replace(&mut self.is_over, true) {
            let mut conversation = Conversation::default();
            self.application.over(now, end, &mut conversation);
            books.reports.append(&mut conversation.reports);
            books.reports.push(Report::Connection(Box::new(ConnectionFacts::of(&self.life, &self.endpoint, end))));
        }
    }

    fn talk(&mut self, now: Nanos, books: &mut Books, about: impl FnOnce(&mut dyn Application, &mut Conversation)) {
        let mut conversation = Conversation::default();
        about(&mut *self.application, &mut conversation);
        self.heed(now, conversation, books);
    }

    /// Executes the application's requests.
    fn heed(&mut self, now: Nanos, conversation: Conversation, books: &mut Books) {
        let bytes: u64 = conversation.written.into_iter().map(|piece| self.outbound.write(piece)).sum();
        if bytes > 0 {
            self.endpoint.write(now, bytes);
        }
        if conversation.close {
            self.endpoint.close(now);
        }
        books.reports.extend(conversation.reports);
    }

    /// Sends the segments that can be sent now.
    pub(crate) fn pump(&mut self, wire: &mut impl Wire, books: &mut Books) {
        loop {
            let mut segment = Segment::EMPTY;
            let now = wire.now();
            if !self.endpoint.poll_transmit_into(now, &mut segment) {
                break;
            }
            if let Some(log) = &mut books.log {
                log.sent(now, &self.life, &self.endpoint, &segment);
            }
            books.payload.clear();
            books.packet.clear();
            if segment.payload_bytes > 0 {
                // The offset nearest to what is acknowledged that has this sequence number; the SYN took the first.
                let acknowledged = self.endpoint.acknowledged_bytes();
                let first = self.endpoint.initial_sequence().wrapping_add(1);
                let distance = segment.seq.wrapping_sub(first.wrapping_add(acknowledged as u32)) as i32;
                let offset = acknowledged.saturating_add_signed(i64::from(distance));
                self.outbound.read(offset, segment.payload_bytes, &mut books.payload);
            }
            self.identification = self.identification.wrapping_add(1);
            let identification = self.identification;
            let envelope = Envelope { identification, ..Envelope::between(self.life.local, self.life.peer) };
            match write_packet_with(&segment, &envelope, &books.payload, &mut books.packet) {
                Ok(()) => wire.send(&books.packet),
                // As if it had been lost: a profile whose segments no packet holds was refused before.
                Err(_) => books.traffic.unsendable += 1,
            }
        }
    }

    /// When something is to be done next.
    pub(crate) fn deadline(&self) -> Deadline {
        let patience = if self.is_over { Deadline::NEVER } else { self.application.patience() };
        self.endpoint.poll_timeout().earliest(self.lingers_until).earliest(patience)
    }

    /// True if it has ended, which it may outlive in TIME-WAIT.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if nothing of it is left to be kept.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_over && self.endpoint.state() == State::Closed
    }

    /// True if a SYN may take the place of this connection.
    // RFC 9293 §3.6.1 and RFC 6191 §2: in TIME-WAIT, if its timestamp or its sequence number is larger than any of the
    // old connection.
    pub(crate) fn gives_way_to(&self, segment: &Segment) -> bool {
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        if self.endpoint.state() != State::TimeWait || !is_syn {
            return false;
        }
        let clocks = self.peer_clock.zip(segment.timestamps.map(|timestamps| timestamps.value));
        let newer = clocks.is_some_and(|(old, new)| (new.wrapping_sub(old) as i32) > 0);
        // The peer's FIN took a number as well.
        let received = self.endpoint.received_bytes() as u32;
        let next = self.endpoint.peer_initial_sequence().unwrap_or(0).wrapping_add(received).wrapping_add(2);
        newer || (segment.seq.wrapping_sub(next) as i32) >= 0
    }
}
