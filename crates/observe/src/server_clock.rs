//! The server's clock from its timestamps (RFC 7323), compared with the capture's: when a segment was sent, and how
//! much longer than others it was in flight.

const MS: i64 = 1_000_000;

/// The clock, in steps of a millisecond as usual, counted from its first timestamp. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    first: u32,
    first_seen: i64,
    last: i64,
    last_seen: i64,
    /// The least difference between when a segment was seen and its timestamp: the way without a queue.
    pub(crate) least: i64,
    /// The largest.
    most: i64,
}

impl ServerClock {
    /// A clock whose first timestamp was seen now.
    pub(crate) fn new(value: u32, now: i64) -> Self {
        Self { first: value, first_seen: now, last: 0, last_seen: now, least: now, most: now }
    }

    /// A segment with this timestamp is seen.
    pub(crate) fn read(&mut self, value: u32, now: i64) {
        self.last = i64::from(value.wrapping_sub(self.first) as i32) * MS;
        self.last_seen = now;
        self.least = self.least.min(now - self.last);
        self.most = self.most.max(now - self.last);
    }

    /// True if this timestamp shows a tenth at most of the time that has passed since the last one by the capture's clock,
    /// which then was set. The rate of this clock is that seen before, or once a second, the least of RFC 7323 §5.4.
    pub(crate) fn stood_still(&self, value: u32, now: i64) -> bool {
        let gap = now - self.last_seen;
        let ticks = i64::from(value.wrapping_sub(self.first) as i32) - self.last / MS;
        if gap < 1000 * MS || ticks < 0 {
            return false;
        }
        let (passed, ticked) = (self.last_seen - self.first_seen, self.last / MS);
        let known = ticked >= 5 && passed > 0;
        let tick = if known { (passed / ticked).max(MS) } else { 100 * MS };
        // Some proxies answer with one timestamp for the whole connection, which shows no time.
        let has_ticked = (ticked, ticks) != (0, 0);
        has_ticked && ticks.saturating_mul(10).saturating_mul(tick) < gap
    }

    /// When the last segment was sent at the latest: within the millisecond that its timestamp names.
    pub(crate) fn latest(&self) -> i64 {
        self.last + MS
    }

    /// Difference of the times in flight of the slowest and the fastest segment.
    pub(crate) fn variation(&self) -> i64 {
        self.most - self.least
    }

    /// True if it ticks in milliseconds, as far as can be seen.
    pub(crate) fn is_plausible(&self) -> bool {
        let passed = self.last_seen - self.first_seen;
        // Delays from queues must not decide.
        let slack = 2 * self.variation().min(passed / 4) + 20 * MS;
        (self.last - passed).abs() <= slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock with steps of this number of milliseconds, seen every 10 ms for a second.
    fn clock(step: u32) -> ServerClock {
        let mut clock = ServerClock::new(u32::MAX - 20, 500 * MS);
        for tick in 1..100_u32 {
            let value = (u32::MAX - 20).wrapping_add(tick * 10 / step);
            clock.read(value, 500 * MS + i64::from(tick) * 10 * MS);
        }
        clock
    }

    #[test]
    fn a_clock_in_milliseconds_is_told_from_slower_ones_across_its_wrap() {
        assert!(clock(1).is_plausible());
        assert!(!clock(10).is_plausible());
        assert_eq!(clock(1).variation(), 0);
    }

    #[test]
    fn a_clock_that_never_ticks_shows_no_time() {
        let mut clock = ServerClock::new(7, 0);
        for seconds in 1..10 {
            assert!(!clock.stood_still(7, seconds * 1000 * MS));
            clock.read(7, seconds * 1000 * MS);
        }
        let after_10_ms = (u32::MAX - 20).wrapping_add(1000);
        assert!(self::clock(1).stood_still(after_10_ms, 60_000 * MS));
    }

    #[test]
    fn a_segment_that_waited_tells_by_how_much() {
        let mut clock = ServerClock::new(7, 0);
        clock.read(17, 10 * MS);
        clock.read(20, 43 * MS);
        assert_eq!((clock.variation(), clock.latest()), (30 * MS, 14 * MS));
    }
}
