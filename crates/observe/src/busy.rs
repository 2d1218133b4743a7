//! The rate of the slowest link of a path, from times in which it had something to do without a break.
//!
//! Between two packets that leave a link one after the other, the link was busy if the second had come before the first
//! left. Neither moment is seen, but the difference is: on an idle path a packet takes a known time from its sender to
//! the place of the capture, or its acknowledgment does. So the second packet, sent at s, had come in time if the first
//! was seen no earlier than s and that time. Over such pairs alone bytes and time are added up; gaps, in which the sender
//! waited for its window or had nothing to say, do not count.

/// Segments that must have been measured; fewer say too little.
const FEWEST_SEGMENTS: f64 = 5.0;

/// Busy time, added up.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Busy {
    bytes: i64,
    time: i64,
    before: Option<i64>,
    /// The last addition, bytes and time, while it is uncertain.
    last: (i64, i64),
}

impl Busy {
    /// The packet that ends `bytes` behind the last one, sent at `sent`, was seen at `now`; on an idle path that takes
    /// `idle`. All in nanoseconds.
    pub(crate) fn add(&mut self, now: i64, bytes: i64, sent: i64, idle: i64) {
        self.keep();
        if let Some(before) = self.before {
            if before - sent >= idle && now >= before {
                self.bytes += bytes;
                // A clock that is set back and forth makes centuries of it.
                self.time = self.time.saturating_add(now - before);
                self.last = (bytes, now - before);
            }
        }
        self.before = Some(now);
    }

    /// The last addition is certain.
    pub(crate) fn keep(&mut self) {
        self.last = (0, 0);
    }

    /// If the last addition was uncertain, its time was not transmission time: an acknowledgment is repeated, so it
    /// may have been held back until a segment behind a lost one triggered it.
    pub(crate) fn take_back(&mut self) {
        self.bytes -= self.last.0;
        self.time -= self.last.1;
        self.keep();
    }

    /// Something is missing: the next packet is the first of a new series.
    pub(crate) fn interrupt(&mut self) {
        self.before = None;
    }

    /// Bits a second, headers included: `mss` bytes of data and `header` bytes a packet. None if too little was seen.
    pub(crate) fn rate_bps(&self, mss: u32, header: u32) -> Option<f64> {
        let enough = self.bytes as f64 >= FEWEST_SEGMENTS * f64::from(mss) && self.time > 0;
        enough.then(|| with_headers(self.bytes, mss, header) * 8e9 / self.time as f64)
    }
}

/// Bytes of data with the headers of their packets.
pub(crate) fn with_headers(bytes: i64, mss: u32, header: u32) -> f64 {
    bytes as f64 * f64::from(mss + header) / f64::from(mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_train_that_was_sent_at_once_tells_the_rate_of_the_link() {
        let mut busy = Busy::default();
        // A packet each 12 ms, 100 ms away: 1500 bytes at 1 Mbit/s.
        for packet in 0..10 {
            busy.add((100 + 12 * (packet + 1)) * MS, 1448, 0, 100 * MS);
        }
        let rate = busy.rate_bps(1448, 52).unwrap();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn time_in_which_the_sender_waited_does_not_count() {
        let mut busy = Busy::default();
        for flight in 0..3 {
            let sent = flight * 200 * MS;
            for packet in 0..5 {
                busy.add(sent + (100 + 12 * (packet + 1)) * MS, 1448, sent, 100 * MS);
            }
        }
        let rate = busy.rate_bps(1448, 52).unwrap();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn what_was_in_doubt_and_turns_out_wrong_does_not_count() {
        let mut busy = Busy::default();
        for packet in 0..10 {
            let held_back = if packet == 9 { 40 } else { 0 };
            busy.add((100 + 12 * (packet + 1) + held_back) * MS, 1448, 0, 100 * MS);
        }
        busy.take_back();
        busy.take_back();
        let rate = busy.rate_bps(1448, 52).unwrap();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn packets_sent_more_slowly_than_the_link_say_nothing() {
        let mut busy = Busy::default();
        for packet in 0..100 {
            let sent = packet * 20 * MS;
            busy.add(sent + 112 * MS, 1448, sent, 100 * MS);
        }
        assert_eq!(busy.rate_bps(1448, 52), None);
    }
}
