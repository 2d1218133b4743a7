//! State that a receiver of plain TCP does not need, behind one pointer.

use super::ack::Arrivals;
use super::round_trip::RoundTrip;
use super::segment_size::SegmentSize;
use super::window::{Blocks, GrowingWindow};
use crate::Nanos;
use crate::connection::handshake::feature;
use crate::connection::shared::Reset;
use crate::connection::timestamps::TimestampState;
use crate::profile::{AckPolicy, Profile, RttSamples};
use crate::segment::PathOption;
use crate::sequence::SeqNum;

/// Absent in a receiver that needs none of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiverExtras(Option<Box<Memory>>);

/// None of it is used with plain acknowledgments, a fixed window and no options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// With the adaptive acknowledgment policy.
    pub arrivals: Option<Arrivals>,
    /// With a growing window, from the peer's SYN on.
    pub window: Option<GrowingWindow>,
    /// The right edge of that window need not be computed again: no data has arrived or been read since the latest segment
    /// left, at least half of the buffer is free, and the window is scaled.
    pub edge_is_current: bool,
    /// Room for the data of that window, until then.
    pub(super) spare: Blocks,
    pub segment_size: SegmentSize,
    pub(super) round_trip: RoundTrip,
    /// Last.ACK.sent: RCV.NXT of the latest segment sent.
    pub last_ack_sent: SeqNum,
    /// Every segment that ends before this position is acknowledged immediately (`AckPolicy::Heartbeat`).
    pub(super) acknowledge_each_before: SeqNum,
    pub timestamps: TimestampState,
    /// The next segment's message to the routers on the path.
    pub path_option: Option<PathOption>,
    pub reset: Reset,
    /// No challenge ACK is sent before this time.
    pub next_challenge_ack: Nanos,
}

impl Memory {
    fn new(profile: &Profile, initial_sequence: u32, spare: Blocks) -> Self {
        let arrivals = match profile.ack {
            AckPolicy::Adaptive(rules) => Some(Arrivals::new(rules, profile.timer_tick.map(|tick| tick.period_ns))),
            _ => None,
        };
        Self {
            arrivals,
            spare,
            segment_size: SegmentSize::new(profile.mss_bytes, u32::MAX),
            timestamps: TimestampState::new(initial_sequence),
            ..Self::default()
        }
    }

    /// Memory that a finished receiver leaves to the next one.
    fn take_spare(&mut self) -> Blocks {
        let spare = std::mem::take(&mut self.spare);
        self.window.take().map_or(spare, GrowingWindow::into_blocks).emptied()
    }

    /// True if a connection of this profile has a use for it.
    fn is_needed(profile: &Profile) -> bool {
        let counts_bytes = matches!(profile.ack, AckPolicy::Heartbeat { every_segment_bytes: Some(_), .. });
        Self::features(profile) != 0 || profile.timestamps || counts_bytes
    }

    /// The features of a connection of this profile that look into it whenever something arrives.
    pub fn features(profile: &Profile) -> u8 {
        let receiver = match profile.ack {
            AckPolicy::Adaptive(_) => feature::RECEIVER | feature::ADAPTIVE_ACK,
            _ if profile.receive_window_growth.is_some() => feature::RECEIVER,
            _ => 0,
        };
        receiver | if profile.rto.samples == RttSamples::AckOneWay { feature::ACK_ONE_WAY } else { 0 }
    }
}

impl ReceiverExtras {
    /// State that a receiver of this profile needs from the beginning, in the memory of a finished one if there is any.
    pub fn for_another(self, profile: &Profile, initial_sequence: u32) -> Self {
        if !Memory::is_needed(profile) {
            return Self(None);
        }
        let Some(mut old) = self.0 else {
            return Self(Some(Box::new(Memory::new(profile, initial_sequence, Blocks::default()))));
        };
        let spare = old.take_spare();
        *old = Memory::new(profile, initial_sequence, spare);
        Self(Some(old))
    }

    /// The memory, made if there is none yet.
    #[cold]
    pub fn get_or_new(&mut self, profile: &Profile, initial_sequence: u32) -> &mut Memory {
        self.0.get_or_insert_with(|| Box::new(Memory::new(profile, initial_sequence, Blocks::default())))
    }

    pub fn memory(&self) -> Option<&Memory> {
        self.0.as_deref()
    }

    pub fn memory_mut(&mut self) -> Option<&mut Memory> {
        self.0.as_deref_mut()
    }

    /// The arrivals, under the adaptive acknowledgment policy.
    pub fn arrivals(&self) -> Option<&Arrivals> {
        self.memory()?.arrivals.as_ref()
    }

    pub fn arrivals_mut(&mut self) -> Option<&mut Arrivals> {
        self.memory_mut()?.arrivals.as_mut()
    }

    pub fn growing_window(&self) -> Option<&GrowingWindow> {
        self.memory()?.window.as_ref()
    }
}
