//! Reads the arguments of a call.

use crate::problem::Problem;
use crate::script::{Argument, Call};

/// A whole number among the arguments, by its place.
pub(in crate::run) fn integer(call: &Call, place: usize, what: &str) -> Result<i64, Problem> {
    match call.arguments.get(place) {
        Some(Argument::Integer(number)) => Ok(*number),
        other => Err(wrong(call, place, &format!("{what}, a whole number"), other)),
    }
}

/// A symbol, or several joined by `|`; none for 0.
pub(in crate::run) fn symbols<'a>(call: &'a Call, place: usize, what: &str) -> Result<&'a [String], Problem> {
    match call.arguments.get(place) {
        Some(Argument::Symbols(symbols)) => Ok(symbols),
        Some(Argument::Integer(0)) => Ok(&[]),
        other => Err(wrong(call, place, what, other)),
    }
}

pub(in crate::run) fn wrong(call: &Call, place: usize, what: &str, found: Option<&Argument>) -> Problem {
    let found = found.map_or("nothing".to_owned(), shown);
    Problem::malformed(call.line, format!("argument {} of {}() is {found}; it should be {what}", place + 1, call.name))
}

/// The lengths that an iovec array adds up to: `[{..., 40}, {..., 60}]`.
pub(super) fn vector_bytes(argument: Option<&Argument>) -> Option<i64> {
    let Argument::List(parts) = argument? else { return None };
    parts.iter().try_fold(0i64, |sum, part| match part {
        Argument::Structure(fields) => match fields.as_slice() {
            [_, (None, Argument::Integer(bytes))] if *bytes >= 0 => sum.checked_add(*bytes),
            _ => None,
        },
        _ => None,
    })
}

/// A named field of a structure.
pub(in crate::run) fn field<'a>(argument: Option<&'a Argument>, name: &str) -> Option<&'a Argument> {
    let Argument::Structure(fields) = argument? else { return None };
    fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, value)| value)
}

/// An argument as a script writes it.
pub(in crate::run) fn shown(argument: &Argument) -> String {
    let list = |arguments: &[Argument]| arguments.iter().map(shown).collect::<Vec<_>>().join(", ");
    match argument {
        Argument::Ellipsis => "...".to_owned(),
        Argument::Integer(number) => number.to_string(),
        Argument::Symbols(symbols) => symbols.join("|"),
        Argument::Text(text) => format!("\"{text}\""),
        Argument::List(arguments) => format!("[{}]", list(arguments)),
        Argument::Structure(fields) => {
            let field = |(name, value): &(Option<String>, Argument)| match name {
                Some(name) => format!("{name}={}", shown(value)),
                None => shown(value),
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Argument::Function(name, arguments) => format!("{name}({})", list(arguments)),
    }
}
