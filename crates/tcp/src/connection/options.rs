//! The options that the handshake agreed on, read from every segment that arrives. None of this runs on a connection
//! without options.

use super::Endpoint;
use super::handshake::{State, feature};
use crate::Nanos;
use crate::profile::EcnPolicy;
use crate::segment::{Flags, Segment, SentAt, TIMESTAMPS_BYTES};
use crate::sequence::SeqNum;

impl Endpoint {
    /// Takes over the options of the peer's SYN or SYN-ACK, as far as we offer or offered the same, and the room that
    /// they leave of a segment of `largest_bytes`.
    pub(crate) fn negotiate(&mut self, now: Nanos, segment: &Segment, largest_bytes: u32) {
        let profile = &self.conn.profile;
        self.conn.handshake.set_mss(largest_bytes);
        // RFC 2018 §2: SACK options may be sent once SACK-permitted was received; we send and heed them if both did.
        if segment.sack_permitted && profile.sack {
            self.conn.handshake.features |= feature::SACK;
        }
        // RFC 7323 §3.2: on if both SYNs carry the option.
        if let Some(theirs) = segment.timestamps.filter(|_| profile.timestamps) {
            self.conn.handshake.features |= feature::TIMESTAMPS;
            if let Some(timestamps) = self.receiver.timestamps_mut() {
                timestamps.record(now, theirs.value);
            }
            // RFC 6691 §2: the MSS option does not count TCP options; the sender takes them off its segments.
            self.conn.handshake.set_mss(largest_bytes.saturating_sub(TIMESTAMPS_BYTES).max(1));
        }
        if segment.sent_at.is_none() {
            // The peer has no clock in common with us, so samples are round trips.
            self.conn.handshake.features &= !feature::ACK_ONE_WAY;
        }
        let bits = Flags::ECE | Flags::CWR;
        let both = segment.flags.contains(bits);
        let granted = if segment.flags.contains(Flags::ACK) {
            // RFC 3168 §6.1.1: an ECN-setup SYN-ACK has ECE and not CWR. A peer that merely reflects has both.
            profile.ecn == EcnPolicy::On && segment.flags.contains(Flags::ECE) && !both
        } else if self.conn.handshake.state == State::SynSent {
            // Simultaneous open: both SYNs asked.
            profile.ecn == EcnPolicy::On && both
        } else {
            profile.ecn != EcnPolicy::Off && both
        };
        if granted {
            self.conn.handshake.features |= feature::ECN;
        }
    }

    /// Puts our offers on a SYN, or the agreed options on a SYN-ACK.
    pub(crate) fn offer(&self, now: Nanos, answering: bool, segment: &mut Segment) {
        let profile = &self.conn.profile;
        let agreed = |bit| !answering || self.conn.handshake.has(bit);
        if self.conn.handshake.has(feature::ACK_ONE_WAY) {
            segment.sent_at = Some(SentAt::new(now));
        }
        segment.sack_permitted = profile.sack && agreed(feature::SACK);
        if profile.timestamps && agreed(feature::TIMESTAMPS) {
            segment.timestamps = self.receiver.timestamps().map(|timestamps| timestamps.option(now));
        }
        if answering {
            if self.conn.handshake.has(feature::ECN) {
                segment.flags |= Flags::ECE;
            }
        } else if profile.ecn == EcnPolicy::On && !segment.retransmission {
            // RFC 3168 §6.1.1.1: SYNs after the first are sent without, in case something drops those with it.
            segment.flags |= Flags::ECE | Flags::CWR;
        }
    }

    /// Whether the segment that completes the handshake shows that the first copy of our SYN or SYN-ACK arrived.
    // Linux, tcp_try_undo_spurious_syn: the echo is the timestamp of the first copy.
    pub(crate) fn was_syn_retransmission_spurious(&self, segment: &Segment) -> bool {
        let echo =
            segment.timestamps.filter(|_| self.conn.handshake.has(feature::TIMESTAMPS)).map(|theirs| theirs.echo);
        self.conn.profile.undo_spurious_syn
            && self.conn.stats.syn_retransmissions > 0
            && echo.zip(self.receiver.timestamps()).is_some_and(|(echo, timestamps)| timestamps.echoes_first_syn(echo))
    }

    /// False if the segment echoes a timestamp that none of our SYNs had.
    pub(crate) fn may_be_echo(&self, now: Nanos, segment: &Segment) -> bool {
        let theirs = segment.timestamps.filter(|theirs| self.conn.profile.timestamps && theirs.echo != 0);
        theirs.zip(self.receiver.timestamps()).is_none_or(|(theirs, timestamps)| timestamps.may_echo(now, theirs.echo))
    }

    /// The timestamps of an acceptable segment whose acknowledgment was accepted too.
    // Linux, tcp_ack: TS.Recent is of segments that are not dropped.
    #[inline(never)]
    pub(crate) fn note_timestamps(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        self.update_recent(now, seq, segment);
        if self.conn.handshake.has(feature::RECEIVER) {
            self.receiver.note_echo(now, segment);
        }
    }

    /// True if a segment is no old duplicate by its timestamp; one that is, is to be dropped.
    // RFC 7323 §5.3 (PAWS). As in Linux a segment without the option passes.
    #[inline]
    pub(crate) fn passes_paws(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) -> bool {
        let (Some(theirs), Some(timestamps)) = (segment.timestamps, self.receiver.timestamps()) else { return true };
        match timestamps.lag(now, theirs.value) {
            Some(lag) if lag > 0 => self.passes_by_order(now, seq, segment, lag),
            _ => true,
        }
    }

    /// As [`passes_paws`](Self::passes_paws), for a segment with an older timestamp.
    #[cold]
    fn passes_by_order(&mut self, now: Nanos, seq: SeqNum, segment: &Segment, lag_ms: i32) -> bool {
        if self.is_reordered_ack(seq, segment, lag_ms) {
            return true;
        }
        // RFC 7323 §5.3 R1: an older timestamp: send an acknowledgment, and drop the segment.
        if segment.sequence_length() > 0 && seq < self.receiver.next() {
            // Linux, tcp_send_dupack: an old bare ACK is no sign that the peer waits for an acknowledgment.
            self.receiver.note_old_duplicate(&self.conn, seq, segment);
            self.receiver.enter_quickack(None);
        }
        self.answer_invalid(now, segment);
        false
    }

    // RFC 7323 §4.3 (2): if SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, TS.Recent takes SEG.TSval; of
    // acceptable segments only (§5.3 R3).
    fn update_recent(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        if self.receiver.is_acceptable(&self.conn, seq, segment.sequence_length()) {
            let last_ack_sent = self.receiver.last_ack_sent();
            if let (Some(theirs), Some(timestamps)) = (segment.timestamps, self.receiver.timestamps_mut()) {
                if seq <= last_ack_sent && timestamps.lag(now, theirs.value).is_none_or(|lag| lag <= 0) {
                    timestamps.record(now, theirs.value);
                }
            }
        }
    }

    /// True if a segment with an older timestamp is a bare duplicate acknowledgment that was overtaken on the way.
    // Linux (tcp_disordered_ack) lets those through that are at most 1.2 RTO late, because they can do no harm, and
    // carry the data that the sender needs for a fast retransmit.
    fn is_reordered_ack(&self, seq: SeqNum, segment: &Segment, lag_ms: i32) -> bool {
        segment.sequence_length() == 0
            && seq == self.receiver.next()
            && self.sender.knows(segment.ack, u32::from(segment.window) << self.conn.handshake.scaling.snd_shift)
            && lag_ms as Nanos * 1_000_000 <= self.sender.rtt().rto() / 5 * 6
    }
}
