//! Profiles that are refused, and why.

use crate::Nanos;
use std::ops::RangeInclusive;
use thiserror::Error;

/// Longest timeout that a profile may ask for: a day, which keeps the arithmetic far from overflow.
pub(crate) const LONGEST_TIMEOUT: Nanos = 86_400_000_000_000;

/// A profile that makes no sense. Its sentence begins with the field's path.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProfileError {
    /// A field out of its range.
    #[error("{field} is {value}, but must be from {low} to {high}{}", given(*.condition))]
    OutOfRange {
        /// Path of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// Least value.
        low: u64,
        /// Largest value.
        high: u64,
        /// The setting that narrows the range, such as "with timestamps".
        condition: Option<&'static str>,
    },
    /// Fields that act only with another setting, which is missing.
    #[error(
        "{} {} no effect without {needed}; set that, or switch {} off",
        fields.join(", "),
        if fields.len() == 1 { "has" } else { "have" },
        if fields.len() == 1 { "it" } else { "these" }
    )]
    NoEffectWithout {
        /// Paths of the fields, at least one.
        fields: Vec<&'static str>,
        /// The missing setting.
        needed: &'static str,
    },
    /// A field that another setting takes over.
    #[error("{field} has no effect with {setting}, which {reason}; set it to none")]
    NoEffectWith {
        /// Path of the field.
        field: &'static str,
        /// The other setting.
        setting: &'static str,
        /// What the other setting does or lacks.
        reason: &'static str,
    },
    /// A setting that cannot work without another.
    #[error("{setting} needs {needed}, {reason}; set that")]
    Needs {
        /// The setting.
        setting: &'static str,
        /// What it needs.
        needed: &'static str,
        /// Why it does, as a clause.
        reason: &'static str,
    },
}

fn given(condition: Option<&str>) -> String {
    condition.map_or_else(String::new, |condition| format!(" {condition}"))
}

/// Refuses a value out of its range.
pub(crate) fn within(
    field: &'static str,
    value: impl Into<u64>,
    range: RangeInclusive<u64>,
) -> Result<(), ProfileError> {
    within_given(None, field, value, range)
}

/// Refuses a value out of the range that it has under a condition.
pub(super) fn within_given(
    condition: Option<&'static str>,
    field: &'static str,
    value: impl Into<u64>,
    range: RangeInclusive<u64>,
) -> Result<(), ProfileError> {
    let value = value.into();
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(ProfileError::OutOfRange { field, value, low, high, condition })
}

/// Refuses those of the `switches` that are on, if what they need is not there.
pub(super) fn only_with(
    needed: &'static str,
    is_there: bool,
    switches: &[(&'static str, bool)],
) -> Result<(), ProfileError> {
    let fields: Vec<_> = switches.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    if is_there || fields.is_empty() { Ok(()) } else { Err(ProfileError::NoEffectWithout { fields, needed }) }
}
