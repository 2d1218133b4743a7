//! A link's meters, per interval.

use firstflight_records::{LinkInterval, seconds};

use crate::Nanos;

/// Counters of one interval.
// What each packet changes comes first; no two words of it lie side by side, since the compiler would add to both with one
// vector, which takes more instructions than two additions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Interval {
    /// Packets whose transmission ended in the interval, including those lost then.
    pub sent_packets: u64,
    /// Most packets that waited at once.
    pub queue_max_packets: u32,
    /// Packets that waited as the interval began.
    queue_at_start_packets: u32,
    /// Bytes of the packets sent, headers included.
    pub sent_bytes: u64,
    /// Packets that the queue refused.
    pub dropped_packets: u64,
    /// Packets that waited, integrated over time: divided by the interval, the mean queue.
    pub waiting: u128,
    /// Time for which the link transmitted.
    pub busy: Nanos,
    /// Packets that the queue let in with a mark.
    pub marked_packets: u64,
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Packets that reach the far end before one that was transmitted earlier.
    pub reordered_packets: u64,
    /// Packets lost after transmission.
    pub lost_packets: u64,
    /// Packets that reach the far end twice.
    pub duplicated_packets: u64,
}

impl Interval {
    /// The row of the link with this index, for an interval that begins at `start` and is so long.
    pub fn row(&self, replicate: u32, link: u16, start: Nanos, length: Nanos) -> LinkInterval {
        LinkInterval {
            replicate,
            link,
            interval_start_s: seconds(start),
            interval_s: seconds(length),
            offered_packets: self.offered_packets,
            dropped_packets: self.dropped_packets,
            marked_packets: self.marked_packets,
            lost_packets: self.lost_packets,
            reordered_packets: self.reordered_packets,
            duplicated_packets: self.duplicated_packets,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            busy_s: seconds(self.busy),
            queue_mean_packets: self.waiting as f64 / length as f64,
            queue_max_packets: self.queue_max_packets,
        }
    }
}

/// Splits time into equal intervals and counts each event in the one in which it falls; events after the end
/// are not counted.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Meter {
    /// The interval last booked to: happenings come nearly in order, so a division is rare.
    current_start: Nanos,
    current_end: Nanos,
    /// Its counters, and its place among all.
    counts: Interval,
    current: usize,
    interval: Nanos,
    end: Nanos,
    /// All intervals but the current one, which has its place among them.
    intervals: Vec<Interval>,
}

impl Meter {
    /// Counts from 0 to `end` in steps of `interval`; nothing at all if `end` is 0.
    pub fn new(end: Nanos, interval: Nanos) -> Meter {
        let interval = interval.max(1);
        let intervals = vec![Interval::default(); end.div_ceil(interval).max(1) as usize];
        Meter { interval, end, intervals, current_end: interval.min(end), ..Meter::default() }
    }

    /// The intervals with their start and length.
    pub fn intervals(&self) -> impl Iterator<Item = (Nanos, Nanos, &Interval)> {
        self.intervals.iter().enumerate().map(|(index, counts)| {
            let counts = if index == self.current { &self.counts } else { counts };
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
        Some(&mut self.counts)
    }

    /// Makes the interval of `time`, which lies before the end, the current one.
    #[inline]
    fn seek(&mut self, time: Nanos) {
        if time.wrapping_sub(self.current_start) >= self.interval {
            self.intervals[self.current] = self.counts;
            self.current = (time / self.interval) as usize;
            self.counts = self.intervals[self.current];
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

    /// The packet that arrived at `now` and was accepted is lost after its transmission.
    #[inline]
    pub(crate) fn lost(&mut self, now: Nanos) {
        if let Some(interval) = self.at(now) {
            interval.lost_packets += 1;
        }
    }

    /// The packet that arrived at `now` and was accepted got a mark.
    #[cold]
    pub(crate) fn marked(&mut self, now: Nanos) {
        if let Some(interval) = self.at(now) {
            interval.marked_packets += 1;
        }
    }

    /// The outcome for the packet that was accepted at `now`.
    pub(crate) fn impaired(&mut self, now: Nanos, overtakes: bool, comes_twice: bool) {
        if let Some(interval) = self.at(now) {
            interval.reordered_packets += u64::from(overtakes);
            interval.duplicated_packets += u64::from(comes_twice);
        }
    }

    /// A packet arrived at `now`, is in service from `start` to `finish`, and found `waiting` packets before it.
    #[inline(always)]
    pub(crate) fn accepted(&mut self, now: Nanos, start: Nanos, finish: Nanos, bytes: u32, waiting: u32, lost: bool) {
        if now < self.current_start || finish >= self.current_end {
            if now < self.end {
                self.accepted_over_borders(now, start, finish, bytes, waiting, lost);
            }
            return;
        }
        // All of it falls into the current interval, as nearly always.
        let interval = &mut self.counts;
        let queue = waiting + u32::from(start > now);
        if queue > 0 {
            interval.queue_max_packets = interval.queue_max_packets.max(queue);
            interval.waiting += u128::from(start - now);
        }
        interval.offered_packets += 1;
        interval.lost_packets += u64::from(lost);
        interval.busy += finish - start;
        interval.sent_packets += 1;
        interval.sent_bytes += u64::from(bytes);
    }

    /// A packet arrived at `now` and was transmitted immediately, which takes `serialization`: when it has left it.
    /// None, and nothing is booked, if that crosses a border.
    #[inline(always)]
    pub(crate) fn accepted_at_once(&mut self, now: Nanos, serialization: Nanos, bytes: u32) -> Option<Nanos> {
        let end = now.saturating_add(serialization);
        if now < self.current_start || end >= self.current_end {
            // After the end nothing is booked.
            return (now >= self.end).then_some(end);
        }
        self.counts.offered_packets += 1;
        self.counts.busy += serialization;
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(bytes);
        Some(end)
    }

    /// A packet arrived at `now`, found `waiting` packets before it and goes into service at `start`, which is later, for
    /// `serialization`: when it has left it. None, and nothing is booked, if that crosses a border.
    #[inline(always)]
    pub(crate) fn accepted_in_turn(
        &mut self,
        now: Nanos,
        start: Nanos,
        serialization: Nanos,
        bytes: u32,
        waiting: u32,
    ) -> Option<Nanos> {
        let end = start.saturating_add(serialization);
        if now < self.current_start || end >= self.current_end {
            // After the end nothing is booked.
            return (now >= self.end).then_some(end);
        }
        let interval = &mut self.counts;
        interval.queue_max_packets = interval.queue_max_packets.max(waiting + 1);
        interval.waiting += u128::from(start - now);
        interval.offered_packets += 1;
        interval.busy += serialization;
        interval.sent_packets += 1;
        interval.sent_bytes += u64::from(bytes);
        Some(end)
    }

    #[inline(never)]
    fn accepted_over_borders(&mut self, now: Nanos, start: Nanos, finish: Nanos, bytes: u32, waiting: u32, lost: bool) {
        self.waited(now, start, waiting);
        if lost {
            self.lost(now);
        }
        if finish > start {
            self.span(start, finish, |interval, time| interval.busy += time);
        }
        if let Some(interval) = self.at(finish) {
            interval.sent_packets += 1;
            interval.sent_bytes += u64::from(bytes);
        }
    }

    /// A packet arrived at `now`, found `waiting` packets before it and waited until `until`.
    pub(crate) fn waited(&mut self, now: Nanos, until: Nanos, waiting: u32) {
        let queue = waiting + u32::from(until > now);
        if let Some(interval) = self.at(now) {
            interval.offered_packets += 1;
            interval.queue_max_packets = interval.queue_max_packets.max(queue);
        }
        let mut began_here = true;
        self.span(now, until, |interval, time| {
            interval.waiting += u128::from(time);
            if !began_here {
                // Without an arrival to notice it, the queue that an interval inherits would go unseen.
                interval.queue_at_start_packets += 1;
                interval.queue_max_packets = interval.queue_max_packets.max(interval.queue_at_start_packets);
            }
            began_here = false;
        });
    }

    /// A packet that arrived at `arrived` and found `waiting` packets before it was dropped at `now`.
    pub(crate) fn dropped_from_queue(&mut self, arrived: Nanos, now: Nanos, waiting: u32) {
        self.waited(arrived, now, waiting);
        if let Some(interval) = self.at(now) {
            interval.dropped_packets += 1;
        }
    }

    /// Counts the time from `from` to `to`, split at the borders of the intervals.
    #[inline]
    fn span(&mut self, mut from: Nanos, to: Nanos, mut record: impl FnMut(&mut Interval, Nanos)) {
        let to = to.min(self.end);
        while from < to {
            self.seek(from);
            let border = self.current_end.min(to);
            record(&mut self.counts, border - from);
            from = border;
        }
    }
}
