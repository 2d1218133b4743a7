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

/// A setting, command or value that is refused. A [`Problem`] adds the line of the script.
#[derive(Debug, Error)]
pub struct Refusal {
    /// The parts of the line that hold it, the outermost first, such as `tcp_rmem=1`; none: the line itself.
    pub place: Vec<String>,
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
        $crate::problem::Refusal::from($crate::problem::Reason::Other(format!($($sentence)*)))
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
