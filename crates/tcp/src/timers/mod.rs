//! When a timer expires, if it is set.

mod clock;

use crate::Nanos;
use std::fmt;

/// When something is due, if ever: an `Option<Nanos>` in the size of a `Nanos`. Never is later than any time.
// `Nanos::MAX` stands for never, and only here: 584 years after the clock began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Nanos);

impl Deadline {
    /// Not set.
    pub const NEVER: Self = Self(Nanos::MAX);

    /// Due at `time`; a time that saturated at `Nanos::MAX` never comes.
    #[inline]
    pub const fn at(time: Nanos) -> Self {
        Self(time)
    }

    /// True if there is a time at which it is due.
    #[inline]
    pub const fn is_set(self) -> bool {
        self.0 != Nanos::MAX
    }

    /// True if it is due at `now`, a time before `Nanos::MAX`.
    #[inline]
    pub const fn is_due(self, now: Nanos) -> bool {
        self.0 <= now
    }

    /// The time; none if it is not set.
    #[inline]
    pub const fn time(self) -> Option<Nanos> {
        if self.is_set() { Some(self.0) } else { None }
    }

    /// The earlier of two.
    #[inline]
    #[must_use]
    pub fn earliest(self, other: Self) -> Self {
        self.min(other)
    }

    /// The time, or `end` if it is later or not set.
    #[inline]
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
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

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
