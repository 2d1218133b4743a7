//! The ways a connection ends.

use super::{Endpoint, Reset, State, due, feature};
use crate::Nanos;
use crate::connection::Events;
use crate::segment::{Flags, Segment};
use crate::sequence::{SeqNum, wire};

impl Endpoint {
    /// The application has no more to write: a FIN follows its data. Reading goes on.
    ///
    /// A connection still in its handshake sends its data and FIN once established; one that is listening closes.
    pub fn close(&mut self, _now: Nanos) {
        match self.state {
            State::Closed => {}
            State::Listen => self.finish(State::Closed, Events::CLOSED),
            _ => {
                self.snd.closing = self.snd.unwritten == 0;
                self.snd.closes_later = true;
                self.due |= due::STREAM;
            }
        }
    }

    /// Ends the connection immediately, with a RST if the peer knows of it.
    // RFC 9293 §3.10.5.
    pub fn abort(&mut self, _now: Nanos) {
        let peer_knows = !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        if self.state == State::Closed {
            return;
        }
        let event = if self.is_finished() { Events::NONE } else { Events::CLOSED };
        self.finish(State::Closed, event);
        if peer_knows {
            let (seq, ack) = (wire(self.snd.max), wire(self.rcv.nxt));
            let stamped = self.features & feature::TIMESTAMPS != 0;
            self.queue_reset(Reset { seq, ack, flags: Flags::RST | Flags::ACK, stamped });
        }
    }

    /// The connection is over; nothing is due or pending any more.
    pub(crate) fn finish(&mut self, state: State, event: Events) {
        self.state = state;
        self.events |= event;
        self.timers.stop();
        self.due = 0;
        self.snd.closing = true;
        self.extras.end_departures();
    }

    /// Our FIN leaves, maybe not for the first time.
    pub(crate) fn on_fin_sent(&mut self) {
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    pub(crate) fn on_fin_acknowledged(&mut self) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.finish(State::TimeWait, Events::CLOSED),
            State::LastAck => self.finish(State::Closed, Events::CLOSED),
            _ => {}
        }
    }

    /// The peer's FIN is the next thing in order.
    pub(crate) fn on_peer_fin(&mut self, position: SeqNum) {
        self.rcv.nxt = position + 1;
        // Linux, tcp_fin: nothing follows, so nothing is reported any more.
        self.rcv.reassembly.forget_duplicate();
        self.events |= Events::PEER_CLOSED;
        match self.state {
            State::Established => {
                self.state = State::CloseWait;
                if self.features & feature::ADAPTIVE_ACK != 0 {
                    return self.hold_ack_of_fin();
                }
            }
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.finish(State::TimeWait, Events::CLOSED),
            _ => {}
        }
        self.due |= due::ACK;
    }

    /// A RST arrived with this sequence position.
    // RFC 9293 §3.10.7.4: a RST is valid only at RCV.NXT; elsewhere in the window it is answered with a challenge ACK.
    pub(crate) fn on_reset(&mut self, seq: SeqNum) {
        if seq == self.rcv.nxt {
            let event = if self.state == State::TimeWait { Events::NONE } else { Events::RESET };
            self.finish(State::Closed, event);
        } else if self.is_acceptable(seq, 0) {
            self.due |= due::ACK;
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
        self.extras.get_or_new(&self.profile, self.snd.iss).reset = reset;
        self.due |= due::RESET;
    }

    pub(crate) fn reset_segment(&mut self, now: Nanos) -> Segment {
        self.stats.segments_sent += 1;
        let Reset { seq, ack, flags, stamped } = self.extras.reset();
        // RFC 7323 §3.2: TSopt SHOULD be sent in a RST of the connection.
        let timestamps = self.extras.memory().filter(|_| stamped).map(|memory| memory.timestamps.option(now));
        Segment { seq, ack, flags, timestamps, ..Segment::EMPTY }
    }
}
