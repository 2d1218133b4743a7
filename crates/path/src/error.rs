use std::fmt::Display;

use thiserror::Error;

/// A parameter that no link can have.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{field} is {found}; {right}")]
pub struct SpecError {
    /// The key, below the link's own.
    pub field: &'static str,
    /// Its value.
    pub found: String,
    /// The values it can have, or what to write.
    pub right: String,
}

impl SpecError {
    /// Of a key, what its value is, and what would be right.
    pub fn new(field: &'static str, found: impl Display, right: impl Into<String>) -> SpecError {
        SpecError { field, found: found.to_string(), right: right.into() }
    }
}
