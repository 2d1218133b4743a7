//! Web pages: a primary object, in-line objects, then the user thinks.

use firstflight_path::Nanos;

use crate::{
    application::{Activity, Ask, Clients, Done, browser::Origin, bytes, nanos},
    connection::Object,
    plan::{HttpVersion, Kind, MOST_INLINE_OBJECTS, Persistent},
    population::aggregate::{Outcome, Unit},
    random::Purpose,
    records::{self, SenderCounts},
    simulation::Simulation,
};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    number: u32,
    started_at: Nanos,
    connected_at: Option<Nanos>,
    /// In-line objects of all levels.
    inline_objects: u32,
    /// The level that is being fetched, counted from 1; 0 is the primary.
    level: u32,
    /// In-line objects up to and with it.
    known: u32,
    /// In-line objects asked for.
    asked: u32,
    /// Objects that arrived or failed, the primary included.
    ended: u32,
    arrived: u32,
    /// Objects that the page will have had when it is complete.
    expected: u32,
    bytes: u64,
    booked: SenderCounts,
}

/// The name that a page's primary object is fetched from.
const PRIMARY_NAME: u32 = 0;

/// Draws for object `number` of a page: pages have a million numbers each.
fn object_index(page: u32, number: u32) -> u64 {
    (u64::from(page) << 20) | u64::from(number)
}

impl Clients<'_> {
    pub(super) fn begin_page(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::WebPage { then, keep_alive_ns, count, .. } = &self.spec(client).kind else { return };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let levels = 1 + then.len() as u32;
        let inline_objects = (1..=levels).map(|level| self.level_objects(client, number, level)).sum();
        let alone = self.is_joined(client) || inline_objects == 0;
        self.clients[client as usize].activity = Activity::Page(Box::new(Page {
            number,
            started_at: sim.now,
            inline_objects,
            expected: if alone { 1 } else { 1 + inline_objects },
            ..Page::default()
        }));
        if self.spec(client).kind.keeps_connections() {
            if let Some(most) = keep_alive_ns {
                self.close_idle(sim, client, *most);
            }
            let origin = self.origin(client, number, 0);
            let ask = self.primary(client, number);
            return self.browse(sim, client, origin, ask);
        }
        if self.knows(sim, client, PRIMARY_NAME) {
            self.open_page(sim, client, number);
        }
    }

    /// Asks for the primary object on a separate connection.
    fn open_page(&mut self, sim: &mut Simulation<'_>, client: u32, number: u32) {
        let Kind::WebPage { version, .. } = &self.spec(client).kind else { return };
        let Activity::Page(page) = &self.clients[client as usize].activity else { return };
        let server_closes = page.expected == 1 || *version == HttpVersion::Http10;
        let ask = self.primary(client, number);
        self.open(sim, client, object_index(number, 0), false, server_closes, ask);
    }

    /// The look-up of a name is over: requests that waited for it continue, or fail.
    pub(super) fn name_looked_up(&mut self, sim: &mut Simulation<'_>, client: u32, name: u32, found: bool) {
        if self.spec(client).kind.keeps_connections() {
            if found {
                return self.browse_on(sim, client, name);
            }
            for ask in self.give_up(client, name) {
                self.page_object_done(sim, client, never_asked(client, sim.now, ask));
            }
        } else if let Activity::Page(page) = &self.clients[client as usize].activity {
            let number = page.number;
            if found {
                return self.open_page(sim, client, number);
            }
            let ask = self.primary(client, number);
            self.page_object_done(sim, client, never_asked(client, sim.now, ask));
        }
    }

    /// True if a page is one response of all its bytes.
    fn is_joined(&self, client: u32) -> bool {
        let kind = &self.spec(client).kind;
        matches!(kind, Kind::WebPage { version: HttpVersion::Http11, persistent: Persistent::Joined, .. })
    }

    /// The request for the primary object.
    fn primary(&self, client: u32, number: u32) -> Ask {
        let (request_bytes, levels) = match &self.spec(client).kind {
            Kind::WebPage { request_bytes, then, .. } => (u64::from(*request_bytes), 1 + then.len() as u32),
            _ => (0, 0),
        };
        let mut response_bytes = self.object_bytes(client, number, 0, 0);
        if self.is_joined(client) {
            let mut object = 0;
            for level in 1..=levels {
                for _ in 0..self.level_objects(client, number, level) {
                    object += 1;
                    response_bytes += self.object_bytes(client, number, level, object);
                }
            }
        }
        Ask { page: number, number: 0, request_bytes, response_bytes }
    }

    fn level_objects(&self, client: u32, page: u32, level: u32) -> u32 {
        let Kind::WebPage { inline_count, then, .. } = &self.spec(client).kind else { return 0 };
        let law = if level == 1 { inline_count } else { &then[level as usize - 2].inline_count };
        let index = u64::from(page) | u64::from(level - 1) << 32;
        self.draw(client, law, Purpose::InlineCount, index).round().min(MOST_INLINE_OBJECTS) as u32
    }

    fn object_bytes(&self, client: u32, page: u32, level: u32, number: u32) -> u64 {
        let Kind::WebPage { primary, inline, then, .. } = &self.spec(client).kind else { return 0 };
        let law = match level {
            0 => primary,
            1 => inline,
            _ => &then[level as usize - 2].inline,
        };
        bytes(self.draw(client, law, Purpose::ResponseSize, object_index(page, number)))
    }

    /// The source of a page's object: the in-line objects use the names in turn.
    fn origin(&self, client: u32, page: u32, object: u32) -> Origin {
        let Kind::WebPage { hosts, .. } = &self.spec(client).kind else { return Origin { number: 0, server: 0 } };
        let number = object.saturating_sub(1) % hosts;
        let servers = &self.servers[usize::from(self.clients[client as usize].application)];
        let first = self.server_host(client, object_index(page, 0)) - servers.start;
        let server = servers.start + (first + number) % servers.len() as u32;
        Origin { number, server }
    }

    pub(super) fn page_object_done(&mut self, sim: &mut Simulation<'_>, client: u32, done: Done) {
        let keeps_connections = self.spec(client).kind.keeps_connections();
        if keeps_connections {
            self.browsed(sim, client, &done);
        }
        let Kind::WebPage { version, parallel, .. } = &self.spec(client).kind else { return };
        let Activity::Page(page) = &mut self.clients[client as usize].activity else { return };
        page.add(&done);
        if !done.completed && done.object.number == 0 {
            // Without the primary object the others are unknown.
            page.expected = 1;
        } else if !done.completed && *version == HttpVersion::Http11 && !keeps_connections {
            // All objects of a level are requested together, so a failed connection has the rest of the level
            // outstanding.
            page.expected = 1 + page.known;
        }
        let page = **page;
        if page.ended >= page.expected {
            return self.end_page(sim, client, page);
        }
        let is_new_level = page.ended == 1 + page.known;
        if is_new_level {
            self.begin_level(client);
        }
        let Activity::Page(page) = &self.clients[client as usize].activity else { return };
        let left = page.known - page.asked;
        let (budget, slot) = match version {
            HttpVersion::Http10 if is_new_level => (parallel.unwrap_or(u32::MAX), None),
            HttpVersion::Http10 => (1, None),
            HttpVersion::Http11 | HttpVersion::Http2 => (u32::MAX, done.slot),
        };
        for _ in 0..budget.min(left) {
            self.ask_inline(sim, client, slot);
        }
    }

    /// Requests the objects that the previous ones refer to; levels without objects are skipped.
    fn begin_level(&mut self, client: u32) {
        loop {
            let Activity::Page(page) = &self.clients[client as usize].activity else { return };
            let objects = self.level_objects(client, page.number, page.level + 1);
            let Activity::Page(page) = &mut self.clients[client as usize].activity else { return };
            page.level += 1;
            page.known += objects;
            if objects > 0 {
                return;
            }
        }
    }

    /// Asks for the next in-line object: on a new connection, on an open one, or where the browser has one.
    fn ask_inline(&mut self, sim: &mut Simulation<'_>, client: u32, slot: Option<u32>) {
        let Kind::WebPage { request_bytes, .. } = &self.spec(client).kind else { return };
        let Activity::Page(page) = &mut self.clients[client as usize].activity else { return };
        page.asked += 1;
        let (number, level, object) = (page.number, page.level, page.asked);
        let last = page.asked == page.inline_objects;
        let ask = Ask {
            page: number,
            number: object,
            request_bytes: u64::from(*request_bytes),
            response_bytes: self.object_bytes(client, number, level, object),
        };
        if self.spec(client).kind.keeps_connections() {
            let origin = self.origin(client, number, object);
            return self.browse(sim, client, origin, ask);
        }
        match slot {
            None => {
                self.open(sim, client, object_index(number, object), false, true, ask);
            }
            Some(slot) => self.ask(sim, slot, ask, last),
        }
    }

    fn end_page(&mut self, sim: &mut Simulation<'_>, client: u32, page: Page) {
        let Kind::WebPage { think, think_from_start, count, .. } = &self.spec(client).kind else { return };
        sim.note_end(page.number + 1, *count);
        self.clients[client as usize].activity = Activity::None;
        self.write_page(sim, client, &page, page.arrived == page.expected);
        if *count == Some(page.number + 1) {
            self.close_idle(sim, client, 0);
        }
        let pause = nanos(self.draw(client, think, Purpose::Think, u64::from(page.number)));
        let from = if *think_from_start { page.started_at } else { sim.now };
        sim.wake_client_at(client, from.saturating_add(pause).max(sim.now));
    }

    fn write_page(&mut self, sim: &mut Simulation<'_>, client: u32, page: &Page, completed: bool) {
        let state = &self.clients[client as usize];
        let recorded = self.plan.recorded(state.application, state.arm);
        if let Some(accounts) = &mut self.accounts {
            return accounts.enter(&Outcome {
                application: recorded,
                unit: Unit::Page,
                completion: completed.then(|| sim.now - page.started_at),
                bytes: page.bytes,
                booked: page.booked,
            });
        }
        sim.records.pages.push(records::Page {
            replicate: self.replicate,
            application: recorded,
            client: state.index,
            page: page.number,
            start_s: records::seconds(page.started_at),
            connect_time_s: records::seconds_between(page.started_at, page.connected_at),
            completion_time_s: records::seconds_between(page.started_at, completed.then_some(sim.now)),
            objects: 1 + page.inline_objects,
            bytes: page.bytes,
            retransmissions: page.booked.retransmissions,
            timeouts: page.booked.timeouts,
            completed: u8::from(completed),
        });
    }

    /// At the end of the run: an unfinished object adds to its page.
    pub(super) fn page_object_unfinished(&mut self, done: &Done) {
        if let Activity::Page(page) = &mut self.clients[done.client as usize].activity {
            page.add(done);
        }
    }

    /// At the end of the run: the rows of unfinished pages.
    pub(super) fn book_unfinished_pages(&mut self, sim: &mut Simulation<'_>) {
        for client in 0..self.clients.len() as u32 {
            if let Activity::Page(page) = &self.clients[client as usize].activity {
                let page = **page;
                self.write_page(sim, client, &page, false);
            }
        }
    }
}

/// An object that could not be asked for.
fn never_asked(client: u32, now: Nanos, ask: Ask) -> Done {
    let Ask { page, number, response_bytes: bytes, .. } = ask;
    let object = Object { bytes, page, number, asked_at: now, ..Object::default() };
    Done { client, slot: None, object, booked: SenderCounts::default(), connected_at: None, completed: false }
}

impl Page {
    fn add(&mut self, done: &Done) {
        if done.object.number == 0 {
            // A connection that an earlier page opened was up before.
            self.connected_at = done.connected_at.filter(|&at| at >= self.started_at);
        }
        self.ended += 1;
        self.arrived += u32::from(done.completed);
        self.bytes += done.object.payload_bytes();
        self.booked += done.booked;
    }
}
