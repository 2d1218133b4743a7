//! Congestion marks answered without a scoreboard: half the window, once a window of data (RFC 3168 §6.1.2).

use super::{Outstanding, Recovery};
use crate::Nanos;
use crate::congestion::{CongestionControl, Controller};

impl Recovery {
    /// An acknowledgement echoes a congestion mark. True if the window was reduced for it.
    // RFC 3168 §6.1.2: the TCP source SHOULD NOT react to congestion indications more than once every window of data, be
    // they marks or losses.
    pub(crate) fn on_mark(&mut self, now: Nanos, outstanding: &Outstanding, controller: &mut Controller) -> bool {
        if self.recovering || outstanding.first < self.answered || outstanding.flight_bytes == 0 {
            return false;
        }
        self.answered = outstanding.highest;
        controller.on_congestion(now, outstanding.ssthresh_base.bytes(outstanding.flight_bytes, controller.window()));
        true
    }
}
