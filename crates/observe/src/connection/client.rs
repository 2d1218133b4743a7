//! Packets from the client: acknowledgments and requests.

use firstflight_segment::Flags;

use super::Connection;
use crate::{packet::Seen, problems::Trouble, secures::Secures, stream::Place, tls};

/// RFC 9293 §3.8.6.3: an end may hold an acknowledgment back for less than this.
const HELD_BACK: i64 = 500_000_000;
/// Twice the two full segments that it may not leave without one, for those that arrive together.
const MOST_SEGMENTS: i64 = 4;

impl Connection {
    /// The client acknowledges data.
    pub(super) fn acknowledged_by_client(&mut self, seen: &Seen<'_>, time: i64) -> Option<Trouble> {
        self.complete(seen.ack, time);
        let Some(position) = self.server_sends.locate(seen.ack) else { return Some(Trouble::Outside) };
        if position <= 0 {
            return None;
        }
        self.echoes.acknowledge(position, seen.flags);
        let recovering = self.server_sends.is_recovering();
        let before = self.server_sends.delivered();
        let Some(acked) = self.server_sends.acknowledge(position) else {
            if seen.payload == 0 {
                self.at_server.take_back();
            }
            return None;
        };
        self.unseen |= acked.unseen;
        let timestamp = seen.options.timestamps.map(|(value, _)| value);
        for flight in self.flights() {
            flight.acknowledge(position, time, timestamp);
        }
        match acked.sent {
            Some(sent) if !recovering => {
                let idle = self.to_client.least;
                self.late |= self.to_client.add(time - sent, acked.lone);
                let idle = idle.or(self.to_client.least).unwrap_or_default();
                // A filter on flags keeps those with a FIN.
                self.has_acks |= seen.payload == 0 && !seen.flags.contains(Flags::FIN);
                let most = MOST_SEGMENTS * i64::from(self.segment_bytes());
                self.lacks_acks |= time - sent > HELD_BACK + idle || position - before > most;
                if acked.lone {
                    // Its acknowledgment may have been held back (RFC 9293 §3.8.6.3), and this delay is not the line's.
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
        None
    }

    /// The client sends data: if it has all that the server sent, it asks for more.
    pub(super) fn ask(&mut self, seen: &Seen<'_>, time: i64) -> Option<Trouble> {
        if seen.payload == 0 {
            return None;
        }
        let Some(position) = self.client_sends.locate(seen.seq) else { return Some(Trouble::Outside) };
        if position == 0 {
            self.is_tls |= tls::begins_with_record(seen);
            if self.server_sends.next() == 0 && self.secures.is_none() {
                if let Some(handshake) = tls::Handshake::begin(seen) {
                    self.secures = Some(Box::new(Secures::new(handshake, time)));
                    self.request = None;
                }
            }
        }
        let place = self.client_sends.send(position, seen.payload, time);
        if matches!(place, Place::Again(_)) {
            self.client_sends.retransmitted();
            return None;
        }
        if let Some(secures) = &mut self.secures {
            let asks = secures.handshake.client_sends(position, seen, matches!(place, Place::Missing(_)));
            secures.end_flight(self.server_sends.next(), time);
            if !asks {
                return None;
            }
            if !secures.handshake.is_early() {
                secures.asked = time;
                return None;
            }
            if !self.early_data {
                self.early_data = true;
                self.request = Some(time);
                return None;
            }
            self.secures = None;
        }
        if self.is_tls && tls::is_alert(seen) {
            return None;
        }
        let has_all = self.server_sends.delivered() >= self.server_sends.next();
        if self.response.is_none() || has_all {
            self.request.get_or_insert(time);
        }
        None
    }
}
