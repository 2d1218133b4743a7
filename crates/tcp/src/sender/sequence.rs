//! The send sequence variables (RFC 9293 §3.3.1).

use super::nagle::SmallSegments;
use crate::profile::Nagle;
use crate::sequence::{SeqNum, origin};

/// The positions of our stream that matter: `una <= nxt <= max <= end()`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendSequence {
    /// SND.UNA: first position not acknowledged.
    pub una: SeqNum,
    /// SND.NXT: next position to send; goes back to `una` when the retransmission timer expires.
    pub nxt: SeqNum,
    /// One past the highest position sent (BSD: `snd_max`).
    pub max: SeqNum,
    /// One past the last byte that the application wrote: the position of our FIN.
    pub data_end: SeqNum,
    /// Bytes that the application has still to write: it waits for room in the buffer.
    pub unwritten: u64,
    /// SND.WL1: sequence number of the latest window update.
    wl1: SeqNum,
    /// SND.WL2: acknowledgment number of the latest window update.
    wl2: SeqNum,
    /// One past the last segment of new data that was not full (Linux: `snd_sml`).
    pub small_end: SeqNum,
    /// ISS: our initial sequence number.
    pub iss: u32,
    /// Bytes of memory that the socket's buffer may take; 0 before the first data.
    pub buffer: u32,
    /// The application wants our FIN sent after the data.
    pub closing: bool,
    /// It will when it has written all.
    pub closes_later: bool,
    /// Something left since the window was last validated.
    pub sent_since_validation: bool,
    /// What holds back a last segment that is not full.
    pub small: SmallSegments,
}

impl SendSequence {
    pub fn new(iss: u32, nagle: Nagle) -> Self {
        let initial = origin(iss);
        Self {
            small: SmallSegments { nagle, corked: false },
            una: initial,
            nxt: initial,
            max: initial,
            data_end: initial + 1,
            iss,
            ..Self::default()
        }
    }

    /// Anything was sent, be it our SYN.
    pub fn has_sent(&self) -> bool {
        self.max > self.initial()
    }

    /// Bytes written that the peer has acknowledged.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.una.min(self.data_end).saturating_sub(self.initial() + 1)
    }

    /// Position of our SYN.
    pub fn initial(&self) -> SeqNum {
        origin(self.iss)
    }

    /// One past the last byte that the application wants to write.
    pub fn wanted_end(&self) -> SeqNum {
        self.data_end + self.unwritten
    }

    /// One past the last position that we have to send: data and, once closing, the FIN.
    pub fn end(&self) -> SeqNum {
        self.data_end + u64::from(self.closing)
    }

    /// The window of the peer's SYN is the first.
    pub fn begin_window(&mut self, seq: SeqNum, ack: SeqNum) {
        (self.wl1, self.wl2) = (seq, ack);
    }

    /// True if a segment of nothing new updates the window, whether or not that differs: it is later than the one that
    /// did so last, or is as late and closes it.
    // Linux, tcp_may_update_window.
    #[inline]
    pub fn may_update_window(&self, seq: SeqNum, window: u32) -> bool {
        seq > self.wl1 || seq == self.wl1 && window == 0
    }

    /// True if an acknowledgment updates the window; `later_only`: only if its sequence number is later.
    // RFC 9293 §3.10.7.4: SND.WL1 and SND.WL2 keep old segments from updating the window.
    #[inline]
    pub fn takes_window(&mut self, seq: SeqNum, ack: SeqNum, later_only: bool) -> bool {
        let newer = seq > self.wl1 || seq == self.wl1 && ack >= self.wl2 && !later_only;
        if newer {
            self.wl1 = seq;
            self.wl2 = ack;
        }
        newer
    }

    /// A segment that ends here is sent.
    #[inline]
    pub fn on_sent(&mut self, end: SeqNum) {
        self.nxt = self.nxt.max(end);
        self.max = self.max.max(end);
    }

    /// Sequence numbers in flight, of which a timeout forgets those that it retransmits.
    pub fn flight(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// Sequence numbers that wait to be sent: data and, once closing, the FIN.
    pub fn unsent(&self) -> u64 {
        self.end().saturating_sub(self.nxt)
    }

    /// True if the application and the peer's window would let a segment of new data leave.
    #[inline]
    pub fn has_new_data(&self, peer_window: &PeerWindow, mss: u32) -> bool {
        let room = (self.una + u64::from(peer_window.limited_bytes)).saturating_sub(self.nxt);
        let waiting = self.unsent();
        waiting > 0 && room >= waiting.min(u64::from(mss))
    }

    /// True if all that was sent is acknowledged.
    pub fn is_idle(&self) -> bool {
        self.una == self.max
    }

    /// Bytes of data that an advance of SND.UNA from `prior` to `ack` acknowledges.
    pub fn data_between(&self, prior: SeqNum, ack: SeqNum) -> u32 {
        (ack.min(self.data_end) - prior.min(self.data_end).min(ack)) as u32
    }
}

/// The peer's receive window, as its segments announce it, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerWindow {
    /// SND.WND.
    pub bytes: u32,
    /// As much of it as the profile lets us use.
    pub limited_bytes: u32,
    /// The largest that it has been.
    pub largest_bytes: u32,
}

impl PeerWindow {
    /// The peer announces a window, of which at most `max_bytes` are used.
    pub fn set(&mut self, bytes: u32, max_bytes: u32) {
        self.bytes = bytes;
        self.limited_bytes = bytes.min(max_bytes);
        self.largest_bytes = self.largest_bytes.max(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fin_takes_a_position_after_the_data_but_is_no_data() {
        let mut snd = SendSequence::new(100, Nagle::Off);
        let first = snd.initial() + 1;
        assert_eq!((snd.end(), snd.unsent()), (first, 1), "the SYN");
        (snd.una, snd.nxt, snd.data_end) = (first, first, first + 50);
        snd.on_sent(first + 40);
        assert_eq!((snd.flight(), snd.unsent(), snd.is_idle()), (40, 10, false));
        snd.closing = true;
        assert_eq!((snd.end(), snd.unsent()), (first + 51, 11));
        assert_eq!(snd.data_between(first, first + 51), 50);
        assert_eq!(snd.data_between(first + 50, first + 51), 0, "the FIN alone");
    }

    #[test]
    fn an_older_segment_does_not_update_the_window() {
        let mut snd = SendSequence::new(100, Nagle::Off);
        snd.begin_window(10, 1);
        assert!(snd.takes_window(10, 2, false));
        assert!(!snd.takes_window(10, 1, false), "an older acknowledgment");
        assert!(!snd.takes_window(9, 7, false), "an older segment");
        assert!(snd.takes_window(12, 2, false));
        assert!(!snd.takes_window(11, 3, false), "older than the latest");
        assert!(!snd.takes_window(12, 2, true) && snd.takes_window(13, 2, true), "only a later segment");
    }

    // Linux, tcp_may_update_window.
    #[test]
    fn a_later_segment_updates_the_window_and_one_as_late_that_closes_it() {
        let mut snd = SendSequence::new(100, Nagle::Off);
        snd.begin_window(10, 1);
        let updates = [(11, 500), (10, 0), (10, 500), (9, 0)].map(|(seq, window)| snd.may_update_window(seq, window));
        assert_eq!(updates, [true, true, false, false]);
    }
}
