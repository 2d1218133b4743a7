//! The timestamps option (RFC 7323): our clock on the wire, the peer's value to echo, and protection against wrapped
//! sequence numbers.

use crate::segment::Timestamps;
use crate::{MILLISECOND, Nanos, SECOND};

/// A tick of our timestamp clock.
// RFC 7323 §5.4: between 1 ms and 1 s a tick; Linux ticks in milliseconds.
pub(crate) const TICK: Nanos = MILLISECOND;

/// Time after which TS.Recent says nothing any more.
// RFC 7323 §5.5: TS.Recent is invalidated after 24 days of idleness, before a clock of 1 ms can wrap its sign bit.
const RECENT_VALID: Nanos = 24 * 24 * 3600 * SECOND;

/// One end's state of the option.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimestampState {
    /// Our clock's value at the caller's time 0.
    offset: u32,
    /// TS.Recent: the value to echo.
    recent: u32,
    /// When it was taken.
    recent_at: Nanos,
    /// TSval of our first SYN or SYN-ACK.
    syn: u32,
}

impl TimestampState {
    // RFC 7323 §5.4 lets the offset be any; §7.1 asks that clocks of different connections not be comparable.
    pub(crate) fn new(initial_sequence: u32) -> Self {
        Self { offset: initial_sequence, ..Self::default() }
    }

    /// Our clock: the TSval of a segment that leaves now.
    pub(crate) fn value(&self, now: Nanos) -> u32 {
        ((now / TICK) as u32).wrapping_add(self.offset)
    }

    /// The option of a segment that leaves now.
    pub(crate) fn option(&self, now: Nanos) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent }
    }

    /// Our SYN or SYN-ACK is sent for the first time.
    pub(crate) fn note_first_syn(&mut self, now: Nanos) {
        self.syn = self.value(now);
    }

    /// Whether `echo` answers the first copy of our SYN or SYN-ACK.
    pub(crate) fn echoes_first_syn(&self, echo: u32) -> bool {
        echo == self.syn
    }

    /// True if we may have sent this value, on the first SYN or since.
    pub(crate) fn may_echo(&self, now: Nanos, echo: u32) -> bool {
        echo.wrapping_sub(self.syn) <= self.value(now).wrapping_sub(self.syn)
    }

    /// Takes over the peer's value for the echo.
    #[inline]
    pub(crate) fn record(&mut self, now: Nanos, value: u32) {
        self.recent = value;
        self.recent_at = now;
    }

    /// Ticks by which a value lags behind the one to echo; negative if it is newer. None once the value to echo is too
    /// old.
    // RFC 7323 §4.1: timestamps compare modulo 2^32, as sequence numbers do.
    #[inline]
    pub(crate) fn lag(&self, now: Nanos, value: u32) -> Option<i32> {
        let valid = now - self.recent_at <= RECENT_VALID;
        valid.then(|| self.recent.wrapping_sub(value) as i32)
    }

    /// Time since we sent the value that comes back as `echo`, in whole ticks, maybe none at all; no answer if we cannot
    /// have sent it.
    #[inline]
    pub(crate) fn age(&self, now: Nanos, echo: u32) -> Option<Nanos> {
        let ticks = self.value(now).wrapping_sub(echo) as i32;
        (ticks >= 0).then(|| ticks as Nanos * TICK).filter(|&age| age <= now)
    }
}

/// The RTT from an echo of this age.
// Linux, tcp_rtt_tsopt_us: less than a tick counts as one. A round trip of no time at all would pass for the shortest
// ever, and leave RACK no room for reordering.
pub(crate) fn round_trip(age: Nanos) -> Nanos {
    age.max(TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn the_clock_ticks_in_milliseconds_and_wraps() {
        let state = TimestampState::new(u32::MAX);
        assert_eq!(state.value(0), u32::MAX);
        assert_eq!(state.value(999_999), u32::MAX);
        assert_eq!(state.value(MS), 0);
        assert_eq!(state.age(30 * MS, state.value(10 * MS)), Some(20 * MS));
        assert_eq!(state.age(10 * MS, state.value(30 * MS)), None);
    }

    #[test]
    fn less_than_a_tick_is_no_age_but_a_round_trip_of_one() {
        let state = TimestampState::new(0);
        assert_eq!(state.age(30 * MS + 999_999, state.value(30 * MS)), Some(0));
        assert_eq!([round_trip(0), round_trip(2 * MS)], [MS, 2 * MS]);
    }

    #[test]
    fn an_older_value_lags_until_the_echo_is_24_days_old() {
        let mut state = TimestampState::new(0);
        state.record(0, 5);
        assert_eq!(state.lag(MS, 4), Some(1));
        assert_eq!(state.lag(MS, 6), Some(-1));
        assert_eq!(state.lag(MS, 5u32.wrapping_sub(10)), Some(10));
        assert_eq!([RECENT_VALID, RECENT_VALID + 1].map(|now| state.lag(now, 4)), [Some(1), None]);
    }
}
