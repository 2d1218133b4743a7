//! One end of a connection: its state, and its interface to the application.
//!
//! An [`Endpoint`] has two halves, [`Sender`] and [`Receiver`], whose fields are their own, and what they share, a
//! [`Connection`], which their methods are handed. `Endpoint` opens and closes, hands arriving segments to the halves, and
//! makes segments of what they have to send.

mod close;
pub(crate) mod ecn;
mod extras;
pub(crate) mod handshake;
mod inspect;
mod options;
mod path_option;
mod receive;
mod socket_options;
pub(crate) mod timestamps;
mod transmit;

use extras::Extras;
pub use inspect::{Info, Stats};

use crate::event::SenderEvent;
use crate::profile::Profile;
use crate::receiver::{Memory, Receiver};
use crate::segment::Flags;
use crate::sender::{RecycledSender, Sender};
use crate::sequence::SeqNum;
use crate::{Deadline, Nanos};
use bitflags::bitflags;
use ecn::EcnState;
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

bitflags! {
    /// A set of events for the application.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// No event.
        const NONE = 0;
        /// The handshake is complete.
        const CONNECTED = 1;
        /// New bytes arrived in order.
        const READABLE = 2;
        /// All bytes written so far are acknowledged.
        const SENT = 4;
        /// The peer's FIN arrived, and all of its data before it.
        const PEER_CLOSED = 8;
        /// The connection is over: both sides closed in good order, or [`abort`](crate::Endpoint::abort) was called.
        const CLOSED = 16;
        /// The peer reset the connection.
        const RESET = 32;
        /// The connection was aborted after too many retransmissions.
        const TIMED_OUT = 64;
    }
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
    /// Somebody listens to the sender's events.
    pub const LISTENER: u8 = 128;
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

/// Window scaling (RFC 7323 §2), as both SYNs agreed on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowScaling {
    /// Both SYNs carry the option.
    pub is_on: bool,
    /// Snd.Wind.Shift: of the window fields that we receive.
    pub snd_shift: u8,
    /// Rcv.Wind.Shift: of the window fields that we send.
    pub rcv_shift: u8,
}

/// What the halves of an endpoint share.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub profile: Arc<Profile>,
    /// State that only some connections have.
    pub extras: Extras,
    /// Effective segment size in both directions.
    pub mss: u32,
    pub state: State,
    /// Things to send, of [`due`].
    pub due: u8,
    /// Work of every segment, of [`feature`].
    pub features: u8,
    /// Events that the application has not polled yet.
    pub events: Events,
    pub ecn: EcnState,
    pub scaling: WindowScaling,
    pub stats: Stats,
}

/// One end of a TCP connection. The crate's documentation holds the contract.
#[derive(Clone, Debug)]
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
    conn: Connection,
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
        let sender = self.sender.take_memory(&self.conn);
        let extras = std::mem::take(&mut self.conn.extras);
        *self = Self::built(Arc::clone(profile), initial_sequence, state, sender, extras);
    }

    fn new(profile: Arc<Profile>, initial_sequence: u32, state: State) -> Self {
        Self::built(profile, initial_sequence, state, RecycledSender::default(), Extras::default())
    }

    fn built(profile: Arc<Profile>, iss: u32, state: State, sender: RecycledSender, extras: Extras) -> Self {
        debug_assert_eq!(profile.validate(), Ok(()));
        Self {
            sender: Sender::new_in(sender, &profile, iss),
            receiver: Receiver::default(),
            conn: Connection {
                extras: extras.for_another(&profile, iss),
                mss: profile.mss_bytes,
                state,
                due: 0,
                features: Memory::features(&profile),
                events: Events::NONE,
                ecn: EcnState::default(),
                scaling: WindowScaling::default(),
                stats: Stats::default(),
                profile,
            },
        }
    }

    /// The application hands over `bytes` more. Without effect once the connection is closed or closing. A stream of
    /// 2^62 bytes is endless: nothing can be added to it.
    #[inline]
    pub fn write(&mut self, now: Nanos, bytes: u64) {
        if !self.sender.is_closing() {
            self.sender.note_writing(&mut self.conn, now);
            self.sender.queue_write(&mut self.conn, now, bytes);
            self.conn.due |= due::STREAM;
        }
    }

    /// The application consumes up to `bytes` of the readable data; returns how many it got. A window update is sent
    /// if the peer may be waiting for one.
    #[inline]
    pub fn read(&mut self, bytes: u64) -> u64 {
        self.receiver.read(&mut self.conn, bytes)
    }

    /// Time passed. To be called once `now` reaches [`poll_timeout`](Self::poll_timeout); harmless at other times.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.receiver.on_time(&mut self.conn, now, self.sender.rtt().rto());
        if self.sender.on_time(&mut self.conn, now) {
            self.finish(State::Closed, Events::TIMED_OUT);
        }
        self.check_invariants();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[inline]
    pub fn poll_timeout(&self) -> Deadline {
        self.receiver.ack_timer().earliest(self.sender.deadline(&self.conn))
    }

    /// Events since the last call, which clears them.
    #[inline]
    pub fn poll_events(&mut self) -> Events {
        std::mem::take(&mut self.conn.events)
    }

    /// From now on the sender's events are kept for [`poll_sender_event`](Self::poll_sender_event).
    pub fn listen(&mut self) {
        self.sender.listen(&mut self.conn);
    }

    /// The sender's next event, in the order of time, if somebody [listens](Self::listen).
    pub fn poll_sender_event(&mut self) -> Option<SenderEvent> {
        self.conn.extras.listener_mut()?.events.pop_front()
    }

    fn check_invariants(&self) {
        self.sender.check_invariants(&self.conn);
        self.receiver.check_invariants(self.conn.state);
    }

    #[cfg(test)]
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }
}
