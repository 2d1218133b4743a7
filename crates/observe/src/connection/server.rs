//! Packets from the server: responses and TLS handshakes.

use super::Connection;
use crate::{
    first_flight::{FirstFlight, Sight},
    packet::Seen,
    problems::Trouble,
    response::Response,
    rows::Batch,
    stream::{Place, SeqNum},
    tls::{self, Part},
};

const MS: i64 = 1_000_000;
/// A packet seen again so soon was captured twice: no sender repeats it before a round trip.
const TWICE_WITHIN: i64 = MS;
/// A segment that fills a gap earlier than this, or than an RTT, was reordered; a later one was retransmitted.
const OVERTAKEN_WITHIN: i64 = 3 * MS;

impl Connection {
    /// The server acknowledges the client's data.
    pub(super) fn acknowledged_by_server(&mut self, seen: &Seen<'_>, time: i64) -> Option<Trouble> {
        let Some(position) = self.client_sends.locate(seen.ack) else { return Some(Trouble::Outside) };
        if let Some(sent) = self.client_sends.acknowledge(position).and_then(|acked| acked.sent) {
            self.late |= self.to_server.add(time - sent, false);
        }
        None
    }

    /// The server sends data.
    pub(super) fn answer(&mut self, seen: &Seen<'_>, time: i64, batch: &mut Batch) -> Option<Trouble> {
        let Some(start) = self.server_sends.locate(seen.seq) else { return Some(Trouble::Outside) };
        // A probe of a window or of a silent client repeats one old byte (RFC 9293 §3.8.4). Data before the first
        // byte of a connection that had begun before the capture may be late as well as retransmitted.
        if seen.payload <= 1 && start < self.server_sends.next() || start < 0 {
            return None;
        }
        self.header = seen.header;
        self.option_bytes = seen.options.bytes;
        let segments = seen.payload.div_ceil(u32::from(self.segment_bytes()));
        let before = self.server_sends.next();
        let place = self.server_sends.send(start, seen.payload, time);
        let is_retransmission = match place {
            Place::Again(Some(since)) if since < TWICE_WITHIN => return Some(Trouble::Twice),
            Place::Again(_) => true,
            Place::Missing(since) => {
                let round_trip = self.round_trip().unwrap_or_default();
                since > OVERTAKEN_WITHIN.max(round_trip - round_trip / 4)
            }
            Place::Next | Place::Ahead => false,
        };
        if is_retransmission {
            let unseen = matches!(place, Place::Missing(_));
            let bytes = self.segment_bytes().into();
            for flight in self.flights() {
                flight.resend(segments, start, bytes, unseen);
            }
            self.server_sends.retransmitted();
            self.at_server.interrupt();
        }
        let echo = seen.options.timestamps.map(|(_, echo)| echo);
        let to_server = self.to_server.least.unwrap_or_default();
        let sight = Sight { time, echo, to_server, at_server: !self.is_at_client() };
        let is_new = matches!(place, Place::Next | Place::Ahead);
        let is_alert = self.is_tls && tls::is_alert(seen);
        let is_handshake =
            self.secures.is_some() && self.secure(seen, start, before, is_new && !is_alert, &sight, batch);
        if is_new && !is_alert && !is_handshake {
            // Data that arrives from the server within less than one RTT was in flight when the client sent its
            // request.
            let too_soon = |asked: &mut i64| time - *asked < to_server - to_server / 8;
            if self.response.is_some() {
                self.request.take_if(too_soon);
            }
            if let Some(asked) = self.request.take() {
                self.answered(batch);
                // All before was there when the client asked, so the skipped bytes belong to the response, too.
                self.respond(asked, before, time);
            } else if self.response.is_none() {
                // If the server speaks first, the skipped bytes belong to the response, too.
                let from_start = self.initial.is_some() || self.handshake.syn_ack.is_some();
                self.respond(time, if from_start { before } else { start }, time);
            }
        }
        if !is_retransmission {
            self.echoes.send(start, seen.flags);
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
            part.send(segments, is_retransmission, end, time);
        }
        None
    }

    /// The server sends data before the handshake of TLS is known to be over; whether it still is not. `before`: how far
    /// the server had come; `is_new`: the segment goes on from there, and is no alert.
    fn secure(
        &mut self,
        seen: &Seen<'_>,
        start: SeqNum,
        before: SeqNum,
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
        // Session tickets take their part of the window if they are still in flight when the answer is sent.
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
                // The bytes that such a segment skipped belong to the answer, too.
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

    fn respond(&mut self, asked: i64, begin: SeqNum, time: i64) {
        let opens = self.objects == 0 && !self.is_tls;
        let start = if opens { self.handshake.syn.unwrap_or(asked) } else { asked };
        self.response = Some(Response::new(start, begin, time));
    }

    /// For a capture at the client: a segment that arrives, and when it was sent by the server's clock.
    fn arrive(&mut self, place: Place, time: i64, seen: &Seen<'_>) {
        match (place, self.clock) {
            (Place::Next, Some(clock)) => {
                self.at_client.add(time, i64::from(seen.payload), clock.latest(), clock.least);
            }
            _ => self.at_client.interrupt(),
        }
    }
}
