//! Requests and responses in turn on one connection, with time to think between.

use crate::{
    application::{Ask, Done, OUTSIDE, bytes, nanos},
    plan::Kind,
    random::Purpose,
    simulation::Simulation,
};

impl Simulation<'_> {
    pub(super) fn begin_request(&mut self, client: u32) {
        let Kind::RequestResponse { request, response, count, .. } = &self.spec(client).kind else { return };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let ask = Ask {
            page: OUTSIDE,
            number,
            request_bytes: bytes(self.draw(client, request, Purpose::RequestSize, u64::from(number))),
            response_bytes: bytes(self.draw(client, response, Purpose::ResponseSize, u64::from(number))),
        };
        self.ask_in_turn(client, ask, *count);
    }

    /// The next request follows after a pause; on a new connection if this one failed.
    pub(super) fn response_done(&mut self, client: u32, done: Done) {
        let Kind::RequestResponse { think, count, .. } = &self.spec(client).kind else { return };
        self.note_end(done.object.number + 1, *count);
        let pause = nanos(self.draw(client, think, Purpose::Think, u64::from(done.object.number)));
        self.wake_client_at(client, self.now.saturating_add(pause));
    }
}
