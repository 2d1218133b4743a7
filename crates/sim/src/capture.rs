//! Every segment of a simulation, as it is sent, received or lost, every packet at a link, and what senders publish.

use firstflight_path::Nanos;
use firstflight_tcp::{Endpoint, Segment};

use crate::{
    connection::{Connection, SERVER},
    records::{AtEnd, Crossing, NO_LINK, RECEIVED, SegmentEvent, SenderEventRow, Sight},
};

/// Something that happened to a segment that the end `sender` sent.
pub struct Note<'a> {
    pub time: Nanos,
    /// An event of the records, and the link if one lost it.
    pub event: u8,
    pub link: u16,
    pub sender: usize,
    /// The end whose window the row has.
    pub observer: usize,
    pub segment: &'a Segment,
}

/// The segments seen so far.
#[derive(Debug, Default)]
pub struct Capture {
    replicate: u32,
    events: Vec<SegmentEvent>,
    sender_events: Vec<SenderEventRow>,
    crossings: Vec<Crossing>,
}

impl Capture {
    /// Nothing of this replicate yet.
    pub fn new(replicate: u32) -> Capture {
        Capture { replicate, ..Capture::default() }
    }

    /// Something happened to a segment of a connection.
    pub fn note(&mut self, connection: &Connection, note: &Note<'_>) {
        let &Note { time, event, link, sender, observer, segment } = note;
        let [from, to] = [&connection.ends[sender], &connection.ends[1 - sender]];
        let sight = Sight {
            time_ns: time as i64,
            replicate: self.replicate,
            connection: connection.number,
            event,
            from_server: sender == SERVER,
            link,
            initial_sequences: [from.initial_sequence(), to.initial_sequence()],
            window_bytes: from.advertised_window_bytes(segment),
        };
        self.events.push(sight.row(Some(at_end(&connection.ends[observer])), segment));
    }

    /// An end has dealt with a segment.
    #[cold]
    pub fn received(&mut self, time: Nanos, connection: &Connection, side: usize, segment: &Segment) {
        let (sender, observer) = (1 - side, side);
        self.note(connection, &Note { time, event: RECEIVED, link: NO_LINK, sender, observer, segment });
    }

    /// A connection is over, or the run: what its ends have published.
    pub fn published(&mut self, connection: &mut Connection) {
        for (side, end) in connection.ends.iter_mut().enumerate() {
            let mss = f64::from(end.mss_bytes());
            while let Some(event) = end.poll_sender_event() {
                self.sender_events.push(SenderEventRow {
                    time_ns: event.time as i64,
                    replicate: self.replicate,
                    connection: connection.number,
                    from_server: u8::from(side == SERVER),
                    old_state: event.old as u8,
                    new_state: event.new as u8,
                    trigger: event.trigger as u8,
                    cwnd_segments: f64::from(event.cwnd_bytes) / mss,
                    ssthresh_segments: event.ssthresh_bytes.map_or(f64::NAN, f64::from) / mss,
                });
            }
        }
    }

    /// A packet came to a link and was dropped, lost or delivered there.
    pub fn crossed(&mut self, crossing: Crossing) {
        self.crossings.push(crossing);
    }

    /// The rows in the order of time. Links computed ahead lose packets at times to come, hence the sort; it is stable,
    /// so events at one time keep their order.
    pub fn into_tables(mut self) -> (Vec<SegmentEvent>, Vec<SenderEventRow>, Vec<Crossing>) {
        self.events.sort_by_key(|event| event.time_ns);
        self.sender_events.sort_by_key(|event| event.time_ns);
        self.crossings.sort_by_key(|crossing| crossing.time_ns);
        (self.events, self.sender_events, self.crossings)
    }
}

/// State of an endpoint, as it reports it.
fn at_end(end: &Endpoint) -> AtEnd {
    AtEnd {
        mss_bytes: end.mss_bytes(),
        cwnd_bytes: end.cwnd_bytes(),
        ssthresh_bytes: end.ssthresh_bytes(),
        recovery_state: end.info().recovery_state,
    }
}
