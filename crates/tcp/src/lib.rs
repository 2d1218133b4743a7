//! A TCP endpoint without input or output: one end of one connection, driven by its caller.
//!
//! The contract: call [`Endpoint::connect`], [`write`](Endpoint::write), [`read`](Endpoint::read),
//! [`close`](Endpoint::close), [`handle_segment`](Endpoint::handle_segment) and
//! [`handle_timeout`](Endpoint::handle_timeout) when those things happen, with times that never decrease; after each
//! call, take every segment that [`poll_transmit`](Endpoint::poll_transmit) hands out until it answers `None`,
//! schedule a `handle_timeout` for [`poll_timeout`](Endpoint::poll_timeout), if that is set, and look at
//! [`poll_events`](Endpoint::poll_events). The endpoint never holds payload: it deals in counts of stream bytes and in
//! ranges of sequence numbers, and the caller keeps the bytes (or, in a simulation, has none). An application that
//! consumes at once calls `read` between `handle_segment` and `poll_transmit`, so that the acknowledgment already
//! announces the window that it freed; in the same place it writes the data that is to be piggybacked on that
//! acknowledgment. The endpoint owns no clock, no timer, no socket and no randomness. It allocates when it is made,
//! when a connection begins to need something (a start-up scheme, the ends of records), and as its scoreboard or the
//! gaps in its received data become more than ever before, but not segment by segment. TIME-WAIT arms no timer: a
//! simulation has no old duplicates of the same pair of ports to fear beyond the packets in flight, so the state lasts,
//! acknowledging late segments, until the caller recycles the endpoint.
//!
//! [`Endpoint::listen`] keeps what the sender goes through for [`Endpoint::poll_sender_event`]: why slow start ended,
//! recovery, undo, idle restart, probes. Without it that costs one test of a bit per ACK.
//!
//! Behaviour is a [`Profile`]: initial, restart and loss windows, start-up scheme, lost-SYN rule, options, receive window,
//! acknowledgments, timers, recovery, congestion control and its validation.
//!
//! To find a rule, follow one ACK through the files: `ONE_ACK.md` beside this crate's manifest.
//!
//! Imports go one way: `connection/`, with the endpoint, imports `sender/` and `receiver/`, and these import `profile/`,
//! which imports the files of start-up schemes and controllers (all but `startup/steps.rs`, in which the sender uses the
//! schemes). Those know no sender, and of `profile/` only its errors. The state that both halves share stands in files of
//! `connection/` that import neither of them.

mod amounts;
mod connection;
mod event;
mod profile;
mod receiver;
mod sender;
mod timers;

use firstflight_segment::{self as segment, sequence};

pub use amounts::{Bytes, Segments};
pub use connection::Endpoint;
pub use connection::handshake::State;
pub use connection::info::{Info, Stats};
pub use connection::shared::Events;
pub use event::{CongestionState, SenderEvent, Trigger, event_words};
pub use firstflight_segment::{
    Ecn, Flags, MOST_SACK_BLOCKS, PathOption, QuickStart, SackBlocks, Segment, SentAt, Timestamps,
};
pub use profile::choices::Choices;
pub use profile::{
    AckPolicy, Adaptive, AdaptiveAck, AfterSynLoss, EcnPolicy, IdleCheck, InitialWindow, Lesson, MemoryOf, Nagle,
    NewRenoRules, Profile, ProfileError, ReceiveWindowGrowth, RecoveryAlgorithm, RecoveryExit, Remembered, RenoRules,
    RestartWindow, RtoEstimator, RtoRules, RttSamples, SackCompression, ScoreboardRules, SendBuffer, SsthreshBase,
    SsthreshRules, SynLossResponse, TailLossProbe, TimerTick, Trains, WindowPacing, WindowValidation,
};
pub use sender::congestion::{
    Acknowledged, CongestionAlgorithm, CongestionAvoidance, CongestionControl, Custom, CustomController, Delivery,
    Hystart, RoundTrip, SlowStartGrowth, Start, Window,
};
pub use sender::initial_window::adaptive::PopulationWindow;
pub use sender::initial_window::remembered::DestinationMemory;
pub use sender::initial_window::{Outcome, StartingPoint};
pub use sender::pacing::{PacedFlight, Rate};
pub use sender::startup::{CustomStartup, FirstSend, Growth, SendState, Startup, StartupScheme};
pub use timers::Deadline;

/// Nanoseconds of the caller's clock.
pub type Nanos = u64;

const MILLISECOND: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;
