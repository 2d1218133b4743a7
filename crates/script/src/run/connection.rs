//! One connection: the endpoint under test, its numbers, and its application's calls and pending results.

use super::errno::Errno;
use super::numbers::Numbers;
use crate::script::Packet;
use firstflight_tcp::{Endpoint, Events, Flags, Nanos, Profile, Segment, State};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Connection {
    pub endpoint: Endpoint,
    pub numbers: Numbers,
    /// The listening descriptor that it came from.
    pub listener: Option<i64>,
    pub accepted: bool,
    pub established: bool,
    /// `close()` was called.
    pub released: bool,
    /// `shutdown(SHUT_RD)` was called.
    pub reading_shut: bool,
    /// `TCP_CORK` is on.
    pub corked: bool,
    /// The FIN was asked for.
    pub writing_shut: bool,
    /// An error that the next call returns.
    pub error: Option<Errno>,
    /// The connection ended with an error, reported or not.
    pub failed: bool,
}

impl Connection {
    pub fn client(profile: Profile, initial_sequence: u32) -> Self {
        Self::new(Endpoint::client(Arc::new(profile), initial_sequence), None)
    }

    pub fn server(profile: Profile, initial_sequence: u32, listener: i64) -> Self {
        Self::new(Endpoint::server(Arc::new(profile), initial_sequence), Some(listener))
    }

    fn new(endpoint: Endpoint, listener: Option<i64>) -> Self {
        let numbers = Numbers::new(endpoint.initial_sequence());
        Self {
            endpoint,
            numbers,
            listener,
            accepted: false,
            established: false,
            released: false,
            reading_shut: false,
            corked: false,
            writing_shut: false,
            error: None,
            failed: false,
        }
    }

    /// The packet that a script would write for a segment of ours.
    pub fn packet_of(&self, segment: &Segment) -> Packet {
        self.numbers.packet_of(segment, self.endpoint.peer_initial_sequence())
    }

    /// True if a last segment that is not full waits for more data, whatever call wrote it.
    pub fn set_cork(&mut self, on: bool) {
        self.corked = on;
        self.endpoint.set_cork(on);
    }

    pub fn deliver(&mut self, now: Nanos, segment: &Segment) {
        let unwanted = self.is_unwanted(segment);
        self.endpoint.handle_segment(now, segment);
        // Linux: MSG_MORE holds back until anything else lets data leave.
        self.endpoint.set_cork(self.corked);
        if unwanted {
            // Linux (and RFC 9293 §3.6.1): data for an application that has closed is answered with a reset.
            self.endpoint.abort(now);
            while self.endpoint.poll_transmit(now).is_some() {}
            self.endpoint.handle_segment(now, segment);
        }
        self.learn_events();
    }

    /// True if the segment brings new data to an application that cannot read it any more.
    fn is_unwanted(&self, segment: &Segment) -> bool {
        let closing = matches!(self.endpoint.state(), State::FinWait1 | State::FinWait2)
            || self.released && self.endpoint.state() == State::Established;
        let deaf = self.released || self.reading_shut;
        let Some(initial) = self.endpoint.peer_initial_sequence() else { return false };
        let expected = initial.wrapping_add(1).wrapping_add(self.endpoint.received_bytes() as u32);
        let end = segment.seq.wrapping_add(segment.payload_bytes);
        closing
            && deaf
            && segment.payload_bytes > 0
            && !segment.flags.intersects(Flags::RST.union(Flags::SYN))
            && (end.wrapping_sub(expected) as i32) > 0
    }

    pub fn on_time(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.learn_events();
    }

    fn learn_events(&mut self) {
        let refused = !self.established;
        let events = self.endpoint.poll_events();
        if events.contains(Events::CONNECTED) {
            self.established = true;
        }
        if events.contains(Events::RESET) {
            self.error = Some(if refused { Errno::ECONNREFUSED } else { Errno::ECONNRESET });
            self.failed = true;
        }
        if events.contains(Events::TIMED_OUT) {
            self.error = Some(Errno::ETIMEDOUT);
            self.failed = true;
        }
    }

    /// True if no more data will ever be readable.
    pub fn is_at_end(&self) -> bool {
        let open = matches!(self.endpoint.state(), State::Established | State::FinWait1 | State::FinWait2);
        self.reading_shut || self.failed || self.established && !open
    }
}
