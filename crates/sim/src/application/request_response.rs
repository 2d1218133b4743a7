//! Requests and responses in turn on one connection, with time to think between.

use crate::{
    application::{Activity, Ask, Done, OUTSIDE, bytes, nanos},
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
        let last = count.is_some_and(|count| number + 1 == count);
        if let Activity::Connected(slot) = self.clients[client as usize].activity {
            self.ask(slot, ask, last);
        } else {
            let slot = self.open(client, u64::from(number), false, last, ask);
            self.clients[client as usize].activity = Activity::Connected(slot);
        }
    }

    /// The next request follows after a pause; on a new connection if this one failed.
    pub(super) fn response_done(&mut self, client: u32, done: Done) {
        let Kind::RequestResponse { think, count, .. } = &self.spec(client).kind else { return };
        self.note_end(done.object.number + 1, *count);
        if !done.completed {
            self.clients[client as usize].activity = Activity::None;
        }
        let pause = nanos(self.draw(client, think, Purpose::Think, u64::from(done.object.number)));
        self.wake_client_at(client, self.now.saturating_add(pause));
    }
}
