//! Growth of the window, which passes through the start-up scheme as long as there is one.

use super::selective::{Selective, Sender};
use crate::Nanos;
use crate::congestion::{Acknowledged, CongestionControl};
use crate::startup::{Growth, Standing};

/// What of a repair a start-up scheme is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Fast recovery is under way.
    pub recovering: bool,
    /// Segments delivered, and called lost, so far.
    pub delivered: u32,
    pub lost: u32,
}

impl Selective {
    pub(crate) fn progress(&self) -> Progress {
        let recovering = self.state == super::selective::State::Recovery;
        Progress { recovering, delivered: self.delivered, lost: self.lost }
    }
}

impl Sender<'_> {
    fn standing(&self) -> Standing {
        Standing { una: self.una, nxt: self.nxt, flight_bytes: (self.nxt - self.una) as u32, mss_bytes: self.mss }
    }

    /// New data is acknowledged: the window may grow, if it is `allowed` to.
    #[inline]
    pub(super) fn grow(&mut self, bytes: u32, allowed: bool) {
        let standing = self.standing();
        match &mut self.launch {
            Some(launch) => launch.grow(&Growth { now: self.now, bytes, allowed }, &standing, self.controller),
            None if allowed => self.controller.on_ack(self.now, Acknowledged { bytes }),
            None => {}
        }
    }

    /// An acknowledgement gave a round trip.
    #[inline]
    pub(super) fn note_round_trip(&mut self, rtt: Nanos) {
        let standing = self.standing();
        if let Some(launch) = &mut self.launch {
            launch.on_round_trip(rtt, &standing);
        }
    }
}
