//! The server's side: it answers requests, and each object is recorded when it is complete, failed or left unfinished.

use crate::{
    application::{Activity, Clients, Done},
    connection::{Connection, Object, SERVER},
    population::aggregate::{Outcome, Unit},
    records::{Transfer, seconds, seconds_between},
    simulation::Simulation,
};
use firstflight_tcp::Deadline;

impl Clients<'_> {
    /// The server answers the request that has arrived: immediately, or after its service time.
    pub(super) fn serve_in_time(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        if self.holds_responses(sim, slot) {
            return;
        }
        let service_time = self.spec(sim.connections[slot].client).service_time_ns;
        if service_time == 0 {
            return self.serve(sim, slot);
        }
        let connection = &mut sim.connections[slot];
        let Some(object) = connection.objects.get(connection.served) else { return };
        if !connection.answers_at.is_set() && object.request_end <= connection.ends[SERVER].received_bytes() {
            let at = sim.now.saturating_add(service_time);
            connection.answers_at = Deadline::at(at);
            sim.wake_server_at(slot, at);
        }
    }

    /// The server is done with its work, or an end with a flight of its handshake.
    #[inline(never)]
    pub(super) fn answer(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        let connection = &mut sim.connections[slot];
        // A timer of an earlier connection in this slot means nothing.
        if connection.live && connection.answers_at == Deadline::at(sim.now) {
            connection.answers_at = Deadline::NEVER;
            self.serve(sim, slot);
            sim.pump(slot, SERVER);
        }
        self.end_computing(sim, slot);
    }

    /// The server answers the requests that have arrived.
    pub(super) fn serve(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        if self.serve_interleaved(sim, slot) {
            return;
        }
        let now = sim.now;
        let connection = &mut sim.connections[slot];
        let received = connection.ends[SERVER].received_bytes();
        while let Some(object) = connection.objects.get(connection.served) {
            if object.request_end > received {
                return;
            }
            if !connection.upload {
                connection.ends[SERVER].write(now, object.bytes);
            }
            connection.served += 1;
        }
        if connection.close_when_served {
            connection.ends[SERVER].close(now);
        }
    }

    /// Bytes of a file have arrived: book the objects that are now complete.
    pub(super) fn progress(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        loop {
            let now = sim.now;
            let connection = &mut sim.connections[slot];
            let delivered = connection.delivered_bytes();
            let index = connection.done;
            if index >= connection.objects.len() {
                return;
            }
            if index + 1 < connection.objects.len() {
                self.note_first_bytes(sim, slot);
            }
            let connection = &mut sim.connections[slot];
            let start = connection.file_start(index);
            let object = &mut connection.objects[index];
            if delivered > start {
                object.first_byte_at.get_or_insert(now);
            }
            if delivered.saturating_sub(start) >= object.usable_bytes && !object.usable_at.is_set() {
                object.usable_at = Deadline::at(now);
            }
            if delivered < start + object.bytes {
                return;
            }
            debug_assert!(
                index + 1 < connection.objects.len() || delivered == start + connection.objects[index].bytes,
                "more bytes were delivered than asked for"
            );
            connection.done += 1;
            let generation = connection.generation;
            let done = self.record(sim, slot, index, true);
            self.object_done(sim, done);
            if sim.connections[slot].generation != generation {
                return;
            }
        }
    }

    /// A connection was reset or gave up: its unfinished requests are recorded in their current state.
    #[cold]
    pub(super) fn fail(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        self.record_unfinished_handshake(sim, slot);
        let owed = sim.connections[slot].done..sim.connections[slot].objects.len();
        let lost: Vec<Done> = owed.map(|index| self.record(sim, slot, index, false)).collect();
        let client = &mut self.clients[sim.connections[slot].client as usize];
        // Also if it was idle: the next request opens another connection.
        if matches!(client.activity, Activity::Connected(own) if own == slot) {
            client.activity = Activity::None;
        }
        sim.release(slot);
        for done in lost {
            self.object_done(sim, done);
        }
    }

    /// Writes the row of an object, or enters it into the accounts.
    pub(super) fn record(&mut self, sim: &mut Simulation<'_>, slot: u32, index: usize, completed: bool) -> Done {
        let now = sim.now;
        let client = sim.connections[slot].client;
        let has_records = self.handshakes(client).is_some_and(|handshakes| handshakes.record_bytes.is_some());
        let connection = &mut sim.connections[slot];
        let booked = connection.record();
        let object = connection.objects[index];
        let client = &self.clients[connection.client as usize];
        let recorded = self.plan.recorded(client.application, connection.arm);
        let done = Done {
            client: connection.client,
            slot: Some(slot),
            object,
            booked,
            connected_at: connection.connected_at.time(),
            completed,
        };
        if let Some(accounts) = &mut self.accounts {
            accounts.enter(&Outcome {
                application: recorded,
                unit: Unit::Transfer,
                completion: completed.then(|| now - object.asked_at),
                bytes: object.payload_bytes(),
                booked,
            });
            return done;
        }
        sim.records.transfers.push(Transfer {
            replicate: self.replicate,
            application: recorded,
            client: client.index,
            page: object.page,
            object: object.number,
            connection: connection.number,
            start_s: seconds(object.asked_at),
            handshake_time_s: handshake_time(connection, &object),
            tls_handshake_time_s: if object.asked_at == connection.opened_at {
                connection.tls_time_s()
            } else {
                f64::NAN
            },
            first_byte_time_s: seconds_between(object.asked_at, object.first_byte_at),
            first_usable_byte_time_s: if has_records {
                seconds_between(object.asked_at, object.usable_at.time())
            } else {
                f64::NAN
            },
            completion_time_s: seconds_between(object.asked_at, completed.then_some(now)),
            bytes: object.payload_bytes(),
            delivered_bytes: connection
                .delivered_bytes()
                .saturating_sub(connection.file_start(index))
                .min(object.payload_bytes()),
            sender: booked,
            initial_window_segments: connection.initial_window_segments(),
            completed: u8::from(completed),
            // Nobody is late in virtual time.
            disturbed: 0,
            stall_s: 0.0,
        });
        done
    }

    /// At the end of the run: the rows of a connection's unfinished objects.
    pub(super) fn book_unfinished_objects(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        self.record_unfinished_handshake(sim, slot);
        for index in sim.connections[slot].done..sim.connections[slot].objects.len() {
            let done = self.record(sim, slot, index, false);
            self.page_object_unfinished(&done);
        }
    }
}

/// The handshake belongs to the first object; the others found the connection open.
fn handshake_time(connection: &Connection, object: &Object) -> f64 {
    if object.asked_at == connection.opened_at {
        seconds_between(connection.opened_at, connection.connected_at.time())
    } else {
        f64::NAN
    }
}
