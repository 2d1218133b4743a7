use std::fmt;

use firstflight_path::SpecError;
use firstflight_tcp::ProfileError;
use thiserror::Error;

/// A plan that cannot be simulated: the problem, and its place in the plan.
#[derive(Debug, Error)]
pub struct PlanError {
    /// The parts of the plan that hold it, the outermost first, such as `application "web"`; none: the plan itself.
    pub place: Vec<String>,
    /// The problem.
    pub problem: Problem,
}

/// A problem at a place of a plan.
#[derive(Debug, Error)]
pub enum Problem {
    /// It is no JSON, or has a key or a type that it must not have.
    #[error("this is not a plan: {0}")]
    Unreadable(serde_json::Error),
    /// A value that cannot be.
    #[error(transparent)]
    Value(#[from] SpecError),
    /// A profile that makes no sense.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Parts that do not fit together: one sentence.
    #[error("{0}")]
    Misfit(String),
}

/// A [`PlanError`] of parts that do not fit together, written as for `format!`.
macro_rules! misfit {
    ($($sentence:tt)*) => {
        $crate::PlanError::from($crate::Problem::Misfit(format!($($sentence)*)))
    };
}

impl PlanError {
    /// For `map_err`: the part of the plan that holds the problem.
    pub(crate) fn within<E: Into<PlanError>>(part: impl fmt::Display) -> impl Fn(E) -> PlanError {
        move |error| {
            let mut error = error.into();
            error.place.insert(0, part.to_string());
            error
        }
    }
}

impl<E: Into<Problem>> From<E> for PlanError {
    fn from(problem: E) -> PlanError {
        PlanError { place: Vec::new(), problem: problem.into() }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.iter().try_for_each(|part| write!(f, "{part}: "))?;
        write!(f, "{}", self.problem)
    }
}
