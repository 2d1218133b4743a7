//! Look-ups of names: a query, asked again while no answer comes, and an answer.
//!
//! A look-up is a transfer in the records; its datagrams are those of two streams.

use firstflight_path::Nanos;
use serde::Deserialize;

use super::{Datagrams, Flow};
use crate::{
    application::{Activity, nanos},
    law::Law,
    packet::Datagram,
    plan::Kind,
    random::Purpose,
    records::{NO_CONNECTION, NO_PAGE, SenderCounts, Transfer, seconds, seconds_between},
    simulation::Simulation,
    timers::Wake,
};

/// Look-ups one after the other.
#[derive(Clone, Debug, Deserialize)]
pub struct Dns {
    /// Payload of a query.
    pub query_bytes: u32,
    /// Payload of an answer.
    pub answer: Law,
    /// Seconds that the server needs to find an answer.
    pub resolve: Law,
    /// How long a client waits for an answer to its first query.
    pub timeout_ns: Nanos,
    /// How much longer it waits for each further one.
    pub backoff: f64,
    /// Queries before it gives up.
    pub attempts: u32,
    /// Seconds between a look-up and the next.
    pub think: Law,
    /// Look-ups of a client; none: no end.
    pub count: Option<u32>,
    /// Bytes of a datagram's headers.
    pub datagram_header_bytes: u32,
}

impl Datagrams for Dns {
    fn flows(&self) -> Vec<Flow> {
        let flow = |from_server: bool, payload: Law| Flow {
            interval: self.timeout_ns,
            payload,
            header_bytes: self.datagram_header_bytes,
            ..Flow::new(from_server)
        };
        vec![flow(false, Law::Constant { value: f64::from(self.query_bytes) }), flow(true, self.answer.clone())]
    }

    fn validate(&self) -> Result<(), String> {
        if self.attempts == 0 {
            return Err("attempts is 0: a look-up needs at least one query".into());
        }
        if self.count == Some(0) {
            return Err("count is 0: leave it out for no end, or give at least 1".into());
        }
        if !(self.backoff >= 1.0 && self.backoff.is_finite()) {
            return Err(format!("backoff is {}, but must be at least 1", self.backoff));
        }
        self.resolve.validate("resolve")?;
        self.think.validate("think")?;
        self.flows().iter().try_for_each(Flow::validate)
    }
}

/// A look-up on its way, or the pause after one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    /// Stream of the queries; that of the answers is the next one.
    queries: u32,
    number: u32,
    started_at: Nanos,
    /// Number of its first query in the stream.
    first_query: u32,
    /// Queries sent; 0 in the pause.
    tries: u32,
    /// When the client is to act, unless an answer comes before. Timers for other times mean nothing any more.
    acts_at: Nanos,
}

/// What a server knows of the queries that reached it.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// Queries at work, and when their answers will have been found.
    at_work: Vec<(Nanos, u32)>,
    /// The query of each answer.
    answered: Vec<u32>,
}

impl Simulation<'_> {
    /// A client's time has come: to begin a look-up, or to ask again.
    pub(in crate::application) fn look_up(&mut self, client: u32) {
        let Kind::Dns(dns) = &self.spec(client).kind else { return };
        let mut lookup = match self.clients[client as usize].activity {
            Activity::Lookup(lookup) if lookup.acts_at != self.now => return,
            Activity::Lookup(lookup) if lookup.tries == dns.attempts => return self.end_lookup(client, lookup, None),
            Activity::Lookup(lookup) => lookup,
            _ => {
                let [queries, _] = [0, 1].map(|index| self.open_stream(client, dns.flows().swap_remove(index)));
                Lookup { queries, number: 0, started_at: 0, first_query: 0, tries: 0, acts_at: 0 }
            }
        };
        if lookup.tries == 0 {
            let Some(number) = self.clients[client as usize].begin(dns.count) else { return };
            let first_query = self.streams[lookup.queries as usize].sent;
            lookup = Lookup { number, started_at: self.now, first_query, ..lookup };
        }
        let patience = dns.timeout_ns as f64 * libm::pow(dns.backoff, f64::from(lookup.tries));
        lookup.tries += 1;
        self.act_at(client, lookup, self.now.saturating_add(patience as Nanos));
        self.send_datagram(lookup.queries);
    }

    /// The client will look up again, or ask again, at this time.
    fn act_at(&mut self, client: u32, lookup: Lookup, time: Nanos) {
        self.clients[client as usize].activity = Activity::Lookup(Lookup { acts_at: time, ..lookup });
        self.wake_client_at(client, time);
    }

    /// A datagram of a look-up has arrived: a query at the server, or an answer at the client.
    pub(super) fn dns_datagram(&mut self, client: u32, datagram: &Datagram) {
        let Kind::Dns(dns) = &self.spec(client).kind else { return };
        let Activity::Lookup(lookup) = self.clients[client as usize].activity else { return };
        let answers = lookup.queries + 1;
        if datagram.stream == lookup.queries {
            let work = nanos(self.draw(client, &dns.resolve, Purpose::Work, u64::from(datagram.number)));
            let at = self.now.saturating_add(work);
            self.streams[answers as usize].resolver.at_work.push((at, datagram.number));
            self.set_timer(at, Wake::Stream(answers));
        } else {
            let query = self.streams[answers as usize].resolver.answered[datagram.number as usize];
            if lookup.tries > 0 && query >= lookup.first_query {
                self.end_lookup(client, lookup, Some(datagram.payload_bytes));
            }
        }
    }

    /// The server has found an answer.
    pub(super) fn answer_query(&mut self, answers: u32) {
        let resolver = &mut self.streams[answers as usize].resolver;
        let Some(ready) = resolver.at_work.iter().position(|&(at, _)| at == self.now) else { return };
        let (_, query) = resolver.at_work.remove(ready);
        resolver.answered.push(query);
        self.send_datagram(answers);
    }

    /// A look-up is over, with an answer of so many bytes or none.
    fn end_lookup(&mut self, client: u32, lookup: Lookup, answer: Option<u32>) {
        let Kind::Dns(dns) = &self.spec(client).kind else { return };
        self.note_end(lookup.number + 1, dns.count);
        self.book_lookup(client, lookup, answer);
        let pause = nanos(self.draw(client, &dns.think, Purpose::Think, u64::from(lookup.number)));
        self.act_at(client, Lookup { tries: 0, ..lookup }, self.now.saturating_add(pause));
    }

    fn book_lookup(&mut self, client: u32, lookup: Lookup, answer: Option<u32>) {
        let client = &self.clients[client as usize];
        let bytes = answer.map_or(0, u64::from);
        let time = seconds_between(lookup.started_at, answer.map(|_| self.now));
        self.records.transfers.push(Transfer {
            replicate: self.replicate,
            application: self.plan.recorded(client.application, client.arm),
            client: client.index,
            page: NO_PAGE,
            object: lookup.number,
            connection: NO_CONNECTION,
            start_s: seconds(lookup.started_at),
            handshake_time_s: f64::NAN,
            first_byte_time_s: time,
            completion_time_s: time,
            bytes,
            delivered_bytes: bytes,
            sender: SenderCounts {
                segments_sent: lookup.tries,
                retransmissions: lookup.tries - 1,
                timeouts: lookup.tries - 1,
                ..SenderCounts::default()
            },
            initial_window_segments: 0,
            completed: u8::from(answer.is_some()),
            disturbed: 0,
            stall_s: 0.0,
        });
    }

    /// At the end of the run: the rows of look-ups on their way.
    pub(super) fn book_unfinished_lookups(&mut self) {
        for client in 0..self.clients.len() as u32 {
            if let Activity::Lookup(lookup @ Lookup { tries: 1.., .. }) = self.clients[client as usize].activity {
                self.book_lookup(client, lookup, None);
            }
        }
    }
}
