//! When a timer expires, if it is set: exactly, by ticks, or by the slots of a timer wheel.

use crate::profile::{Profile, TimerTick};
use crate::{MILLISECOND, Nanos};
use std::fmt;

/// A slot of the wheel's first level is a tick; that of each further level is eight times longer.
const LEVEL_SHIFT: u32 = 3;
/// Slots of a level.
const LEVEL_SLOTS: u64 = 64;
/// Levels: of more than 100 ticks a second Linux has nine, of fewer eight, which reach as far as any timer here.
const LEVELS: u32 = 9;

/// When something is due, if ever: an `Option<Nanos>` in the size of a `Nanos`. Never is later than any time.
// `Nanos::MAX` stands for never, and only here: 584 years after the clock began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Nanos);

impl Deadline {
    /// Not set.
    pub const NEVER: Self = Self(Nanos::MAX);

    /// Due at `time`; a time that saturated at `Nanos::MAX` never comes.
    pub const fn at(time: Nanos) -> Self {
        Self(time)
    }

    /// True if there is a time at which it is due.
    pub const fn is_set(self) -> bool {
        self.0 != Nanos::MAX
    }

    /// True if it is due at `now`, a time before `Nanos::MAX`.
    pub const fn is_due(self, now: Nanos) -> bool {
        self.0 <= now
    }

    /// The time; none if it is not set.
    pub const fn time(self) -> Option<Nanos> {
        if self.is_set() { Some(self.0) } else { None }
    }

    /// The earlier of two.
    #[must_use]
    pub fn earliest(self, other: Self) -> Self {
        self.min(other)
    }

    /// The time, or `end` if it is later or not set.
    pub fn no_later_than(self, end: Nanos) -> Nanos {
        self.0.min(end)
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::NEVER
    }
}

impl From<Option<Nanos>> for Deadline {
    fn from(time: Option<Nanos>) -> Self {
        time.map_or(Self::NEVER, Self::at)
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time() {
            Some(time) => write!(formatter, "{time}"),
            None => formatter.write_str("never"),
        }
    }
}

impl Profile {
    /// When a timer expires that is set now for this deadline.
    #[inline]
    pub(crate) fn expiry(&self, now: Nanos, deadline: Deadline) -> Deadline {
        match self.timer_tick {
            None => deadline,
            Some(tick) => deadline.time().map(|time| tick.expiry(now, time)).into(),
        }
    }

    /// Shortest time that a probe or a late segment is waited for: with ticks, the next one may come immediately.
    // Linux, TCP_TIMEOUT_MIN_US.
    pub(crate) fn shortest_timer(&self) -> Nanos {
        self.timer_tick.map_or(0, |_| 2 * MILLISECOND)
    }

    /// Time after which the SYN leaves again once a stale SYN-ACK was refused.
    // Linux, TCP_TIMEOUT_MIN: two ticks; on average half a tick of 4 ms more.
    pub(crate) fn timeout_after_stale_syn_ack(&self) -> Nanos {
        self.timer_tick.map_or(10 * MILLISECOND, |tick| 2 * tick.period_ns)
    }

    /// This timeout, in whole ticks.
    pub(crate) fn whole_ticks(&self, timeout: Nanos) -> Nanos {
        self.timer_tick.map_or(timeout, |tick| timeout.div_ceil(tick.period_ns).saturating_mul(tick.period_ns))
    }

    /// Tick in which CUBIC counts time.
    pub(crate) fn cubic_tick(&self) -> Nanos {
        self.timer_tick.map_or(MILLISECOND, |tick| tick.period_ns)
    }
}

impl TimerTick {
    /// When a timer expires that is set now for this time.
    fn expiry(&self, now: Nanos, time: Nanos) -> Nanos {
        self.of_expiry(now, time).saturating_mul(self.period_ns)
    }

    /// Number of the tick on which it does.
    fn of_expiry(&self, now: Nanos, time: Nanos) -> u64 {
        let tick = self.period_ns;
        if !self.wheel {
            return time.div_ceil(tick);
        }
        // Linux, calc_wheel_index: the slot after the one that the timer belongs to, so that none expires early.
        let ticks = time.saturating_sub(now).div_ceil(tick);
        let level = (1..LEVELS).take_while(|&level| ticks >= (LEVEL_SLOTS - 1) << ((level - 1) * LEVEL_SHIFT)).count();
        let shift = LEVEL_SHIFT * level as u32;
        ((now / tick + ticks) >> shift).saturating_add(1) << shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn wheel() -> Profile {
        Profile { timer_tick: Some(TimerTick { period_ns: 4 * MS, wheel: true }), ..Profile::linux() }
    }

    fn expiry(profile: &Profile, now: Nanos, time: Nanos) -> Nanos {
        profile.expiry(now, Deadline::at(time)).time().unwrap()
    }

    #[test]
    fn without_ticks_timers_are_exact_and_with_them_they_wait_for_the_next_one() {
        assert_eq!(expiry(&Profile::linux(), 5, 12_345), 12_345);
        let ticks = Profile { timer_tick: Some(TimerTick { period_ns: 4 * MS, wheel: false }), ..wheel() };
        assert_eq!([1, 4 * MS, 4 * MS + 1].map(|time| expiry(&ticks, 0, time)), [4 * MS, 4 * MS, 8 * MS]);
        assert_eq!(ticks.expiry(0, Deadline::NEVER), Deadline::NEVER);
    }

    #[test]
    fn the_wheel_steps_by_a_tick_up_to_63_by_8_up_to_504_and_by_64_beyond() {
        let expiry = |ticks: u64| expiry(&wheel(), 0, ticks * 4 * MS) / (4 * MS);
        assert_eq!([1, 2, 62].map(expiry), [2, 3, 63]);
        assert_eq!([63, 64, 71, 72, 503].map(expiry), [64, 72, 72, 80, 504]);
        assert_eq!([504, 512, 575, 576].map(expiry), [512, 576, 576, 640]);
    }

    #[test]
    fn a_timer_that_is_set_within_a_tick_counts_from_its_beginning() {
        // Ten ticks from 7.9 ms on: the tick that begins at 4 ms, and one more.
        assert_eq!(expiry(&wheel(), 7_900_000, 47_900_000), 48 * MS);
        assert_eq!(expiry(&wheel(), 8 * MS, 48 * MS), 52 * MS);
    }

    #[test]
    fn a_timer_never_expires_early_whatever_its_length() {
        for now in [0, 1, 3_999_999, 4 * MS, 1_234_567_890] {
            for length in [1, 4 * MS, 251 * MS, 252 * MS, 2_015 * MS, 2_017 * MS, 120_000 * MS, 86_400_000 * MS] {
                let late = expiry(&wheel(), now, now + length) - (now + length);
                // At most a slot of its level and the tick that has begun.
                assert!(late <= 4 * MS + length / 7 + 4 * MS, "{now} {length} {late}");
            }
        }
        assert_eq!(wheel().expiry(1, Deadline::NEVER), Deadline::NEVER);
    }

    #[test]
    fn a_deadline_is_due_from_its_time_on_and_one_that_is_not_set_never_is() {
        let deadline = Deadline::at(10);
        assert_eq!([9, 10, 11].map(|now| deadline.is_due(now)), [false, true, true]);
        assert!(!Deadline::NEVER.is_due(Nanos::MAX - 1));
        assert_eq!(Deadline::at(0).time(), Some(0));
        assert_eq!((Deadline::NEVER.is_set(), Deadline::NEVER.time()), (false, None));
        assert_eq!(Deadline::from(None), Deadline::default());
    }

    #[test]
    fn the_earliest_of_two_is_the_one_that_is_set() {
        assert_eq!(Deadline::NEVER.earliest(Deadline::at(7)), Deadline::at(7));
        assert_eq!(Deadline::at(3).earliest(Deadline::at(7)), Deadline::at(3));
        assert_eq!([Deadline::at(3), Deadline::at(9), Deadline::NEVER].map(|due| due.no_later_than(5)), [3, 5, 5]);
    }

    #[test]
    fn a_time_that_saturates_never_comes() {
        assert!(!Deadline::at(Nanos::MAX - 1_000).is_due(5) && !Deadline::at(5u64.saturating_add(Nanos::MAX)).is_set());
        assert_eq!(format!("{:?} {:?}", Deadline::at(5), Deadline::NEVER), "5 never");
        assert_eq!(size_of::<Deadline>(), size_of::<Nanos>());
    }
}
