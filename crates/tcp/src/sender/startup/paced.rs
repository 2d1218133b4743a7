//! The initial window, spread over the first round trip instead of sent as a burst.

use super::scheme::{FirstSend, StartupScheme};
use crate::amounts::Bytes;
use crate::sender::congestion::Window;
use crate::sender::pacing::flight::{PacedFlight, Rate};

/// Paces the initial window; nothing else differs from slow start.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    over_rtt_percent: u32,
}

impl Paced {
    pub(super) fn new(over_rtt_percent: u32) -> Self {
        Self { over_rtt_percent }
    }
}

impl StartupScheme for Paced {
    // RFC 6928 §2 leaves the initial window's segments unpaced; RFC 9002 §7.7 asks of QUIC that they be paced, or else
    // bounded. Spread over the whole round trip the last leaves one interval before the first is acknowledged.
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        let time = (u128::from(first.rtt?) * u128::from(self.over_rtt_percent) / 100) as u64;
        let bytes = whole_segments(window.cwnd().min(Bytes(first.send_window)), window.mss);
        Some(PacedFlight { bytes, rate: Rate::new(bytes, time), time, until_ack: false })
    }

    fn is_over(&self) -> bool {
        true
    }
}

/// The part of a window that is whole segments, or all of one that holds none.
pub(super) fn whole_segments(window: Bytes, mss: Bytes) -> u64 {
    let whole = window.round_down(mss);
    u64::from(if whole > Bytes::ZERO { whole } else { window })
}
