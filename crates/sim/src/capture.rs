//! Every segment of a simulation, as it is sent, received or lost, and every packet at a link.

use firstflight_path::{Fate, Nanos};
use firstflight_tcp::{Flags, QuickStart, Segment};

use crate::{
    connection::{Connection, SERVER},
    records::{Crossing, Crossings, NO_LINK, NO_RESPONSE, SegmentEvent, SegmentEvents},
};

/// The segments seen so far.
#[derive(Debug, Default)]
pub struct Capture {
    events: Vec<SegmentEvent>,
    crossings: Vec<Crossing>,
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
        // Of the other end's data, as acknowledgment numbers are.
        let acknowledged = |number: u32| number.wrapping_sub(to.initial_sequence());
        let ranges = segment.sack.as_slice();
        let edge = |range: usize, side: usize| ranges.get(range).map_or(0, |edges| acknowledged(edges[side]));
        let (quick_start, quick_start_rate) = match segment.quick_start {
            QuickStart::None => (0, 0),
            QuickStart::Request { rate, approved } => (if approved { 1 } else { 2 }, rate),
            QuickStart::Report { rate } => (3, rate),
        };
        self.events.push(SegmentEvent {
            time_ns: time as i64,
            replicate,
            connection: connection.number,
            event,
            from_server: u8::from(sender == SERVER),
            link,
            seq: segment.seq.wrapping_sub(from.initial_sequence()),
            length: segment.payload_bytes,
            ack: if acknowledges { acknowledged(segment.ack) } else { 0 },
            window_bytes: from.advertised_window_bytes(segment),
            cwnd_segments: f64::from(end.cwnd_bytes()) / mss,
            ssthresh_segments: f64::from(end.ssthresh_bytes()) / mss,
            recovery_state: end.info().recovery_state,
            flags: segment.flags.bits(),
            retransmission: u8::from(segment.retransmission),
            ecn: segment.ecn as u8,
            has_timestamps: u8::from(segment.timestamps.is_some()),
            ts_value: segment.timestamps.map_or(0, |timestamps| timestamps.value),
            ts_echo: segment.timestamps.map_or(0, |timestamps| timestamps.echo),
            sack_count: ranges.len() as u8,
            sack_left_0: edge(0, 0),
            sack_right_0: edge(0, 1),
            sack_left_1: edge(1, 0),
            sack_right_1: edge(1, 1),
            sack_left_2: edge(2, 0),
            sack_right_2: edge(2, 1),
            sack_left_3: edge(3, 0),
            sack_right_3: edge(3, 1),
            mss: segment.mss,
            window_scale: segment.window_scale,
            sack_permitted: u8::from(segment.sack_permitted),
            quick_start,
            quick_start_rate,
            quick_start_response: segment.quick_start_response.unwrap_or(NO_RESPONSE),
        });
    }

    /// A packet came to a link and met its fate there.
    pub fn crossed(&mut self, mut crossing: Crossing, fate: Fate) {
        crossing.event = match fate {
            Fate::Arrives(_) | Fate::Marked(_) => RECEIVED,
            Fate::Dropped => DROPPED,
            Fate::Lost => LOST,
        };
        self.crossings.push(crossing);
    }

    /// The rows in the order of time. Links computed ahead lose packets at times to come, hence the sort; it is stable,
    /// so what happened at one time stays in the order in which it happened.
    pub fn into_tables(mut self) -> (SegmentEvents, Crossings) {
        self.events.sort_by_key(|event| event.time_ns);
        self.crossings.sort_by_key(|crossing| crossing.time_ns);
        let (mut segments, mut crossings) = (SegmentEvents::default(), Crossings::default());
        self.events.into_iter().for_each(|event| segments.push(event));
        self.crossings.into_iter().for_each(|crossing| crossings.push(crossing));
        (segments, crossings)
    }
}
