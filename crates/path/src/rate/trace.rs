//! Delivery opportunities: times at each of which the link can send 1500 bytes. The format and the rules are those of
//! mahimahi's `mm-link` (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015;
//! `src/frontend/link_queue.cc`), whose opportunities have 4 bytes more, for the header of its TUN device.

use std::sync::Arc;

use crate::{Nanos, SpecError, spec::spec};

/// The bytes that an opportunity sends.
const OPPORTUNITY_BYTES: u32 = 1500;

const MILLISECOND: Nanos = 1_000_000;

spec! {
    /// Delivery opportunities in the format of mahimahi's `mm-link`: one per line, in milliseconds, each 1500 bytes.
    ///
    /// The last one is also the length of the trace, after which it begins again. An opportunity without a waiting packet
    /// is lost.
    pub struct TraceSpec {
        /// times of the opportunities, in milliseconds
        opportunities_ms: Arc<[u32]>,
    }
}

/// State of a trace. A packet waits in the queue until an opportunity. It may take several, and the part that one
/// packet leaves of an opportunity is for those that wait behind it; the part that they leave is lost.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    opportunities_ms: Arc<[u32]>,
    /// The opportunity used last.
    index: usize,
    /// When the trace began whose opportunity that is.
    began: Nanos,
    /// Bytes left of it.
    left: u32,
}

impl Trace {
    /// Checks the opportunities.
    pub(super) fn new(spec: &TraceSpec) -> Result<Trace, SpecError> {
        let opportunities_ms = Arc::clone(&spec.opportunities_ms);
        if !opportunities_ms.is_sorted() || opportunities_ms.last().is_none_or(|&last| last == 0) {
            let right = "they ascend, and the last one is the length of the trace, above 0";
            return Err(SpecError::new("opportunities_ms", "out of order or without a length", right));
        }
        Ok(Trace { opportunities_ms, index: 0, began: 0, left: 0 })
    }

    /// Of all opportunities over the length of the trace.
    pub(super) fn mean_bps(&self) -> u64 {
        let bits = 8 * u64::from(OPPORTUNITY_BYTES) * self.opportunities_ms.len() as u64;
        bits * 1000 / u64::from(self.opportunities_ms[self.opportunities_ms.len() - 1])
    }

    /// Time of the opportunity used last.
    fn at(&self) -> Nanos {
        self.began.saturating_add(Nanos::from(self.opportunities_ms[self.index]) * MILLISECOND)
    }

    fn length(&self) -> Nanos {
        Nanos::from(self.opportunities_ms[self.opportunities_ms.len() - 1]) * MILLISECOND
    }

    fn next(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.opportunities_ms.len() {
            self.index = 0;
            self.began = self.began.saturating_add(self.length());
        }
    }

    /// The first opportunity after `now`: one at the very moment of an arrival is gone, as in mahimahi. Before that,
    /// the part that the previous packet left of an opportunity that is still to come.
    pub(super) fn start(&mut self, now: Nanos, free_at: Nanos) -> Nanos {
        if free_at > now {
            return self.following(free_at);
        }
        let length = self.length();
        self.began = now - now % length;
        self.index = self.opportunities_ms.partition_point(|&at| Nanos::from(at) * MILLISECOND <= now % length);
        self.left = OPPORTUNITY_BYTES;
        self.at()
    }

    pub(super) fn following(&mut self, _free_at: Nanos) -> Nanos {
        if self.left == 0 {
            self.next();
        }
        self.at()
    }

    pub(super) fn send(&mut self, _start: Nanos, bytes: u32) -> Nanos {
        let mut more = bytes;
        while more > self.left {
            more -= self.left;
            self.next();
        }
        self.left -= more;
        self.at()
    }

    /// An opportunity is a moment, so packets count as long as they take at the mean rate.
    pub(super) fn busy(&self, _start: Nanos, _end: Nanos, serialization: Nanos) -> Nanos {
        serialization
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    fn trace(opportunities_ms: &[u32]) -> Result<Trace, SpecError> {
        Trace::new(&TraceSpec { opportunities_ms: opportunities_ms.into() })
    }

    /// Ends of packets that all arrive at `now`.
    fn sent(trace: &mut Trace, now: Nanos, packets: &[u32]) -> Vec<Nanos> {
        let mut free_at = 0;
        let mut send = |&bytes| {
            let start = trace.start(now, free_at);
            free_at = trace.send(start, bytes);
            assert!(free_at >= start && start > now);
            free_at / MS
        };
        packets.iter().map(&mut send).collect()
    }

    #[test]
    fn each_opportunity_sends_1500_bytes_and_the_trace_loops() {
        let mut trace = trace(&[1, 1, 5, 10]).unwrap();
        // At 10 ms the trace begins again, so the opportunity at 1 ms comes back at 11 ms.
        assert_eq!(sent(&mut trace, 0, &[1500; 9]), [1, 1, 5, 10, 11, 11, 15, 20, 21]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        assert_eq!(sent(&mut trace(&[2, 4, 6]).unwrap(), 0, &[500, 500, 500, 500, 1500, 1001]), [2, 2, 2, 4, 6, 8]);
        assert_eq!(sent(&mut trace(&[2, 4, 6]).unwrap(), 0, &[3001, 1499]), [6, 6]);
    }

    #[test]
    fn what_nobody_waits_for_is_lost() {
        let mut trace = trace(&[2, 4, 6]).unwrap();
        assert_eq!(sent(&mut trace, 0, &[100]), [2]);
        // The rest of the opportunity at 2 ms is gone, and so is the one at 4 ms.
        assert_eq!(sent(&mut trace, 4 * MS, &[100]), [6]);
        // Far later, in another round: 600 ms are a hundred rounds.
        assert_eq!(sent(&mut trace, 601 * MS, &[1500, 1500]), [602, 604]);
    }

    #[test]
    fn an_opportunity_at_0_and_the_last_one_of_the_round_before_are_two() {
        assert_eq!(sent(&mut trace(&[0, 3]).unwrap(), 0, &[1500; 4]), [3, 3, 6, 6]);
    }

    #[test]
    fn traces_that_cannot_be_are_refused() {
        for opportunities in [&[][..], &[0, 0], &[5, 4]] {
            assert!(trace(opportunities).is_err(), "{opportunities:?}");
        }
    }
}
