//! Look-ups of names: a query, asked again while no answer comes, and an answer.
//!
//! A look-up of a separate application is a transfer in the records; its datagrams are those of two streams. A page
//! waits for its look-ups, and its time includes them.

use firstflight_path::Nanos;

use crate::{
    application::{Clients, nanos},
    packet::Datagram,
    plan::{
        Kind,
        datagram::{Datagrams, dns::Queries},
    },
    population::aggregate::{Outcome, Unit},
    random::Purpose,
    records::{NO_CONNECTION, NO_PAGE, SenderCounts, Transfer, seconds, seconds_between},
    simulation::Simulation,
    timers::Wake,
};

/// A look-up in progress.
#[derive(Clone, Copy, Debug)]
struct Lookup {
    /// Number of the look-up, or of the name among those of a page.
    number: u32,
    started_at: Nanos,
    /// Number of its first query in the stream.
    first_query: u32,
    /// Queries sent.
    tries: u32,
    /// When the client asks again, unless an answer comes before. Timers for other times mean nothing any more.
    asks_again_at: Nanos,
}

/// State of a client's look-ups at both endpoints.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// Stream of the queries; that of the answers is the next one.
    pub(super) queries: u32,
    /// Look-ups in progress.
    lookups: Vec<Lookup>,
    /// Names that are known, and until when.
    known: Vec<(u32, Nanos)>,
    /// The first query of each query's look-up.
    asked: Vec<u32>,
    /// Queries at work, and when their answers will have been found.
    at_work: Vec<(Nanos, u32)>,
    /// The query of each answer.
    answered: Vec<u32>,
}

impl Kind {
    /// Parameters of the application's look-ups, if it has any.
    fn queries(&self) -> Option<&Queries> {
        match self {
            Kind::Dns(dns) => Some(&dns.queries),
            Kind::WebPage { dns, .. } => dns.as_ref().map(|names| &names.queries),
            _ => None,
        }
    }
}

impl Clients<'_> {
    /// A client's time has come: it begins its next look-up.
    pub(super) fn begin_lookup(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::Dns(dns) = &self.spec(client).kind else { return };
        if let Some(number) = self.clients[client as usize].begin(dns.count) {
            self.look_up(sim, client, number);
        }
    }

    /// True if a client knows the address of a page's name; if not, it is looked up.
    pub(super) fn knows(&mut self, sim: &mut Simulation<'_>, client: u32, name: u32) -> bool {
        if self.spec(client).kind.queries().is_none() {
            return true;
        }
        if let Some(resolver) = &mut self.clients[client as usize].resolver {
            resolver.known.retain(|&(_, until)| until > sim.now);
            if resolver.known.iter().any(|&(known, _)| known == name) {
                return true;
            }
            if resolver.lookups.iter().any(|lookup| lookup.number == name) {
                return false;
            }
        }
        self.look_up(sim, client, name);
        false
    }

    fn look_up(&mut self, sim: &mut Simulation<'_>, client: u32, number: u32) {
        let Some(queries) = self.spec(client).kind.queries() else { return };
        if self.clients[client as usize].resolver.is_none() {
            let [queries, _] = [0, 1].map(|index| self.open_stream(sim, client, queries.flows().swap_remove(index)));
            self.clients[client as usize].resolver = Some(Box::new(Resolver { queries, ..Resolver::default() }));
        }
        let Some(resolver) = &mut self.clients[client as usize].resolver else { return };
        let (stream, now) = (resolver.queries, sim.now);
        let first_query = sim.streams[stream as usize].sent;
        resolver.lookups.push(Lookup { number, started_at: now, first_query, tries: 0, asks_again_at: now });
        self.ask_for_name(sim, stream);
    }

    /// Time for a query of the look-up that waits for this moment, or to give it up.
    pub(super) fn ask_for_name(&mut self, sim: &mut Simulation<'_>, stream: u32) {
        let client = sim.streams[stream as usize].client;
        let Some(queries) = self.spec(client).kind.queries() else { return };
        let Some(resolver) = &mut self.clients[client as usize].resolver else { return };
        let due = resolver.lookups.iter().position(|lookup| lookup.asks_again_at == sim.now);
        let Some(index) = due else { return };
        if resolver.lookups[index].tries == queries.attempts {
            let lookup = resolver.lookups.remove(index);
            return self.end_lookup(sim, client, lookup, None);
        }
        let lookup = &mut resolver.lookups[index];
        let patience = queries.timeout_ns as f64 * libm::pow(queries.backoff, f64::from(lookup.tries));
        lookup.tries += 1;
        lookup.asks_again_at = sim.now.saturating_add(patience as Nanos);
        let at = lookup.asks_again_at;
        resolver.asked.push(lookup.first_query);
        sim.set_timer(at, Wake::Stream(stream));
        self.send_datagram(sim, stream);
    }

    /// A datagram of a look-up has arrived: a query at the server, or an answer at the client.
    pub(super) fn dns_datagram(&mut self, sim: &mut Simulation<'_>, client: u32, datagram: &Datagram) {
        let Some(queries) = self.spec(client).kind.queries() else { return };
        let Some(resolver) = &mut self.clients[client as usize].resolver else { return };
        if datagram.stream == resolver.queries {
            let answers = resolver.queries + 1;
            let work = nanos(self.draw(client, &queries.resolve, Purpose::Work, u64::from(datagram.number)));
            let at = sim.now.saturating_add(work);
            if let Some(resolver) = &mut self.clients[client as usize].resolver {
                resolver.at_work.push((at, datagram.number));
            }
            return sim.set_timer(at, Wake::Stream(answers));
        }
        let query = resolver.answered[datagram.number as usize];
        let first_query = resolver.asked[query as usize];
        if let Some(index) = resolver.lookups.iter().position(|lookup| lookup.first_query == first_query) {
            let lookup = resolver.lookups.remove(index);
            self.end_lookup(sim, client, lookup, Some(datagram.payload_bytes));
        }
    }

    /// The server has found an answer.
    pub(super) fn answer_query(&mut self, sim: &mut Simulation<'_>, answers: u32) {
        let client = sim.streams[answers as usize].client;
        let Some(resolver) = &mut self.clients[client as usize].resolver else { return };
        let Some(ready) = resolver.at_work.iter().position(|&(at, _)| at == sim.now) else { return };
        let (_, query) = resolver.at_work.remove(ready);
        resolver.answered.push(query);
        self.send_datagram(sim, answers);
    }

    /// A look-up is over, with an answer of this number of bytes or none.
    fn end_lookup(&mut self, sim: &mut Simulation<'_>, client: u32, lookup: Lookup, answer: Option<u32>) {
        match &self.spec(client).kind {
            Kind::Dns(dns) => {
                sim.note_end(lookup.number + 1, dns.count);
                self.book_lookup(sim, client, lookup, answer);
                let pause = nanos(self.draw(client, &dns.think, Purpose::Think, u64::from(lookup.number)));
                sim.wake_client_at(client, sim.now.saturating_add(pause));
            }
            Kind::WebPage { dns: Some(names), .. } => {
                if let (Some(_), Some(resolver)) = (answer, &mut self.clients[client as usize].resolver) {
                    let until = names.ttl_ns.map_or(Nanos::MAX, |ttl| sim.now.saturating_add(ttl));
                    resolver.known.push((lookup.number, until));
                }
                self.name_looked_up(sim, client, lookup.number, answer.is_some());
            }
            _ => {}
        }
    }

    fn book_lookup(&mut self, sim: &mut Simulation<'_>, client: u32, lookup: Lookup, answer: Option<u32>) {
        let client = &self.clients[client as usize];
        let application = self.plan.recorded(client.application, client.arm);
        let bytes = answer.map_or(0, u64::from);
        let sender = SenderCounts {
            segments_sent: lookup.tries,
            retransmissions: lookup.tries - 1,
            timeouts: lookup.tries - 1,
            ..SenderCounts::default()
        };
        if let Some(accounts) = &mut self.accounts {
            return accounts.enter(&Outcome {
                application,
                unit: Unit::Transfer,
                completion: answer.map(|_| sim.now - lookup.started_at),
                bytes,
                booked: sender,
            });
        }
        let time = seconds_between(lookup.started_at, answer.map(|_| sim.now));
        sim.records.transfers.push(Transfer {
            replicate: self.replicate,
            application,
            client: client.index,
            page: NO_PAGE,
            object: lookup.number,
            connection: NO_CONNECTION,
            start_s: seconds(lookup.started_at),
            handshake_time_s: f64::NAN,
            tls_handshake_time_s: f64::NAN,
            first_byte_time_s: time,
            first_usable_byte_time_s: f64::NAN,
            completion_time_s: time,
            bytes,
            delivered_bytes: bytes,
            sender,
            initial_window_segments: 0,
            completed: u8::from(answer.is_some()),
            disturbed: 0,
            stall_s: 0.0,
        });
    }

    /// At the end of the run: the rows of look-ups in progress.
    pub(super) fn book_unfinished_lookups(&mut self, sim: &mut Simulation<'_>) {
        for client in 0..self.clients.len() as u32 {
            let Kind::Dns(_) = &self.spec(client).kind else { continue };
            let resolver = self.clients[client as usize].resolver.take();
            for lookup in resolver.map(|resolver| resolver.lookups).unwrap_or_default() {
                self.book_lookup(sim, client, lookup, None);
            }
        }
    }
}
