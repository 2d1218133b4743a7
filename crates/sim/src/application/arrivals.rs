//! Files at times that do not depend on when earlier ones are done: an open loop, in which a load can pass the capacity.

use crate::{
    application::{Activity, Ask, OUTSIDE, bytes, nanos},
    distribution::Distribution,
    plan::Kind,
    random::Purpose,
    simulation::Simulation,
};

impl Simulation<'_> {
    pub(super) fn begin_arrival(&mut self, client: u32) {
        let Kind::Arrivals { size, request_bytes, gap, count } = &self.spec(client).kind else { return };
        if matches!(self.clients[client as usize].activity, Activity::None) {
            // Before the first file a time passes as well, or all clients would begin at one moment.
            self.clients[client as usize].activity = Activity::Ended(0);
            return self.wait_for_arrival(client, gap, 0);
        }
        let Some(file) = self.clients[client as usize].begin(*count) else { return };
        let index = u64::from(file);
        let ask = Ask {
            page: OUTSIDE,
            number: file,
            request_bytes: u64::from(*request_bytes),
            response_bytes: bytes(self.draw(client, size, Purpose::ResponseSize, index)),
        };
        self.open(client, index, false, true, ask);
        self.wait_for_arrival(client, gap, index + 1);
    }

    fn wait_for_arrival(&mut self, client: u32, gap: &Distribution, index: u64) {
        let gap = nanos(self.draw(client, gap, Purpose::Think, index));
        self.wake_client_at(client, self.now.saturating_add(gap));
    }

    /// Nothing waits for a file but the count of those that ended.
    pub(super) fn arrival_done(&mut self, client: u32) {
        let Kind::Arrivals { count, .. } = &self.spec(client).kind else { return };
        if let Activity::Ended(ended) = &mut self.clients[client as usize].activity {
            *ended += 1;
            let ended = *ended;
            self.note_end(ended, *count);
        }
    }
}
