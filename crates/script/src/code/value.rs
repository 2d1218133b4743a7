//! The value of an expression in a `%{ }%` block.

use std::cmp::Ordering;
use std::fmt;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number, or `True` and `False` as 1 and 0.
    Integer(i64),
    /// A number with a point.
    Decimal(f64),
    /// A text.
    Text(String),
    /// Several values.
    Tuple(Vec<Value>),
}

impl Value {
    /// True if a condition with this value holds.
    pub(super) fn holds(&self) -> bool {
        match self {
            Self::Integer(number) => *number != 0,
            Self::Decimal(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(values) => !values.is_empty(),
        }
    }

    /// The number, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Decimal(number) => Some(*number),
            _ => None,
        }
    }

    /// Its order relative to another value; none if the two cannot be compared.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Tuple(a), Self::Tuple(b)) => {
                for (a, b) in a.iter().zip(b) {
                    match a.compare(b)? {
                        Ordering::Equal => {}
                        unequal => return Some(unequal),
                    }
                }
                Some(a.len().cmp(&b.len()))
            }
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Decimal(number) => write!(f, "{number:?}"),
            Self::Text(text) => f.write_str(text),
            Self::Tuple(values) => {
                f.write_str("(")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}
