//! Connections: both endpoints, their requests, and the arena that recycles them.

use std::sync::Arc;

use firstflight_path::Nanos;
use firstflight_tcp::{Deadline, Endpoint, Profile, Stats};

pub use crate::plan::{CLIENT, SERVER};
use crate::{
    exchange::Exchange,
    loss_draws::LossDraws,
    packet::Packet,
    records::{SenderCounts, seconds_between},
};

/// A request on a connection, of this number of bytes, then its response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Object {
    /// Stream offset at which the request ends.
    pub request_end: u64,
    /// Stream offset at which the response ends.
    pub response_end: u64,
    /// Bytes of the file: the response of a download, the request of an upload.
    pub bytes: u64,
    pub page: u32,
    pub number: u32,
    pub asked_at: Nanos,
    /// When its first byte arrived.
    pub first_byte_at: Option<Nanos>,
    /// Of `bytes`, the headers and tags of TLS records.
    pub overhead_bytes: u64,
    /// Bytes of which the receiver can use the first: those of the first TLS record, or one.
    pub usable_bytes: u64,
    /// When they arrived.
    pub usable_at: Deadline,
}

impl Object {
    /// Bytes of the file without the headers and tags of TLS records.
    pub fn payload_bytes(&self) -> u64 {
        self.bytes - self.overhead_bytes
    }
}

/// The two hosts of a connection, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Index of the application.
    pub application: u16,
    /// The hosts of the client and of the server.
    pub hosts: [u32; 2],
}

#[derive(Debug)]
pub struct Connection {
    /// Client and server.
    pub ends: [Endpoint; 2],
    /// First hop of each end's packets.
    pub first_hop: [u32; 2],
    /// Tells this connection from earlier ones in the same slot.
    pub generation: u32,
    /// Number in the replicate.
    pub number: u32,
    /// Whose it is, among all clients.
    pub client: u32,
    /// Its hosts and its application.
    pub pair: Pair,
    /// When the client opened it.
    pub opened_at: Nanos,
    /// When the client's handshake was complete; NEVER before. A `Deadline`, since `Option<Nanos>` takes a word more.
    pub connected_at: Deadline,
    /// What passes before the first request.
    pub exchange: Option<Box<Exchange>>,
    /// The requests, without those that were finished long ago.
    pub objects: Vec<Object>,
    /// Objects (of `objects`, from the first) whose request reached the server.
    pub served: usize,
    /// When the server has an answer ready that it is at work on.
    pub answers_at: Deadline,
    /// Objects (of `objects`, from the first) that are complete.
    pub done: usize,
    /// Bytes that each end has to receive before its application has anything to do.
    pub awaited: [u64; 2],
    /// The client sends the files.
    pub upload: bool,
    /// Its arm, counted from 1; 0 is none.
    pub arm: u8,
    /// The server closes after the last object so far.
    pub close_when_served: bool,
    /// First-flight segments of the data sender that the path lost.
    pub first_flight_lost_segments: u32,
    /// The data sender's figures already booked to earlier objects.
    pub booked: SenderCounts,
    /// Draws for random losses of its packets.
    losses: LossDraws,
    /// The slot is in use.
    pub live: bool,
}

impl Connection {
    fn new(opening: &Opening<'_>, first_hop: [u32; 2]) -> Connection {
        let [client, server] = opening.profiles;
        let [isn_of_client, isn_of_server] = opening.initial_sequences;
        Connection {
            ends: [
                Endpoint::client(Arc::clone(client), isn_of_client),
                Endpoint::server(Arc::clone(server), isn_of_server),
            ],
            first_hop,
            generation: 0,
            number: 0,
            client: opening.client,
            pair: opening.pair,
            opened_at: 0,
            connected_at: Deadline::NEVER,
            exchange: None,
            objects: Vec::new(),
            served: 0,
            answers_at: Deadline::NEVER,
            done: 0,
            awaited: [0; 2],
            upload: opening.upload,
            arm: opening.arm,
            close_when_served: false,
            first_flight_lost_segments: 0,
            booked: SenderCounts::default(),
            losses: LossDraws::new(opening.loss_key),
            live: true,
        }
    }

    /// Becomes another connection of the next generation in the same memory.
    fn restart(&mut self, opening: &Opening<'_>, first_hop: [u32; 2]) {
        let [client, server] = opening.profiles;
        let [isn_of_client, isn_of_server] = opening.initial_sequences;
        self.ends[CLIENT].restart_as_client(client, isn_of_client);
        self.ends[SERVER].restart_as_server(server, isn_of_server);
        (self.client, self.pair, self.upload) = (opening.client, opening.pair, opening.upload);
        self.first_hop = first_hop;
        self.arm = opening.arm;
        self.connected_at = Deadline::NEVER;
        self.exchange = None;
        self.objects.clear();
        (self.served, self.done, self.answers_at) = (0, 0, Deadline::NEVER);
        self.awaited = [0; 2];
        self.close_when_served = false;
        self.first_flight_lost_segments = 0;
        self.booked = SenderCounts::default();
        self.losses.restart(opening.loss_key);
        self.live = true;
    }

    /// The end that sends the files.
    pub fn data_sender(&self) -> usize {
        if self.upload { CLIENT } else { SERVER }
    }

    /// Forgets the objects that are complete, up to the last: its offsets say where the next one begins. A connection
    /// that never ends must not remember all that it ever carried.
    pub fn forget_done(&mut self) {
        let forgotten = self.done.min(self.served).saturating_sub(1);
        self.objects.drain(..forgotten);
        self.done -= forgotten;
        self.served -= forgotten;
    }

    /// Initial window of the end that sends the files, in whole segments.
    pub fn initial_window_segments(&self) -> u32 {
        self.ends[self.data_sender()].initial_window_segments()
    }

    /// In-order bytes of files that have reached their receiver.
    pub fn delivered_bytes(&self) -> u64 {
        self.ends[1 - self.data_sender()].received_bytes()
    }

    /// An end's application reads all that there is. Returns whether that is the data that it waits for.
    #[inline(always)]
    pub fn read_all(&mut self, side: usize) -> bool {
        let end = &mut self.ends[side];
        end.read(u64::MAX);
        end.received_bytes() >= self.awaited[side]
    }

    /// Sets the data that an endpoint's application waits for: the whole of the next request; the first byte of a file, the
    /// first that can be used, all of it.
    pub fn await_more(&mut self, side: usize) {
        let request = self.objects.get(self.served).filter(|_| side == SERVER).map(|object| object.request_end);
        let file = self.objects.get(self.done).filter(|_| side != self.data_sender()).map(|object| {
            let next = match object.first_byte_at {
                None => 1,
                Some(_) if !object.usable_at.is_set() => object.usable_bytes,
                Some(_) => object.bytes,
            };
            self.file_start(self.done) + next
        });
        self.awaited[side] = request.unwrap_or(u64::MAX).min(file.unwrap_or(u64::MAX));
    }

    /// Stream offset at which the file of `objects[index]` begins.
    pub fn file_start(&self, index: usize) -> u64 {
        let object = &self.objects[index];
        let end = if self.upload { object.request_end } else { object.response_end };
        end - object.bytes
    }

    /// Seconds from the opening of the connection to the end of its handshake behind TCP's; NaN without one.
    pub fn tls_time_s(&self) -> f64 {
        let finished = self.exchange.as_ref().and_then(|exchange| exchange.finished_at.time());
        seconds_between(self.opened_at, finished)
    }

    /// Both ends are done with the connection.
    pub fn is_finished(&self) -> bool {
        self.ends[CLIENT].is_finished() && self.ends[SERVER].is_finished()
    }

    /// The data sender's figures since the last call.
    pub fn record(&mut self) -> SenderCounts {
        let stats: &Stats = self.ends[self.data_sender()].stats();
        let total = SenderCounts {
            segments_sent: stats.data_segments_sent,
            retransmissions: stats.retransmissions,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            early_retransmits: stats.early_retransmits,
            tail_loss_probes: stats.tail_loss_probes,
            spurious_recoveries_undone: stats.spurious_recoveries_undone,
            ecn_cwnd_reductions: stats.ecn_cwnd_reductions,
            first_flight_segments: stats.first_flight_segments,
            first_flight_lost_segments: self.first_flight_lost_segments,
        };
        total - std::mem::replace(&mut self.booked, total)
    }
}

/// The parameters of a new connection.
pub struct Opening<'a> {
    /// Among all clients.
    pub client: u32,
    /// Its hosts and its application.
    pub pair: Pair,
    /// Its arm, counted from 1; 0 is none.
    pub arm: u8,
    /// TCP of the client and of the server.
    pub profiles: [&'a Arc<Profile>; 2],
    /// Initial sequence numbers.
    pub initial_sequences: [u32; 2],
    /// Key of its random losses.
    pub loss_key: u64,
    /// The client sends the files.
    pub upload: bool,
}

/// All connections of a replicate; slots of finished ones are used again.
#[derive(Debug, Default)]
pub struct Arena {
    slots: Vec<Connection>,
    /// Slots up to this one have been used since all were freed: which slot a connection gets, and so the order of rows
    /// at the end of a run, does not depend on how many slots the users before needed.
    used: u32,
    /// Of these, the free ones.
    free: Vec<u32>,
    /// Connections that were opened, which numbers the next one.
    pub(crate) opened: u32,
}

impl Arena {
    /// Puts a new connection into a slot; `first_hop` is that of each end's packets.
    pub fn open(&mut self, now: Nanos, opening: &Opening<'_>, first_hop: [u32; 2]) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        match self.slots.get_mut(slot as usize) {
            Some(connection) => connection.restart(opening, first_hop),
            None => self.slots.push(Connection::new(opening, first_hop)),
        }
        let connection = &mut self.slots[slot as usize];
        (connection.opened_at, connection.number) = (now, self.opened);
        self.opened += 1;
        slot
    }

    /// The draw by which a packet is lost at random on a link.
    // Nobody waits for the remaining packets of a connection that has ended: no draw loses them.
    #[inline]
    pub fn loss_draw(&mut self, packet: &Packet, link: u32) -> f64 {
        let connection = &mut self.slots[(packet.to() / 2) as usize];
        if connection.generation != packet.generation() {
            return 1.0;
        }
        connection.losses.draw(link, packet.carries_data())
    }

    /// The connection in a slot, if the slot has been in use; a datagram has none.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.get_mut(slot as usize)
    }

    /// Frees a slot; packets still in flight to it will find another generation.
    pub fn release(&mut self, slot: u32) {
        let connection = &mut self.slots[slot as usize];
        debug_assert!(connection.live);
        connection.live = false;
        connection.generation = connection.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Frees all slots, which are then used in the order of the first time.
    pub fn release_all(&mut self) {
        for slot in 0..self.len() {
            if self.slots[slot as usize].live {
                self.release(slot);
            }
        }
        self.free.clear();
        self.used = 0;
    }

    /// Slots that connections have been in, over or not.
    pub fn len(&self) -> u32 {
        self.used
    }
}

impl std::ops::Index<u32> for Arena {
    type Output = Connection;

    fn index(&self, slot: u32) -> &Connection {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Arena {
    fn index_mut(&mut self, slot: u32) -> &mut Connection {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of every open connection, without its allocations. `python -m bench` measures the whole.
    #[test]
    fn a_connection_takes_no_more_than_it_did() {
        assert!(size_of::<Endpoint>() <= 416, "an endpoint has {} bytes", size_of::<Endpoint>());
        assert!(size_of::<Connection>() <= 1032, "a connection has {} bytes", size_of::<Connection>());
    }
}
