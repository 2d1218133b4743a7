//! Applications that are not TCP: streams of datagrams from one host to another, as the plan gives them.

use crate::{
    application::{BEHIND_PAGES, Client, Clients},
    connection::Pair,
    datagram::DatagramStream,
    plan::datagram::{Datagrams, Flow, MOST_PAYLOAD_BYTES},
    random::Purpose,
    simulation::Simulation,
    timers::Wake,
};

impl Clients<'_> {
    /// A client's time has come: both ends begin to send.
    pub(super) fn begin_streams(&mut self, sim: &mut Simulation<'_>, client: u32) {
        let flows = self.spec(client).kind.datagrams().map(Datagrams::flows).unwrap_or_default();
        for flow in flows {
            let (interval, at_ticks) = (flow.interval, flow.at_ticks);
            let stream = self.open_stream(sim, client, flow);
            let start = if at_ticks { sim.now.next_multiple_of(interval) } else { sim.now };
            sim.streams[stream as usize].started_at = start;
            sim.set_timer(start, Wake::Stream(stream));
        }
    }

    pub(super) fn open_stream(&self, sim: &mut Simulation<'_>, client: u32, flow: Flow) -> u32 {
        let Client { application, host, .. } = self.clients[client as usize];
        let pair = Pair { application, hosts: [host, self.server_host(client, 0)] };
        let index = self.own_draws(client) + u64::from(flow.from_server);
        let [_, loss_key] = self.stream(client, Purpose::InitialSequence).bits(index);
        sim.open_stream(DatagramStream::new(client, pair, flow, sim.now, loss_key))
    }

    /// First number of the draws for a client's datagrams: those of a page's look-ups behind those of its objects.
    fn own_draws(&self, client: u32) -> u64 {
        if self.spec(client).kind.datagrams().is_some() { 0 } else { BEHIND_PAGES }
    }

    /// Time for a stream's next datagram, or to act on a look-up.
    #[inline(never)]
    pub(crate) fn wake_stream(&mut self, sim: &mut Simulation<'_>, index: u32) {
        let stream = &sim.streams[index as usize];
        if let Some(resolver) = &self.clients[stream.client as usize].resolver {
            return if index == resolver.queries {
                self.ask_for_name(sim, index)
            } else {
                self.answer_query(sim, index)
            };
        }
        if stream.flow.length.is_some_and(|length| sim.now - stream.started_at >= length) {
            return;
        }
        let next = sim.now.saturating_add(stream.flow.interval);
        self.send_datagram(sim, index);
        sim.set_timer(next, Wake::Stream(index));
    }

    /// Sends a stream's next datagram.
    pub(super) fn send_datagram(&self, sim: &mut Simulation<'_>, index: u32) {
        let stream = &sim.streams[index as usize];
        let purpose = if stream.flow.from_server { Purpose::ResponseSize } else { Purpose::RequestSize };
        let number = self.own_draws(stream.client) + u64::from(stream.sent);
        let drawn = self.draw(stream.client, &stream.flow.payload, purpose, number);
        // Only the tail of an unbounded law can exceed a datagram's size.
        let payload_bytes = drawn.round().clamp(1.0, MOST_PAYLOAD_BYTES) as u32;
        sim.send_datagram(index, payload_bytes);
    }

    /// At the end of the run: the rows of all streams, and of look-ups in progress.
    pub(super) fn book_streams(&mut self, sim: &mut Simulation<'_>) {
        self.book_unfinished_lookups(sim);
        for stream in &sim.streams {
            let client = &self.clients[stream.client as usize];
            let application = self.plan.recorded(client.application, client.arm);
            sim.records.streams.push(stream.row(self.replicate, application, client.index));
        }
    }
}
