//! Applications that are not TCP: streams of datagrams from one host to another.
//!
//! An application says what [`Flow`]s its clients have; all that one sends in one direction is a [`DatagramStream`], whose
//! receiver keeps the account that becomes its row in the records.

pub(crate) mod constant_rate;
pub(crate) mod dns;
mod e_model;
pub(crate) mod game;
mod tally;
pub(crate) mod voice;

use firstflight_path::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    law::Law,
    loss_draws::LossDraws,
    packet::{Datagram, Packet},
    plan::Kind,
    random::Purpose,
    simulation::Simulation,
    timers::Wake,
};
use dns::Resolver;
use e_model::Impairment;
use tally::{Sender, Tally};

/// As much as an IPv4 packet can carry over UDP.
const MOST_PAYLOAD_BYTES: f64 = 65_507.0;

/// An application that sends datagrams.
pub(crate) trait Datagrams {
    /// What a client and its server send.
    fn flows(&self) -> Vec<Flow>;

    /// Checks what a type cannot say.
    ///
    /// # Errors
    /// One sentence.
    fn validate(&self) -> Result<(), String>;
}

impl Kind {
    /// The application, if it is one that sends datagrams.
    pub(crate) fn datagrams(&self) -> Option<&dyn Datagrams> {
        match self {
            Kind::ConstantRate(application) => Some(application),
            Kind::Dns(application) => Some(application),
            Kind::Game(application) => Some(application),
            Kind::Voice(application) => Some(application),
            _ => None,
        }
    }
}

/// Which ends send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ways {
    /// The server.
    Download,
    /// The client.
    Upload,
    /// Both.
    Both,
}

impl Ways {
    /// Whether the server sends, for each end that does.
    pub(crate) fn senders(self) -> &'static [bool] {
        match self {
            Ways::Download => &[true],
            Ways::Upload => &[false],
            Ways::Both => &[false, true],
        }
    }
}

/// When a datagram is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    /// Whenever it comes.
    Always,
    /// At most so long after it was sent.
    AfterSending(Nanos),
    /// The first one so long after it arrived, and the others by the time between them at the sender.
    AfterFirst(Nanos),
}

/// What is known of a stream of voice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// From the first sound of a frame to its datagram.
    pub(crate) coding_delay: Nanos,
    pub(crate) impairment: Option<Impairment>,
}

/// What one end sends: a datagram each interval.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) from_server: bool,
    pub(crate) interval: Nanos,
    /// Bytes of payload.
    pub(crate) payload: Law,
    /// Bytes of all headers.
    pub(crate) header_bytes: u32,
    /// How long it sends; none: to the end of the run.
    pub(crate) length: Option<Nanos>,
    pub(crate) play: Play,
    /// It sends at multiples of the interval only.
    pub(crate) at_ticks: bool,
    pub(crate) call: Option<Call>,
}

impl Flow {
    /// Nothing in particular.
    fn new(from_server: bool) -> Flow {
        Flow {
            from_server,
            interval: 0,
            payload: Law::Constant { value: 0.0 },
            header_bytes: 0,
            length: None,
            play: Play::Always,
            at_ticks: false,
            call: None,
        }
    }

    /// Checks the sizes and times.
    ///
    /// # Errors
    /// One sentence.
    fn validate(&self) -> Result<(), String> {
        if self.interval == 0 {
            return Err("the time between datagrams is 0: they need time between them".into());
        }
        self.payload.validate("payload")?;
        if let Some(largest) = self.payload.largest()
            && !(1.0..=MOST_PAYLOAD_BYTES).contains(&largest)
        {
            return Err(format!("a datagram has {largest} bytes of payload, but must have 1 to {MOST_PAYLOAD_BYTES}"));
        }
        if self.header_bytes >= 1 << 16 {
            return Err(format!("datagram_header_bytes is {}, but must be at most 65535", self.header_bytes));
        }
        Ok(())
    }
}

/// What one end of a client's application sends to the other.
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

    /// Whether the server sends it.
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
        let [_, loss_key] = self.stream(client, Purpose::InitialSequence).bits(u64::from(flow.from_server));
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

    /// Time for a stream's next datagram.
    pub(crate) fn wake_stream(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        if let Kind::Dns(_) = self.spec(stream.client).kind {
            return self.answer_query(index);
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
        let drawn = self.draw(stream.client, &stream.flow.payload, purpose, u64::from(stream.sent));
        // Only the tail of an unbounded law can pass what a datagram holds.
        let payload_bytes = drawn.round().clamp(1.0, MOST_PAYLOAD_BYTES) as u32;
        let stream = &mut self.streams[index as usize];
        let header_bytes = stream.flow.header_bytes;
        let datagram = Datagram { stream: index, number: stream.sent, sent_at: self.now, payload_bytes };
        stream.sent += 1;
        stream.sent_bytes += u64::from(header_bytes + payload_bytes);
        let header_difference = header_bytes as i32 - self.plan.header_bytes as i32;
        let packet = Packet::of_datagram(&datagram, header_difference, stream.first_hop);
        self.forward(packet);
    }

    /// A packet that belongs to no connection has reached its destination.
    #[cold]
    pub(crate) fn deliver_datagram(&mut self, packet: &Packet) {
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

    /// At the end of the run: the rows of all streams, and of look-ups on their way.
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
