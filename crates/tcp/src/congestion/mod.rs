//! Congestion control: how large the window is when nothing is being repaired, and what loss does to it.
//!
//! A controller knows nothing of sequence numbers, timers or retransmission: `recovery` decides *that* there was
//! congestion, the controller decides *how much* to send from then on. One file an algorithm.

mod reno;

use crate::Nanos;
use reno::Reno;
use serde::{Deserialize, Serialize};

/// Growth of cwnd in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartGrowth {
    /// One segment for each acknowledgement of new data.
    PerAck,
    /// The bytes newly acknowledged, at most one segment (RFC 5681).
    Bytes,
}

/// Growth of cwnd in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionAvoidance {
    /// SMSS²/cwnd for each acknowledgement of new data.
    PerAck,
    /// One segment for each window of bytes acknowledged.
    PerWindow,
}

/// An acknowledgement of new data outside of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Bytes newly acknowledged.
    pub bytes: u32,
}

/// What a congestion control algorithm answers to.
pub(crate) trait CongestionControl {
    /// `bytes` of payload leave.
    fn on_sent(&mut self, now: Nanos, bytes: u32);
    /// New data is acknowledged, and nothing is being repaired.
    fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged);
    /// Loss was noticed by duplicate acknowledgements, with so many bytes in flight: once a loss event.
    fn on_congestion(&mut self, now: Nanos, flight_bytes: u32);
    /// The retransmission timer expired, with so many bytes in flight; `first` unless it is for the same segment
    /// again.
    fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool);
    /// The congestion window, in bytes.
    fn window(&self) -> u32;
    /// The slow start threshold, in bytes.
    fn ssthresh(&self) -> u32;
    /// Replaces the window: initial, restart and loss-recovery rules that lie outside of the algorithm.
    fn set_window(&mut self, bytes: u32);
}

/// Settings that every algorithm begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub mss_bytes: u32,
    pub window_bytes: u32,
    pub ssthresh_bytes: u32,
    pub loss_window_bytes: u32,
    pub slow_start_growth: SlowStartGrowth,
    pub congestion_avoidance: CongestionAvoidance,
}

/// The algorithms, dispatched statically.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(Reno),
}

impl Controller {
    pub(crate) fn new(start: &Start) -> Self {
        Self::Reno(Reno::new(start))
    }
}

impl CongestionControl for Controller {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u32) {
        match self {
            Self::Reno(reno) => reno.on_sent(now, bytes),
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged) {
        match self {
            Self::Reno(reno) => reno.on_ack(now, acknowledged),
        }
    }

    fn on_congestion(&mut self, now: Nanos, flight_bytes: u32) {
        match self {
            Self::Reno(reno) => reno.on_congestion(now, flight_bytes),
        }
    }

    fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool) {
        match self {
            Self::Reno(reno) => reno.on_timeout(now, flight_bytes, first),
        }
    }

    #[inline]
    fn window(&self) -> u32 {
        match self {
            Self::Reno(reno) => reno.window(),
        }
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        match self {
            Self::Reno(reno) => reno.ssthresh(),
        }
    }

    fn set_window(&mut self, bytes: u32) {
        match self {
            Self::Reno(reno) => reno.set_window(bytes),
        }
    }
}
