//! The ways a connection ends.

use super::Endpoint;
use super::handshake::{State, feature};
use super::shared::{Connection, Reset, due};
use crate::Nanos;
use crate::connection::shared::Events;
use crate::segment::{Flags, Segment};
use crate::sequence::{SeqNum, wire};

impl Connection {
    /// Our FIN leaves, maybe not for the first time.
    pub(crate) fn on_fin_sent(&mut self) {
        match self.handshake.state {
            State::Established => self.handshake.state = State::FinWait1,
            State::CloseWait => self.handshake.state = State::LastAck,
            _ => {}
        }
    }
}

impl Endpoint {
    /// The application has no more to write: a FIN follows its data. Reading goes on.
    ///
    /// A connection still in its handshake sends its data and FIN once established; one that is listening closes.
    pub fn close(&mut self, _now: Nanos) {
        match self.conn.handshake.state {
            State::Closed => {}
            State::Listen => self.finish(State::Closed, Events::CLOSED),
            _ => {
                self.sender.close();
                self.conn.due |= due::STREAM;
            }
        }
    }

    /// Ends the connection immediately, with a RST if the peer knows of it.
    // RFC 9293 §3.10.5.
    pub fn abort(&mut self, _now: Nanos) {
        let peer_knows =
            !matches!(self.conn.handshake.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        if self.conn.handshake.state == State::Closed {
            return;
        }
        let event = if self.is_finished() { Events::NONE } else { Events::CLOSED };
        self.finish(State::Closed, event);
        if peer_knows {
            let (seq, ack) = (wire(self.sender.snd().max), wire(self.receiver.next()));
            let stamped = self.conn.handshake.has(feature::TIMESTAMPS);
            self.queue_reset(Reset { seq, ack, flags: Flags::RST | Flags::ACK, stamped });
        }
    }

    /// The connection is over; nothing is due or pending any more.
    pub(crate) fn finish(&mut self, state: State, event: Events) {
        self.conn.handshake.state = state;
        self.conn.events |= event;
        self.sender.stop();
        self.receiver.stop();
        self.conn.due = 0;
    }

    pub(crate) fn on_fin_acknowledged(&mut self) {
        match self.conn.handshake.state {
            State::FinWait1 => self.conn.handshake.state = State::FinWait2,
            State::Closing => self.finish(State::TimeWait, Events::CLOSED),
            State::LastAck => self.finish(State::Closed, Events::CLOSED),
            _ => {}
        }
    }

    /// The peer's FIN arrived, and all of its data before it.
    pub(crate) fn on_peer_fin(&mut self) {
        self.conn.events |= Events::PEER_CLOSED;
        match self.conn.handshake.state {
            State::Established => {
                self.conn.handshake.state = State::CloseWait;
                if self.conn.handshake.has(feature::ADAPTIVE_ACK) {
                    return self.receiver.hold_ack_of_fin();
                }
            }
            State::FinWait1 => self.conn.handshake.state = State::Closing,
            State::FinWait2 => self.finish(State::TimeWait, Events::CLOSED),
            _ => {}
        }
        self.conn.due |= due::ACK;
    }

    /// A RST arrived with this sequence position.
    // RFC 9293 §3.10.7.4: a RST is valid only at RCV.NXT; elsewhere in the window it is answered with a challenge ACK.
    pub(crate) fn on_reset(&mut self, now: Nanos, seq: SeqNum) {
        if seq == self.receiver.next() {
            let event = if self.conn.handshake.state == State::TimeWait { Events::NONE } else { Events::RESET };
            self.finish(State::Closed, event);
        } else if self.receiver.is_acceptable(&self.conn, seq, 0) {
            self.send_challenge_ack(now);
        }
    }

    /// Answers a segment that belongs to no connection, or to another, with a RST.
    // RFC 9293 §3.10.7.1 and §3.10.7.3.
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.queue_reset(if segment.flags.contains(Flags::ACK) {
            Reset { seq: segment.ack, flags: Flags::RST, ..Reset::default() }
        } else {
            let ack = segment.seq.wrapping_add(segment.sequence_length());
            Reset { ack, flags: Flags::RST | Flags::ACK, ..Reset::default() }
        });
    }

    fn queue_reset(&mut self, reset: Reset) {
        self.receiver.memory_or_new(&self.conn.profile, self.sender.snd().iss).reset = reset;
        self.conn.due |= due::RESET;
    }

    pub(crate) fn reset_segment(&mut self, now: Nanos) -> Segment {
        self.conn.stats.segments_sent += 1;
        let Reset { seq, ack, flags, stamped } = self.receiver.reset();
        // RFC 7323 §3.2: TSopt SHOULD be sent in a RST of the connection.
        let timestamps = self.receiver.timestamps().filter(|_| stamped).map(|timestamps| timestamps.option(now));
        Segment { seq, ack, flags, timestamps, ..Segment::EMPTY }
    }
}
