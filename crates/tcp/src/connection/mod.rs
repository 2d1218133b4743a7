//! One end of a connection: its state, and its interface to the application.

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

pub use events::Events;
use extras::Extras;
pub use inspect::Info;
pub use stats::Stats;

use crate::profile::{LARGEST_WINDOW, Profile};
use crate::receiver::Memory;
use crate::receiver::reassembly::Reassembly;
use crate::segment::{Flags, SentAt};
use crate::sender::congestion::{Controller, Other, Start};
use crate::sender::nagle::Nagle;
use crate::sender::recovery::{Recovery, Scoreboard};
use crate::sender::rtt::{LinuxVariation, RttEstimator};
use crate::sequence::{SeqNum, origin, wire};
use crate::timers::Timers;
use crate::{Deadline, Nanos};
use ecn::EcnState;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::sync::Arc;

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
    /// SND.UNA: first position not acknowledged.
    pub(crate) una: SeqNum,
    /// SND.NXT: next position to send; goes back to `una` when the retransmission timer expires.
    pub(crate) nxt: SeqNum,
    /// One past the highest position sent.
    pub(crate) highest_sent: SeqNum,
    /// One past the last byte that the application wrote: the position of our FIN.
    pub(crate) data_end: SeqNum,
    /// RCV.NXT: next position expected.
    pub(crate) rcv_nxt: SeqNum,
    /// Next position that the application will read.
    pub(crate) read_next: SeqNum,
    /// Right edge of the window announced.
    pub(crate) rcv_edge: SeqNum,
    /// Sequence position and acknowledgment of the latest window update (SND.WL1, SND.WL2).
    pub(crate) window_seq: SeqNum,
    pub(crate) window_ack: SeqNum,
    pub(crate) timers: Timers,
    /// One past the last segment of new data that was not full.
    pub(crate) small_end: SeqNum,
    /// When payload was last sent; during the handshake, when our SYN or SYN-ACK was sent, unless it was sent twice.
    pub(crate) last_sent_at: Option<SentAt>,
    pub(crate) profile: Arc<Profile>,
    /// State that only some connections have.
    pub(crate) extras: Extras,
    pub(crate) state: State,
    pub(crate) due: u8,
    pub(crate) features: u8,
    pub(crate) events: Events,
    pub(crate) ecn: EcnState,
    /// Shifts of the window fields that we send and receive.
    pub(crate) rcv_shift: u8,
    pub(crate) snd_shift: u8,
    /// Both SYNs carry the window scale option.
    pub(crate) scaling_is_on: bool,
    /// When a small segment waits.
    pub(crate) nagle: Nagle,
    /// The application holds back a last segment that is not full.
    pub(crate) corked: bool,
    /// The application wants our FIN sent after the data.
    pub(crate) closing: bool,
    /// Something left since the window was last validated.
    pub(crate) sent_since_validation: bool,
    /// A first flight or restart burst of more than 4 KB lost something.
    pub(crate) burst_was_lost: bool,
    /// Some of the initial window was retransmitted, or the SYN-ACK was marked on the path.
    pub(crate) initial_window_failed: bool,
    /// Largest congestion window before a reduction, in bytes.
    pub(crate) largest_window: u32,
    /// Effective segment size in both directions.
    pub(crate) mss: u32,
    /// Window of the peer, bytes.
    pub(crate) peer_window: u32,
    /// The smaller of `peer_window` and the profile's bound on the send window, bytes.
    pub(crate) send_window: u32,
    pub(crate) largest_peer_window: u32,
    /// Data segments received in order since the last acknowledgment.
    pub(crate) unacknowledged_segments: u32,
    pub(crate) controller: Controller,
    pub(crate) recovery: Recovery,
    pub(crate) rtt: RttEstimator,
    pub(crate) stats: Stats,
    pub(crate) reassembly: Reassembly,
    /// Sequence number of the peer's FIN, once it arrived. None is 0.
    pub(crate) peer_fin: Option<NonZeroU64>,
    /// Sequence numbers of the first flight, our SYN included; none until data is acknowledged.
    pub(crate) first_flight: Option<NonZeroU32>,
    /// The latest burst under an initial or restart window, and its sequence numbers: none until some of them are
    /// acknowledged.
    pub(crate) burst_start: SeqNum,
    pub(crate) burst: Option<NonZeroU32>,
    pub(crate) initial_sequence: u32,
    /// Sequence number of the peer's SYN, once `rcv_nxt` says that it arrived.
    pub(crate) peer_initial_sequence: u32,
    /// Initial window that others have left, in segments; none: as the profile's policy says.
    pub(crate) start_window: Option<NonZeroU16>,
    /// Segments of cwnd with which data began, after lost SYNs reduced the initial window; none before that.
    pub(crate) initial_segments: Option<NonZeroU16>,
    /// Slow start threshold that others have left, in segments; none: as the profile says.
    pub(crate) start_ssthresh: Option<NonZeroU16>,
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
            una: initial,
            nxt: initial,
            highest_sent: initial,
            data_end: initial + 1,
            rcv_nxt: 0,
            read_next: 0,
            rcv_edge: 0,
            window_seq: 0,
            window_ack: 0,
            timers: Timers::default(),
            small_end: 0,
            last_sent_at: None,
            extras: recycled.extras.for_another(&profile, initial_sequence),
            state,
            due: 0,
            features: Memory::features(&profile),
            events: Events::NONE,
            ecn: EcnState::default(),
            rcv_shift: 0,
            snd_shift: 0,
            scaling_is_on: false,
            nagle: profile.nagle,
            corked: false,
            closing: false,
            sent_since_validation: false,
            burst_was_lost: false,
            initial_window_failed: false,
            largest_window: 0,
            mss,
            peer_window: 0,
            send_window: 0,
            largest_peer_window: 0,
            unacknowledged_segments: 0,
            controller: Controller::new_in(recycled.controller, &start),
            recovery: Recovery::new_in(recycled.scoreboard, &profile, initial),
            rtt: RttEstimator::new_in(recycled.rtt, &profile),
            stats: Stats::default(),
            reassembly: Reassembly::default(),
            peer_fin: None,
            first_flight: None,
            burst_start: initial + 1,
            burst: None,
            initial_sequence,
            peer_initial_sequence: 0,
            start_window: None,
            initial_segments: None,
            start_ssthresh: None,
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
        if !self.closing {
            self.note_writing(now);
            self.queue_for_trains(now);
            self.data_end = self.data_end.saturating_add(bytes).min(ENDLESS);
            self.due |= due::STREAM;
        }
    }

    /// The application consumes up to `bytes` of the readable data; returns how many it got. A window update is sent
    /// if the peer may be waiting for one.
    #[inline]
    pub fn read(&mut self, bytes: u64) -> u64 {
        let from = self.read_next;
        let taken = bytes.min(self.readable_bytes());
        self.read_next += taken;
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
        debug_assert!(self.una <= self.nxt && self.nxt <= self.highest_sent, "in flight is at most what was sent");
        debug_assert!(self.highest_sent <= self.data_end + u64::from(self.closing), "nothing is sent before written");
        debug_assert!(self.cwnd_bytes() >= self.mss, "the congestion window holds at least one segment");
        debug_assert!(self.read_next <= self.rcv_nxt, "nothing is read before it arrives");
        debug_assert!(!self.timers.ack.is_set() || self.state >= State::Established);
        debug_assert!(
            !self.timers.retransmit.is_set() || !matches!(self.state, State::Closed | State::Listen | State::TimeWait)
        );
    }
}
