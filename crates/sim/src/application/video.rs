//! Video in chunks: a few to fill the player's buffer, then one each time as much has been played.

use crate::{
    application::{Ask, Done, OUTSIDE, bytes},
    plan::Kind,
    random::Purpose,
    simulation::Simulation,
};

impl Simulation<'_> {
    pub(super) fn begin_chunk(&mut self, client: u32) {
        let Kind::Video { chunk, request_bytes, count, .. } = &self.spec(client).kind else { return };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let ask = Ask {
            page: OUTSIDE,
            number,
            request_bytes: u64::from(*request_bytes),
            response_bytes: bytes(self.draw(client, chunk, Purpose::ResponseSize, u64::from(number))),
        };
        self.ask_in_turn(client, ask, *count);
    }

    /// The next chunk follows immediately while the buffer has room for it, else when playing makes room.
    pub(super) fn chunk_done(&mut self, client: u32, done: Done) {
        let Kind::Video { interval_ns, buffer_chunks, count, .. } = &self.spec(client).kind else { return };
        let next = done.object.number + 1;
        self.note_end(done.object.number + 1, *count);
        // Chunk n is asked for no earlier than when chunk n - buffer has been played, which begins with the first.
        let played = (next + 1).saturating_sub(*buffer_chunks);
        let room_at = self.start_of(client).saturating_add(u64::from(played).saturating_mul(*interval_ns));
        self.wake_client_at(client, room_at.max(self.now));
    }
}
