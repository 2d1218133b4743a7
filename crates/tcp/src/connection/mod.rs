//! One end of a connection: its state, and its interface to the application.
//!
//! [`Endpoint`] holds the state of the sender (`snd`, `peer_window`, `bursts`, `sharing`, `controller`,
//! `recovery`, `rtt`), of the receiver (`rcv`) and the timers. Each part is a type in a module of `sender`, `receiver` or
//! `timers`, with the rules that need no other part. Rules over several parts are methods of `Endpoint`, in the module of
//! what they decide.

mod close;
pub(crate) mod ecn;
mod events;
mod extras;
pub(crate) mod handshake;
mod inspect;
mod options;
mod receive;
mod socket_options;
mod stats;
pub(crate) mod timestamps;
mod window_scaling;

pub use events::Events;
use extras::Extras;
pub use inspect::Info;
pub use stats::Stats;

use crate::profile::{LARGEST_WINDOW, Profile};
use crate::receiver::Memory;
use crate::receiver::sequence::ReceiveSequence;
use crate::segment::{Flags, SentAt};
use crate::sender::congestion::{Controller, Other, Start};
use crate::sender::initial_window::bursts::Bursts;
use crate::sender::peer_window::PeerWindow;
use crate::sender::recovery::{Recovery, Scoreboard};
use crate::sender::rtt::{LinuxVariation, RttEstimator};
use crate::sender::sequence::SendSequence;
use crate::sender::starting_point::Sharing;
use crate::sequence::{SeqNum, origin, wire};
use crate::timers::Timers;
use crate::{Deadline, Nanos};
use ecn::EcnState;
use std::sync::Arc;
use window_scaling::WindowScaling;

/// The states of RFC 9293 §3.3.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// No connection: not opened yet, or over.
    Closed,
    /// A server that waits for a SYN.
    Listen,
    /// A client that sent its SYN.
    SynSent,
    /// SYNs went both ways, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN is sent.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN arrived, ours is not sent.
    CloseWait,
    /// Both FINs are sent, ours is not acknowledged.
    Closing,
    /// As `Closing`, but the peer's FIN came first.
    LastAck,
    /// Over; late segments are still acknowledged.
    TimeWait,
}

/// Things to send as soon as the caller polls, as a set of bits.
pub(crate) mod due {
    /// The reset in `Extra::reset`.
    pub const RESET: u8 = 1;
    /// SYN or SYN-ACK.
    pub const SYN: u8 = 2;
    /// An acknowledgment alone, ahead of data.
    pub const ACK_FIRST: u8 = 4;
    /// The first unacknowledged segment again.
    pub const RETRANSMIT: u8 = 8;
    /// A probe of a closed window.
    pub const PROBE: u8 = 16;
    /// Whatever fits a window too small for a full segment.
    pub const OVERRIDE: u8 = 32;
    /// An acknowledgment, alone if no data goes out.
    pub const ACK: u8 = 64;
    /// The stream, as far as it may: something happened since no more of it could leave.
    pub const STREAM: u8 = 128;
    /// State before data.
    pub const URGENT: u8 = RESET | SYN | ACK_FIRST | RETRANSMIT | PROBE;
}

/// The work of every segment of a connection in addition to carrying data, as a set of bits. None for plain TCP, so one
/// test skips it all.
pub(crate) mod feature {
    /// Selective acknowledgments are agreed on.
    pub const SACK: u8 = 1;
    /// Timestamps are agreed on.
    pub const TIMESTAMPS: u8 = 2;
    /// Explicit congestion notification is agreed on.
    pub const ECN: u8 = 4;
    /// Acknowledgments follow arriving data.
    pub const ADAPTIVE_ACK: u8 = 8;
    /// The receiver stores state of arriving data.
    pub const RECEIVER: u8 = 16;
    /// An option for the routers on the path, or the answer to one, waits for the next segment.
    pub const PATH_OPTION: u8 = 32;
    /// Segments note when they were sent, and ACKs are timed by that.
    pub const ACK_ONE_WAY: u8 = 64;
}

/// End of an endless stream: later than any position that a connection can reach.
pub(crate) const ENDLESS: SeqNum = 1 << 62;

/// A reset that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reset {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: Flags,
    /// It belongs to a connection with timestamps.
    pub(crate) stamped: bool,
}

/// Memory of a connection that is over.
#[derive(Default)]
struct RecycledMemory {
    controller: Option<Box<Other>>,
    extras: Extras,
    rtt: Option<Box<LinuxVariation>>,
    scoreboard: Option<Box<Scoreboard>>,
}

/// One end of a TCP connection. The crate's documentation holds the contract.
#[derive(Clone, Debug)]
pub struct Endpoint {
    // Fields that every segment uses come first.
    /// Our stream: SND.UNA, SND.NXT, how far the application wrote, and Nagle's algorithm.
    pub(crate) snd: SendSequence,
    /// The peer's stream: RCV.NXT, the window announced, and data ahead of a hole.
    pub(crate) rcv: ReceiveSequence,
    /// The window that the peer announces: SND.WND.
    pub(crate) peer_window: PeerWindow,
    /// The retransmission or persist timer and that of the delayed acknowledgment.
    pub(crate) timers: Timers,
    /// When payload was last sent; during the handshake, when our SYN or SYN-ACK was sent, unless it was sent twice.
    pub(crate) last_sent_at: Option<SentAt>,
    pub(crate) profile: Arc<Profile>,
    /// State that only some connections have.
    pub(crate) extras: Extras,
    pub(crate) state: State,
    /// Things to send, of [`due`].
    pub(crate) due: u8,
    /// Work of every segment, of [`feature`].
    pub(crate) features: u8,
    /// Events that the application has not polled yet.
    pub(crate) events: Events,
    pub(crate) ecn: EcnState,
    pub(crate) scaling: WindowScaling,
    /// Effective segment size in both directions.
    pub(crate) mss: u32,
    /// cwnd and ssthresh.
    pub(crate) controller: Controller,
    pub(crate) recovery: Recovery,
    /// SRTT and RTO.
    pub(crate) rtt: RttEstimator,
    pub(crate) stats: Stats,
    /// The first flight, and the data after an idle time.
    pub(crate) bursts: Bursts,
    /// The initial window that others have left, and the results for others.
    pub(crate) sharing: Sharing,
}

impl Endpoint {
    /// A client, still closed: [`connect`](Self::connect) opens it.
    pub fn client(profile: Arc<Profile>, initial_sequence: u32) -> Self {
        Self::new(profile, initial_sequence, State::Closed)
    }

    /// A server that listens for one connection.
    pub fn server(profile: Arc<Profile>, initial_sequence: u32) -> Self {
        Self::new(profile, initial_sequence, State::Listen)
    }

    /// Becomes a client, as [`client`](Self::client), in the memory of a connection that has ended. Many short
    /// connections would otherwise spend much of their time on allocation.
    pub fn restart_as_client(&mut self, profile: &Arc<Profile>, initial_sequence: u32) {
        self.restart(profile, initial_sequence, State::Closed);
    }

    /// Becomes a server, as [`restart_as_client`](Self::restart_as_client).
    pub fn restart_as_server(&mut self, profile: &Arc<Profile>, initial_sequence: u32) {
        self.restart(profile, initial_sequence, State::Listen);
    }

    fn restart(&mut self, profile: &Arc<Profile>, initial_sequence: u32, state: State) {
        let start = Self::start(&self.profile, 0, self.mss, 0);
        let recycled = RecycledMemory {
            controller: self.controller.take_memory(&start),
            extras: std::mem::take(&mut self.extras),
            rtt: self.rtt.take_memory(),
            scoreboard: self.recovery.take_memory(),
        };
        *self = Self::built(Arc::clone(profile), initial_sequence, state, recycled);
    }

    fn new(profile: Arc<Profile>, initial_sequence: u32, state: State) -> Self {
        Self::built(profile, initial_sequence, state, RecycledMemory::default())
    }

    fn built(profile: Arc<Profile>, initial_sequence: u32, state: State, recycled: RecycledMemory) -> Self {
        debug_assert_eq!(profile.validate(), Ok(()));
        let initial = origin(initial_sequence);
        let mss = profile.mss_bytes;
        let start = Self::start(&profile, initial, mss, profile.initial_window.window_bytes(mss));
        Self {
            snd: SendSequence::new(initial_sequence, profile.nagle),
            rcv: ReceiveSequence::default(),
            peer_window: PeerWindow::default(),
            timers: Timers::default(),
            last_sent_at: None,
            extras: recycled.extras.for_another(&profile, initial_sequence),
            state,
            due: 0,
            features: Memory::features(&profile),
            events: Events::NONE,
            ecn: EcnState::default(),
            scaling: WindowScaling::default(),
            mss,
            controller: Controller::new_in(recycled.controller, &start),
            recovery: Recovery::new_in(recycled.scoreboard, &profile, initial),
            rtt: RttEstimator::new_in(recycled.rtt, &profile),
            stats: Stats::default(),
            bursts: Bursts::new(initial + 1),
            sharing: Sharing::default(),
            profile,
        }
    }

    pub(crate) fn start(profile: &Profile, initial: SeqNum, mss_bytes: u32, window_bytes: u32) -> Start {
        Start {
            mss_bytes,
            window_bytes: window_bytes.min(LARGEST_WINDOW),
            // RFC 5681 §3.1: the initial value of ssthresh SHOULD be set arbitrarily high.
            ssthresh_bytes: profile.initial_ssthresh_segments.map(|n| n.saturating_mul(mss_bytes)),
            loss_window_bytes: profile.loss_window_segments.saturating_mul(mss_bytes),
            algorithm: profile.startup.controller(profile.congestion_control),
            slow_start_growth: profile.slow_start_growth,
            congestion_avoidance: profile.congestion_avoidance,
            whole_segment_ssthresh: profile.ssthresh.whole_segments,
            tick_ns: profile.cubic_tick(),
            paced: profile.pacing.is_some(),
            rtt: None,
            established_at: None,
            seed: wire(initial),
        }
    }

    /// The application hands over `bytes` more. Without effect once the connection is closed or closing. A stream of
    /// 2^62 bytes is endless: nothing can be added to it.
    #[inline]
    pub fn write(&mut self, now: Nanos, bytes: u64) {
        if !self.snd.closing && !self.snd.closes_later {
            self.note_writing(now);
            self.queue_write(now, bytes);
            self.due |= due::STREAM;
        }
    }

    /// The application consumes up to `bytes` of the readable data; returns how many it got. A window update is sent
    /// if the peer may be waiting for one.
    #[inline]
    pub fn read(&mut self, bytes: u64) -> u64 {
        let from = self.rcv.read_next;
        let taken = bytes.min(self.readable_bytes());
        self.rcv.read_next += taken;
        if self.features & feature::RECEIVER != 0 {
            self.note_reading(from);
        }
        self.update_window_if_needed();
        taken
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[inline]
    pub fn poll_timeout(&self) -> Deadline {
        self.timers.next().earliest(self.pacing_deadline())
    }

    /// Events since the last call, which clears them.
    #[inline]
    pub fn poll_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn check_invariants(&self) {
        debug_assert!(
            self.snd.una <= self.snd.nxt && self.snd.nxt <= self.snd.max,
            "in flight is at most what was sent"
        );
        debug_assert!(self.snd.max <= self.snd.end(), "nothing is sent before written");
        debug_assert!(self.cwnd_bytes() >= self.mss, "the congestion window holds at least one segment");
        debug_assert!(self.rcv.read_next <= self.rcv.nxt, "nothing is read before it arrives");
        debug_assert!(!self.timers.ack.is_set() || self.state >= State::Established);
        debug_assert!(
            !self.timers.retransmit.is_set() || !matches!(self.state, State::Closed | State::Listen | State::TimeWait)
        );
    }
}
