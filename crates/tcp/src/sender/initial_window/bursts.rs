//! Data sent under an initial or restart window, up to its first ACK.

use crate::sequence::SeqNum;
use std::num::NonZeroU32;

/// RFC 6928 §2 speaks of loss "if more than 4 KB is sent"; smaller bursts are no evidence against the window.
const FALLBACK_BYTES: u64 = 4096;

/// The first flight, and the latest burst: the first flight or the data after an idle time.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    /// Where the latest burst begins, and its sequence numbers: none until some of them are acknowledged.
    start: SeqNum,
    length: Option<NonZeroU32>,
    /// Sequence numbers of the first flight, our SYN included; none until data is acknowledged.
    first_flight: Option<NonZeroU32>,
}

impl Bursts {
    /// The first flight begins at `start`.
    pub fn new(start: SeqNum) -> Self {
        Self { start, length: None, first_flight: None }
    }

    /// A burst begins after an idle time.
    pub fn restart(&mut self, start: SeqNum) {
        self.start = start;
        self.length = None;
    }

    /// True if nothing of the latest burst is acknowledged.
    pub fn is_unacknowledged(&self) -> bool {
        self.length.is_none()
    }

    /// True if no data was ever acknowledged.
    pub fn in_first_flight(&self) -> bool {
        self.first_flight.is_none()
    }

    /// The first ACK of the latest burst arrives: all data up to `max` belongs to it. `initial`: position of our SYN.
    #[cold]
    pub fn end(&mut self, initial: SeqNum, max: SeqNum) {
        self.length = NonZeroU32::new((max - self.start) as u32);
        if self.first_flight.is_none() {
            self.first_flight = NonZeroU32::new((max - initial) as u32);
        }
    }

    /// One past the first flight, of a sender whose SYN is at `initial` and that has sent up to `sent`.
    pub fn first_flight_end(&self, initial: SeqNum, sent: SeqNum) -> SeqNum {
        self.first_flight.map_or(sent, |length| sent.min(initial + u64::from(length.get())))
    }

    /// True if a loss at this position, of data sent up to `max`, is one of a burst of more than 4 KB.
    #[cold]
    pub fn is_to_blame(&self, position: SeqNum, max: SeqNum) -> bool {
        let end = self.length.map_or(max, |length| max.min(self.start + u64::from(length.get())));
        position >= self.start && position < end && end - self.start > FALLBACK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: SeqNum = 100;
    const DATA: SeqNum = SYN + 1;

    #[test]
    fn the_first_flight_is_all_that_was_sent_before_the_first_ack_of_data() {
        let mut bursts = Bursts::new(DATA);
        assert!(bursts.in_first_flight() && bursts.is_unacknowledged());
        assert_eq!(bursts.first_flight_end(SYN, DATA + 500), DATA + 500);
        bursts.end(SYN, DATA + 3_000);
        assert!(!bursts.in_first_flight());
        assert_eq!(bursts.first_flight_end(SYN, DATA + 9_000), DATA + 3_000);
        bursts.restart(DATA + 9_000);
        assert!(bursts.is_unacknowledged() && !bursts.in_first_flight());
        bursts.end(SYN, DATA + 12_000);
        assert_eq!(bursts.first_flight_end(SYN, DATA + 20_000), DATA + 3_000);
    }

    #[test]
    fn a_loss_counts_in_a_burst_of_more_than_4_kilobytes() {
        let lost = |length, position| {
            let mut bursts = Bursts::new(DATA);
            bursts.end(SYN, DATA + length);
            bursts.is_to_blame(DATA + position, DATA + 50_000)
        };
        assert_eq!([lost(10_000, 0), lost(10_000, 9_999), lost(10_000, 10_000)], [true, true, false]);
        assert!(!lost(FALLBACK_BYTES, 0));
    }
}
