//! One end of a connection: its state, and its interface to the application.
//!
//! An [`Endpoint`] has two halves, [`Sender`] and [`Receiver`], whose fields are their own, and what they share, a
//! [`Connection`], which their methods are handed. Its [`Handshake`] is written here, but for the bit of a listener.
//! `Endpoint` opens and closes, hands arriving segments to the halves, and makes segments of what they have to send.

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
pub use handshake::State;
pub(crate) use handshake::{Handshake, feature};
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

/// What the halves of an endpoint share.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub profile: Arc<Profile>,
    /// State that only some connections have.
    pub extras: Extras,
    pub handshake: Handshake,
    /// Things to send, of [`due`].
    pub due: u8,
    /// Events that the application has not polled yet.
    pub events: Events,
    pub ecn: EcnState,
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
                handshake: Handshake::new(state, profile.mss_bytes, Memory::features(&profile)),
                due: 0,
                events: Events::NONE,
                ecn: EcnState::default(),
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
        self.receiver.check_invariants(self.conn.handshake.state);
    }

    #[cfg(test)]
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }
}
