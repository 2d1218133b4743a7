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
    /// The valid values, or the form to write.
    pub right: String,
}

impl SpecError {
    /// An error of a key, with its value and the correct form.
    pub fn new(field: &'static str, found: impl Display, right: impl Into<String>) -> SpecError {
        SpecError { field, found: found.to_string(), right: right.into() }
    }
}
