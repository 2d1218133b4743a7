//! A refused part of a script: its place in the line, and the reason.

use firstflight_tcp::ProfileError;
use std::fmt;
use thiserror::Error;

/// A setting, command or value that is refused. A [`crate::Problem`] adds the line of the script.
#[derive(Debug, Error)]
pub struct Refusal {
    /// The parts of the line that hold it, the outermost first, such as `tcp_rmem=1`; none: the line itself.
    pub place: Vec<String>,
    /// The problem.
    pub reason: Reason,
}

/// Why something is refused.
#[derive(Debug, Error)]
pub enum Reason {
    /// A profile that makes no sense.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A field with an unknown name or a value of the wrong type.
    #[error("{0}")]
    Field(#[from] serde_json::Error),
    /// Anything else: one sentence.
    #[error("{0}")]
    Other(String),
}

/// A [`Refusal`] for one reason, written as for `format!`.
macro_rules! refuse {
    ($($sentence:tt)*) => {
        $crate::refusal::Refusal::from($crate::refusal::Reason::Other(format!($($sentence)*)))
    };
}
pub(crate) use refuse;

impl Refusal {
    /// For `map_err`: the part of the line that holds it.
    pub(crate) fn within(part: impl fmt::Display) -> impl FnOnce(Self) -> Self {
        move |mut refusal| {
            refusal.place.insert(0, part.to_string());
            refusal
        }
    }
}

impl<R: Into<Reason>> From<R> for Refusal {
    fn from(reason: R) -> Self {
        Self { place: Vec::new(), reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.iter().try_for_each(|part| write!(f, "{part}: "))?;
        write!(f, "{}", self.reason)
    }
}
