//! The reasons why a script, or a part of it, cannot be run.

use firstflight_tcp::ProfileError;
use std::fmt;
use thiserror::Error;

/// Maximum nesting of arguments.
pub(crate) const DEEPEST: u32 = 50;

/// Why a script cannot be read or run as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProblemKind {
    /// An error in the script: the value found and the expected form.
    Malformed,
    /// The script asks for something that is not modeled here.
    Unsupported,
}

/// A problem of a script, with the line it is in.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {sentence}")]
pub struct Problem {
    /// Line of the script, counted from 1.
    pub line: u32,
    /// Wrong, or not modeled.
    pub kind: ProblemKind,
    /// One sentence, without the line.
    pub sentence: String,
}

/// Ends a function with a [`Problem`] of a script that is wrong: its line, and a sentence as for `format!`.
macro_rules! malformed {
    ($line:expr, $($sentence:tt)*) => {
        return Err($crate::problem::Problem::malformed($line, format_args!($($sentence)*)).into())
    };
}
pub(crate) use malformed;

/// As [`malformed`], of a script that asks for something that is not modeled.
macro_rules! unsupported {
    ($line:expr, $($sentence:tt)*) => {
        return Err($crate::problem::Problem::unsupported($line, format_args!($($sentence)*)).into())
    };
}
pub(crate) use unsupported;

impl Problem {
    /// A script that is wrong.
    pub fn malformed(line: u32, sentence: impl fmt::Display) -> Self {
        Self { line, kind: ProblemKind::Malformed, sentence: sentence.to_string() }
    }

    /// A script that asks for something that is not modeled.
    pub fn unsupported(line: u32, sentence: impl fmt::Display) -> Self {
        Self { line, kind: ProblemKind::Unsupported, sentence: sentence.to_string() }
    }
}

/// Why a setting, command or value is refused. A [`Problem`] adds the line of the script.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A profile that makes no sense.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A field with an unknown name or a value of the wrong type.
    #[error("{0}")]
    Field(#[from] serde_json::Error),
    /// Anything else: one sentence.
    #[error("{0}")]
    Other(String),
    /// In a part of the line, such as `tcp_rmem=1`.
    #[error("{0}: {1}")]
    Within(String, Box<Refusal>),
}

/// A [`Refusal`] for any other reason, written as for `format!`.
macro_rules! refuse {
    ($($sentence:tt)*) => {
        $crate::problem::Refusal::Other(format!($($sentence)*))
    };
}
pub(crate) use refuse;

impl Refusal {
    /// For `map_err`: the part of the line that holds it.
    pub(crate) fn within(part: impl fmt::Display) -> impl FnOnce(Self) -> Self {
        move |refusal| Self::Within(part.to_string(), Box::new(refusal))
    }
}
