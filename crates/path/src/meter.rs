//! What happened on a link, interval by interval.

use crate::Nanos;

/// Counters of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Packets that the queue refused.
    pub dropped_packets: u64,
    /// Packets that the queue let in with a mark.
    pub marked_packets: u64,
    /// Packets lost after transmission.
    pub lost_packets: u64,
    /// Packets whose transmission ended in the interval, including those lost then.
    pub sent_packets: u64,
    /// Bytes of these packets, headers included.
    pub sent_bytes: u64,
    /// Time for which the line transmitted.
    pub busy: Nanos,
    /// Packets that waited, integrated over time: divided by the interval, the mean queue.
    pub waiting: u128,
    /// Most packets that waited at once.
    pub queue_max_packets: u32,
    /// Packets that waited as the interval began.
    queue_at_start_packets: u32,
}

/// Splits time into equal intervals and books each happening to the one in which it falls; what falls after the end
/// is not counted.
#[derive(Clone, Debug)]
pub struct Meter {
    interval: Nanos,
    end: Nanos,
    intervals: Vec<Interval>,
    /// The interval last booked to, and when it starts: happenings come nearly in order, so a division is rare.
    current: usize,
    current_start: Nanos,
    current_end: Nanos,
}

impl Meter {
    /// Counts from 0 to `end` in steps of `interval`; nothing at all if `end` is 0.
    pub fn new(end: Nanos, interval: Nanos) -> Meter {
        let interval = interval.max(1);
        let intervals = vec![Interval::default(); end.div_ceil(interval).max(1) as usize];
        Meter { interval, end, intervals, current: 0, current_start: 0, current_end: interval.min(end) }
    }

    /// The intervals with their start and length.
    pub fn intervals(&self) -> impl Iterator<Item = (Nanos, Nanos, &Interval)> {
        self.intervals.iter().enumerate().map(|(index, counts)| {
            let start = index as Nanos * self.interval;
            (start, self.interval.min(self.end - start), counts)
        })
    }

    #[inline]
    fn at(&mut self, time: Nanos) -> Option<&mut Interval> {
        if time >= self.end {
            return None;
        }
        self.seek(time);
        Some(&mut self.intervals[self.current])
    }

    /// Makes the interval of `time`, which lies before the end, the current one.
    #[inline]
    fn seek(&mut self, time: Nanos) {
        if time.wrapping_sub(self.current_start) >= self.interval {
            self.current = (time / self.interval) as usize;
            self.current_start = self.current as Nanos * self.interval;
            self.current_end = self.end.min(self.current_start + self.interval);
        }
    }

    /// A packet was refused at `now`.
    #[inline]
    pub(crate) fn dropped(&mut self, now: Nanos) {
        if let Some(interval) = self.at(now) {
            interval.offered_packets += 1;
            interval.dropped_packets += 1;
        }
    }

    /// The packet that arrived at `now` and was accepted got a mark.
    #[cold]
    pub(crate) fn marked(&mut self, now: Nanos) {
        if let Some(interval) = self.at(now) {
            interval.marked_packets += 1;
        }
    }

    /// A packet arrived at `now`, is on the line from `start` to `finish`, and found `waiting` packets before it.
    #[inline(always)]
    pub(crate) fn accepted(&mut self, now: Nanos, start: Nanos, finish: Nanos, bytes: u32, waiting: u32, lost: bool) {
        if now >= self.end {
            return;
        }
        let queue = waiting + u32::from(start > now);
        if now >= self.current_start && finish < self.current_end {
            // All of it falls into the current interval, as nearly always.
            let interval = &mut self.intervals[self.current];
            interval.offered_packets += 1;
            interval.lost_packets += u64::from(lost);
            interval.queue_max_packets = interval.queue_max_packets.max(queue);
            interval.waiting += u128::from(start - now);
            interval.busy += finish - start;
            interval.sent_packets += 1;
            interval.sent_bytes += u64::from(bytes);
            return;
        }
        if let Some(interval) = self.at(now) {
            interval.offered_packets += 1;
            interval.lost_packets += u64::from(lost);
            interval.queue_max_packets = interval.queue_max_packets.max(queue);
        }
        if start > now {
            let mut began_here = true;
            self.span(now, start, |interval, time| {
                interval.waiting += u128::from(time);
                if !began_here {
                    // Without an arrival to notice it, the queue that an interval inherits would go unseen.
                    interval.queue_at_start_packets += 1;
                    interval.queue_max_packets = interval.queue_max_packets.max(interval.queue_at_start_packets);
                }
                began_here = false;
            });
        }
        if finish > start {
            self.span(start, finish, |interval, time| interval.busy += time);
        }
        if let Some(interval) = self.at(finish) {
            interval.sent_packets += 1;
            interval.sent_bytes += u64::from(bytes);
        }
    }

    /// Books the time from `from` to `to`, split at the borders of the intervals.
    #[inline]
    fn span(&mut self, mut from: Nanos, to: Nanos, mut book: impl FnMut(&mut Interval, Nanos)) {
        let to = to.min(self.end);
        while from < to {
            self.seek(from);
            let border = self.current_end.min(to);
            book(&mut self.intervals[self.current], border - from);
            from = border;
        }
    }
}
