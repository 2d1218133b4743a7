//! Rules that end slow start before a loss does.

use super::hystart::{self, Detectors, Progress};
use super::hystart_plus_plus::HystartPlusPlus;
use super::interface::RoundTrip;
use crate::Nanos;
use crate::amounts::Bytes;
use crate::event::Trigger;
use serde::{Deserialize, Serialize};

/// The rule that ends slow start when the path begins to queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hystart {
    /// None: slow start lasts until the threshold or a loss.
    Off,
    /// Linux's HyStart with both of its detectors (`hystart_detect` = 3, the default).
    #[default]
    Hystart,
    /// Linux's HyStart with only the length of ACK trains (`hystart_detect` = 1).
    AckTrain,
    /// Linux's HyStart with only the rise of delay (`hystart_detect` = 2).
    Delay,
    /// HyStart++ (RFC 9406): a rise of delay slows growth down first, and ends slow start if it lasts.
    HystartPlusPlus,
}

/// The rule at work, for a controller to embed.
#[derive(Clone, Debug)]
pub(super) enum SlowStartExit {
    Off,
    Hystart(hystart::Hystart),
    PlusPlus(HystartPlusPlus),
}

impl SlowStartExit {
    pub(super) fn new(rule: Hystart, paced: bool) -> Self {
        let linux = |ack_train, delay| Self::Hystart(hystart::Hystart::new(Detectors { ack_train, delay }, paced));
        match rule {
            Hystart::Off => Self::Off,
            Hystart::Hystart => linux(true, true),
            Hystart::AckTrain => linux(true, false),
            Hystart::Delay => linux(false, true),
            Hystart::HystartPlusPlus => Self::PlusPlus(HystartPlusPlus::new(paced)),
        }
    }

    /// A round trip was measured in slow start; true: slow start is to end here.
    pub(super) fn on_round_trip(&mut self, now: Nanos, sample: &RoundTrip, progress: &Progress) -> bool {
        match self {
            Self::Off => false,
            Self::Hystart(hystart) => hystart.on_round_trip(now, sample, progress),
            Self::PlusPlus(hystart) => hystart.on_round_trip(sample),
        }
    }

    /// Why it has ended slow start, if it has.
    pub(super) fn found(&self) -> Option<Trigger> {
        match self {
            Self::Off => None,
            Self::Hystart(hystart) => hystart.found,
            Self::PlusPlus(hystart) => hystart.is_done().then_some(Trigger::ConservativeSlowStart),
        }
    }

    /// The growth of the window in slow start for this amount acknowledged; none: as without the rule.
    pub(super) fn growth(&self, bytes: Bytes, mss: Bytes) -> Option<Bytes> {
        match self {
            Self::Off | Self::Hystart(_) => None,
            Self::PlusPlus(hystart) => hystart.growth(bytes, mss),
        }
    }

    /// Loss or an ECN mark ended slow start, or came after it.
    pub(super) fn on_congestion(&mut self) {
        if let Self::PlusPlus(hystart) = self {
            hystart.stop();
        }
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout(&mut self, now: Nanos) {
        match self {
            Self::Off => {}
            Self::Hystart(hystart) => hystart.restart(now),
            Self::PlusPlus(hystart) => hystart.stop(),
        }
    }
}
