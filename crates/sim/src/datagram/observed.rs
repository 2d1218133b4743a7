//! Streams of datagrams over a real network: the datagrams of their endpoints, and the records of their observations.

use serde::Deserialize;

use super::tally::Tally;
use crate::{
    packet::Datagram,
    plan::{
        Plan,
        datagram::{Datagrams, Flow},
    },
    records::{StreamReport, seconds},
};

/// The streams of each application's clients, in both directions. None for an application without datagrams.
pub fn flows(plan: &Plan) -> Vec<Vec<Flow>> {
    let of = |kind: &dyn Datagrams| kind.flows();
    plan.applications.iter().map(|one| one.kind.datagrams().map(of).unwrap_or_default()).collect()
}

/// One stream as both ends saw it; times are of one clock.
#[derive(Clone, Debug, Deserialize)]
pub struct Observed {
    /// Replicate of the experiment.
    pub replicate: u32,
    /// Number of the application in the plan.
    pub application: u16,
    /// Number of its arm, counted from 1; 0 is none.
    pub arm: u8,
    /// Client of the application.
    pub client: u32,
    /// True if the server sends.
    pub from_server: bool,
    /// When each datagram was sent, and its payload in bytes.
    pub sent: Vec<[u64; 2]>,
    /// Numbers of those that arrived before the end of the run, and when, in the order of arrival.
    pub arrived: Vec<[u64; 2]>,
    /// Those that never arrived.
    pub lost: u32,
}

/// The row of a stream, by the account that a simulated one has; none if its application does not send that way, or if a
/// datagram arrived that was not sent.
pub fn report(plan: &Plan, stream: &Observed) -> Option<StreamReport> {
    let application = plan.applications.get(usize::from(stream.application))?;
    let flow = application.kind.datagrams()?.flows().into_iter().find(|flow| flow.from_server == stream.from_server)?;
    let mut tally = Tally::new(flow.play);
    for &[number, at] in &stream.arrived {
        let &[sent_at, payload] = stream.sent.get(number as usize)?;
        let datagram = Datagram { stream: 0, number: number as u32, sent_at, payload_bytes: payload as u32 };
        tally.arrived(at.max(sent_at), &datagram);
    }
    tally.lost = stream.lost;
    let bytes = |[_, payload]: &[u64; 2]| payload + u64::from(flow.header_bytes);
    let sent = StreamReport {
        replicate: stream.replicate,
        application: plan.recorded(stream.application, stream.arm),
        client: stream.client,
        from_server: u8::from(stream.from_server),
        start_s: seconds(stream.sent.first().map_or(0, |&[at, _]| at)),
        packets_sent: stream.sent.len() as u32,
        bytes_sent: stream.sent.iter().map(bytes).sum(),
        ..StreamReport::default()
    };
    Some(tally.row(sent, flow.call))
}
