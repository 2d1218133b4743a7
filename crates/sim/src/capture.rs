//! Every segment of a simulation, as it is sent, received or lost.

use firstflight_path::{Fate, Nanos};
use firstflight_tcp::{Flags, Segment};

use crate::{
    connection::{Connection, SERVER},
    records::{NO_LINK, SegmentEvent, SegmentEvents},
};

/// The segments seen so far.
#[derive(Debug, Default)]
pub struct Capture {
    events: Vec<SegmentEvent>,
}

/// What happened to a segment, as the records spell it.
const SENT: u8 = 0;
const RECEIVED: u8 = 1;
const DROPPED: u8 = 2;
const LOST: u8 = 3;

impl Capture {
    /// An end sent a segment.
    pub fn sent(&mut self, now: Nanos, replicate: u32, connection: &Connection, side: usize, segment: &Segment) {
        self.push(now, replicate, connection, side, side, segment, SENT, NO_LINK);
    }

    /// An end received a segment and has dealt with it.
    pub fn received(&mut self, now: Nanos, replicate: u32, connection: &Connection, side: usize, segment: &Segment) {
        self.push(now, replicate, connection, 1 - side, side, segment, RECEIVED, NO_LINK);
    }

    /// A link lost a segment.
    #[expect(clippy::too_many_arguments, reason = "a row of the records, spelled out")]
    pub fn lost(
        &mut self,
        at: Nanos,
        replicate: u32,
        connection: &Connection,
        sender: usize,
        segment: &Segment,
        link: u16,
        fate: Fate,
    ) {
        let event = if fate == Fate::Lost { LOST } else { DROPPED };
        self.push(at, replicate, connection, sender, sender, segment, event, link);
    }

    #[expect(clippy::too_many_arguments, reason = "a row of the records, spelled out")]
    fn push(
        &mut self,
        time: Nanos,
        replicate: u32,
        connection: &Connection,
        sender: usize,
        window_of: usize,
        segment: &Segment,
        event: u8,
        link: u16,
    ) {
        let end = &connection.ends[window_of];
        let [from, to] = [&connection.ends[sender], &connection.ends[1 - sender]];
        let mss = f64::from(end.mss_bytes().max(1));
        let acknowledges = segment.flags.contains(Flags::ACK);
        self.events.push(SegmentEvent {
            time_ns: time as i64,
            replicate,
            connection: connection.number,
            event,
            from_server: u8::from(sender == SERVER),
            link,
            seq: segment.seq.wrapping_sub(from.initial_sequence()),
            length: segment.payload_bytes,
            ack: if acknowledges { segment.ack.wrapping_sub(to.initial_sequence()) } else { 0 },
            window_bytes: from.advertised_window_bytes(segment),
            cwnd_segments: f64::from(end.cwnd_bytes()) / mss,
            ssthresh_segments: f64::from(end.ssthresh_bytes()) / mss,
            flags: segment.flags.bits(),
            retransmission: u8::from(segment.retransmission),
        });
    }

    /// The rows in the order of time. Links computed ahead lose packets at times to come, hence the sort; it is stable,
    /// so what happened at one time stays in the order in which it happened.
    pub fn into_events(mut self) -> SegmentEvents {
        self.events.sort_by_key(|event| event.time_ns);
        let mut table = SegmentEvents::default();
        self.events.into_iter().for_each(|event| table.push(event));
        table
    }
}
