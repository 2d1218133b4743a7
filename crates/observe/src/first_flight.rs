//! The first flight: data segments sent before the first acknowledgment of data reached the server, retransmissions not
//! counted, as the simulator counts it.
//!
//! At the server it is the data seen before the acknowledgment. Elsewhere segments of the first flight are still seen
//! after it: until it has reached the server, and the data that the server sends then has come back. A timestamp that a
//! segment echoes shows which acknowledgments the server had (RFC 7323 §4.3); without timestamps, time does. The
//! retransmitted part counts as lost: the capture does not show that a retransmission was spurious.

use crate::stream::SeqNum;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    #[default]
    Open,
    /// The first acknowledgment of data was seen then, with this timestamp.
    Acknowledged {
        time: i64,
        timestamp: Option<u32>,
    },
    Over,
}

/// When a data segment was sent, from its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) time: i64,
    pub(crate) echo: Option<u32>,
    /// From the place of the capture to the server and back, at least.
    pub(crate) to_server: i64,
    /// The place of the capture is nearer to the server: then that is about the server's answer time.
    pub(crate) at_server: bool,
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct FirstFlight {
    pub(crate) segments: u32,
    state: Stage,
    /// Its first byte.
    begin: SeqNum,
    /// Behind its last byte.
    end: SeqNum,
    /// A bit for each segment retransmitted; beyond 127 they share one.
    lost: u128,
}

impl FirstFlight {
    /// That of the bytes from a position on.
    pub(crate) fn new(begin: SeqNum) -> Self {
        Self { begin, end: begin, ..Self::default() }
    }

    /// True if data sent now still belongs to it.
    pub(crate) fn includes(&self, sight: &Sight) -> bool {
        match (self.state, sight.echo) {
            (Stage::Open, _) => true,
            (Stage::Acknowledged { timestamp: Some(timestamp), .. }, Some(echo)) => {
                (echo.wrapping_sub(timestamp) as i32) < 0
            }
            (Stage::Acknowledged { time, .. }, _) => !sight.at_server && sight.time < time + sight.to_server,
            (Stage::Over, _) => false,
        }
    }

    /// Segments of new data, up to a position.
    pub(crate) fn send(&mut self, segments: u32, end: SeqNum, sight: &Sight) {
        if self.includes(sight) {
            self.segments += segments;
            // A reordered segment ends before the data that is there.
            self.end = self.end.max(end);
        } else {
            self.state = Stage::Over;
        }
    }

    /// Segments of `bytes` bytes are retransmitted from a position on; `unseen`: before they were not seen, as they were
    /// lost on their way to the capture.
    pub(crate) fn resend(&mut self, segments: u32, start: SeqNum, bytes: u32, unseen: bool) {
        for segment in 0..i64::from(segments) {
            let position = start + segment * i64::from(bytes);
            if (self.begin..self.end).contains(&position) {
                self.segments += u32::from(unseen);
                self.lost |= 1 << ((position - self.begin) / i64::from(bytes)).min(127);
            }
        }
    }

    /// Of the segments, those retransmitted.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.count_ones()
    }

    /// False if nothing shows where it ends, as in a capture that lacks acknowledgments, or ends before them.
    pub(crate) fn is_known(&self) -> bool {
        self.state != Stage::Open || self.lost != 0
    }

    /// The client acknowledges all before a position, with this timestamp.
    pub(crate) fn acknowledge(&mut self, position: SeqNum, time: i64, timestamp: Option<u32>) {
        if self.state == Stage::Open && position > self.begin {
            self.state = Stage::Acknowledged { time, timestamp };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: i64, echo: Option<u32>, to_server: i64) -> Sight {
        Sight { time, echo, to_server, at_server: to_server <= SERVER_TAKES }
    }

    const SERVER_TAKES: i64 = 2;

    #[test]
    fn at_the_server_the_acknowledgment_ends_it_however_soon_the_server_goes_on() {
        for stamps in [[Some(5), Some(9)], [None, None]] {
            let mut flight = FirstFlight::new(0);
            flight.send(10, 10, &at(0, stamps[0], SERVER_TAKES));
            flight.acknowledge(1, 100, stamps[1]);
            flight.send(2, 2, &at(101, stamps[1], SERVER_TAKES));
            assert_eq!(flight.segments, 10);
        }
    }

    #[test]
    fn at_the_client_what_echoes_an_older_timestamp_still_belongs_to_it() {
        let mut flight = FirstFlight::new(0);
        flight.send(1, 1, &at(0, Some(5), 100));
        flight.acknowledge(1, 1, Some(9));
        flight.send(9, 9, &at(300, Some(5), 100));
        flight.send(2, 2, &at(301, Some(9), 100));
        assert_eq!(flight.segments, 10);
    }

    #[test]
    fn a_segment_of_it_that_is_retransmitted_twice_is_lost_once() {
        let mut flight = FirstFlight::new(0);
        flight.send(10, 10_000, &at(0, None, 0));
        flight.resend(1, 2000, 1000, false);
        flight.resend(1, 2000, 1000, false);
        flight.resend(2, 4000, 1000, false);
        flight.resend(1, 10_000, 1000, false);
        assert_eq!((flight.segments, flight.lost()), (10, 3));
    }

    #[test]
    fn a_segment_of_it_that_was_lost_before_the_capture_belongs_to_it() {
        let mut flight = FirstFlight::new(0);
        flight.send(9, 10_000, &at(0, None, 0));
        flight.resend(1, 2000, 1000, true);
        assert_eq!((flight.segments, flight.lost()), (10, 1));
    }

    #[test]
    fn without_timestamps_what_comes_within_a_round_trip_belongs_to_it() {
        let mut flight = FirstFlight::new(0);
        flight.send(1, 1, &at(0, None, 100));
        flight.acknowledge(1, 1, None);
        flight.send(9, 9, &at(90, None, 100));
        flight.send(2, 2, &at(101, None, 100));
        assert_eq!(flight.segments, 10);
    }
}
