//! The state of what passes on a connection before its first request.

use firstflight_tcp::Deadline;

use crate::plan::{CLIENT, From, Handshake, Resumption, SERVER};

/// The state of a connection's handshake.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Index of its kind in the plan.
    pub(crate) kind: u8,
    /// Bytes of each flight.
    pub(crate) bytes: Vec<u64>,
    pub(crate) written: usize,
    /// When the end whose turn it is has computed its flight.
    pub(crate) writes_at: Deadline,
    /// Bytes of requests that wait for the end of the handshake.
    pub(crate) held_bytes: u64,
    /// Bytes of the client's flights that follow its early data and precede its next request.
    pub(crate) behind_early_data: u64,
    /// When it was complete at the client.
    pub(crate) finished_at: Deadline,
    /// The server has written its tickets, or has none.
    pub(crate) has_tickets: bool,
}

impl Exchange {
    /// Bytes of the flights of an end before flight `before`.
    pub(crate) fn sent(&self, kind: &Handshake, side: usize, before: usize) -> u64 {
        let flights = kind.flights[..before].iter().zip(&self.bytes);
        flights.filter(|(flight, _)| flight.from as usize == side).map(|(_, bytes)| bytes).sum()
    }

    pub(crate) fn all(&self, kind: &Handshake, side: usize) -> u64 {
        self.sent(kind, side, kind.flights.len())
    }

    /// Stream bytes that an end has to receive for the next step of the handshake.
    pub(crate) fn awaited(&self, kind: &Handshake, side: usize) -> Option<u64> {
        match kind.flights.get(self.written) {
            Some(flight) => (flight.from as usize == side).then(|| self.sent(kind, 1 - side, self.written)),
            None if side == CLIENT => (!self.finished_at.is_set()).then(|| self.all(kind, SERVER)),
            None => (!self.has_tickets).then(|| self.all(kind, CLIENT)),
        }
    }

    /// The client may send requests: after the handshake or, as early data, after its first flight.
    pub(crate) fn admits_requests(&self, kind: &Handshake) -> bool {
        self.finished_at.is_set() || (kind.resumption == Resumption::EarlyData && self.written > 0)
    }

    /// The server may answer: it has written its last flight.
    pub(crate) fn admits_responses(&self, kind: &Handshake) -> bool {
        kind.flights[self.written..].iter().all(|flight| flight.from == From::Client)
    }

    /// Stream offsets of the client and of the server at which a connection's first request and its response begin.
    pub(crate) fn first_offsets(&self, kind: &Handshake) -> [u64; 2] {
        let flights = match kind.resumption {
            Resumption::EarlyData => 1,
            Resumption::None | Resumption::Resumed => kind.flights.len(),
        };
        [self.sent(kind, CLIENT, flights), self.all(kind, SERVER) + u64::from(kind.tickets_bytes)]
    }
}
