//! The connections of a browser: which are open to each host, which are idle, and the requests that wait for one.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use crate::{
    application::{
        Ask, Clients, Done,
        interleave::{Interleave, Span},
    },
    connection::{Arena, CLIENT, Object, SERVER},
    plan::{HttpVersion, Kind},
    simulation::Simulation,
};

/// A browser's open connections and waiting requests.
#[derive(Debug, Default)]
pub(super) struct Browser {
    open: Vec<OpenConnection>,
    waiting: VecDeque<(Origin, Ask)>,
    /// Names whose addresses it waits for.
    unknown: Vec<u32>,
}

/// A name that objects are fetched from: its number in the page, and the host that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) number: u32,
    pub(super) server: u32,
}

#[derive(Debug)]
struct OpenConnection {
    slot: u32,
    generation: u32,
    origin: Origin,
    /// Objects asked for and not there yet.
    outstanding: u32,
    idle_since: Nanos,
    interleave: Option<Interleave>,
}

impl Browser {
    fn in_slot(&mut self, slot: u32) -> Option<&mut OpenConnection> {
        self.open.iter_mut().find(|open| open.slot == slot)
    }

    /// Forgets connections that have failed.
    fn forget_dead(&mut self, connections: &Arena) {
        self.open.retain(|open| connections[open.slot].generation == open.generation);
    }
}

impl Clients<'_> {
    fn browser(&mut self, client: u32) -> &mut Browser {
        self.clients[client as usize].browser.get_or_insert_default()
    }

    /// Asks for an object as soon as its host has a connection to spare.
    pub(super) fn browse(&mut self, sim: &mut Simulation<'_>, client: u32, origin: Origin, ask: Ask) {
        let browser = self.browser(client);
        browser.waiting.push_back((origin, ask));
        let has_address =
            browser.unknown.contains(&origin.number) || browser.open.iter().any(|open| open.origin == origin);
        if !has_address && !self.knows(sim, client, origin.number) {
            self.browser(client).unknown.push(origin.number);
        }
        self.fill_connections(sim, client);
    }

    /// The address of a name is known; requests that wait for it continue.
    pub(super) fn browse_on(&mut self, sim: &mut Simulation<'_>, client: u32, name: u32) {
        self.browser(client).unknown.retain(|&unknown| unknown != name);
        self.fill_connections(sim, client);
    }

    /// A name has no address; returns the requests that wait for it.
    pub(super) fn give_up(&mut self, client: u32, name: u32) -> Vec<Ask> {
        let browser = self.browser(client);
        browser.unknown.retain(|&unknown| unknown != name);
        let (lost, waiting) = browser.waiting.drain(..).partition(|(origin, _)| origin.number == name);
        browser.waiting = waiting;
        let lost: VecDeque<(Origin, Ask)> = lost;
        lost.into_iter().map(|(_, ask)| ask).collect()
    }

    /// An object is there, or never will be.
    pub(super) fn browsed(&mut self, sim: &mut Simulation<'_>, client: u32, done: &Done) {
        let now = sim.now;
        let Some(slot) = done.slot else { return };
        if let Some(interleave) = self.interleave(sim, slot) {
            interleave.forget((done.object.page, done.object.number));
        }
        if let Some(open) = self.browser(client).in_slot(slot) {
            open.outstanding = open.outstanding.saturating_sub(1);
            open.idle_since = now;
        }
        self.fill_connections(sim, client);
    }

    /// Assigns waiting requests to connections, old and new, up to the limit.
    fn fill_connections(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let Kind::WebPage { version, connections, frame_bytes, .. } = &self.spec(client).kind else { return };
        let is_multiplexed = *version == HttpVersion::Http2;
        let (most, depth) = if is_multiplexed { (1, u32::MAX) } else { (*connections, 1) };
        let Some(browser) = &mut self.clients[client as usize].browser else { return };
        browser.forget_dead(&sim.connections);
        let room = |browser: &Browser, origin: Origin| {
            if browser.unknown.contains(&origin.number) {
                return None;
            }
            let mut own = browser.open.iter().filter(|open| open.origin == origin);
            let open = own.clone().find(|open| open.outstanding < depth).map(|open| open.slot);
            (open.is_some() || own.by_ref().count() < most as usize).then_some(open)
        };
        loop {
            let Some(browser) = &mut self.clients[client as usize].browser else { return };
            let places = browser.waiting.iter().map(|(origin, _)| room(browser, *origin));
            let Some((index, open)) = places.enumerate().find_map(|(index, room)| Some((index, room?))) else { return };
            let Some((origin, ask)) = browser.waiting.remove(index) else { return };
            match open {
                Some(slot) => {
                    if let Some(open) = browser.in_slot(slot) {
                        open.outstanding += 1;
                    }
                    self.ask(sim, slot, ask, false);
                }
                None => {
                    let slot = self.connect(sim, client, origin.server, false);
                    let generation = sim.connections[slot].generation;
                    let [_, start] = self.flights_before_request(sim, slot);
                    let overhead = self.handshakes(client).map_or(0, |tls| tls.overhead(u64::from(*frame_bytes)));
                    let interleave = is_multiplexed.then(|| Interleave::new(*frame_bytes, overhead, start));
                    let opened =
                        OpenConnection { slot, generation, origin, outstanding: 1, idle_since: sim.now, interleave };
                    self.browser(client).open.push(opened);
                    self.ask(sim, slot, ask, false);
                }
            }
        }
    }

    /// Closes connections idle for `most`, as servers do after their keep-alive time.
    // It is closed when it would be used again, which costs the path a FIN later than a server's timer would.
    pub(super) fn close_idle(&mut self, sim: &mut Simulation<'_>, client: u32, most: Nanos) {
        let now = sim.now;
        let Some(browser) = &mut self.clients[client as usize].browser else { return };
        browser.forget_dead(&sim.connections);
        let is_old = |open: &OpenConnection| open.outstanding == 0 && now.saturating_sub(open.idle_since) >= most;
        let old: Vec<u32> = browser.open.iter().filter(|open| is_old(open)).map(|open| open.slot).collect();
        browser.open.retain(|open| !is_old(open));
        for slot in old {
            sim.connections[slot].ends[CLIENT].close(now);
            sim.pump(slot, CLIENT);
        }
    }

    fn interleave(&mut self, sim: &Simulation<'_>, slot: u32) -> Option<&mut Interleave> {
        let connection = &sim.connections[slot];
        let open = self.clients[connection.client as usize].browser.as_mut()?.in_slot(slot)?;
        open.interleave.as_mut().filter(|_| open.generation == connection.generation)
    }

    /// An object that is asked for, as it stands on its connection: where its response will be in the stream is not
    /// known before the server answers, if responses take turns.
    pub(super) fn interleaved(
        &mut self,
        sim: &mut Simulation<'_>,
        slot: u32,
        object: Object,
        request_bytes: u64,
    ) -> Object {
        let Some(interleave) = self.interleave(sim, slot) else { return object };
        interleave.requested += request_bytes;
        // The overhead of TLS records is that of the frames.
        let bytes = object.payload_bytes();
        let usable_bytes = object.usable_bytes.min(bytes);
        Object {
            request_end: interleave.requested,
            response_end: u64::MAX,
            bytes,
            overhead_bytes: 0,
            usable_bytes,
            ..object
        }
    }

    /// The server answers the requests that have arrived on a connection whose responses take turns; false on any other.
    pub(super) fn serve_interleaved(&mut self, sim: &mut Simulation<'_>, slot: u32) -> bool {
        let now = sim.now;
        if self.interleave(sim, slot).is_none() {
            return false;
        }
        let connection = &sim.connections[slot];
        let end = &connection.ends[SERVER];
        let (received, sent) = (end.received_bytes(), end.acknowledged_bytes() + u64::from(end.flight_bytes()));
        let asked = &connection.objects[connection.served..];
        let new: Vec<Object> = asked.iter().take_while(|object| object.request_end <= received).copied().collect();
        let Some(interleave) = self.interleave(sim, slot) else { return false };
        let mut bytes = 0;
        for object in &new {
            interleave.add((object.page, object.number), object.bytes, sent);
            bytes += interleave.stream_bytes(object.bytes);
        }
        let spans: Vec<Span> = interleave.spans.clone();
        let connection = &mut sim.connections[slot];
        connection.served += new.len();
        let answered = &mut connection.objects[connection.done..connection.served];
        for object in answered.iter_mut() {
            if let Some(span) = spans.iter().find(|span| span.name == (object.page, object.number)) {
                object.response_end = span.end;
            }
        }
        answered.sort_by_key(|object| object.response_end);
        connection.awaited[CLIENT] = 0;
        if bytes > 0 {
            connection.ends[SERVER].write(now, bytes);
        }
        true
    }

    /// Where responses take turns, any packet can hold the first byte of one.
    pub(super) fn await_turns(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        if self.interleave(sim, slot).is_some() {
            sim.connections[slot].awaited[CLIENT] = 0;
        }
    }

    /// Notes the first bytes of the responses that have begun to arrive on such a connection.
    #[cold]
    pub(super) fn note_first_bytes(&mut self, sim: &mut Simulation<'_>, slot: u32) {
        let now = sim.now;
        let Some(spans) = self.interleave(sim, slot).map(|interleave| interleave.spans.clone()) else { return };
        let connection = &mut sim.connections[slot];
        let delivered = connection.delivered_bytes();
        for object in &mut connection.objects[connection.done..connection.served] {
            let begins = spans.iter().find(|span| span.name == (object.page, object.number));
            if begins.is_some_and(|span| delivered > span.start) {
                object.first_byte_at.get_or_insert(now);
            }
        }
    }
}
