//! Streams of datagrams: all that one endpoint of a client's application sends to the other.
//!
//! The plan gives the [`Flow`]s of a client; the receiver of each keeps the account that becomes its row in the records.

mod e_model;
pub mod observed;
mod tally;

use firstflight_path::Nanos;

use crate::{
    connection::{CLIENT, Pair, SERVER},
    loss_draws::LossDraws,
    packet::Datagram,
    plan::datagram::Flow,
    records::{StreamReport, seconds},
};
use tally::Tally;

/// The datagrams of one endpoint of a client's application to the other.
#[derive(Debug)]
pub(crate) struct DatagramStream {
    /// Whose it is, among all clients.
    pub(crate) client: u32,
    /// Its hosts and its application.
    pub(crate) pair: Pair,
    /// Its requested datagrams.
    pub(crate) flow: Flow,
    /// First hop of its datagrams; the simulation sets it.
    pub(crate) first_hop: u32,
    pub(crate) started_at: Nanos,
    /// Datagrams sent, and their bytes with headers.
    pub(crate) sent: u32,
    sent_bytes: u64,
    losses: LossDraws,
    tally: Tally,
}

impl DatagramStream {
    pub(crate) fn new(client: u32, pair: Pair, flow: Flow, started_at: Nanos, loss_key: u64) -> DatagramStream {
        let (losses, tally) = (LossDraws::new(loss_key), Tally::new(flow.play));
        DatagramStream { client, pair, flow, first_hop: 0, started_at, sent: 0, sent_bytes: 0, losses, tally }
    }

    /// The end that sends it.
    pub(crate) fn sender(&self) -> usize {
        if self.flow.from_server { SERVER } else { CLIENT }
    }

    /// Number of the datagram of this payload that is sent now.
    pub(crate) fn send(&mut self, payload_bytes: u32) -> u32 {
        self.sent += 1;
        self.sent_bytes += u64::from(self.flow.header_bytes + payload_bytes);
        self.sent - 1
    }

    /// The draw by which its next datagram is lost at random on a link.
    pub(crate) fn loss_draw(&mut self, link: u32) -> f64 {
        self.losses.draw(link, true)
    }

    pub(crate) fn arrived(&mut self, now: Nanos, datagram: &Datagram) {
        self.tally.arrived(now, datagram);
    }

    /// A link lost one of its datagrams.
    pub(crate) fn lost(&mut self) {
        self.tally.lost += 1;
    }

    pub(crate) fn row(&self, replicate: u32, application: u16, client: u32) -> StreamReport {
        let sent = StreamReport {
            replicate,
            application,
            client,
            from_server: u8::from(self.flow.from_server),
            start_s: seconds(self.started_at),
            packets_sent: self.sent,
            bytes_sent: self.sent_bytes,
            ..StreamReport::default()
        };
        self.tally.row(sent, self.flow.call)
    }
}
