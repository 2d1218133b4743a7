//! One end of a connection: its state, and its interface to the application.
//!
//! An [`Endpoint`] has two halves, [`Sender`] and [`Receiver`], whose fields are their own, and what they share, a
//! [`Connection`], which their methods are handed. Its [`Handshake`] is written here alone.
//! `Endpoint` opens and closes, hands arriving segments to the halves, and makes segments of what they have to send.

mod close;
pub(crate) mod ecn;
pub(crate) mod handshake;
pub(crate) mod info;
mod inspect;
mod open;
mod options;
mod path_option;
mod receive;
pub(crate) mod shared;
pub(crate) mod timestamps;
mod transmit;

use crate::event::SenderEvent;
use crate::profile::{Nagle, Profile};
use crate::receiver::Receiver;
use crate::receiver::memory::{Memory, ReceiverExtras};
use crate::sender::Sender;
use crate::sender::starting_point::RecycledSender;
use crate::{Deadline, Nanos};
use ecn::EcnState;
use handshake::{Handshake, State, feature};
use info::Stats;
use shared::{Connection, Events, due};
use std::sync::Arc;

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
        let receiver = self.receiver.take_memory();
        *self = Self::built(Arc::clone(profile), initial_sequence, state, sender, receiver);
    }

    fn new(profile: Arc<Profile>, initial_sequence: u32, state: State) -> Self {
        Self::built(profile, initial_sequence, state, RecycledSender::default(), ReceiverExtras::default())
    }

    fn built(profile: Arc<Profile>, iss: u32, state: State, sender: RecycledSender, receiver: ReceiverExtras) -> Self {
        debug_assert_eq!(profile.validate(), Ok(()));
        Self {
            sender: Sender::new_in(sender, &profile, iss),
            receiver: Receiver::new_in(receiver, &profile, iss),
            conn: Connection {
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
    pub fn poll_timeout(&self) -> Deadline {
        self.receiver.ack_timer().earliest(self.sender.deadline())
    }

    /// Events since the last call, which clears them.
    pub fn poll_events(&mut self) -> Events {
        std::mem::take(&mut self.conn.events)
    }

    /// From now on the sender's events are kept for [`poll_sender_event`](Self::poll_sender_event).
    pub fn listen(&mut self) {
        self.conn.handshake.features |= feature::LISTENER;
        self.sender.listen(&self.conn);
    }

    /// The sender's next event, in the order of time, if somebody [listens](Self::listen).
    pub fn poll_sender_event(&mut self) -> Option<SenderEvent> {
        self.sender.next_event()
    }

    /// Replaces the rule for small segments (`TCP_NODELAY` turns it off).
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.sender.small_segments().nagle = nagle;
        self.conn.due |= due::STREAM;
    }

    /// True if a last segment that is not full waits for more data (`TCP_CORK`).
    pub fn set_cork(&mut self, on: bool) {
        self.sender.small_segments().corked = on;
        self.conn.due |= due::STREAM;
    }

    /// Ends a record after the data written so far (`MSG_EOR`): no segment will span this place, neither an original
    /// nor a retransmission.
    pub fn end_record(&mut self) {
        self.sender.end_record(&self.conn);
    }

    /// Whether acknowledgments are sent immediately or delayed to be piggybacked on data, from now until the policy
    /// changes that (`TCP_QUICKACK`). Without effect unless the policy is [`Adaptive`](crate::AckPolicy::Adaptive).
    pub fn set_quick_ack(&mut self, quick: bool) {
        self.receiver.set_quick_ack(&mut self.conn, quick);
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
