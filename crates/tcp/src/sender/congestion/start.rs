//! What a congestion controller begins with.

use crate::{MILLISECOND, Nanos};
use serde::{Deserialize, Serialize};

/// Growth of cwnd in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartGrowth {
    /// One segment for each acknowledgment of new data.
    PerAck,
    /// The bytes newly acknowledged, at most one segment (RFC 5681).
    AbcL1,
    /// The bytes newly acknowledged, however many, up to the threshold; the rest counts towards congestion
    /// avoidance (Linux).
    AbcUnlimited,
}

/// Growth of cwnd in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionAvoidance {
    /// SMSS²/cwnd for each acknowledgment of new data.
    PerAck,
    /// One segment for each window of bytes acknowledged.
    PerWindow,
}

/// What every algorithm begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Effective segment size.
    pub mss_bytes: u32,
    /// cwnd to begin with.
    pub window_bytes: u32,
    /// ssthresh to begin with; without one, slow start ends at the first congestion.
    pub ssthresh_bytes: Option<u32>,
    /// cwnd after a timeout.
    pub loss_window_bytes: u32,
    /// RTT from the handshake; none before it is over, or if it gives no sample.
    pub rtt: Option<Nanos>,
    /// When the handshake was over; none before.
    pub established_at: Option<Nanos>,
    pub(crate) settings: Settings,
}

/// What the algorithms take from elsewhere in the profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub reno: RenoSettings,
    pub cubic: CubicSettings,
    /// Stands in for the randomness of BBR's first phase.
    pub bbr_seed: u32,
}

impl Start {
    /// A connection before its handshake, to try a controller without one. cwnd after a timeout is one segment.
    pub fn new(mss_bytes: u32, window_bytes: u32) -> Self {
        Self {
            mss_bytes,
            window_bytes,
            ssthresh_bytes: None,
            loss_window_bytes: mss_bytes,
            rtt: None,
            established_at: None,
            settings: Settings {
                reno: RenoSettings {
                    slow_start_growth: SlowStartGrowth::AbcUnlimited,
                    congestion_avoidance: CongestionAvoidance::PerWindow,
                    whole_segment_ssthresh: true,
                },
                cubic: CubicSettings { tick_ns: MILLISECOND, paced: false },
                bbr_seed: 0,
            },
        }
    }

    /// A window of segments of 1000 bytes.
    #[cfg(test)]
    pub(crate) fn of(window_segments: u32) -> Self {
        Self::new(1000, window_segments * 1000)
    }
}

/// The settings of Reno, and of those that grow as it does. As in the profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenoSettings {
    pub slow_start_growth: SlowStartGrowth,
    pub congestion_avoidance: CongestionAvoidance,
    pub whole_segment_ssthresh: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CubicSettings {
    /// Tick of the system's clock, in which it counts time.
    pub tick_ns: Nanos,
    /// The profile paces the data that the window allows.
    pub paced: bool,
}
