//! Virtual time, the connections, and the segments that left them.

use super::connection::Connection;
use crate::script::seconds;
use firstflight_tcp::{Nanos, Segment};
use std::collections::VecDeque;

/// Segments shown with a difference.
const SHOWN: usize = 10;

/// Timers and segments that a script may need; one that needs more does not come to rest.
const MOST_STEPS: u64 = 100_000;

/// A segment that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub at: Nanos,
    pub connection: usize,
    pub segment: Segment,
    /// Place among everything that was sent and received.
    pub number: usize,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub now: Nanos,
    /// The clock of the system under test at the script's time 0.
    clock_at_start: Nanos,
    pub connections: Vec<Connection>,
    /// Not yet looked at by the script.
    pub departures: VecDeque<Departure>,
    /// Everything sent and received, as a script would write it.
    seen: Vec<String>,
    /// Timers fired and segments taken so far.
    steps: u64,
    /// The interface takes no packet: connections keep their data to send.
    interface_is_full: bool,
}

impl World {
    /// At the script's time 0.
    pub fn new(clock_at_start: Nanos) -> Self {
        Self { clock_at_start, ..Self::default() }
    }

    /// True if the script needs more steps than any sound one does.
    pub fn is_exhausted(&self) -> bool {
        self.steps > MOST_STEPS
    }

    /// The clock of the system under test now.
    pub fn clock(&self) -> Nanos {
        self.now + self.clock_at_start
    }

    /// The connection that packets belong to: the latest one.
    pub fn current(&self) -> Option<usize> {
        self.connections.len().checked_sub(1)
    }

    pub fn add(&mut self, connection: Connection) -> usize {
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// Takes the segments that the connection has to send.
    pub fn flush(&mut self, connection: usize) {
        if self.interface_is_full {
            return;
        }
        let clock = self.clock();
        while let Some(segment) = self.connections[connection].endpoint.poll_transmit(clock) {
            self.steps += 1;
            if self.is_exhausted() {
                return;
            }
            let packet = self.connections[connection].packet_of(&segment);
            self.seen.push(format!("{} > {packet}", seconds(self.now)));
            let number = self.seen.len();
            self.departures.push_back(Departure { at: self.now, connection, segment, number });
        }
    }

    /// The interface takes no packet any more, or again.
    pub fn set_interface_is_full(&mut self, full: bool) {
        self.interface_is_full = full;
        (0..self.connections.len()).for_each(|connection| self.flush(connection));
    }

    /// A segment arrives; `written` is how the script writes it.
    pub fn deliver(&mut self, connection: usize, segment: &Segment, written: &str) {
        self.seen.push(format!("{} < {written}", seconds(self.now)));
        let clock = self.clock();
        self.connections[connection].deliver(clock, segment);
        self.flush(connection);
    }

    /// The next timer of any connection.
    pub fn next_timer(&self) -> Option<Nanos> {
        let next = self.connections.iter().map(|connection| connection.endpoint.poll_timeout()).min()?;
        next.time().map(|time| time.saturating_sub(self.clock_at_start))
    }

    /// Lets the next timer expire, if it does so until then; false if none does.
    pub fn step(&mut self, until: Nanos) -> bool {
        let Some(next) = self.next_timer().filter(|&next| next <= until && !self.is_exhausted()) else { return false };
        self.now = self.now.max(next);
        let clock = self.clock();
        for connection in 0..self.connections.len() {
            if self.connections[connection].endpoint.poll_timeout().is_due(clock) {
                self.steps += 1;
                self.connections[connection].on_time(clock);
                self.flush(connection);
            }
        }
        true
    }

    /// The latest segments, up to and including the one with that number.
    pub fn history(&self, number: usize) -> &[String] {
        let end = number.min(self.seen.len());
        &self.seen[end.saturating_sub(SHOWN)..end]
    }

    /// Number of segments sent and received.
    pub fn count(&self) -> usize {
        self.seen.len()
    }
}
