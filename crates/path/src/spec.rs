//! The parameters of queues, losses, rates and impairments, each written once: what a plan holds, the bounds that a value
//! is checked against, and the description of which Python makes the keys of a scenario.

use std::{fmt::Display, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{Nanos, queue::Limit};

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

/// A queue, loss, rate or impairment that a link can have.
#[derive(Debug, Serialize)]
pub struct Part {
    /// Its name; the plan has it in snake case, as `kind`.
    pub name: &'static str,
    /// Its documentation, for users.
    pub doc: String,
    /// Its parameters.
    pub fields: Vec<Field>,
}

/// A parameter of a part.
#[derive(Debug, Serialize)]
pub struct Field {
    /// Its name in a plan. The ending of an integer's is its unit.
    pub name: &'static str,
    /// Its documentation, for users.
    pub doc: String,
    /// The type's name; of words `{"words": [...]}`, of another part `{"part": name}`, of a value that may be none
    /// `{"optional": type}`.
    pub r#type: Value,
    /// Relations that hold, such as `(">=", 1)`.
    pub bounds: Vec<(&'static str, Value)>,
    /// The value of a scenario that has none; none: a scenario must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// A type that a parameter can have.
pub(crate) trait Parameter {
    /// See [`Field::type`].
    fn describe() -> Value;

    /// The value, if it is the limit of a queue.
    fn as_limit(&mut self) -> Option<&mut Limit> {
        None
    }
}

macro_rules! parameters {
    ($($type:ty: $name:literal,)*) => {
        $(impl Parameter for $type {
            fn describe() -> Value {
                json!($name)
            }
        })*
    };
}

parameters! {
    bool: "boolean",
    f64: "number",
    u32: "u32",
    u64: "u64",
    Arc<[u32]>: "integers",
    Vec<(Nanos, u64)>: "rates by time",
}

impl Parameter for Limit {
    fn describe() -> Value {
        json!("limit")
    }

    fn as_limit(&mut self) -> Option<&mut Limit> {
        Some(self)
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn describe() -> Value {
        json!({ "optional": T::describe() })
    }
}

/// The lines of a documentation comment.
pub(crate) fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Declares the parameters of a part. Each can have bounds, in brackets, and a default for scenarios.
macro_rules! spec {
    (
        $(#[doc = $doc:literal])*
        pub struct $spec:ident {
            $(
                $(#[doc = $words:literal])*
                $(#[serde($serde:ident)])?
                $field:ident: $type:ty $([$($relation:tt $bound:literal),*])? $(= $default:expr)?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $spec {
            $($(#[doc = $words])* $(#[serde($serde)])? pub $field: $type,)*
        }

        impl $spec {
            pub(crate) fn describe(name: &'static str) -> $crate::spec::Part {
                let fields = vec![$($crate::spec::Field {
                    name: stringify!($field),
                    doc: $crate::spec::text(&[$($words),*]),
                    r#type: <$type as $crate::spec::Parameter>::describe(),
                    bounds: vec![$($((stringify!($relation), serde_json::json!($bound))),*)?],
                    default: [$(serde_json::to_value::<$type>($default).expect("it has a form in a plan"))?].into_iter().next(),
                }),*];
                $crate::spec::Part { name, doc: $crate::spec::text(&[$($doc),*]), fields }
            }

            /// Checks the bounds of each parameter.
            #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "no number is outside of every bound")]
            pub(crate) fn check_bounds(&self) -> Result<(), $crate::SpecError> {
                $($(if !(true $(&& self.$field $relation $bound)*) {
                    let right = concat!("it must be ", $(stringify!($relation $bound), ", "),*);
                    return Err($crate::SpecError::new(stringify!($field), &self.$field, right.trim_end_matches(", ")));
                })?)*
                Ok(())
            }

            #[allow(dead_code, reason = "only a queue has a limit")]
            pub(crate) fn limit(&mut self) -> Option<&mut $crate::queue::Limit> {
                $(if let Some(limit) = $crate::spec::Parameter::as_limit(&mut self.$field) {
                    return Some(limit);
                })*
                None
            }
        }

        impl $crate::spec::Parameter for $spec {
            fn describe() -> serde_json::Value {
                serde_json::json!({ "part": stringify!($spec).trim_end_matches("Spec") })
            }
        }
    };
}

pub(crate) use spec;
