//! Clients whose objects belong to no page: files, requests in turn, chunks of a video, and files that arrive.

use crate::{
    application::{Activity, Ask, Clients, Done, bytes, nanos},
    distribution::Distribution,
    plan::{Direction, Kind},
    random::Purpose,
    records::NO_PAGE,
    simulation::Simulation,
};

// Files one after the other, each on a new connection: RFC 2415's ftp clients, and single transfers.
impl Clients<'_> {
    pub(super) fn begin_file(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::FileTransfer { size, request_bytes, direction, count, .. } = &self.spec(client).kind else { return };
        let Some(file) = self.clients[client as usize].begin(*count) else { return };
        let upload = *direction == Direction::Upload;
        let size = match self.row_bytes {
            Some(bytes) if self.spec(client).size_from_row => bytes,
            _ => self.draw(client, size, Purpose::ResponseSize, u64::from(file)),
        };
        let size = bytes(size);
        let (request_bytes, response_bytes) = if upload { (size, 0) } else { (u64::from(*request_bytes), size) };
        let ask = Ask { page: NO_PAGE, number: 0, request_bytes, response_bytes };
        self.open(sim, client, u64::from(file), upload, true, ask);
    }

    /// The next file follows after the gap; the connection closes by itself.
    pub(super) fn file_done(&self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::FileTransfer { gap, count, .. } = &self.spec(client).kind else { return };
        let file = self.clients[client as usize].begun;
        sim.note_end(file, *count);
        let gap = nanos(self.draw(client, gap, Purpose::Think, u64::from(file)));
        sim.wake_client_at(client, sim.now.saturating_add(gap));
    }
}

// Requests and responses in turn on one connection, with time to think between.
impl Clients<'_> {
    pub(super) fn begin_request(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::RequestResponse { request, response, count, .. } = &self.spec(client).kind else { return };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let request_bytes = bytes(self.draw(client, request, Purpose::RequestSize, u64::from(number)));
        let ask = self.numbered(client, number, request_bytes, response);
        self.ask_in_turn(sim, client, ask, *count);
    }

    /// What is asked for with a request of this number, if the response is drawn by the number alone.
    fn numbered(&self, client: u32, number: u32, request_bytes: u64, response: &Distribution) -> Ask {
        let response_bytes = bytes(self.draw(client, response, Purpose::ResponseSize, u64::from(number)));
        Ask { page: NO_PAGE, number, request_bytes, response_bytes }
    }

    /// The next request follows after a pause; on a new connection if this one failed.
    pub(super) fn response_done(&self, sim: &mut Simulation<'_>, client: u32, done: Done) {
        let Kind::RequestResponse { think, count, .. } = &self.spec(client).kind else { return };
        sim.note_end(done.object.number + 1, *count);
        let pause = nanos(self.draw(client, think, Purpose::Think, u64::from(done.object.number)));
        sim.wake_client_at(client, sim.now.saturating_add(pause));
    }
}

// Video in chunks: a few to fill the player's buffer, then one each time as much has been played.
impl Clients<'_> {
    pub(super) fn begin_chunk(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::Video { chunk, request_bytes, count, .. } = &self.spec(client).kind else { return };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let ask = self.numbered(client, number, u64::from(*request_bytes), chunk);
        self.ask_in_turn(sim, client, ask, *count);
    }

    /// The next chunk follows immediately while the buffer has room for it, else when playing makes room.
    pub(super) fn chunk_done(&self, sim: &mut Simulation<'_>, client: u32, done: Done) {
        let Kind::Video { interval_ns, buffer_chunks, count, .. } = &self.spec(client).kind else { return };
        let next = done.object.number + 1;
        sim.note_end(done.object.number + 1, *count);
        // Chunk n is asked for no earlier than when chunk n - buffer has been played, which begins with the first.
        let played = (next + 1).saturating_sub(*buffer_chunks);
        let room_at = self.start_of(client).saturating_add(u64::from(played).saturating_mul(*interval_ns));
        sim.wake_client_at(client, room_at.max(sim.now));
    }
}

// Files at times that do not depend on when earlier ones are done: an open loop, in which a load can pass the capacity.
impl Clients<'_> {
    pub(super) fn begin_arrival(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::Arrivals { size, request_bytes, gap, count } = &self.spec(client).kind else { return };
        if matches!(self.clients[client as usize].activity, Activity::None) {
            // Before the first file a time passes as well, or all clients would begin at one moment.
            self.clients[client as usize].activity = Activity::Ended(0);
            return self.wait_for_arrival(sim, client, gap, 0);
        }
        let Some(file) = self.clients[client as usize].begin(*count) else { return };
        let ask = self.numbered(client, file, u64::from(*request_bytes), size);
        self.open(sim, client, u64::from(file), false, true, ask);
        self.wait_for_arrival(sim, client, gap, u64::from(file) + 1);
    }

    fn wait_for_arrival(&self, sim: &mut Simulation<'_>, client: u32, gap: &Distribution, index: u64) {
        let gap = nanos(self.draw(client, gap, Purpose::Think, index));
        sim.wake_client_at(client, sim.now.saturating_add(gap));
    }

    /// Nothing waits for a file but the count of those that ended.
    pub(super) fn arrival_done(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::Arrivals { count, .. } = &self.spec(client).kind else { return };
        if let Activity::Ended(ended) = &mut self.clients[client as usize].activity {
            *ended += 1;
            let ended = *ended;
            sim.note_end(ended, *count);
        }
    }
}
