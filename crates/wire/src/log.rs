//! Every segment of a host, with what its endpoint made of it: rows as the simulator's.

use std::collections::HashMap;

use firstflight_records::{AtEnd, NO_LINK, RECEIVED, SENT, SegmentEvent, Sight};
use firstflight_tcp::{Endpoint, Flags, Nanos, Segment};

use crate::report::Life;

/// The segments that the host's connections sent and received since the log was last taken.
#[derive(Debug, Default)]
pub(crate) struct SegmentLog {
    rows: Vec<SegmentEvent>,
    /// Shifts that peers' SYNs announced, by connection.
    shifts: HashMap<u32, u8>,
}

impl SegmentLog {
    pub(crate) fn sent(&mut self, time: Nanos, life: &Life, end: &Endpoint, segment: &Segment) {
        let sight = Sight {
            time_ns: time as i64,
            replicate: 0,
            connection: life.connection,
            event: SENT,
            from_server: !life.opened_here,
            link: NO_LINK,
            initial_sequences: [end.initial_sequence(), end.peer_initial_sequence().unwrap_or(0)],
            window_bytes: end.advertised_window_bytes(segment),
        };
        self.rows.push(sight.row(Some(at_end(end)), segment));
    }

    /// A segment has come, and the endpoint has dealt with it.
    pub(crate) fn received(&mut self, time: Nanos, life: &Life, end: &Endpoint, segment: &Segment) {
        let is_syn = segment.flags.contains(Flags::SYN);
        if let Some(shift) = segment.window_scale.filter(|_| is_syn && end.profile().window_scaling) {
            self.shifts.insert(life.connection, shift);
        }
        // RFC 7323 §2.2: the window field of a SYN is never scaled.
        let shift = if is_syn { 0 } else { self.shifts.get(&life.connection).copied().unwrap_or(0) };
        let sight = Sight {
            time_ns: time as i64,
            replicate: 0,
            connection: life.connection,
            event: RECEIVED,
            from_server: life.opened_here,
            link: NO_LINK,
            initial_sequences: [end.peer_initial_sequence().unwrap_or(segment.seq), end.initial_sequence()],
            window_bytes: u64::from(segment.window) << shift,
        };
        self.rows.push(sight.row(Some(at_end(end)), segment));
    }

    pub(crate) fn forget(&mut self, connection: u32) {
        self.shifts.remove(&connection);
    }

    /// The rows since the last call.
    pub(crate) fn take(&mut self) -> Vec<SegmentEvent> {
        std::mem::take(&mut self.rows)
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
