//! The rows of a connection: one per response, and one when it is over.

use super::Connection;
use crate::{
    busy::with_headers,
    problems::Trouble,
    rows::{Batch, ConnectionRow, ResponseRow, UNKNOWN},
};

impl Connection {
    /// Adds the row of the current response, complete as far as the capture goes.
    pub(super) fn answered(&mut self, batch: &mut Batch) {
        let Some(response) = self.response.take() else { return };
        let at_client = self.is_at_client();
        let (first, last) = if at_client {
            (Some(response.first_sent), Some(response.last_sent))
        } else {
            (response.first_acked, response.last_acked)
        };
        let delivered = (self.server_sends.delivered().min(response.end) - response.begin).max(0);
        // Captures on several processors are not quite in order.
        let since = |time: Option<i64>| time.map_or(f64::NAN, |time| (time - response.start).max(0) as f64 / 1e9);
        // At the server the last acknowledgment came an RTT after its data was sent.
        let away = if at_client { 0 } else { self.to_client.least.unwrap_or_default() };
        let took = last.map_or(0, |last| last - response.first_sent - away);
        // The first packet's own time on the line may be missing from that, so its bytes do not count.
        let counted = delivered - i64::from(self.segment_bytes());
        if took > 0 && counted > 0 {
            let rate = with_headers(counted, self.segment_bytes().into(), self.header) * 8e9 / took as f64;
            self.most_bps = self.most_bps.max(rate);
        }
        let first_object = self.objects == 0;
        let [first_flight_segments, first_flight_lost_segments] = match (first_object, self.initial) {
            (true, Some(_)) if self.flight.is_known() => [self.flight.segments, self.flight.lost()],
            (true, _) => [UNKNOWN; 2],
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
            first_flight_lost_segments,
            ecn_cwnd_reductions: self.echoes.take().unwrap_or(UNKNOWN),
            completed: u8::from(response.last_acked.is_some()),
        });
        self.objects += 1;
    }

    /// Reports a finished connection. Returns a problem with it, and the place where it began.
    pub(crate) fn finish(mut self, batch: &mut Batch) -> Option<(Trouble, u64)> {
        if self.clock_was_set || self.late && self.has_acks {
            return Some((Trouble::ClockSet, self.offset));
        }
        if self.lacks_acks && !self.has_acks {
            return Some((Trouble::Unacknowledged, self.offset));
        }
        let mut secures = self.secures.take().filter(|_| !self.early_data);
        if let Some(secures) = &mut secures {
            // Data that came by itself after the request was the answer, and no session ticket.
            self.response = secures.tickets.take_if(|_| secures.handshake.is_lone_ticket());
        }
        let handshake = secures.and_then(|secures| secures.row(self.number, self.handshake_time_s()));
        self.answered(batch);
        if self.objects == 0 && handshake.is_none() {
            let lacks_server = self.client_acknowledged && !self.server_seen;
            return Some((if lacks_server { Trouble::OneWay } else { Trouble::Silent }, self.offset));
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
            max_rtt_s: seconds(self.most_round_trip()),
            mss,
            down_bps: busy.unwrap_or(f64::NAN),
            min_down_bps: if self.most_bps > 0.0 { self.most_bps } else { f64::NAN },
            at_client: u8::from(at_client),
            from_start: u8::from(self.initial.is_some()),
            answer_flight_segments: match self.answer_flight {
                Some(flight) if self.objects > 0 && flight.is_known() => flight.segments,
                _ => UNKNOWN,
            },
            tls: u8::from(self.is_tls),
            early_data: u8::from(self.early_data),
        });
        if !self.client_seen {
            return Some((Trouble::OneWay, self.offset));
        }
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
