//! The result of a script.

use crate::problem::{Problem, ProblemKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything happened as the script says.
    #[default]
    Pass,
    /// Something happened otherwise.
    Differs,
    /// The script asks for something that is not modeled.
    Unsupported,
    /// The script is wrong.
    Error,
}

/// The result of a script, and the reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// In a word.
    pub verdict: Verdict,
    /// In a sentence, with the line of the script; empty for a pass.
    pub reason: String,
    /// Line of the script that the reason is about; 0 for a pass.
    pub line: u32,
    /// For a difference: the expected packet, the actual packet, and the segments before it.
    pub details: Vec<String>,
    /// Notes that do not change the verdict.
    pub notes: Vec<String>,
    /// The `%{ }%` blocks that the run came to, in order.
    pub checks: Vec<Check>,
}

/// A `%{ }%` block: statements in Python about the connection, for the caller to evaluate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Check {
    /// Line of the script where it begins.
    pub line: u32,
    /// The text between the braces.
    pub code: String,
    /// The values of the names in it that are known.
    pub values: BTreeMap<String, Known>,
    /// The segments before it.
    pub segments: Vec<String>,
}

/// The value of a name in a `%{ }%` block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Known {
    /// Its value.
    Value(i64),
    /// It exists in Linux, but not here: one sentence.
    Unsupported(String),
}

impl Report {
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        let verdict = match problem.kind {
            ProblemKind::Malformed => Verdict::Error,
            ProblemKind::Unsupported => Verdict::Unsupported,
        };
        Self { verdict, reason: problem.to_string(), line: problem.line, ..Self::default() }
    }
}
