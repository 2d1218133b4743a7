//! The reasons why a script cannot be run.

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
