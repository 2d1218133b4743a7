//! Files one after the other, each on a new connection: RFC 2415's ftp clients, and single transfers.

use crate::{
    application::{Ask, OUTSIDE, bytes, nanos},
    plan::{Direction, Kind},
    random::Purpose,
    simulation::Simulation,
};

impl Simulation<'_> {
    pub(super) fn begin_file(&mut self, client: u32) {
        let Kind::FileTransfer { size, request_bytes, direction, count, .. } = &self.spec(client).kind else { return };
        let Some(file) = self.clients[client as usize].begin(*count) else { return };
        let upload = *direction == Direction::Upload;
        let size = match self.bytes_in_row() {
            Some(bytes) if self.spec(client).size_from_row => bytes,
            _ => self.draw(client, size, Purpose::ResponseSize, u64::from(file)),
        };
        let size = bytes(size);
        let ask = if upload {
            Ask { page: OUTSIDE, number: 0, request_bytes: size, response_bytes: 0 }
        } else {
            Ask { page: OUTSIDE, number: 0, request_bytes: u64::from(*request_bytes), response_bytes: size }
        };
        self.open(client, u64::from(file), upload, true, ask);
    }

    /// The next file follows after the gap; the connection closes by itself.
    pub(super) fn file_done(&mut self, client: u32) {
        let Kind::FileTransfer { gap, count, .. } = &self.spec(client).kind else { return };
        let file = self.clients[client as usize].begun;
        self.note_end(file, *count);
        let gap = nanos(self.draw(client, gap, Purpose::Think, u64::from(file)));
        self.wake_client_at(client, self.now.saturating_add(gap));
    }
}
