//! The handshake of a connection: its flights in turn, then the requests that waited for its end.

use firstflight_tcp::Deadline;

use crate::{
    application::{Clients, bytes},
    connection::{CLIENT, SERVER},
    exchange::Exchange,
    plan::{From, Handshake, Handshakes, Resumption},
    random::Purpose,
    records::{self, seconds, seconds_between},
    simulation::Simulation,
};

/// Draws of one connection, numbered by flight.
const DRAWS_PER_CONNECTION: u64 = 1 << 8;

impl<'p> Clients<'p> {
    pub(super) fn handshakes(&self, client: u32) -> Option<&'p Handshakes> {
        self.spec(client).handshakes.as_deref()
    }

    /// The kind of a connection's handshake, if it has one.
    pub(super) fn handshake_kind(&self, sim: &Simulation<'_>, slot: u32) -> Option<&'p Handshake> {
        let connection = &sim.connections[slot];
        let exchange = connection.exchange.as_deref()?;
        Some(&self.handshakes(connection.client)?.kinds[usize::from(exchange.kind)])
    }

    /// Draws the handshake of a client's connection, the `opened`th of its own.
    pub(super) fn draw_handshake(&self, client: u32, opened: u32) -> Option<Box<Exchange>> {
        let Handshakes { kinds, from_row, .. } = self.handshakes(client)?;
        let row = if *from_row { self.row_handshake } else { None };
        if row.is_some_and(|row| row.bytes == 0.0) {
            return None;
        }
        let index = u64::from(opened) * DRAWS_PER_CONNECTION;
        let number = match row {
            Some(row) => usize::from(row.exchanges) - 1,
            None => {
                let draw = self.stream(client, Purpose::Handshake).uniforms(index)[0];
                let mut below = 0.0;
                let is_it = |kind: &Handshake| {
                    below += kind.fraction;
                    draw < below
                };
                kinds.iter().position(is_it).unwrap_or(kinds.len() - 1)
            }
        };
        let number = number.min(kinds.len() - 1);
        let kind = &kinds[number];
        let first = kind.flights.iter().position(|flight| flight.from == From::Server);
        let draws = kind.flights.iter().zip(index + 1..).enumerate();
        Some(Box::new(Exchange {
            kind: number as u8,
            bytes: draws
                .map(|(place, (flight, index))| match row {
                    Some(row) if first == Some(place) => bytes(row.bytes),
                    _ => {
                        let drawn = self.draw(client, &flight.bytes, Purpose::Handshake, index);
                        bytes(drawn) + u64::from(flight.more_bytes)
                    }
                })
                .collect(),
            written: 0,
            writes_at: Deadline::NEVER,
            held_bytes: 0,
            behind_early_data: 0,
            finished_at: Deadline::NEVER,
            has_tickets: kind.tickets_bytes == 0,
        }))
    }

    /// Writes a request, or keeps it until the handshake is complete.
    pub(super) fn write_request(&self, sim: &mut Simulation<'_>, slot: u32, bytes: u64) {
        let kind = self.handshake_kind(sim, slot);
        let connection = &mut sim.connections[slot];
        match (&mut connection.exchange, kind) {
            (Some(exchange), Some(kind)) if !exchange.admits_requests(kind) => exchange.held_bytes += bytes,
            _ => connection.ends[CLIENT].write(sim.now, bytes),
        }
    }

    /// Whether the server has flights to write before it may answer: early data arrives while it computes them.
    pub(super) fn holds_responses(&self, sim: &Simulation<'_>, slot: u32) -> bool {
        let exchange = sim.connections[slot].exchange.as_deref();
        exchange.zip(self.handshake_kind(sim, slot)).is_some_and(|(exchange, kind)| !exchange.admits_responses(kind))
    }

    /// Bytes of the client's and the server's flights between the request before, or the beginning, and the next one.
    pub(super) fn flights_before_request(&self, sim: &mut Simulation<'_>, slot: u32) -> [u64; 2] {
        let kind = self.handshake_kind(sim, slot);
        let connection = &mut sim.connections[slot];
        match (&mut connection.exchange, kind) {
            (Some(exchange), Some(kind)) if connection.objects.is_empty() => exchange.first_offsets(kind),
            (Some(exchange), _) => [std::mem::take(&mut exchange.behind_early_data), 0],
            _ => [0, 0],
        }
    }

    /// Sets the data that an end's application waits for.
    pub(super) fn await_more(&self, sim: &mut Simulation<'_>, slot: u32, side: usize) {
        let kind = self.handshake_kind(sim, slot);
        let connection = &mut sim.connections[slot];
        connection.await_more(side);
        if let (Some(exchange), Some(kind)) = (&connection.exchange, kind) {
            let step = exchange.awaited(kind, side).unwrap_or(u64::MAX);
            connection.awaited[side] = connection.awaited[side].min(step);
        }
    }

    /// Takes the steps of a connection's handshake that are due.
    #[inline(never)]
    pub(super) fn advance_handshake(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        let Some(kind) = self.handshake_kind(sim, slot) else { return };
        while self.write_flight(sim, slot, kind) {}
        let now = sim.now;
        let connection = &mut sim.connections[slot];
        let received = [CLIENT, SERVER].map(|side| connection.ends[side].received_bytes());
        let Some(exchange) = &mut connection.exchange else { return };
        if exchange.written < kind.flights.len() {
            return;
        }
        if !exchange.has_tickets && received[SERVER] >= exchange.all(kind, CLIENT) {
            exchange.has_tickets = true;
            connection.ends[SERVER].write(now, u64::from(kind.tickets_bytes));
            sim.pump(slot, SERVER);
        }
        let connection = &mut sim.connections[slot];
        let Some(exchange) = &mut connection.exchange else { return };
        if !exchange.finished_at.is_set() && received[CLIENT] >= exchange.all(kind, SERVER) {
            exchange.finished_at = Deadline::at(now);
            self.release_requests(sim, slot, kind);
            self.record_handshake(sim, slot);
        }
    }

    /// Writes the next flight if the end whose turn it is has received what comes before, and has computed it.
    fn write_flight(&mut self, sim: &mut Simulation<'_>, slot: u32, kind: &Handshake) -> bool {
        let now = sim.now;
        let connection = &mut sim.connections[slot];
        let Some(exchange) = &mut connection.exchange else { return false };
        let Some(flight) = kind.flights.get(exchange.written) else { return false };
        let side = flight.from as usize;
        if connection.ends[side].received_bytes() < exchange.sent(kind, 1 - side, exchange.written) {
            return false;
        }
        if flight.compute_ns > 0 && !exchange.writes_at.is_set() {
            let at = now.saturating_add(flight.compute_ns);
            exchange.writes_at = Deadline::at(at);
            sim.wake_server_at(slot, at);
            return false;
        }
        if exchange.writes_at > Deadline::at(now) && exchange.writes_at.is_set() {
            return false;
        }
        exchange.writes_at = Deadline::NEVER;
        let mut left = exchange.bytes[exchange.written];
        exchange.written += 1;
        let is_before_early_data = exchange.written == 1 && kind.resumption == Resumption::EarlyData;
        let most = flight.write_bytes.map_or(u64::MAX, |bytes| u64::from(bytes.get()));
        while left > 0 {
            let written = left.min(most);
            left -= written;
            sim.connections[slot].ends[side].write(now, written);
            sim.pump(slot, side);
        }
        if is_before_early_data {
            self.release_requests(sim, slot, kind);
            if let Some(exchange) = &mut sim.connections[slot].exchange {
                exchange.behind_early_data = exchange.all(kind, CLIENT) - exchange.bytes[0];
            }
        }
        sim.connections[slot].awaited[1 - side] = 0;
        true
    }

    /// Writes the requests that have waited.
    fn release_requests(&self, sim: &mut Simulation<'_>, slot: u32, kind: &Handshake) {
        let now = sim.now;
        let connection = &mut sim.connections[slot];
        let Some(exchange) = &mut connection.exchange else { return };
        debug_assert!(exchange.admits_requests(kind));
        let bytes = std::mem::take(&mut exchange.held_bytes);
        if bytes > 0 {
            connection.ends[CLIENT].write(now, bytes);
            sim.pump(slot, CLIENT);
        }
    }

    /// An end has computed its flight.
    pub(super) fn end_computing(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        let connection = &sim.connections[slot];
        // A timer of an earlier connection in this slot means nothing.
        if connection.live && connection.exchange.as_ref().is_some_and(|own| own.writes_at == Deadline::at(sim.now)) {
            self.advance_handshake(sim, slot);
            self.serve_in_time(sim, slot);
            sim.pump(slot, SERVER);
            for side in [CLIENT, SERVER] {
                self.await_more(sim, slot, side);
            }
        }
    }

    /// At the end of a connection or of the run: the row of a handshake that is not complete.
    pub(super) fn record_unfinished_handshake(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        if sim.connections[slot].exchange.as_ref().is_some_and(|exchange| !exchange.finished_at.is_set()) {
            self.record_handshake(sim, slot);
        }
    }

    fn record_handshake(&self, sim: &mut Simulation<'_>, slot: u32) {
        let Some(kind) = self.handshake_kind(sim, slot) else { return };
        let Some(rows) = &mut sim.records.handshakes else { return };
        let connection = &sim.connections[slot];
        let Some(exchange) = &connection.exchange else { return };
        let client = &self.clients[connection.client as usize];
        let stats = [CLIENT, SERVER].map(|side| connection.ends[side].stats());
        rows.push(records::Handshake {
            replicate: self.replicate,
            application: self.plan.recorded(client.application, connection.arm),
            client: client.index,
            connection: connection.number,
            start_s: seconds(connection.opened_at),
            handshake_time_s: seconds_between(connection.opened_at, connection.connected_at.time()),
            tls_handshake_time_s: connection.tls_time_s(),
            client_bytes: exchange.all(kind, CLIENT),
            server_bytes: exchange.all(kind, SERVER),
            server_segments: stats[SERVER].data_segments_sent,
            retransmissions: stats[CLIENT].retransmissions + stats[SERVER].retransmissions,
            timeouts: stats[CLIENT].timeouts + stats[SERVER].timeouts,
            resumption: kind.resumption as u8,
            completed: u8::from(exchange.finished_at.is_set()),
        });
    }
}
