//! What connections leave to later ones (RFC 9040). The policies are in `profile/initial_window.rs`.
//!
//! Most of them look at the segment size alone. `remembered` and `adaptive` learn from connections: the learned state
//! lives outside of any endpoint, in a [`DestinationMemory`](remembered::DestinationMemory) for each destination or a
//! [`PopulationWindow`](adaptive::PopulationWindow) for each population. Their owner asks it before it opens a connection,
//! calls [`Endpoint::start_from`](crate::Endpoint::start_from) with the result, and hands back the endpoint's
//! [`outcome`](crate::Endpoint::outcome) when the connection is over. An endpoint without this call begins with the
//! policy's value for the case that nothing is known.

pub(crate) mod adaptive;
pub(crate) mod bursts;
pub(crate) mod remembered;

use std::num::NonZeroU16;

/// Starting point of a connection from earlier ones, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartingPoint {
    /// Initial window in segments, at least 1.
    pub window_segments: u32,
    /// Slow start threshold in segments; none: as the profile says.
    pub ssthresh_segments: Option<u32>,
}

/// The results of a connection that others can use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Congestion window in whole segments, without the inflation of fast recovery.
    pub window_segments: u32,
    /// Slow start threshold in whole segments; none: arbitrarily high.
    pub ssthresh_segments: Option<u32>,
    /// Some of the initial window was retransmitted, or the SYN-ACK was marked on the path.
    pub initial_window_failed: bool,
    /// Congestion window with which data began.
    pub initial_window_segments: u32,
    /// Largest congestion window.
    pub largest_window_segments: u32,
    /// Segments that the bytes acknowledged fill, the last one in part.
    pub delivered_segments: u32,
    /// Data segments retransmitted.
    pub retransmissions: u32,
}

/// What a connection holds for those after it (RFC 9040).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// Segments of cwnd with which data began, after lost SYNs reduced the initial window; none before that.
    pub initial_segments: Option<NonZeroU16>,
    /// Some of the initial window was retransmitted, or the SYN-ACK was marked on the path.
    pub initial_window_failed: bool,
    /// A first flight or restart burst of more than 4 KB lost something.
    pub burst_was_lost: bool,
}
