//! Applications that are not TCP: streams of datagrams from one host to another.
//!
//! The plan gives the [`Flow`]s of a client; all datagrams of one in one direction is a [`DatagramStream`], whose
//! receiver keeps the account that becomes its row in the records.

mod dns;
mod e_model;
pub mod observed;
mod tally;

use firstflight_path::Nanos;

use crate::{
    application::BEHIND_PAGES,
    connection::{CLIENT, SERVER},
    loss_draws::LossDraws,
    packet::{Datagram, Packet},
    plan::datagram::{Datagrams, Flow, MOST_PAYLOAD_BYTES},
    random::Purpose,
    simulation::Simulation,
    timers::Wake,
};
use dns::Resolver;
use tally::{Sender, Tally};

/// The datagrams of one endpoint of a client's application to the other.
#[derive(Debug)]
pub(crate) struct DatagramStream {
    client: u32,
    flow: Flow,
    first_hop: u32,
    started_at: Nanos,
    /// Datagrams sent, and their bytes with headers.
    sent: u32,
    sent_bytes: u64,
    losses: LossDraws,
    tally: Tally,
    resolver: Resolver,
}

impl DatagramStream {
    /// The client that it belongs to.
    pub(crate) fn client(&self) -> u32 {
        self.client
    }

    /// Its requested datagrams.
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// True if the server sends it.
    pub(crate) fn is_from_server(&self) -> bool {
        self.flow.from_server
    }

    /// The draw by which its next datagram is lost at random on a link.
    pub(crate) fn loss_draw(&mut self, link: u32) -> f64 {
        self.losses.draw(link, true)
    }
}

impl Simulation<'_> {
    /// A client's time has come: both ends begin to send.
    pub(super) fn begin_streams(&mut self, client: u32) {
        let flows = self.spec(client).kind.datagrams().map(Datagrams::flows).unwrap_or_default();
        for flow in flows {
            let (interval, at_ticks) = (flow.interval, flow.at_ticks);
            let stream = self.open_stream(client, flow);
            let start = if at_ticks { self.now.next_multiple_of(interval) } else { self.now };
            self.streams[stream as usize].started_at = start;
            self.set_timer(start, Wake::Stream(stream));
        }
    }

    /// A stream at its beginning.
    fn open_stream(&mut self, client: u32, flow: Flow) -> u32 {
        let server = self.server_host(client, 0);
        let host = self.clients[client as usize].host;
        let [from, to] = if flow.from_server { [server, host] } else { [host, server] };
        let index = self.own_draws(client) + u64::from(flow.from_server);
        let [_, loss_key] = self.stream(client, Purpose::InitialSequence).bits(index);
        self.streams.push(DatagramStream {
            client,
            first_hop: self.routes.first_hop(from, to),
            started_at: self.now,
            sent: 0,
            sent_bytes: 0,
            losses: LossDraws::new(loss_key),
            tally: Tally::new(flow.play),
            resolver: Resolver::default(),
            flow,
        });
        self.streams.len() as u32 - 1
    }

    /// First number of the draws for a client's datagrams: those of a page's look-ups behind those of its objects.
    fn own_draws(&self, client: u32) -> u64 {
        if self.spec(client).kind.datagrams().is_some() { 0 } else { BEHIND_PAGES }
    }

    /// Time for a stream's next datagram, or to act on a look-up.
    #[inline(never)]
    pub(crate) fn wake_stream(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        if let Some(queries) = self.clients[stream.client as usize].queries {
            return if index == queries { self.ask_for_name(index) } else { self.answer_query(index) };
        }
        if stream.flow.length.is_some_and(|length| self.now - stream.started_at >= length) {
            return;
        }
        let next = self.now.saturating_add(stream.flow.interval);
        self.send_datagram(index);
        self.set_timer(next, Wake::Stream(index));
    }

    /// Sends a stream's next datagram.
    fn send_datagram(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        let purpose = if stream.flow.from_server { Purpose::ResponseSize } else { Purpose::RequestSize };
        let number = self.own_draws(stream.client) + u64::from(stream.sent);
        let drawn = self.draw(stream.client, &stream.flow.payload, purpose, number);
        // Only the tail of an unbounded law can exceed a datagram's size.
        let payload_bytes = drawn.round().clamp(1.0, MOST_PAYLOAD_BYTES) as u32;
        let stream = &mut self.streams[index as usize];
        let header_bytes = stream.flow.header_bytes;
        let datagram = Datagram { stream: index, number: stream.sent, sent_at: self.now, payload_bytes };
        stream.sent += 1;
        stream.sent_bytes += u64::from(header_bytes + payload_bytes);
        let first_hop = stream.first_hop;
        if self.is_tapped() {
            let sender = if self.streams[index as usize].flow.from_server { SERVER } else { CLIENT };
            self.note_datagram(&datagram, sender);
        }
        let header_difference = header_bytes as i32 - self.plan.header_bytes as i32;
        let packet = Packet::of_datagram(&datagram, header_difference, first_hop);
        self.forward(packet);
    }

    /// A packet that belongs to no connection has reached its destination.
    #[cold]
    pub(crate) fn deliver_datagram(&mut self, packet: Packet) {
        let Some(datagram) = packet.datagram() else { return };
        let stream = &mut self.streams[datagram.stream as usize];
        stream.tally.arrived(self.now, &datagram);
        let client = stream.client;
        self.dns_datagram(client, &datagram);
    }

    /// A link lost a datagram at `at`.
    pub(crate) fn lose_datagram(&mut self, datagram: &Datagram, at: Nanos) {
        // A link computed ahead may have looked beyond the end of the run.
        if at < self.plan.duration_ns {
            self.streams[datagram.stream as usize].tally.lost += 1;
        }
    }

    /// At the end of the run: the rows of all streams, and of look-ups in progress.
    pub(crate) fn book_streams(&mut self) {
        self.book_unfinished_lookups();
        for stream in &self.streams {
            let client = &self.clients[stream.client as usize];
            self.records.streams.push(stream.tally.row(Sender {
                replicate: self.replicate,
                application: self.plan.recorded(client.application, client.arm),
                client: client.index,
                from_server: stream.flow.from_server,
                started_at: stream.started_at,
                sent: stream.sent,
                sent_bytes: stream.sent_bytes,
                call: stream.flow.call,
            }));
        }
    }
}
