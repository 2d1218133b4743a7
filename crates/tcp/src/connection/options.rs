//! The options that the handshake agreed on, put on every segment that leaves and read from every one that arrives.
//! None of this runs on a connection without options.

use super::{Endpoint, State, due, feature};
use crate::Nanos;
use crate::connection::timestamps::OPTION_BYTES;
use crate::profile::EcnPolicy;
use crate::segment::{Flags, MOST_SACK_BLOCKS, Segment, SentAt};
use crate::sequence::{SeqNum, near};

/// Bytes of a SACK option with padding, without those of its ranges, and of a range (RFC 2018 §3).
const SACK_BYTES: u32 = 4;
const BLOCK_BYTES: u32 = 8;

impl Endpoint {
    /// Takes over the options of the peer's SYN or SYN-ACK, as far as we offer or offered the same, and the room that
    /// they leave of a segment of `largest_bytes`.
    pub(crate) fn negotiate(&mut self, now: Nanos, segment: &Segment, largest_bytes: u32) {
        let profile = &self.profile;
        self.mss = largest_bytes;
        // RFC 2018 §2: SACK options may be sent once SACK-permitted was received; we send and heed them if both did.
        if segment.sack_permitted && profile.sack {
            self.features |= feature::SACK;
        }
        // RFC 7323 §3.2: on if both SYNs carry the option.
        if let Some(theirs) = segment.timestamps.filter(|_| profile.timestamps) {
            self.features |= feature::TIMESTAMPS;
            if let Some(memory) = self.extras.memory_mut() {
                memory.timestamps.record(now, theirs.value);
            }
            // RFC 6691 §2: the MSS option does not count TCP options; the sender takes them off its segments.
            self.mss = largest_bytes.saturating_sub(OPTION_BYTES).max(1);
        }
        if segment.sent_at.is_none() {
            // The peer has no clock in common with us, so samples are round trips.
            self.features &= !feature::ACK_ONE_WAY;
        }
        let bits = Flags::ECE | Flags::CWR;
        let both = segment.flags.contains(bits);
        let granted = if segment.flags.contains(Flags::ACK) {
            // RFC 3168 §6.1.1: an ECN-setup SYN-ACK has ECE and not CWR. A peer that merely reflects has both.
            profile.ecn == EcnPolicy::On && segment.flags.contains(Flags::ECE) && !both
        } else if self.state == State::SynSent {
            // Simultaneous open: both SYNs asked.
            profile.ecn == EcnPolicy::On && both
        } else {
            profile.ecn != EcnPolicy::Off && both
        };
        if granted {
            self.features |= feature::ECN;
        }
    }

    /// Puts our offers on a SYN, or the agreed options on a SYN-ACK.
    pub(crate) fn offer(&self, now: Nanos, answering: bool, segment: &mut Segment) {
        let profile = &self.profile;
        let agreed = |bit| !answering || self.features & bit != 0;
        if self.features & feature::ACK_ONE_WAY != 0 {
            segment.sent_at = Some(SentAt::new(now));
        }
        segment.sack_permitted = profile.sack && agreed(feature::SACK);
        if profile.timestamps && agreed(feature::TIMESTAMPS) {
            segment.timestamps = self.extras.memory().map(|memory| memory.timestamps.option(now));
        }
        if answering {
            if self.features & feature::ECN != 0 {
                segment.flags |= Flags::ECE;
            }
        } else if profile.ecn == EcnPolicy::On && !segment.retransmission {
            // RFC 3168 §6.1.1.1: SYNs after the first are sent without, in case something drops those with it.
            segment.flags |= Flags::ECE | Flags::CWR;
        }
    }

    /// Completes a segment that leaves on a synchronized connection; false if there was no room for all blocks.
    #[inline(never)]
    pub(crate) fn add_options(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        if let Some(memory) = self.extras.memory_mut() {
            memory.last_ack_sent = self.rcv.nxt;
            if self.features & feature::TIMESTAMPS != 0 {
                segment.timestamps = Some(memory.timestamps.option(now));
            }
        }
        if self.features & feature::ACK_ONE_WAY != 0 {
            segment.sent_at = Some(SentAt::new(now));
        }
        if self.features & feature::ECN != 0 {
            self.ecn.mark(segment);
        }
        if self.features & feature::PATH_OPTION != 0 {
            self.add_path_option(segment);
        }
        if self.features & feature::ADAPTIVE_ACK != 0 {
            self.note_departure(now, segment.payload_bytes > 0);
        }
        // Nothing to report, as nearly always, also without SACK.
        let wanted =
            if self.features & feature::SACK == 0 { 0 } else { self.rcv.reassembly.blocks(self.most_blocks()) };
        if wanted == 0 {
            return true;
        }
        let room = if segment.payload_bytes == 0 { u32::MAX } else { self.mss.saturating_sub(segment.payload_bytes) };
        let fitting = wanted.min((room.saturating_sub(SACK_BYTES) / BLOCK_BYTES) as usize);
        segment.sack = self.rcv.reassembly.report(fitting);
        fitting == wanted
    }

    /// Most payload of a segment that leaves now.
    // As Linux does, a segment makes room for the SACK option that it has to carry.
    #[inline]
    pub(crate) fn payload_room(&self) -> u32 {
        if self.features & feature::SACK == 0 { self.mss } else { self.payload_room_beside_sack() }
    }

    fn payload_room_beside_sack(&self) -> u32 {
        match self.rcv.reassembly.blocks(self.most_blocks()) {
            0 => self.mss,
            blocks => {
                let option = SACK_BYTES + BLOCK_BYTES * blocks as u32;
                // A segment that is hardly larger than the option does without.
                if self.mss >= 2 * option { self.mss - option } else { self.mss }
            }
        }
    }

    // RFC 2018 §3: 40 bytes of options hold four ranges, or three next to timestamps.
    fn most_blocks(&self) -> usize {
        if self.features & feature::TIMESTAMPS != 0 { MOST_SACK_BLOCKS - 1 } else { MOST_SACK_BLOCKS }
    }

    /// Processes the options of an acceptable segment whose acknowledgment was accepted too; true: once its payload is
    /// processed, acknowledgments are quick.
    // Linux, tcp_ack and tcp_data_queue: TS.Recent and ECN's marks are of segments that are not dropped.
    #[inline(never)]
    pub(crate) fn note_options(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) -> bool {
        if self.features & feature::TIMESTAMPS != 0 {
            self.update_recent(now, seq, segment);
            if self.features & feature::RECEIVER != 0 {
                self.note_echo(now, segment);
            }
        }
        let brings_news = seq + u64::from(segment.payload_bytes) > self.rcv.nxt;
        if self.features & feature::ECN == 0 || segment.payload_bytes == 0 || !brings_news {
            return false;
        }
        let (acknowledge, quickly) = self.ecn.on_data(segment);
        if acknowledge {
            self.due |= due::ACK;
        }
        quickly
    }

    /// True if a segment is no old duplicate by its timestamp; one that is, is to be dropped.
    // RFC 7323 §5.3 (PAWS). As in Linux a segment without the option passes.
    #[inline]
    pub(crate) fn passes_paws(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) -> bool {
        let (Some(theirs), Some(memory)) = (segment.timestamps, self.extras.memory()) else { return true };
        match memory.timestamps.lag(now, theirs.value) {
            Some(lag) if lag > 0 => self.passes_by_order(seq, segment, lag),
            _ => true,
        }
    }

    /// As [`passes_paws`](Self::passes_paws), for a segment with an older timestamp.
    #[cold]
    fn passes_by_order(&mut self, seq: SeqNum, segment: &Segment, lag_ms: i32) -> bool {
        if self.is_reordered_ack(seq, segment, lag_ms) {
            return true;
        }
        // RFC 7323 §5.3 R1: an older timestamp: send an acknowledgment, and drop the segment.
        self.note_old_duplicate(seq, segment);
        self.enter_quickack(None);
        self.due |= due::ACK;
        false
    }

    // RFC 7323 §4.3 (2): if SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, TS.Recent takes SEG.TSval; of
    // acceptable segments only (§5.3 R3).
    fn update_recent(&mut self, now: Nanos, seq: SeqNum, segment: &Segment) {
        if self.is_acceptable(seq, segment.sequence_length()) {
            if let (Some(theirs), Some(memory)) = (segment.timestamps, self.extras.memory_mut()) {
                if seq <= memory.last_ack_sent && memory.timestamps.lag(now, theirs.value).is_none_or(|lag| lag <= 0) {
                    memory.timestamps.record(now, theirs.value);
                }
            }
        }
    }

    /// True if a segment with an older timestamp is a bare duplicate acknowledgment that was overtaken on the way.
    // Linux (tcp_disordered_ack) lets those through that are at most 1.2 RTO late, because they can do no harm, and
    // carry the data that the sender needs for a fast retransmit.
    fn is_reordered_ack(&self, seq: SeqNum, segment: &Segment, lag_ms: i32) -> bool {
        segment.sequence_length() == 0
            && seq == self.rcv.nxt
            && near(self.snd.una, segment.ack) == self.snd.una
            && u32::from(segment.window) << self.scaling.snd_shift == self.peer_window.bytes
            && lag_ms as Nanos * 1_000_000 <= self.rtt.rto() / 5 * 6
    }

    /// Time since we sent the data that the segment acknowledges, by its timestamp: the only measure across a
    /// retransmission.
    // RFC 7323 §4.1: with Karn's ambiguity gone, each acknowledgment of new data may be a sample.
    pub(crate) fn echoed_age(&self, now: Nanos, segment: &Segment) -> Option<Nanos> {
        let theirs = segment.timestamps.filter(|_| self.features & feature::TIMESTAMPS != 0)?;
        self.extras.memory()?.timestamps.age(now, theirs.echo)
    }

    /// The arrived data is below RCV.NXT, at least partly: the next acknowledgment reports that.
    // RFC 2883 §4 (2): a duplicate below the cumulative acknowledgment is reported in the first block.
    pub(crate) fn note_old_duplicate(&mut self, seq: SeqNum, segment: &Segment) {
        let end = (seq + u64::from(segment.sequence_length())).min(self.rcv.nxt);
        if seq < end {
            self.note_duplicate(seq, end);
        }
    }

    /// These bytes arrived twice. In TIME-WAIT nobody is left for whom that matters, and as in Linux no block reports it.
    pub(crate) fn note_duplicate(&mut self, start: SeqNum, end: SeqNum) {
        if self.features & feature::SACK != 0 && self.profile.dsack && self.state != State::TimeWait {
            self.rcv.reassembly.note_duplicate(start, end);
        }
    }
}
