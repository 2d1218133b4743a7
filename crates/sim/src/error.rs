use std::fmt;

use firstflight_path::SpecError;
use firstflight_tcp::ProfileError;
use thiserror::Error;

/// Why a plan cannot be simulated.
#[derive(Debug, Error)]
pub enum PlanError {
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
    /// In a part of the plan, such as `application "web"`.
    #[error("{0}: {1}")]
    Within(String, Box<PlanError>),
}

/// A [`PlanError`] of parts that do not fit together, written as for `format!`.
macro_rules! misfit {
    ($($sentence:tt)*) => {
        $crate::PlanError::Misfit(format!($($sentence)*))
    };
}

impl PlanError {
    /// For `map_err`: the part of the plan that holds the problem.
    pub(crate) fn within<E: Into<PlanError>>(part: impl fmt::Display) -> impl Fn(E) -> PlanError {
        move |error| PlanError::Within(part.to_string(), Box::new(error.into()))
    }
}
