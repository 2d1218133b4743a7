//! The round trip as the receiver of data sees it: by the age of the timestamps that are echoed to it, or without them by
//! the time that a window's worth of data takes.

use crate::Nanos;
use crate::sequence::SeqNum;

/// Names in brackets are those of Linux's `tcp_sock`.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    /// In eighths of a microsecond [rcv_rtt_est.rtt_us]; none before the first sample.
    eighths_us: Option<u64>,
    /// A window's worth of data is timed up to here, since then; not before the first data [rcv_rtt_est.seq, .time].
    timed_end: SeqNum,
    timed_at: Option<Nanos>,
    /// The latest echo of a timestamp [rcv_rtt_last_tsecr].
    last_echo: u32,
}

impl RoundTrip {
    /// The estimate; none before the first sample.
    pub fn get(&self) -> Option<Nanos> {
        self.eighths_us.map(|eighths| eighths * 1_000 / 8)
    }

    /// The echo in the segment that ended the handshake does not count.
    // Linux, tcp_rcv_state_process: tcp_rcv_rtt_measure_ts begins with the next one.
    pub fn forget_echo(&mut self) {
        self.last_echo = 0;
    }

    /// A segment arrived that echoes a timestamp; the age of that in whole ticks is a sample if the segment is full.
    // Linux, tcp_rcv_rtt_measure_ts and tcp_rcv_rtt_update: one sample for each echo, a longer one only if nothing waits to
    // be read, and by an eighth.
    pub fn on_echo(&mut self, echo: u32, age: Option<Nanos>, is_read: bool) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let Some(sample) = age.filter(|&age| age > 0).map(|age| age / 1_000) else { return };
        self.eighths_us = Some(match self.eighths_us {
            Some(known) if 8 * sample >= known => {
                if is_read {
                    known - known / 8 + sample
                } else {
                    known
                }
            }
            _ => 8 * sample,
        });
    }

    /// Data arrived in order, up to `received`, into a window of this number of bytes, which takes at least an RTT.
    // Linux, tcp_rcv_rtt_measure.
    pub fn on_data(&mut self, now: Nanos, received: SeqNum, window_bytes: u32) {
        if let Some(timed_at) = self.timed_at {
            if received < self.timed_end {
                return;
            }
            let sample = 8 * (now.saturating_sub(timed_at) / 1_000).max(1);
            self.eighths_us = Some(self.eighths_us.map_or(sample, |known| known.min(sample)));
        }
        self.timed_end = received + u64::from(window_bytes);
        self.timed_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    // Linux, tcp_rcv_rtt_update.
    #[test]
    fn an_echo_gives_one_rtt_and_a_longer_one_counts_an_eighth_if_all_is_read() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.get(), None);
        for (echo, age_ms, is_read, rtt_us) in [
            (1, Some(0), true, None),
            (2, None, true, None),
            (3, None, true, None),
            (3, Some(8), true, None),
            (4, Some(8), true, Some(8000)),
            (5, Some(4), false, Some(4000)),
            (6, Some(12), false, Some(4000)),
            (7, Some(12), true, Some(5000)),
            (7, Some(12), true, Some(5000)),
            (8, Some(5), true, Some(5000)),
        ] {
            round_trip.on_echo(echo, age_ms.map(|age: Nanos| age * MS), is_read);
            assert_eq!(round_trip.get(), rtt_us.map(|rtt: Nanos| rtt * 1000), "echo {echo}");
        }
    }

    // Linux, tcp_rcv_rtt_measure.
    #[test]
    fn without_timestamps_the_time_of_a_window_is_the_rtt_until_a_shorter_one() {
        let mut round_trip = RoundTrip::default();
        let mut data = |now_ms, received| {
            round_trip.on_data(now_ms * MS, received, 10_000);
            round_trip.get().map(|rtt| rtt / MS)
        };
        assert_eq!([data(100, 1000), data(110, 10_999)], [None, None]);
        assert_eq!(data(130, 11_000), Some(30));
        assert_eq!(data(170, 21_000), Some(30));
        assert_eq!([data(171, 30_999), data(190, 31_000)], [Some(30), Some(20)]);
    }
}
