//! Web pages: a primary object, in-line objects, then the user thinks.

use firstflight_path::Nanos;

use crate::{
    application::{Activity, Ask, Done, bytes, nanos},
    connection::Booked,
    plan::{HttpVersion, Kind, Persistent},
    population::aggregate::{Outcome, Unit},
    random::Purpose,
    records,
    simulation::Simulation,
};

/// A page on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    number: u32,
    started_at: Nanos,
    connected_at: Option<Nanos>,
    inline_objects: u32,
    /// In-line objects asked for.
    asked: u32,
    /// Objects that arrived or failed, the primary included.
    ended: u32,
    /// Objects that arrived.
    arrived: u32,
    /// Objects that the page will have had when it is complete.
    expected: u32,
    bytes: u64,
    booked: Booked,
}

/// The records number a page's objects with 16 bits. Only the tail of an unbounded law can pass this.
pub(crate) const MOST_INLINE_OBJECTS: f64 = 65_535.0;

/// Draws for object `number` of a page: pages have a million numbers each.
fn object_index(page: u32, number: u32) -> u64 {
    (u64::from(page) << 20) | u64::from(number)
}

impl Simulation<'_> {
    pub(super) fn begin_page(&mut self, client: u32) {
        let Kind::WebPage { version, inline_count, persistent, request_bytes, count, .. } = &self.spec(client).kind
        else {
            return;
        };
        let Some(number) = self.clients[client as usize].begin(*count) else { return };
        let inline_objects =
            self.draw(client, inline_count, Purpose::InlineCount, u64::from(number)).round().min(MOST_INLINE_OBJECTS)
                as u32;
        let joined = *version == HttpVersion::Http11 && *persistent == Persistent::Joined;
        let response_bytes = if joined {
            (0..=inline_objects).map(|object| self.object_bytes(client, number, object)).sum()
        } else {
            self.object_bytes(client, number, 0)
        };
        let alone = joined || inline_objects == 0;
        self.clients[client as usize].activity = Activity::Page(Page {
            number,
            started_at: self.now,
            connected_at: None,
            inline_objects,
            asked: 0,
            ended: 0,
            arrived: 0,
            expected: if alone { 1 } else { 1 + inline_objects },
            bytes: 0,
            booked: Booked::default(),
        });
        let ask = Ask { page: number, number: 0, request_bytes: u64::from(*request_bytes), response_bytes };
        let server_closes = alone || *version == HttpVersion::Http10;
        self.open(client, object_index(number, 0), false, server_closes, ask);
    }

    fn object_bytes(&self, client: u32, page: u32, number: u32) -> u64 {
        let Kind::WebPage { primary, inline, .. } = &self.spec(client).kind else { return 0 };
        let law = if number == 0 { primary } else { inline };
        bytes(self.draw(client, law, Purpose::ResponseSize, object_index(page, number)))
    }

    pub(super) fn page_object_done(&mut self, client: u32, done: Done) {
        let Activity::Page(page) = &mut self.clients[client as usize].activity else { return };
        page.add(&done);
        if done.object.number == 0 && !done.completed {
            // Without the primary object nobody knows of the others.
            page.expected = 1;
        }
        let page = *page;
        if page.ended >= page.expected {
            return self.end_page(client, page);
        }
        let primary_arrived = done.object.number == 0;
        let Kind::WebPage { version, parallel, .. } = &self.spec(client).kind else { return };
        match version {
            HttpVersion::Http10 => {
                let budget = if primary_arrived { parallel.unwrap_or(u32::MAX) } else { 1 };
                for _ in 0..budget.min(page.inline_objects - page.asked) {
                    self.ask_inline(client, None);
                }
            }
            HttpVersion::Http11 => {
                // All in-line objects are asked for at once, so a connection that fails later owes all that is left.
                if primary_arrived {
                    for _ in 0..page.inline_objects {
                        self.ask_inline(client, Some(done.slot));
                    }
                }
            }
        }
    }

    /// Asks for the next in-line object, on a connection of its own or on an open one.
    fn ask_inline(&mut self, client: u32, slot: Option<u32>) {
        let Kind::WebPage { request_bytes, .. } = &self.spec(client).kind else { return };
        let Activity::Page(page) = &mut self.clients[client as usize].activity else { return };
        page.asked += 1;
        let (number, object, last) = (page.number, page.asked, page.asked == page.inline_objects);
        let ask = Ask {
            page: number,
            number: object,
            request_bytes: u64::from(*request_bytes),
            response_bytes: self.object_bytes(client, number, object),
        };
        match slot {
            None => {
                self.open(client, object_index(number, object), false, true, ask);
            }
            Some(slot) => self.ask(slot, ask, last),
        }
    }

    fn end_page(&mut self, client: u32, page: Page) {
        let Kind::WebPage { think, count, .. } = &self.spec(client).kind else { return };
        self.note_end(page.number + 1, *count);
        self.clients[client as usize].activity = Activity::None;
        self.write_page(client, &page, page.arrived == page.expected);
        let pause = nanos(self.draw(client, think, Purpose::Think, u64::from(page.number)));
        self.wake_client_at(client, self.now.saturating_add(pause));
    }

    fn write_page(&mut self, client: u32, page: &Page, completed: bool) {
        let state = &self.clients[client as usize];
        if let Some(accounts) = &mut self.accounts {
            return accounts.enter(&Outcome {
                application: state.application,
                unit: Unit::Page,
                completion: completed.then(|| self.now - page.started_at),
                bytes: page.bytes,
                booked: page.booked,
            });
        }
        self.records.pages.push(records::Page {
            replicate: self.replicate,
            application: state.application,
            client: state.index,
            page: page.number,
            start_s: records::seconds(page.started_at),
            connect_time_s: records::seconds_between(page.started_at, page.connected_at),
            completion_time_s: records::seconds_between(page.started_at, completed.then_some(self.now)),
            objects: 1 + page.inline_objects,
            bytes: page.bytes,
            retransmissions: page.booked.retransmissions,
            timeouts: page.booked.timeouts,
            completed: u8::from(completed),
        });
    }

    /// At the end of the run: an object on its way adds to its page.
    pub(super) fn page_object_unfinished(&mut self, done: &Done) {
        if let Activity::Page(page) = &mut self.clients[done.client as usize].activity {
            page.add(done);
        }
    }

    /// At the end of the run: the rows of pages on their way.
    pub(crate) fn book_unfinished_pages(&mut self) {
        for client in 0..self.clients.len() as u32 {
            if let Activity::Page(page) = self.clients[client as usize].activity {
                self.write_page(client, &page, false);
            }
        }
    }
}

impl Page {
    fn add(&mut self, done: &Done) {
        if done.object.number == 0 {
            self.connected_at = done.connected_at;
        }
        self.ended += 1;
        self.arrived += u32::from(done.completed);
        self.bytes += done.object.bytes;
        self.booked.add(&done.booked);
    }
}
